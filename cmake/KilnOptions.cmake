# kiln_options: the only place with compiler and linker flags. Every target of the project links it.
option(KILN_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(KILN_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(KILN_INSTALL "Install rules, a CMake package and packages" ${PROJECT_IS_TOP_LEVEL})
option(KILN_PORTABLE "Link everything but libc statically, the CPU backend included" OFF)
set(KILN_SANITIZE "" CACHE STRING "address;undefined or thread")

# Strict for us, never for a user who builds a release.
set(kiln_dev_default OFF)
if(PROJECT_IS_TOP_LEVEL AND (EXISTS ${PROJECT_SOURCE_DIR}/.git OR DEFINED ENV{CI}))
  set(kiln_dev_default ON)
endif()
option(KILN_DEV "Warnings are errors" ${kiln_dev_default})

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(KILN_CCACHE ccache)
if(KILN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source folder are made relative, so that several checkouts share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${KILN_CCACHE})
endif()

add_library(kiln_options INTERFACE)
target_compile_options(kiln_options INTERFACE
  -fvisibility=hidden -fvisibility-inlines-hidden
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>
  $<$<AND:$<BOOL:${KILN_DEV}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports overlaps, overruns and uninitialised reads inside inlined library code that cannot happen.
  target_compile_options(kiln_options INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-maybe-uninitialized>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(kiln_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
endif()
if(KILN_SANITIZE)
  list(JOIN KILN_SANITIZE "," kiln_sanitizers)
  # UBSan's vptr check needs every class's type info exported, which hidden visibility denies it.
  set(kiln_sanitizer_flags -fsanitize=${kiln_sanitizers} -fno-omit-frame-pointer -O1)
  if("undefined" IN_LIST KILN_SANITIZE)
    list(APPEND kiln_sanitizer_flags -fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  # GCC's -Wmaybe-uninitialized and -Wtsan report false positives under instrumentation.
  list(APPEND kiln_sanitizer_flags $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>
       $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  target_compile_options(kiln_options INTERFACE ${kiln_sanitizer_flags})
  target_link_options(kiln_options INTERFACE -fsanitize=${kiln_sanitizers})
endif()
if(KILN_PORTABLE)
  target_link_options(kiln_options INTERFACE -static-libstdc++ -static-libgcc)
endif()
