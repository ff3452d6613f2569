#include "bench/gpu/c_api.h"

#include "bench/gpu/cublas_lt.h"
#include "bench/gpu/kiln_call.h"
#include "bench/gpu/suite.h"
#include "bench/gpu/workloads.h"

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using kiln::Runtime;
using kiln::RuntimeOptions;
using kiln::Stream;
using kiln::bench::Contender;
using kiln::bench::KilnCall;
using kiln::bench::LtProduct;
using kiln::bench::Suite;
using kiln::bench::TimerOptions;
using kiln::bench::Workload;
using kiln::internal::Json;

struct kb_suite {
  std::unique_ptr<Suite> suite;  // null: list only, or not open
  std::unique_ptr<Runtime> list_only;
  std::vector<Workload> workloads;
  std::map<int, std::pair<std::unique_ptr<KilnCall>, Stream>> calls;
  std::map<int, std::pair<std::unique_ptr<LtProduct>, CUstream>> products;
  int next_handle = 0;
  std::string result;
};

namespace {

TimerOptions timer_options(const char* text) {
  const Json json = Json::parse(text);
  TimerOptions options;
  options.cold_l2 = json.value("cold_l2", options.cold_l2);
  options.warm_up_ms = json.value("warm_up_ms", options.warm_up_ms);
  options.measure_ms = json.value("measure_ms", options.measure_ms);
  options.max_iterations = json.value("max_iterations", options.max_iterations);
  options.graph = json.value("graph", options.graph);
  return options;
}

absl::StatusOr<Suite*> open_suite(kb_suite* suite) {
  if (suite->suite == nullptr)
    return absl::FailedPreconditionError("kb: the suite must be open: it is not");
  return suite->suite.get();
}

absl::StatusOr<std::pair<KilnCall*, Stream*>> call_of(kb_suite* suite, int handle) {
  const auto found = suite->calls.find(handle);
  if (found == suite->calls.end())
    return absl::NotFoundError(absl::StrFormat("kb: must be a prepared call: got %d", handle));
  return std::pair{found->second.first.get(), &found->second.second};
}

// What enqueues one call of `handle`: a bound workload or a product of cuBLASLt.
absl::StatusOr<std::function<absl::Status()>> function_of(kb_suite* suite, int handle) {
  if (const auto found = suite->products.find(handle); found != suite->products.end()) {
    auto& [product, stream] = found->second;
    return [&product = *product, stream = stream] { return product.call(stream); };
  }
  KILN_ASSIGN_OR_RETURN(const auto made, call_of(suite, handle));
  return [made] { return made.first->call(*made.second); };
}

// Runs `body` and keeps its result; nothing is thrown into the caller's language.
template <class F>
int answer(kb_suite* suite, F body) {
  absl::StatusOr<Json> result = absl::InternalError("kb: no result");
  try {
    result = body();
  } catch (const std::exception& e) {
    result = absl::InvalidArgumentError(e.what());
  }
  Json error;
  if (!result.ok()) error["error"] = kiln::message_of(result.status());
  suite->result = kiln::internal::dump(result.ok() ? *result : error);
  return result.ok() ? 0 : 1;
}

absl::StatusOr<Contender> contender_of(kb_suite* suite, const char* name, kb_call call) {
  const std::string given = name;
  for (const char* const ours : {"kiln", "cublaslt"}) {
    const std::string prefix = std::string(ours) + ":";
    if (!given.starts_with(prefix)) continue;
    KILN_ASSIGN_OR_RETURN(auto function,
                          function_of(suite, std::stoi(given.substr(prefix.size()))));
    return Contender{ours, std::move(function)};
  }
  return Contender{given, [call, given] {
                     if (call() == 0) return absl::OkStatus();
                     return absl::UnknownError(given + ": the call failed");
                   }};
}

absl::StatusOr<Json> measure(kb_suite* suite, CUstream stream, double bytes,
                             std::span<const char* const> names, const kb_call* calls,
                             const TimerOptions& options) {
  KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
  std::vector<Contender> contenders;
  if (bytes > 0) {
    KILN_ASSIGN_OR_RETURN(Contender copy, open->copy_of(static_cast<std::size_t>(bytes), stream));
    contenders.push_back(std::move(copy));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(Contender one, contender_of(suite, names[i], calls[i]));
    contenders.push_back(std::move(one));
  }
  Json list = Json::array();
  for (const auto& timing : open->timer().measure(stream, contenders, options))
    list.push_back(kiln::bench::json_of(timing));
  return list;
}

}  // namespace

kb_suite* kb_open(const char* options) {
  auto* const suite = new kb_suite;
  (void)answer(suite, [&]() -> absl::StatusOr<Json> {
    const Json json = Json::parse(options);
    if (json.value("list_only", false)) {
      suite->list_only = std::make_unique<Runtime>(RuntimeOptions::from_environment());
      return Json::object();
    }
    KILN_ASSIGN_OR_RETURN(suite->suite, Suite::open({.device = json.value("device", 0),
                                                     .cupti = json.value("cupti", "")}));
    return Json::object();
  });
  return suite;
}

