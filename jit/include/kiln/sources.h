#ifndef KILN_SOURCES_H_
#define KILN_SOURCES_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace kiln {

// Embedded source files by name ("kernel_sources/norm/layer_norm.cu"). The bytes live as long as
// the binary or the plugin that holds them, which is never unloaded.
using SourceTable = std::map<std::string, std::string_view, std::less<>>;

}  // namespace kiln

#endif  // KILN_SOURCES_H_
