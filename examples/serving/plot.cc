#include "plot.h"

#include "load.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace serving {
namespace {

constexpr double kWidth = 800, kHeight = 460, kLeft = 70, kRight = 170, kTop = 44, kBottom = 50;
constexpr const char* kColours[] = {"#c0392b", "#e08e0b", "#2471a3", "#1e8449", "#7d3c98"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  std::replace(text, text + sizeof text, ',', '.');  // whatever the locale
  return text;
}

std::string text(double x, double y, const std::string& words, const char* more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + more + ">" + words +
         "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" stroke=\"#ddd\"/>\n";
}

// 0.9 -> 1, 0.99 -> 2, ...
double nines(double p) { return -std::log10(1 - p); }

}  // namespace

std::string latency_plot(const std::string& title, const std::vector<Series>& series) {
  double low = 1e9, high = 1e-9;
  std::size_t most = 1;
  for (const Series& one : series) {
    if (one.sorted_ms.empty()) continue;
    low = std::min(low, std::max(1e-3, one.sorted_ms.front()));
    high = std::max(high, one.sorted_ms.back());
    most = std::max(most, one.sorted_ms.size());
  }
  const double from = std::floor(std::log10(low)),
               to = std::max(from + 1, std::ceil(std::log10(high)));
  const double last = std::max(1.0, nines(1 - 1.0 / static_cast<double>(most)));
  const auto x_of = [&](double p) {
    return kLeft + (kWidth - kLeft - kRight) * std::min(1.0, nines(p) / last);
  };
  const auto y_of = [&](double ms) {
    const double share = (std::log10(std::max(ms, low)) - from) / (to - from);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * share;
  };
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"460\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"800\" height=\"460\" fill=\"white\"/>\n";
  svg += text(kLeft, 24, title, "font-size=\"15\"");
  for (double power = from; power <= to; ++power) {
    const double ms = std::pow(10, power);
    const std::string label = power >= 3   ? number(ms / 1000) + " s"
                              : power >= 0 ? number(ms) + " ms"
                                           : number(ms * 1000) + " us";
    svg += line(kLeft, y_of(ms), kWidth - kRight, y_of(ms));
    svg += text(kLeft - 6, y_of(ms) + 4, label, "text-anchor=\"end\"");
  }
  const std::pair<double, const char*> ticks[] = {{0, "0"},     {0.5, "50"},     {0.9, "90"},
                                                  {0.99, "99"}, {0.999, "99.9"}, {0.9999, "99.99"}};
  for (const auto& [p, label] : ticks) {
    if (nines(p) > last + 1e-9) continue;
    svg += line(x_of(p), kTop, x_of(p), kHeight - kBottom);
    svg += text(x_of(p), kHeight - kBottom + 18, label, "text-anchor=\"middle\"");
  }
  svg += text((kLeft + kWidth - kRight) / 2, kHeight - 12, "percentile of requests",
              "text-anchor=\"middle\"");
  for (std::size_t i = 0; i < series.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string points;
    for (double step = 0; step <= last + 1e-9; step += last / 200) {
      const double p = 1 - std::pow(10, -step);
      points += number(x_of(p)) + "," + number(y_of(percentile(series[i].sorted_ms, p))) + " ";
    }
    svg += "<polyline fill=\"none\" stroke=\"" + std::string(colour) +
           "\" stroke-width=\"2\" points=\"" + points + "\"/>\n";
    svg += text(kWidth - kRight + 12, kTop + 12 + 20 * static_cast<double>(i), series[i].name,
                ("fill=\"" + std::string(colour) + "\"").c_str());
  }
  return svg + "</svg>\n";
}

}  // namespace serving
