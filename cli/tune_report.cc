// The page of `kiln tune --report`: one file, no script, nothing fetched.
#include "cli/tune.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cli {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string config_text(const Json& config) {
  std::string text;
  for (const auto& [name, value] : config.items())
    text += (text.empty() ? "" : " ") + name + "=" + value.dump();
  return text;
}

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kiln: tuning</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #1b1f24; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .2rem; }
p { margin: .2rem 0 .6rem; } .dim { color: #57606a; } .bad { color: #a40e26; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; }
th { border-bottom: 1px solid #d0d7de; font-weight: 600; } td.n, th.n { text-align: right; }
svg { width: 100%; height: auto; } svg text { font: 12px ui-monospace, monospace; fill: #1b1f24; }
details { margin: .4rem 0; } code { font: 12px ui-monospace, monospace; }
</style></head><body>
)";

struct Bar {
  std::string config, state;
  double seconds = 0, spread = 0;
};

// A bar for each candidate that was timed, the fastest on top.
std::string picture(const Json& sweep) {
  std::vector<Bar> bars;
  for (const Json& candidate : sweep["candidates"]) {
    const double seconds = candidate.value("seconds", 0.0);
    const std::string state = candidate["state"].get<std::string>();
    if (seconds > 0 && (state == "measured" || state == "stopped"))
      bars.push_back({config_text(candidate["config"]), state, seconds,
                      candidate.value("spread_seconds", 0.0)});
  }
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.seconds < b.seconds; });
  if (bars.empty()) return "";
  const std::string winner = config_text(sweep["winner"]),
                    by_default = config_text(sweep["default"]);
  const double longest = bars.back().seconds;
  constexpr double kLeft = 330, kWidth = 520, kRow = 20;
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 960 %g\" role=\"img\" aria-label=\"time of each candidate\">\n",
      kRow * static_cast<double>(bars.size()) + 6);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double y = kRow * static_cast<double>(i), width = kWidth * bar.seconds / longest;
    const bool wins = bar.config == winner, is_default = bar.config == by_default;
    const char* colour = wins ? "#1a7f37" : is_default ? "#0969da" : "#afb8c1";
    svg += absl::StrFormat("<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%s</text>\n", kLeft - 8,
                           y + 14, escaped(bar.config));
    svg += absl::StrFormat("<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"14\" fill=\"%s\"/>\n",
                           kLeft, y + 3, std::max(1.0, width), colour);
    const double half = kWidth * std::min(bar.spread, bar.seconds) / longest;
    svg += absl::StrFormat("<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"#1b1f24\"/>\n",
                           kLeft + width - half, kLeft + width + half, y + 10, y + 10);
    svg += absl::StrFormat("<text x=\"%g\" y=\"%g\">%s%s</text>\n", kLeft + width + half + 6,
                           y + 14, seconds_text(bar.seconds),
                           wins && is_default ? " default, stays"
                           : wins             ? " winner"
                           : is_default       ? " default"
                                              : "");
  }
  return svg + "</svg>\n";
}

std::string rows_of_those_out(const Json& sweep) {
  std::string rows;
  for (const Json& candidate : sweep["candidates"]) {
    const std::string state = candidate["state"].get<std::string>();
    if (state == "measured" || state == "stopped") continue;
    rows += absl::StrFormat("<tr><td><code>%s</code></td><td>%s</td><td>%s</td></tr>\n",
                            escaped(config_text(candidate["config"])), state,
                            escaped(candidate.value("reason", "")));
  }
  if (rows.empty()) return "";
  return "<details><summary>candidates that were not timed to the end, and why</summary><table>"
         "<tr><th>candidate</th><th>state</th><th>reason</th></tr>\n" +
         rows + "</table></details>\n";
}

std::string percent(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f %%", 100 * part / whole) : "";
}

std::string section(const Json& result, const Json& sweep) {
  std::string out = absl::StrFormat(
      "<h2>%s: %s %s</h2>\n<p class=\"dim\">%s on %s; %s; %s</p>\n",
      escaped(sweep["op"].get<std::string>()), escaped(sweep["implementation"].get<std::string>()),
      escaped(sweep["identity_text"].get<std::string>()),
      escaped(sweep["problem"].get<std::string>()), result["device"].get<std::string>(),
      escaped(sweep["method"].get<std::string>()),
      sweep["from_record"].get<bool>() ? "from a record" : "swept now");
  if (!sweep["error"].is_null())
    return out + "<p class=\"bad\">" + escaped(sweep["error"].get<std::string>()) + "</p>\n";
  out += "<p>" + escaped(sweep["decision"].get<std::string>()) +
         (sweep["complete"].get<bool>() ? "" : " (cut short by the budget)") + "</p>\n";
  return out + picture(sweep) + rows_of_those_out(sweep);
}

}  // namespace

std::string tune_report_page(const Json& results) {
  std::string page =
      std::string(kHead) +
      "<h1>Tuning</h1>\n<table><tr><th>kernel</th><th>problem</th>"
      "<th class=\"n\">default</th><th class=\"n\">winner</th><th class=\"n\">gain</th>"
      "<th class=\"n\">sweep</th></tr>\n";
  std::string sections;
  for (const Json& result : results) {
    if (!result["error"].is_null()) {
      sections += "<h2>" + escaped(result["where"].get<std::string>()) +
                  "</h2>\n<p class=\"bad\">" + escaped(result["error"].get<std::string>()) +
                  "</p>\n";
    }
    for (const Json& sweep : result["sweeps"]) {
      const double before = sweep["default_seconds"].get<double>();
      const double after = sweep["winner_seconds"].get<double>();
      page += absl::StrFormat(
          "<tr><td>%s</td><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
          "<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
          escaped(sweep["implementation"].get<std::string>()),
          escaped(sweep["problem"].get<std::string>()), seconds_text(before), seconds_text(after),
          percent(before - after, before), seconds_text(sweep["sweep_seconds"].get<double>()));
      sections += section(result, sweep);
    }
  }
  return page + "</table>\n" + sections + "</body></html>\n";
}

}  // namespace kiln::cli
