# libonnxruntime.so, by which programs that are linked against onnxruntime run on treadle: a library of its own over
# libtreadle.so. Programs ask for symbols of many versions (OrtGetApiBase@VERS_1.23.2); only a library whose symbols have
# no versions serves all of them. The soname is onnxruntime's. The Python extension has the same functions inside, for
# libraries of operators that were made for onnxruntime.

file(GLOB dropin_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/dropin/*.cc")
add_library(treadle_dropin_functions STATIC ${dropin_sources})
target_include_directories(treadle_dropin_functions
  PUBLIC "${PROJECT_SOURCE_DIR}/include" PRIVATE "${PROJECT_SOURCE_DIR}/dropin")
target_link_libraries(treadle_dropin_functions PRIVATE treadle_options)
set_target_properties(treadle_dropin_functions PROPERTIES POSITION_INDEPENDENT_CODE ON)
if(NOT TREADLE_BUILD_DROPIN OR NOT TARGET treadle)
  return()
endif()

add_library(treadle_dropin SHARED "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
target_link_libraries(treadle_dropin PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,treadle_dropin_functions>" treadle_options
  treadle)
set(TREADLE_DROPIN_DIR "${CMAKE_INSTALL_LIBDIR}/treadle/onnxruntime")
set_target_properties(treadle_dropin PROPERTIES OUTPUT_NAME onnxruntime SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY "${TREADLE_LIB_DIR}/onnxruntime"
  BUILD_RPATH "${TREADLE_LIB_DIR}" INSTALL_RPATH "$ORIGIN/../.."
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/dropin/exports.map")
# Programs close it and open it again, while threads of theirs may be in it.
target_link_options(treadle_dropin PRIVATE "LINKER:-z,nodelete"
  "LINKER:--version-script,${PROJECT_SOURCE_DIR}/dropin/exports.map")
if(NOT TREADLE_SANITIZE)
  target_link_options(treadle_dropin PRIVATE "LINKER:-z,defs")
endif()

# The same with the engine inside, so that it is one file that may lie anywhere, staged in the Python package
# treadle_onnxruntime: its wheel is for packages of PyPI that carry onnxruntime's library. Programs that are linked ask for
# libonnxruntime.so.1, which is a name for the other file, as wheels hold no links.
set(dropin_package "${TREADLE_PYTHON_DIR}/treadle_onnxruntime")
add_library(treadle_onnxruntime SHARED EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
target_link_libraries(treadle_onnxruntime PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,treadle_dropin_functions>"
  treadle_options treadle_api)
target_link_options(treadle_onnxruntime PRIVATE "LINKER:-z,nodelete"
  "LINKER:--version-script,${PROJECT_SOURCE_DIR}/dropin/exports.map")
if(NOT TREADLE_SANITIZE)
  # The C++ library inside, so that a wheel loads where there is an older one.
  target_link_options(treadle_onnxruntime PRIVATE "LINKER:-z,defs" -static-libstdc++)
endif()
add_library(treadle_onnxruntime_name SHARED EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/cmake/empty.cc")
target_link_options(treadle_onnxruntime_name PRIVATE "LINKER:--no-as-needed")
target_link_libraries(treadle_onnxruntime_name PRIVATE treadle_onnxruntime)
set_target_properties(treadle_onnxruntime treadle_onnxruntime_name PROPERTIES OUTPUT_NAME onnxruntime
  LIBRARY_OUTPUT_DIRECTORY "${dropin_package}" LINK_DEPENDS "${PROJECT_SOURCE_DIR}/dropin/exports.map")
set_target_properties(treadle_onnxruntime_name PROPERTIES SUFFIX .so.1 BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN")

add_custom_target(treadle_onnxruntime_package DEPENDS treadle_onnxruntime treadle_onnxruntime_name)
file(GLOB dropin_python CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/dropin"
  "${PROJECT_SOURCE_DIR}/dropin/treadle_onnxruntime/*.py")
file(MAKE_DIRECTORY "${dropin_package}")
foreach(file IN LISTS dropin_python)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/dropin/${file}" "${TREADLE_PYTHON_DIR}/${file}" SYMBOLIC)
endforeach()
