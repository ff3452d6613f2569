# Targets for the developer's day, and the summary that ends a configure. Included after all folders.

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# `programs`: what a user runs, without tests and benchmarks.
add_custom_target(programs DEPENDS kiln)
foreach(program kiln_cli kiln_compile_worker kiln_cpu_backend)
  if(TARGET ${program})
    add_dependencies(programs ${program})
  endif()
endforeach()

find_program(KILN_CLANG_FORMAT NAMES clang-format-14 clang-format)
if(KILN_CLANG_FORMAT)
  add_custom_target(format
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/format ${KILN_CLANG_FORMAT}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "clang-format over all sources" VERBATIM)
else()
  add_custom_target(format COMMAND ${CMAKE_COMMAND} -E echo "no clang-format: install Debian's clang-format"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
add_custom_target(lint COMMAND ${CMAKE_CTEST_COMMAND} -L "^lint$$" --output-on-failure --no-tests=error
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR} USES_TERMINAL VERBATIM)

function(kiln_summary)
  file(STRINGS ${KILN_CUDA_INCLUDE}/cuda.h version_line REGEX "#define CUDA_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" version "${version_line}")
  math(EXPR major "${version} / 1000")
  math(EXPR minor "${version} % 1000 / 10")
  foreach(name KILN_SANITIZE KILN_CCACHE KILN_CLANG_FORMAT)
    set(text_${name} "${${name}}")
    if(NOT ${name})
      set(text_${name} "none")
    endif()
  endforeach()
  message(STATUS "kiln ${PROJECT_VERSION}")
  message(STATUS "  build type    ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "  CUDA headers  ${major}.${minor} in ${KILN_CUDA_INCLUDE} (the libraries are opened at run time)")
  message(STATUS "  Abseil        ${absl_VERSION}")
  message(STATUS "  sanitizers    ${text_KILN_SANITIZE}")
  message(STATUS "  ccache        ${text_KILN_CCACHE}")
  message(STATUS "  clang-format  ${text_KILN_CLANG_FORMAT}")
  message(STATUS "  options       DEV=${KILN_DEV} TESTS=${KILN_BUILD_TESTS} BENCH=${KILN_BUILD_BENCH} PORTABLE=${KILN_PORTABLE}")
endfunction()
kiln_summary()
