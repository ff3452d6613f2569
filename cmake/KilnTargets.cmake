# kiln_folder(NAME SOURCES ... [LINKS ...]): one core folder as objects inside libkiln. Its public headers are all
# files under NAME/include/kiln; its sources see the whole tree, and tests/lint/includes holds the arrows.
function(kiln_folder name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR})
  add_library(kiln_${name} OBJECT ${arg_SOURCES})
  target_include_directories(kiln_${name} PRIVATE ${PROJECT_SOURCE_DIR} ${KILN_PUBLIC_INCLUDES})
  target_compile_definitions(kiln_${name} PRIVATE KILN_BUILDING_LIBRARY)
  target_link_libraries(kiln_${name} PRIVATE kiln_options kiln_absl kiln_xxhash kiln_zstd kiln_cuda_headers
    nlohmann_json::nlohmann_json ${arg_LINKS})
  target_sources(kiln PRIVATE $<TARGET_OBJECTS:kiln_${name}>)
  kiln_public_headers(${dir}/include)
endfunction()

# Headers under BASE/kiln become part of what consumers of kiln::kiln see.
function(kiln_public_headers base)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${base}/kiln/*.h)
  if(headers)
    target_sources(kiln PUBLIC FILE_SET HEADERS BASE_DIRS ${base} FILES ${headers})
  endif()
endfunction()

# Where public headers live in the source tree, for targets that are folded into libkiln and cannot link it.
set(KILN_PUBLIC_INCLUDES
  ${PROJECT_SOURCE_DIR}/base/include
  ${PROJECT_SOURCE_DIR}/cache/include
  ${PROJECT_SOURCE_DIR}/jit/include
  ${PROJECT_SOURCE_DIR}/runtime/include)

# kiln_test(NAME SOURCES ... [LINKS ...] [LABELS ...] [TIMEOUT seconds]): one test executable.
function(kiln_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE kiln_options kiln kiln_absl kiln_xxhash kiln_zstd kiln_cuda_headers
    nlohmann_json::nlohmann_json ${arg_LINKS} GTest::gmock GTest::gtest_main ${CMAKE_DL_LIBS})
  include(GoogleTest)
  if(NOT KILN_PORTABLE)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${arg_TIMEOUT})
    # Discovery cannot pass on a list, so labels are set by a file that ctest reads after the list of tests.
    set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(CONFIGURE OUTPUT ${labels} @ONLY CONTENT
"if(@name@_TESTS)
  set_tests_properties(\${@name@_TESTS} PROPERTIES LABELS \"@arg_LABELS@\")
endif()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
  endif()
endfunction()
