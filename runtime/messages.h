#ifndef KILN_RUNTIME_MESSAGES_H_
#define KILN_RUNTIME_MESSAGES_H_

// The fragments of error messages that people search for and tests assert (docs/errors.md lists
// them with their causes). Words of the dispatch reference; change one and its documentation
// changes with it.
namespace kiln::internal {

// When an op is constructed.
inline constexpr char kDoesNotImplement[] = "does not implement";
inline constexpr char kForwardDoesNotTake[] = "forward does not take";
inline constexpr char kMoreThanOneGeneral[] = "has more than one general implementation";
inline constexpr char kPreferenceCycle[] = "preferences form a cycle through";
inline constexpr char kNoneOfItsInterfaces[] = "keys implement none of its kernel interfaces";
inline constexpr char kDeclareInterfaces[] = "declare interfaces instead";
inline constexpr char kGeneralDeclaresPreference[] =
    "a general implementation declares no preference";
inline constexpr char kReuseKeys[] = "reuse keys it has";
inline constexpr char kPreferredUnknown[] = "preferred_over names no key of the interface";
// When an op is called.
inline constexpr char kDoNotRunOn[] = "in-tree kernels do not run on";
inline constexpr char kNoneLeft[] = "only and exclude leave no implementation of";
inline constexpr char kNoImplementation[] = "no implementation serves this call";
inline constexpr char kAmbiguous[] = "dispatch is ambiguous";
inline constexpr char kCannotKey[] = "cannot key a dispatch cache";
inline constexpr char kStates[] = "this call spec states";
inline constexpr char kAmbiguousTarget[] = "AmbiguousTarget: several targets claim";
inline constexpr char kUnknownTarget[] = "UnknownTarget: no backend registered a target";
inline constexpr char kNoBuilder[] = "has no builder for this op";
// When a registration is committed.
inline constexpr char kBackendError[] = "BackendError";

}  // namespace kiln::internal

#endif  // KILN_RUNTIME_MESSAGES_H_
