#ifndef KILN_EXAMPLES_SERVING_LOAD_H_
#define KILN_EXAMPLES_SERVING_LOAD_H_

#include "service.h"

#include <cstdint>
#include <string>
#include <vector>

namespace serving {

struct LoadOptions {
  int requests = 4000;
  double per_second = 400;
  std::uint64_t seed = 1;
};

struct LoadResult {
  std::vector<double> latencies_ms;  // of the requests that were served, in the order they were due
  int refused = 0;                   // the queue was full
  int failed = 0;
  std::string first_error;
};

// Sends requests at random moments (exponential gaps), whether or not earlier ones are answered, as
// users do. A latency is counted from the moment that a request was due, so a service that stands
// still for a second makes all requests of that second late, and not only the first.
LoadResult run_load(Service& service, const ServiceOptions& served, const LoadOptions& options);

// The value that a share `p` of the sorted `values` do not exceed; 0 of none.
double percentile(const std::vector<double>& sorted, double p);

}  // namespace serving

#endif  // KILN_EXAMPLES_SERVING_LOAD_H_
