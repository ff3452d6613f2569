// The page of `kiln tune --report`: one file, no script, nothing fetched.
#include "cli/tune.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <set>
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
th { border-bottom: 1px solid #d0d7de; font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap; } td { vertical-align: top; } a { color: #0969da; }
svg { width: 100%; height: auto; } svg text { font: 12px ui-monospace, monospace; fill: #1b1f24; } svg text.roof { fill: #cf222e; text-anchor: middle; }
details { margin: .4rem 0; } code { font: 12px ui-monospace, monospace; }
</style></head><body>
)";

struct Bar {
  std::string config;
  double seconds = 0, spread = 0;
  bool stopped = false, wins = false, is_default = false;

  // As far as a whisker is drawn: an outlier must not squeeze the rest.
  double whisker() const { return std::min(spread, seconds / 4); }
};

// Pixels of the picture.
constexpr double kPage = 960, kRow = 20, kLetter = 7.25, kRightText = 190;
constexpr std::size_t kMostLetters = 60;  // of a configuration
constexpr std::size_t kMostBars = 16;

// The candidates that were timed, the fastest first.
std::vector<Bar> bars_of(const Json& sweep) {
  std::vector<Bar> bars;
  for (const Json& candidate : sweep["candidates"]) {
    const double seconds = candidate.value("seconds", 0.0);
    const std::string state = candidate["state"].get<std::string>();
    if (seconds <= 0 || (state != "measured" && state != "stopped")) continue;
    const Json& config = candidate["config"];
    bars.push_back({config_text(config), seconds, candidate.value("spread_seconds", 0.0),
                    state == "stopped", config == sweep["winner"], config == sweep["default"]});
  }
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.seconds < b.seconds; });
  return bars;
}

std::string shortened(const std::string& text) {
  return text.size() <= kMostLetters ? text : text.substr(0, kMostLetters - 3) + "...";
}

std::string row_of(const Bar& bar, double top, double left, double scale) {
  const double width = std::max(1.0, scale * bar.seconds), half = scale * bar.whisker();
  const char* const colour = bar.wins         ? "#2da44e"
                             : bar.is_default ? "#218bff"
                             : bar.stopped    ? "#d8dee4"
                                              : "#afb8c1";
  const char* const what = bar.wins && bar.is_default ? " default, stays"
                           : bar.wins                 ? " winner"
                           : bar.is_default           ? " default"
                                                      : "";
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>"
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" fill=\"%s\"/>"
      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#1b1f24\"/>"
      "<text x=\"%.1f\" y=\"%.1f\">%s%s</text>\n",
      left - 8, top + 14, escaped(shortened(bar.config)), left, top + 3, width, colour,
      left + width - half, left + width + half, top + 10, top + 10, left + width + half + 6,
      top + 14, seconds_text(bar.seconds), what);
}

// A dashed line through all rows, its name above them.
std::string roofline_of(double x, double height, double seconds) {
  return absl::StrFormat(
      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"16\" y2=\"%.1f\" stroke=\"#cf222e\" "
      "stroke-dasharray=\"4 3\"/><text x=\"%.1f\" y=\"12\" class=\"roof\">roofline %s</text>\n",
      x, x, height, x, seconds_text(seconds));
}

std::string svg_of(const std::vector<Bar>& bars, double roofline) {
  std::size_t letters = 0;
  double longest = roofline;
  for (const Bar& bar : bars) {
    letters = std::max(letters, shortened(bar.config).size());
    longest = std::max(longest, bar.seconds + bar.whisker());
  }
  const double left = 16 + kLetter * static_cast<double>(letters);
  const double scale = (kPage - left - kRightText) / longest;
  const double top = roofline > 0 ? 18 : 0;
  const double height = top + kRow * static_cast<double>(bars.size()) + 6;
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"time of each candidate\">\n", kPage,
      height);
  for (std::size_t i = 0; i < bars.size(); ++i)
    svg += row_of(bars[i], top + kRow * static_cast<double>(i), left, scale);
  if (roofline > 0) svg += roofline_of(left + scale * roofline, height, roofline);
  return svg + "</svg>\n";
}

