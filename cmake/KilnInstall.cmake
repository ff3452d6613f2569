# What `cmake --install` puts down, and `find_package(kiln)` finds: the library with every public header, the
# command and the compile worker; the CPU backend installs itself beside the library. Included after all folders.
include(CMakePackageConfigHelpers)
set(kiln_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

# Consumers see Abseil's own targets; the build's interface target stays at home. A portable build folds the archives
# in, so its library is for the project's own executables and is not exported.
if(NOT KILN_PORTABLE)
  target_link_libraries(kiln PUBLIC $<INSTALL_INTERFACE:absl::status> $<INSTALL_INTERFACE:absl::statusor>)
  install(TARGETS kiln EXPORT kiln_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT kiln_targets NAMESPACE kiln:: FILE kilnTargets.cmake DESTINATION ${kiln_config_dir})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kilnConfig.cmake.in ${PROJECT_BINARY_DIR}/kilnConfig.cmake
    INSTALL_DESTINATION ${kiln_config_dir})
  # Below 1.0 a minor version may break sources and plugins.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/kilnConfig.cmake ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
    DESTINATION ${kiln_config_dir})
endif()

foreach(program kiln_cli kiln_compile_worker)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
