#ifndef KILN_RUNTIME_SHAPE_PATTERN_H_
#define KILN_RUNTIME_SHAPE_PATTERN_H_

#include <kiln/export.h>
#include <kiln/signature.h>
#include <kiln/status.h>
#include <kiln/tensor.h>

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::internal {

// One dimension, or one run of dimensions, of a shape pattern. The grammar (spaces are allowed
// around a term):
//   pattern = "" | term { "," term }        "" is a scalar
//   term    = name | number | "*" name | "@" name | "*@" name
//   name    = letter or "_", then letters, digits and "_"
// Names are views into the pattern's text.
struct ShapeTerm {
  enum class Kind { extent, dim, list, param, param_list };
  Kind kind = Kind::extent;
  std::string_view name;
  std::int64_t extent = 0;
  bool is_list() const { return kind == Kind::list || kind == Kind::param_list; }
};

// A pattern has at most kMaxRank terms that stand for one dimension each, and few that stand for
// lists.
using ShapeTerms = absl::InlinedVector<ShapeTerm, 8>;

// InvalidArgument: names the term that is none.
KILN_EXPORT absl::StatusOr<ShapeTerms> parse_shape_pattern(std::string_view pattern);

// What the names of one call's patterns stand for so far. One thread at a time; the names must
// outlive it.
class KILN_EXPORT ShapeBindings {
 public:
  // `params` answers "@p" and "*@p"; must outlive this.
  explicit ShapeBindings(const ParamValues& params) : params_(&params) {}

  // True when `shape` has the form of `terms`; then names that had no meaning get theirs.
  // InvalidArgument: two lists of the pattern have no known length, or a parameter is missing or of
  // another type.
  absl::StatusOr<bool> match(const ShapeTerms& terms, const Dims& shape);

  // The shape that `terms` stand for. InvalidArgument: a name has no meaning yet, or there are too
  // many dimensions.
  absl::StatusOr<Dims> shape_of(const ShapeTerms& terms) const;

  // "[*B, 4096]": what is known as numbers, the rest as names.
  std::string describe(const ShapeTerms& terms) const;

 private:
  // How the dimensions of a shape are shared out.
  struct Lengths {
    absl::InlinedVector<std::optional<Dims>, 8>
        known;         // what each term stands for, where it is known
    int unknown = -1;  // index of the list that is not
    int left = 0;      // dimensions for that list
  };
  bool bind(const ShapeTerms& terms, const Lengths& lengths, const Dims& shape);
  // The dimensions `term` stands for; nullopt when it has no meaning yet.
  absl::StatusOr<std::optional<Dims>> resolve(const ShapeTerm& term) const;

  const ParamValues* params_;
  absl::InlinedVector<std::pair<std::string_view, std::int64_t>, 8> dims_;
  absl::InlinedVector<std::pair<std::string_view, Dims>, 2> lists_;
};

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_SHAPE_PATTERN_H_
