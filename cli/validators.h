#ifndef KILN_CLI_VALIDATORS_H_
#define KILN_CLI_VALIDATORS_H_

#include <kiln/status.h>

#include "cache/store.h"

#include <CLI/CLI.hpp>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

// From `least` to `most`, in whole numbers.
inline CLI::Validator between(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        std::int64_t value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= least && value <= most) return std::string();
        return absl::StrFormat("must be a number from %d to %d: got %s", least, most, text);
      },
      "");
}

// A number of bytes, as 512M.
inline CLI::Validator a_size() {
  return CLI::Validator(
      [](const std::string& text) {
        const absl::StatusOr<std::int64_t> size = cache::parse_bytes(text);
        return size.ok() ? std::string() : message_of(size.status());
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
