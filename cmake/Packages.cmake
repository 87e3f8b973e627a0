# Debian packages by CPack (./dev debs):
#
#   libtreadle0      the library and its native tier
#   libtreadle-dev   headers, static library, packages of CMake and pkg-config
#   treadle          the command-line tool
#   treadle-triton   the backend for Triton Inference Server
#   python3-treadle  the Python package, for Debian's python3

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGE_NAME treadle)
set(CPACK_PACKAGE_VENDOR "treadle's authors")
set(TREADLE_MAINTAINER "treadle's authors <treadle@example.org>" CACHE STRING "Who answers for the Debian packages")
set(CPACK_PACKAGE_CONTACT "${TREADLE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ONNX engine for models that loop")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${TREADLE_LIB_DIR}") # the backend needs the library
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/package/compress_manual.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL library native development tool triton python)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

# package NAME of COMPONENTS...: what its control file says, and what Debian asks of every package.
function(treadle_package name section description)
  string(TOUPPER "${name}" upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${description}" PARENT_SCOPE)
  foreach(component IN LISTS ARGN)
    string(TOUPPER "${component}" upper_component)
    set(CPACK_COMPONENT_${upper_component}_GROUP ${name} PARENT_SCOPE)
  endforeach()
  list(GET ARGN 0 component)
  install(FILES "${PROJECT_BINARY_DIR}/packages/copyright" "${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz"
    DESTINATION "share/doc/${name}" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

math(EXPR PYTHON_NEXT_MINOR "${Python_VERSION_MINOR} + 1")
set(about "treadle runs ONNX models and compiles their loops (Loop, Scan, RNN, LSTM,\nGRU) to native code.")
treadle_package(libtreadle0 libs
  "${about}\nThis package has the library and the compiler of loops." library native)
treadle_package(libtreadle-dev libdevel
  "${about}\nThis package has headers for C and C++, a static library, and what CMake and\npkg-config find them by." development)
treadle_package(treadle science
  "${about}\nThis package has the tool that runs, checks, infers, shows, converts and\nprofiles models." tool)
treadle_package(treadle-triton science
  "${about}\nThis package has the backend by which Triton Inference Server serves models." triton)
treadle_package(python3-treadle python
  "${about}\nThis package has the Python package, whose names are onnxruntime's." python)

# Programs that are linked with the library find it once the system's list of libraries is made anew.
file(WRITE "${PROJECT_BINARY_DIR}/packages/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBTREADLE0_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/packages/triggers")
# LLVM's static libraries ask for it, and the object is to load everywhere.
file(WRITE "${PROJECT_BINARY_DIR}/packages/libtreadle0" "libtreadle0: embedded-library zlib *\n")
install(FILES "${PROJECT_BINARY_DIR}/packages/libtreadle0" DESTINATION share/lintian/overrides COMPONENT library
  EXCLUDE_FROM_ALL)

set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_LIBTREADLE-DEV_PACKAGE_DEPENDS "libtreadle0 (= ${version})")
set(CPACK_DEBIAN_TREADLE-TRITON_PACKAGE_DEPENDS "libtreadle0 (= ${version})")
set(CPACK_DEBIAN_TREADLE_PACKAGE_RECOMMENDS "libtreadle0 (= ${version})") # loops as native code
set(CPACK_DEBIAN_PYTHON3-TREADLE_PACKAGE_DEPENDS
  "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}), python3 (<< ${Python_VERSION_MAJOR}.${PYTHON_NEXT_MINOR}), python3-numpy-abi9")
set(CPACK_DEBIAN_PYTHON3-TREADLE_PACKAGE_CONTROL_EXTRA
  "${PROJECT_SOURCE_DIR}/cmake/package/python/postinst;${PROJECT_SOURCE_DIR}/cmake/package/python/prerm")
set(CPACK_DEBIAN_PYTHON3-TREADLE_PACKAGE_RECOMMENDS "libtreadle0 (= ${version})")

# Debian's policy: who holds which rights, and what changed. Licences of what is linked in are Debian's own copyright files.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/gen_debian_files.py"
  --version "${version}" --maintainer "${CPACK_PACKAGE_CONTACT}" --out "${PROJECT_BINARY_DIR}/packages"
  COMMAND_ERROR_IS_FATAL ANY)

include(CPack)
