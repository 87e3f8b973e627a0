# What `cmake --install` puts where, by component:
#
#   library      libtreadle.so.0, and libonnxruntime.so over it in a folder of its own
#   native       libtreadle_jit.so, in a folder of this version, as it serves no other
#   development  headers, libtreadle.so, libtreadle.a, CMake's package, treadle.pc and treadle-static.pc
#   triton       the backend for Triton Inference Server
#   tool         the command-line tool, its manual pages and completions
#   python       the extension beside the sources of the package; only when it is asked for by name
#
# Packages.cmake makes Debian packages of them, pyproject.toml wheels.

include(CMakePackageConfigHelpers)

if(TARGET treadle)
  install(TARGETS treadle EXPORT treadle
    LIBRARY COMPONENT library NAMELINK_COMPONENT development
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/treadle" TYPE INCLUDE COMPONENT development)

  set(TREADLE_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/treadle")
  install(EXPORT treadle NAMESPACE treadle:: FILE treadleTargets.cmake DESTINATION "${TREADLE_CMAKE_DIR}"
    COMPONENT development)
  set(package "${PROJECT_BINARY_DIR}/package")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/package/treadleConfig.cmake.in"
    "${package}/treadleConfig.cmake" INSTALL_DESTINATION "${TREADLE_CMAKE_DIR}" PATH_VARS CMAKE_INSTALL_LIBDIR
    CMAKE_INSTALL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file("${package}/treadleConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${package}/treadleConfig.cmake" "${package}/treadleConfigVersion.cmake"
    DESTINATION "${TREADLE_CMAKE_DIR}" COMPONENT development)

  # The files of pkg-config find the prefix from where they lie, so it may be chosen late and moved. Folders are given
  # from the prefix, except those that are not below it.
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
  else()
    file(RELATIVE_PATH PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    string(REGEX REPLACE "/$" "" PC_PREFIX "\${pcfiledir}/${PC_PREFIX}")
  endif()
  foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
      set(PC_${folder} "${CMAKE_INSTALL_${folder}}")
    else()
      set(PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
    endif()
  endforeach()
  set(pc_files treadle)
  if(TARGET treadle_archive)
    list(APPEND pc_files treadle-static)
    install(FILES "${TREADLE_ARCHIVE}" TYPE LIB COMPONENT development)
  endif()
  foreach(name IN LISTS pc_files)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/package/${name}.pc.in" "${package}/${name}.pc" @ONLY)
    install(FILES "${package}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
  endforeach()
endif()
if(TARGET treadle_jit)
  install(TARGETS treadle_jit LIBRARY DESTINATION "${TREADLE_NATIVE_DIR}" COMPONENT native)
endif()
if(TARGET treadle_dropin)
  install(TARGETS treadle_dropin LIBRARY DESTINATION "${TREADLE_DROPIN_DIR}" COMPONENT library)
endif()
if(TARGET treadle_triton)
  install(TARGETS treadle_triton LIBRARY DESTINATION "${TREADLE_TRITON_DIR}" COMPONENT triton)
endif()
if(TARGET treadle_cli)
  install(TARGETS treadle_cli COMPONENT tool)
  if(NOT TREADLE_SANITIZE AND NOT TREADLE_TRAIN AND NOT CMAKE_CROSSCOMPILING)
    # Manual pages and completions: the tool writes them from what --help says.
    set(described "${PROJECT_BINARY_DIR}/described")
    add_custom_command(TARGET treadle_cli POST_BUILD COMMAND treadle_cli describe "${described}" VERBATIM)
    install(DIRECTORY "${described}/share/" DESTINATION "${CMAKE_INSTALL_DATADIR}" COMPONENT tool)
  endif()
endif()

# A wheel takes the sources itself (pyproject.toml), and has the package at its root.
if(TARGET treadle_python)
  if(SKBUILD)
    set(python_dir treadle)
    if(TARGET treadle_jit)
      install(TARGETS treadle_jit LIBRARY DESTINATION "${python_dir}" COMPONENT python EXCLUDE_FROM_ALL)
    endif()
  else()
    set(python_dir "lib/python3/dist-packages/treadle")
    foreach(package IN ITEMS treadle treadle_tool)
      install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/${package}/" DESTINATION "lib/python3/dist-packages/${package}"
        COMPONENT python EXCLUDE_FROM_ALL PATTERN "__pycache__" EXCLUDE)
    endforeach()
  endif()
  install(TARGETS treadle_python LIBRARY DESTINATION "${python_dir}" COMPONENT python EXCLUDE_FROM_ALL)
endif()
