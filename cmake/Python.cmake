# The Python package: the pure part in python/treadle, the extension treadle._core from python/*.cc.
#
# A build stages a package that can be imported under TREADLE_PYTHON_DIR: the extension, and links to the sources, so that
# an edited .py file needs no build. `pip install` takes the sources from pyproject.toml and the extension from the install
# rule.

file(GLOB_RECURSE python_extension_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/*.cc")
if(NOT python_extension_sources OR NOT TARGET treadle_api)
  return()
endif()

# The headers of a later Python do as well: the extension asks them for what Python 3.11 has.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -c "import numpy; print(numpy.get_include())"
  OUTPUT_VARIABLE numpy_include OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(python_package "${TREADLE_PYTHON_DIR}/treadle")
# An extension that another version of the sources has left, under another name, would be imported in place of this one.
file(GLOB left_over "${python_package}/_core.*.so")
list(FILTER left_over EXCLUDE REGEX "/_core\\.abi3\\.so$")
if(left_over)
  file(REMOVE ${left_over})
endif()
# So would the metadata of another release of onnxruntime.
file(GLOB staged RELATIVE "${python_package}" "${python_package}/_onnxruntime/*.dist-info")
foreach(folder IN LISTS staged)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/python/treadle/${folder}")
    file(REMOVE_RECURSE "${python_package}/${folder}")
  endif()
endforeach()
add_library(treadle_python MODULE ${python_extension_sources})
set_target_properties(treadle_python PROPERTIES PREFIX "" OUTPUT_NAME _core SUFFIX ".abi3.so"
  CXX_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY "${python_package}")
target_compile_definitions(treadle_python PRIVATE Py_LIMITED_API=0x030b0000)
target_include_directories(treadle_python PRIVATE "${PROJECT_SOURCE_DIR}/python" "${PROJECT_SOURCE_DIR}")
target_include_directories(treadle_python SYSTEM PRIVATE "${Python_INCLUDE_DIRS}" "${numpy_include}")
target_link_libraries(treadle_python PRIVATE treadle_dropin_functions treadle_api)
if(TARGET treadle_tool)
  target_link_libraries(treadle_python PRIVATE treadle_tool)
  target_compile_definitions(treadle_python PRIVATE TREADLE_HAS_TOOL)
endif()
target_link_options(treadle_python PRIVATE "LINKER:--exclude-libs,ALL")
if(NOT TREADLE_SANITIZE)
  # The C++ library inside, so that a wheel loads where there is an older one.
  target_link_options(treadle_python PRIVATE -static-libstdc++)
endif()

file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/treadle"
  "${PROJECT_SOURCE_DIR}/python/treadle/*.py" "${PROJECT_SOURCE_DIR}/python/treadle/*.pyi"
  "${PROJECT_SOURCE_DIR}/python/treadle/*.html" "${PROJECT_SOURCE_DIR}/python/treadle/report/*.js" "${PROJECT_SOURCE_DIR}/python/treadle/report/d3.LICENSE"
  "${PROJECT_SOURCE_DIR}/python/treadle/py.typed"
  "${PROJECT_SOURCE_DIR}/python/treadle/_onnxruntime/METADATA"
  "${PROJECT_SOURCE_DIR}/python/treadle/_onnxruntime/top_level.txt")
foreach(file IN LISTS python_files)
  get_filename_component(folder "${python_package}/${file}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/treadle/${file}" "${python_package}/${file}" SYMBOLIC)
endforeach()

file(MAKE_DIRECTORY "${TREADLE_PYTHON_DIR}/treadle_tool")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/treadle_tool/__init__.py" "${TREADLE_PYTHON_DIR}/treadle_tool/__init__.py"
  SYMBOLIC)

add_custom_target(treadle_python_package DEPENDS treadle_python)
if(TARGET treadle_jit)
  add_dependencies(treadle_python_package treadle_jit)
  file(CREATE_LINK "${TREADLE_LIB_DIR}/libtreadle_jit.so" "${python_package}/libtreadle_jit.so" SYMBOLIC)
endif()
