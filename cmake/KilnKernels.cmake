# kiln_kernel_family(NAME): a family is a folder; everything in it is found, nothing outside it is edited.
function(kiln_kernel_family name)
  set(dir ${CMAKE_CURRENT_SOURCE_DIR})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  add_library(kiln_family_${name} OBJECT ${sources})
  # Public headers and the family's own folder: including anything else is a compile error.
  target_include_directories(kiln_family_${name} PRIVATE ${dir} ${dir}/include ${KILN_PUBLIC_INCLUDES})
  target_compile_definitions(kiln_family_${name} PRIVATE KILN_BUILDING_LIBRARY)
  target_link_libraries(kiln_family_${name} PRIVATE kiln_options kiln_absl)
  target_sources(kiln PRIVATE $<TARGET_OBJECTS:kiln_family_${name}>)
  kiln_public_headers(${dir}/include)
  file(GLOB device_sources CONFIGURE_DEPENDS ${dir}/*.cu ${dir}/*.cuh ${dir}/problems.jsonl)
  kiln_embed(kiln_family_${name} kernel_sources/${name} ${device_sources})
  set_property(GLOBAL APPEND PROPERTY KILN_FAMILIES ${name})
endfunction()

# kiln_embed(TARGET PREFIX FILES...): the files' bytes, verbatim, as a function
#   void kiln::add_sources_TARGET(kiln::SourceTable&)
# under the names PREFIX/<file>. `.incbin` keeps every byte, so line numbers in compile errors are the author's.
function(kiln_embed target prefix)
  set(asm ${CMAKE_CURRENT_BINARY_DIR}/${target}_sources.S)
  set(text ".section .rodata\n")
  set(decls "")
  set(rows "")
  foreach(file IN LISTS ARGN)
    get_filename_component(leaf ${file} NAME)
    string(MAKE_C_IDENTIFIER "${target}_${leaf}" id)
    string(APPEND text ".global ${id}_begin\n.hidden ${id}_begin\n.global ${id}_end\n.hidden ${id}_end\n${id}_begin:\n.incbin \"${file}\"\n${id}_end:\n.byte 0\n")
    string(APPEND decls "extern \"C\" const char ${id}_begin[], ${id}_end[];\n")
    string(APPEND rows "  table.insert_or_assign(\"${prefix}/${leaf}\", std::string_view(${id}_begin, static_cast<std::size_t>(${id}_end - ${id}_begin)));\n")
  endforeach()
  string(APPEND text ".section .note.GNU-stack,\"\",@progbits\n")
  file(CONFIGURE OUTPUT ${asm} CONTENT "${text}" @ONLY)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}_sources.cc CONTENT
"#include <kiln/sources.h>

#include <string_view>
${decls}
namespace kiln {
void add_sources_${target}(SourceTable& table);
void add_sources_${target}([[maybe_unused]] SourceTable& table) {
${rows}}
}  // namespace kiln
" @ONLY)
  target_sources(${target} PRIVATE ${asm} ${CMAKE_CURRENT_BINARY_DIR}/${target}_sources.cc)
  set_source_files_properties(${asm} PROPERTIES OBJECT_DEPENDS "${ARGN}")
endfunction()
