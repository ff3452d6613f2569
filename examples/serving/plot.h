#ifndef KILN_EXAMPLES_SERVING_PLOT_H_
#define KILN_EXAMPLES_SERVING_PLOT_H_

#include <string>
#include <vector>

namespace serving {

struct Series {
  std::string name;
  std::vector<double> sorted_ms;
};

// Latency over percentile as an SVG: both axes logarithmic, so that the tail has room.
std::string latency_plot(const std::string& title, const std::vector<Series>& series);

}  // namespace serving

#endif  // KILN_EXAMPLES_SERVING_PLOT_H_
