// What a runtime tells of itself: counters, Prometheus' text, a trace.
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <set>
#include <sstream>

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

TEST(StatsTest, EveryLineOfThePrometheusTextIsOfItsFormat) {
  RuntimeStats stats;
  stats.disk_hits = 7;
  stats.compile_seconds = 1234.5;
  const std::string text = prometheus_text(stats);
  EXPECT_THAT(text, HasSubstr("kiln_cache_hits_total{tier=\"disk\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("kiln_compile_seconds_total 1234.5\n"));
  const std::regex sample(R"(kiln_[a-z_]+_total(\{[a-z]+="[a-z]+"\})? [0-9.e+]+)");
  const std::regex comment(R"(# (HELP kiln_[a-z_]+ .+\.|TYPE kiln_[a-z_]+ counter))");
  std::istringstream lines(text);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, line[0] == '#' ? comment : sample)) << line;
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second || line[0] == '#')
        << "twice: " << line;
  }
  EXPECT_EQ(text.back(), '\n');
}

class AnyToy final : public ToyKernel {
 public:
  static Entry<AnyToy> entry_for(const ToyCall& call) { return Entry<AnyToy>(call.dtype); }
  explicit AnyToy(DType) {}
};

TEST(StatsTest, TheTraceIsAnArrayOfSpans) {
  const TempDir folder;
  const std::string file = folder / "a \"trace\".json";
  for (int process = 0; process < 2; ++process) {
    ToyRuntime toy({.trace_file = file});
    ASSERT_THAT(toy.add<AnyToy>("any"), is_ok());
    auto op = toy.op();
    ASSERT_THAT(op, is_ok());
    ASSERT_THAT((*op)->kernel_for<ToyFwdInterface>(ToyCall{.n = 4, .where = {toy_stream().device}}),
                is_ok());
  }
  std::string text = read_file(file);
  ASSERT_GE(text.size(), 2u);
  text.replace(text.size() - 2, 2, "]");  // the format lets the end be left out
  const nlohmann::json events = nlohmann::json::parse(text);
  ASSERT_EQ(events.size(), 2u);
  for (const nlohmann::json& event : events) {
    EXPECT_EQ(event["ph"], "X");
    EXPECT_EQ(event["name"], "select");
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_THAT(event["args"]["what"].get<std::string>(), HasSubstr("ToyFwdOp"));
  }
}

}  // namespace
}  // namespace kiln::testing
