#ifndef KILN_CLI_VALIDATORS_H_
#define KILN_CLI_VALIDATORS_H_

#include <CLI/CLI.hpp>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <string>

namespace kiln::cli {

// "--rounds: must be at least 1: got 0"
inline CLI::Validator at_least(double least) {
  return CLI::Validator(
      [least](const std::string& text) {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value >= least) return std::string();
        return absl::StrFormat("must be at least %g: got %s", least, text);
      },
      "");
}

inline CLI::Validator more_than(double bound) {
  return CLI::Validator(
      [bound](const std::string& text) {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value > bound) return std::string();
        return absl::StrFormat("must be more than %g: got %s", bound, text);
      },
      "");
}

}  // namespace kiln::cli

#endif  // KILN_CLI_VALIDATORS_H_