const char* kb_result(kb_suite* suite) { return suite->result.c_str(); }

int kb_workloads(kb_suite* suite, const char* family) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    if (suite->list_only == nullptr) KILN_RETURN_IF_ERROR(open_suite(suite).status());
    Runtime& runtime = suite->list_only ? *suite->list_only : suite->suite->runtime();
    KILN_ASSIGN_OR_RETURN(suite->workloads, kiln::bench::perf_workloads(runtime, family));
    Json list = Json::array();
    for (const Workload& one : suite->workloads) {
      KILN_ASSIGN_OR_RETURN(Json json, kiln::bench::json_of(runtime, one));
      list.push_back(std::move(json));
    }
    return list;
  });
}

int kb_machine(kb_suite* suite, const char* options) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
    Json json;
    json["machine"] = open->machine();
    json["method"] = kiln::bench::json_of(timer_options(options), open->session());
    return json;
  });
}

int kb_floor(kb_suite* suite, const char* options) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
    return open->floor(timer_options(options));
  });
}

int kb_device_state(kb_suite* suite) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
    return open->device_state();
  });
}

int kb_prepare(kb_suite* suite, int index) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
    if (index < 0 || static_cast<std::size_t>(index) >= suite->workloads.size())
      return absl::NotFoundError(absl::StrFormat("kb: must be a workload's index below %d: got %d",
                                                 suite->workloads.size(), index));
    KILN_ASSIGN_OR_RETURN(
        auto call,
        KilnCall::prepare(open->runtime(), suite->workloads[static_cast<std::size_t>(index)],
                          open->session().index()));
    const int handle = suite->next_handle++;
    suite->calls[handle] = {std::move(call), open->stream(nullptr)};
    Json json;
    json["handle"] = handle;
    return json;
  });
}

int kb_release(kb_suite* suite, int handle) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    suite->calls.erase(handle);
    suite->products.erase(handle);
    return Json::object();
  });
}

int kb_bind(kb_suite* suite, int handle, void* stream, void* const* inputs, int input_count,
            void* const* outputs, int output_count) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
    KILN_ASSIGN_OR_RETURN(const auto call, call_of(suite, handle));
    KILN_RETURN_IF_ERROR(call.first->bind({inputs, static_cast<std::size_t>(input_count)},
                                          {outputs, static_cast<std::size_t>(output_count)}));
    *call.second = open->stream(stream);
    return Json::object();
  });
}

int kb_run(kb_suite* suite, int handle) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(const auto function, function_of(suite, handle));
    KILN_RETURN_IF_ERROR(function());
    return Json::object();
  });
}

int kb_cublaslt(kb_suite* suite, const char* problem, void* stream, void* a, void* b, void* d) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
    const Json json = Json::parse(problem);
    const auto dtype = kiln::parse_dtype(json.at("dtype").get<std::string>());
    if (!dtype) return absl::InvalidArgumentError("kb: dtype must be one of Kiln's");
    const auto at = [](void* p) { return reinterpret_cast<CUdeviceptr>(p); };
    KILN_ASSIGN_OR_RETURN(
        auto product, kiln::bench::make_lt_product(
                          open->session(),
                          {json.at("m"), json.at("n"), json.at("k"), *dtype, at(a), at(b), at(d)},
                          static_cast<CUstream>(stream), json.value("library", "")));
    const int handle = suite->next_handle++;
    Json made;
    made["handle"] = handle;
    made["tried"] = product->tried();
    made["version"] = product->version();
    suite->products[handle] = {std::move(product), static_cast<CUstream>(stream)};
    return made;
  });
}

int kb_host_time(kb_suite* suite, int handle, void* stream, int calls, int rounds) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(Suite* const open, open_suite(suite));
    if (calls < 1 || rounds < 1)
      return absl::InvalidArgumentError(
          absl::StrFormat("kb: calls and rounds must be 1 or more: got %d and %d", calls, rounds));
    const auto on = static_cast<CUstream>(stream);
    std::function<absl::Status()> function;
    if (handle < 0) {
      KILN_ASSIGN_OR_RETURN(function, open->bare_launch(on));
    } else {
      KILN_ASSIGN_OR_RETURN(function, function_of(suite, handle));
    }
    Json json;
    KILN_ASSIGN_OR_RETURN(json["us"], open->host_us(function, on, calls, rounds));
    return json;
  });
}

int kb_served_by(kb_suite* suite, int handle) {
  return answer(suite, [&]() -> absl::StatusOr<Json> {
    KILN_ASSIGN_OR_RETURN(const auto call, call_of(suite, handle));
    Json json;
    json["served_by"] = call.first->served_by();
    return json;
  });
}

int kb_measure(kb_suite* suite, void* stream, double bytes, int count, const char* const* names,
               const kb_call* calls, const char* options) {
  return answer(suite, [&] {
    return measure(suite, static_cast<CUstream>(stream), bytes,
                   {names, static_cast<std::size_t>(count)}, calls, timer_options(options));
  });
}
