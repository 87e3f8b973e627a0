# The backend for Triton Inference Server: libtriton_treadle.so, beside libtreadle.so in the folder that the server looks
# for it in (backends/treadle/). Triton's functions are the server's, so nothing of Triton is linked.

file(GLOB triton_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/triton/*.cc")
add_library(treadle_triton MODULE ${triton_sources})
target_include_directories(treadle_triton PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/triton")
target_link_libraries(treadle_triton PRIVATE treadle_options treadle_fmt treadle)
set(TREADLE_TRITON_DIR "${CMAKE_INSTALL_LIBDIR}/treadle/backends/treadle")
set_target_properties(treadle_triton PROPERTIES OUTPUT_NAME triton_treadle
  LIBRARY_OUTPUT_DIRECTORY "${TREADLE_LIB_DIR}/backends/treadle"
  BUILD_RPATH "${TREADLE_LIB_DIR}" INSTALL_RPATH "$ORIGIN;$ORIGIN/../../.."
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/triton/exports.map")
target_link_options(treadle_triton PRIVATE "LINKER:--version-script,${PROJECT_SOURCE_DIR}/triton/exports.map")
