# libonnxruntime_ep_treadle.so, which onnxruntime opens as a library of execution providers: the engine is inside, as in
# the Python extension. The library is staged in its Python package, onnxruntime_ep_treadle.

file(GLOB provider_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/provider/*.cc")
set(provider_package "${TREADLE_PYTHON_DIR}/onnxruntime_ep_treadle")
add_library(treadle_provider MODULE ${provider_sources})
target_include_directories(treadle_provider PRIVATE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/provider")
target_link_libraries(treadle_provider PRIVATE treadle_options treadle_api)
set_target_properties(treadle_provider PROPERTIES OUTPUT_NAME onnxruntime_ep_treadle
  LIBRARY_OUTPUT_DIRECTORY "${provider_package}" LINK_DEPENDS "${PROJECT_SOURCE_DIR}/provider/exports.map")
# onnxruntime closes it while threads of the engine may be in it.
target_link_options(treadle_provider PRIVATE "LINKER:-z,nodelete" "LINKER:--exclude-libs,ALL"
  "LINKER:--version-script,${PROJECT_SOURCE_DIR}/provider/exports.map")
if(NOT TREADLE_SANITIZE)
  # The C++ library inside, so that a wheel loads where there is an older one.
  target_link_options(treadle_provider PRIVATE -static-libstdc++ "LINKER:-z,defs")
endif()

file(MAKE_DIRECTORY "${provider_package}")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/provider/onnxruntime_ep_treadle/__init__.py" "${provider_package}/__init__.py"
  SYMBOLIC)
if(TREADLE_BUILD_JIT)
  file(CREATE_LINK "${TREADLE_LIB_DIR}/libtreadle_jit.so" "${provider_package}/libtreadle_jit.so" SYMBOLIC)
endif()
