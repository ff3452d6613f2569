#ifndef KILN_VERSION_H_
#define KILN_VERSION_H_

// Public headers keep their names in an inline namespace: a plugin that was built against another
// one does not find the symbols it wants and is skipped, instead of calling a function whose
// arguments have changed.
#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0
#define KILN_VERSION_STRING "0.1.0"

#endif  // KILN_VERSION_H_
