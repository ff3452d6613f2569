# What Kiln stands on, all of it Debian packages. In a portable build every library is its static archive.
# A project that takes Kiln in with add_subdirectory links what Kiln links, from a folder above.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(KILN_DLPACK_INCLUDE dlpack/dlpack.h REQUIRED)

# kiln_find_library(NAME HEADER LIBRARY): imported target kiln_NAME.
function(kiln_find_library name header library)
  find_path(KILN_${name}_INCLUDE ${header} REQUIRED)
  if(KILN_PORTABLE)
    find_library(KILN_${name}_LIBRARY lib${library}.a REQUIRED)
  else()
    find_library(KILN_${name}_LIBRARY ${library} REQUIRED)
  endif()
  add_library(kiln_${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(kiln_${name} SYSTEM INTERFACE ${KILN_${name}_INCLUDE})
  target_link_libraries(kiln_${name} INTERFACE ${KILN_${name}_LIBRARY})
endfunction()
kiln_find_library(xxhash xxhash.h xxhash)
kiln_find_library(zstd zstd.h zstd)
kiln_find_library(sodium sodium.h sodium)
kiln_find_library(hiredis hiredis/hiredis.h hiredis)

# libcurl is opened at run time, where a remote cache is configured: linked, it would cost every process 25 ms of start.
find_path(KILN_CURL_INCLUDE curl/curl.h REQUIRED)
add_library(kiln_curl_headers INTERFACE)
target_include_directories(kiln_curl_headers SYSTEM INTERFACE ${KILN_CURL_INCLUDE})

# Debian's Abseil package names the shared libraries; a portable build takes the archives beside them.
add_library(kiln_absl INTERFACE)
if(KILN_PORTABLE)
  get_target_property(absl_location absl::status IMPORTED_LOCATION_NONE)
  if(NOT absl_location)
    get_target_property(absl_location absl::status IMPORTED_LOCATION_RELEASE)
  endif()
  get_filename_component(absl_dir ${absl_location} DIRECTORY)
  file(GLOB absl_archives ${absl_dir}/libabsl_*.a)
  target_link_libraries(kiln_absl INTERFACE -Wl,--start-group ${absl_archives} -Wl,--end-group Threads::Threads)
else()
  target_link_libraries(kiln_absl INTERFACE absl::status absl::statusor absl::strings absl::str_format
    absl::synchronization absl::flat_hash_map absl::flat_hash_set absl::time absl::span Threads::Threads)
endif()

# spdlog as headers only, so that no build needs its shared library.
add_library(kiln_spdlog INTERFACE)
get_target_property(spdlog_include spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(kiln_spdlog SYSTEM INTERFACE ${spdlog_include})
target_compile_definitions(kiln_spdlog INTERFACE SPDLOG_HEADER_ONLY SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

# The CUDA toolkit: its headers are used where they are, its libraries are opened at run time.
find_path(KILN_CUDA_INCLUDE cuda.h HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include)
if(NOT KILN_CUDA_INCLUDE)
  message(FATAL_ERROR "cuda.h not found: install the CUDA Toolkit 12.8 or newer, or set CUDA_HOME")
endif()
add_library(kiln_cuda_headers INTERFACE)
target_include_directories(kiln_cuda_headers SYSTEM INTERFACE ${KILN_CUDA_INCLUDE})
