#include <kiln/status.h>

#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::is_ok;
using testing::status_is;

constexpr ErrorKind kKinds[] = {ErrorKind::op_not_available, ErrorKind::ambiguous_target,
                                ErrorKind::unknown_target, ErrorKind::backend_error,
                                ErrorKind::compile_error};

TEST(StatusTest, EveryKindSurvivesAnnotation) {
  for (const ErrorKind kind : kKinds) {
    const absl::Status status = annotate(with_kind(absl::UnimplementedError("m"), kind), "who");
    EXPECT_EQ(error_kind(status), kind) << to_string(kind);
    EXPECT_THAT(status, status_is(absl::StatusCode::kUnimplemented, "who: m"));
  }
}

TEST(StatusTest, PredicatesTellKindsApart) {
  const absl::Status status = with_kind(absl::InternalError("m"), ErrorKind::compile_error);
  EXPECT_TRUE(is_compile_error(status));
  EXPECT_FALSE(is_op_not_available(status) || is_ambiguous_target(status) ||
               is_unknown_target(status) || is_backend_error(status));
}

TEST(StatusTest, ASecondKindReplacesTheFirst) {
  absl::Status status = with_kind(absl::InternalError("m"), ErrorKind::backend_error);
  status = with_kind(status, ErrorKind::compile_error);
  EXPECT_EQ(error_kind(status), ErrorKind::compile_error);
  EXPECT_EQ(error_kind(with_kind(status, ErrorKind::none)), ErrorKind::none);
}

TEST(StatusTest, OkStaysOk) {
  EXPECT_THAT(annotate(absl::OkStatus(), "who"), is_ok());
  EXPECT_THAT(with_kind(absl::OkStatus(), ErrorKind::backend_error), is_ok());
  EXPECT_EQ(error_kind(absl::OkStatus()), ErrorKind::none);
}

absl::StatusOr<int> doubled(absl::StatusOr<int> in) {
  KILN_ASSIGN_OR_RETURN(const int value, in);
  KILN_RETURN_IF_ERROR(value < 0 ? absl::OutOfRangeError("negative") : absl::OkStatus());
  return 2 * value;
}

TEST(StatusTest, MacrosPassValuesAndErrors) {
  EXPECT_EQ(*doubled(4), 8);
  EXPECT_THAT(doubled(-1), status_is(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(doubled(absl::AbortedError("x")), status_is(absl::StatusCode::kAborted, "x"));
}

}  // namespace
}  // namespace kiln
