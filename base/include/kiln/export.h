#ifndef KILN_EXPORT_H_
#define KILN_EXPORT_H_

// KILN_EXPORT marks what other binaries link to: everything in public headers, and those internal
// classes that the project's own executables and tests use. Whether a header is public is told by
// its path (include/kiln/), not by this mark.
#define KILN_EXPORT __attribute__((visibility("default")))

#endif  // KILN_EXPORT_H_