// Those that matter; the slower ones, of which there may be hundreds, are folded away.
std::string picture(const Json& sweep) {
  const std::vector<Bar> bars = bars_of(sweep);
  if (bars.empty()) return "";
  std::vector<Bar> shown, others;
  for (std::size_t i = 0; i < bars.size(); ++i)
    (i < kMostBars || bars[i].is_default ? shown : others).push_back(bars[i]);
  const double roofline = sweep.value("roofline_seconds", 0.0);
  std::string out = svg_of(shown, roofline);
  if (!others.empty()) {
    out += absl::StrFormat("<details><summary>%d slower candidates</summary>%s</details>\n",
                           others.size(), svg_of(others, roofline));
  }
  return out;
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

std::string section(const Json& result, const Json& sweep, std::size_t number) {
  std::string out = absl::StrFormat(
      "<h2 id=\"k%d\">%s: %s %s</h2>\n<p class=\"dim\">%s on %s; %s; %s</p>\n", number,
      escaped(sweep["op"].get<std::string>()), escaped(sweep["implementation"].get<std::string>()),
      escaped(sweep["identity_text"].get<std::string>()),
      escaped(sweep["problem"].get<std::string>()), result["device"].get<std::string>(),
      escaped(sweep["method"].get<std::string>()),
      sweep["from_record"].get<bool>() ? "from a record" : "swept now");
  if (!sweep["error"].is_null())
    return out + "<p class=\"bad\">" + escaped(sweep["error"].get<std::string>()) + "</p>\n";
  out += "<p>" + escaped(sweep["decision"].get<std::string>()) +
         (sweep["complete"].get<bool>() ? "" : " (cut short by the budget)") + "</p>\n";
  if (const double roofline = sweep.value("roofline_seconds", 0.0); roofline > 0) {
    out += absl::StrFormat("<p>Roofline: %s; the winner reaches %s of it.</p>\n",
                           escaped(sweep["roofline"].get<std::string>()),
                           percent(roofline, sweep["winner_seconds"].get<double>()));
  }
  return out + picture(sweep) + rows_of_those_out(sweep);
}

std::string table_row(const Json& sweep, std::size_t number) {
  const std::string kernel =
      absl::StrFormat("<tr><td><a href=\"#k%d\">%s</a></td><td>%s</td>", number,
                      escaped(sweep["implementation"].get<std::string>()),
                      escaped(sweep["problem"].get<std::string>()));
  if (!sweep["error"].is_null())
    return kernel + "<td class=\"bad\" colspan=\"5\">not tuned</td></tr>\n";
  const double before = sweep["default_seconds"].get<double>();
  const double after = sweep["winner_seconds"].get<double>();
  const double roofline = sweep.value("roofline_seconds", 0.0);
  const bool stays = sweep["winner"] == sweep["default"];
  std::string row = kernel;
  for (const std::string& cell :
       {seconds_text(before), stays ? "stays" : seconds_text(after),
        stays ? "" : percent(before - after, before), roofline > 0 ? percent(roofline, after) : "",
        seconds_text(sweep["sweep_seconds"].get<double>())})
    row += "<td class=\"n\">" + cell + "</td>";
  return row + "</tr>\n";
}

std::string kernel_of(const Json& result, const Json& sweep) {
  return result["device"].dump() + sweep["op"].dump() + sweep["implementation"].dump() +
         sweep["identity"].dump() + sweep["kernel"].dump() + sweep["problem"].dump();
}

}  // namespace

std::string tune_report_page(const Json& results) {
  std::string rows, sections;
  std::set<std::string> seen;
  std::size_t kernels = 0, faster = 0, stay = 0, failed = 0;
  for (const Json& result : results) {
    if (!result["error"].is_null()) {
      ++failed;
      sections += "<h2>" + escaped(result["where"].get<std::string>()) +
                  "</h2>\n<p class=\"bad\">" + escaped(result["error"].get<std::string>()) +
                  "</p>\n";
    }
    for (const Json& sweep : result["sweeps"]) {
      // Calls of one kernel are one row: those behind the first found its record.
      if (!seen.insert(kernel_of(result, sweep)).second) continue;
      const bool ok = sweep["error"].is_null(), stays = sweep["winner"] == sweep["default"];
      ++(!ok ? failed : stays ? stay : faster);
      rows += table_row(sweep, ++kernels);
      sections += section(result, sweep, kernels);
    }
  }
  return absl::StrFormat(
      "%s<h1>Tuning</h1>\n<p>%d kernels: a faster configuration for %d, the default stays for %d, "
      "%d failures.</p>\n<table><tr><th>kernel</th><th>problem</th><th class=\"n\">default</th>"
      "<th class=\"n\">winner</th><th class=\"n\">gain</th><th class=\"n\">of the roofline</th>"
      "<th class=\"n\">sweep</th></tr>\n%s</table>\n%s</body></html>\n",
      kHead, kernels, faster, stay, failed, rows, sections);
}

}  // namespace kiln::cli
