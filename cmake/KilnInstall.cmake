# What `cmake --install` puts down, and `find_package(kiln)` and pkg-config find. Included after all folders. Components:
#   runtime      the library and its backends: what a serving image needs beside its own program
#   tools        kiln, kiln-compile-worker, the manual page, completion
#   development  headers, the CMake package, kiln.pc
include(CMakePackageConfigHelpers)
set(kiln_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

# Consumers see Abseil's own targets; the build's interface target stays at home. A portable build folds the archives
# in, so its library is for the project's own executables and is not exported.
if(NOT KILN_PORTABLE)
  target_link_libraries(kiln PUBLIC $<INSTALL_INTERFACE:absl::status> $<INSTALL_INTERFACE:absl::statusor>)
  install(TARGETS kiln EXPORT kiln_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  install(EXPORT kiln_targets NAMESPACE kiln:: FILE kilnTargets.cmake DESTINATION ${kiln_config_dir}
    COMPONENT development)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kilnConfig.cmake.in ${PROJECT_BINARY_DIR}/kilnConfig.cmake
    INSTALL_DESTINATION ${kiln_config_dir})
  # Below 1.0 a minor version may break sources and plugins.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/kilnConfig.cmake ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
    DESTINATION ${kiln_config_dir} COMPONENT development)
  # Says where it is by where it lies, so that a prefix may be moved.
  file(RELATIVE_PATH kiln_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/kiln.pc.in ${PROJECT_BINARY_DIR}/kiln.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()

foreach(program kiln_cli kiln_compile_worker)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  endif()
endforeach()
if(TARGET kiln_cli AND NOT KILN_SANITIZE)
  set(kiln_help_dir ${PROJECT_BINARY_DIR}/share)
  install(FILES ${kiln_help_dir}/kiln.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  install(FILES ${kiln_help_dir}/kiln.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME kiln COMPONENT tools)
  install(FILES ${kiln_help_dir}/kiln.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
    RENAME _kiln COMPONENT tools)
  install(FILES ${kiln_help_dir}/kiln.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    COMPONENT tools)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
include(KilnPackages)
