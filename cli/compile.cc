#include <kiln/runtime.h>

#include "cache/artifact.h"
#include "cli/help.h"
#include "cli/output_file.h"
#include "cli/rebuild.h"
#include "cli/session.h"
#include "runtime/runtime_impl.h"
#include "runtime/tools.h"

#include <CLI/CLI.hpp>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

// Compiles one program alone, past the cache: what an error of a build names to repeat it.
namespace kiln::cli {
namespace {

struct CompileArguments {
  std::string what;
  std::string target;
  std::vector<std::string> headers, defines, options, kernels;
  std::string output;
};

// A file's name as a source's: relative, and without the folders above it, so that it is the same
// everywhere.
std::string source_name(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  const bool is_plain = normal.is_relative() && *normal.begin() != "..";
  return is_plain ? normal.generic_string() : normal.filename().string();
}

absl::StatusOr<std::string> source_text(Runtime& runtime, const std::string& name) {
  absl::StatusOr<std::string> text = runtime.impl().sources.read(name);
  if (text.ok()) return text;
  absl::StatusOr<std::string> file = read_input(name);
  if (file.ok()) return file;
  return absl::InvalidArgumentError(reason_of(text.status()) +
                                    "; as a file: " + reason_of(file.status()));
}

absl::StatusOr<CompileRequest> request_from(Runtime& runtime, const CompileArguments& arguments) {
  CompileRequest request;
  if (arguments.target.empty()) {
    return absl::InvalidArgumentError(
        "--target must name what to compile for, as sm_90a: got none");
  }
  request.source_name = source_name(arguments.what);
  KILN_ASSIGN_OR_RETURN(request.source, source_text(runtime, arguments.what));
  for (const std::string& name : arguments.headers) {
    KILN_ASSIGN_OR_RETURN(std::string text, source_text(runtime, name));
    request.headers.emplace_back(source_name(name), std::move(text));
  }
  std::sort(request.headers.begin(), request.headers.end());
  request.defines = arguments.defines;
  request.options = arguments.options;
  request.kernels = arguments.kernels;
  request.target = arguments.target;
  return request;
}

// An artifact holds all that made it, so its key is enough to make it again.
absl::StatusOr<CompileRequest> request_of_key(Runtime& runtime, const cache::CompileKey& key) {
  const std::string& dir = tools::store(runtime).disk_dir();
  const std::string hex = to_hex(key);
  const std::string path = absl::StrFormat("%s/v1/%s/%s.kiln", dir, hex.substr(0, 2), hex);
  const absl::StatusOr<std::string> bytes = read_input(path);
  if (dir.empty() || !bytes.ok()) {
    return absl::NotFoundError(
        absl::StrFormat("key: must be of an artifact in the disk cache: got %s, and %s", hex,
                        dir.empty() ? "there is no disk cache" : reason_of(bytes.status())));
  }
  KILN_ASSIGN_OR_RETURN(const cache::Artifact artifact, cache::parse_artifact(*bytes));
  return request_of(artifact);
}

void report(const Session& session, const CompileRequest& request, const CompilerId& id,
            const CompileResult& result, double seconds) {
  Json json;
  json["source"] = request.source_name;
  json["target"] = request.target;
  json["compiler"] = id.name + " " + id.build;
  json["kind"] = result.kind;
  json["bytes"] = result.image.size();
  json["seconds"] = seconds;
  json["kernels"] = Json::array();
  for (const KernelInfo& kernel : result.kernels) {
    Json one;
    one["name"] = kernel.name;
    one["registers"] = kernel.registers;
    one["static_smem_bytes"] = kernel.static_smem_bytes;
    one["spill_bytes"] = kernel.spill_bytes;
    one["stack_bytes"] = kernel.stack_bytes;
    json["kernels"].push_back(std::move(one));
  }
  json["log"] = result.log;
  if (session.json) return print_json(json);
  print("%s for %s by %s %s: %s of %zu bytes in %s\n", request.source_name, request.target, id.name,
        id.build, result.kind, result.image.size(), seconds_text(seconds));
  for (const KernelInfo& kernel : result.kernels) {
    print("  %s: %lld registers, %lld bytes shared, %lld spilled\n", kernel.name,
          static_cast<long long>(kernel.registers),
          static_cast<long long>(kernel.static_smem_bytes),
          static_cast<long long>(kernel.spill_bytes));
  }
  if (!result.log.empty()) print("%s\n", result.log);
}

absl::StatusOr<Exit> compile(const Session& session, const CompileArguments& arguments) {
  Runtime& runtime = Runtime::instance();
  runtime.load_backends();
  const std::optional<cache::CompileKey> key = cache::parse_compile_key(arguments.what);
  KILN_ASSIGN_OR_RETURN(const CompileRequest request,
                        key ? request_of_key(runtime, *key) : request_from(runtime, arguments));
  KILN_ASSIGN_OR_RETURN(const Compiler* compiler, compiler_for(runtime, request.target));
  KILN_ASSIGN_OR_RETURN(const CompilerId id, compiler->id());
  const absl::Time start = absl::Now();
  KILN_ASSIGN_OR_RETURN(const CompileResult result, compiler->compile(request));
  report(session, request, id, result, absl::ToDoubleSeconds(absl::Now() - start));
  if (!arguments.output.empty())
    KILN_RETURN_IF_ERROR(write_output("--output", arguments.output, result.image));
  return Exit::ok;
}

}  // namespace

void add_compile(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "compile", "compile one program alone: the reproducer that an error names");
  auto arguments = std::make_shared<CompileArguments>();
  command
      ->add_option("WHAT", arguments->what,
                   "an embedded source, a file, or the key of an artifact on disk")
      ->required();
  command->add_option("--target", arguments->target, "as sm_90a or x86-64-v3")->type_name("TARGET");
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* help) {
    command->add_option(name, list, help)->allow_extra_args(false);
  };
  add_list("--header", arguments->headers, "a header it includes, by name; once each");
  add_list("--define", arguments->defines, "NAME=VALUE");
  add_list("--option", arguments->options, "--option=-O1: passed to the compiler");
  add_list("--kernel", arguments->kernels, "a kernel that must be in it");
  command->add_option("--output", arguments->output, "where to write the image")->type_name("FILE");
  examples(*command, {{"kiln compile kernel.cu --target sm_90a --kernel my_kernel", "a file"},
                      {"kiln compile 1f0c... --output kernel.cubin",
                       "what an artifact on disk was made of, once more"}});
  command->callback([&session, arguments] {
    session.command = [&session, arguments] { return compile(session, *arguments); };
  });
}

}  // namespace kiln::cli
