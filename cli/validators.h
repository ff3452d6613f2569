#ifndef KILN_CLI_VALIDATORS_H_
#define KILN_CLI_VALIDATORS_H_

#include <CLI/CLI.hpp>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace kiln::cli {

// "--rounds: must be at least 1: got 0"
inline CLI::Validator at_least(double least) {
  return CLI::Validator(
      [least](const std::string& text) {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= least)
          return std::string();
        return absl::StrFormat("must be at least %g: got %s", least, text);
      },
      "");
}

inline CLI::Validator more_than(double bound) {
  return CLI::Validator(
      [bound](const std::string& text) {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value > bound)
          return std::string();
        return absl::StrFormat("must be more than %g: got %s", bound, text);
      },
      "");
}

inline CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](const std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        return absl::StrFormat("must be one of %s: got %s", absl::StrJoin(words, ", "), text);
      },
      "");
}

}  // namespace kiln::cli

#endif  // KILN_CLI_VALIDATORS_H_
