# `cpack -G DEB` in the build folder makes one package of all components. NVRTC and the driver are opened at run time, so
# the package depends on neither; the CPU backend's kernels are built by the system's compiler.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_CONTACT "The Kiln developers")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cuda-nvrtc-13-0 | cuda-nvrtc-12-8")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libabsl-dev")  # for programs that link it
find_program(KILN_DPKG_SHLIBDEPS dpkg-shlibdeps)
if(KILN_DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
endif()
include(CPack)
