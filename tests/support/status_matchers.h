#ifndef KILN_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define KILN_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <kiln/status.h>

#include <gmock/gmock.h>

#include <string>

// Debian's Abseil has no status matchers. These take an absl::Status or an absl::StatusOr.
namespace kiln::testing {

inline const absl::Status& status_of(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& status_of(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(is_ok, negation ? "is an error" : "is ok") {
  *result_listener << status_of(arg).ToString();
  return status_of(arg).ok();
}

// status_is(absl::StatusCode::kDataLoss, HasSubstr("checksum"))
MATCHER_P2(status_is, code, message_matcher, "has the code and a matching message") {
  *result_listener << status_of(arg).ToString();
  return status_of(arg).code() == code &&
         ::testing::ExplainMatchResult(message_matcher, message_of(status_of(arg)),
                                       result_listener);
}

MATCHER_P(status_is, code, "has the code") {
  *result_listener << status_of(arg).ToString();
  return status_of(arg).code() == code;
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_SUPPORT_STATUS_MATCHERS_H_
