# src/jit: loops to native code. LLVM is linked statically into a shared object of its own, whose only symbol is its
# entry; the engine loads it when the first loop is to be compiled, and works without it.

if(NOT LLVM_CONFIG)
  message(STATUS "llvm-config-19 was not found: the native tier is left out (llvm-19-dev would bring it)")
  return()
endif()
execute_process(COMMAND "${LLVM_CONFIG}" --includedir OUTPUT_VARIABLE LLVM_INCLUDE_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${LLVM_CONFIG}" --link-static --libfiles x86codegen passes object
  OUTPUT_VARIABLE llvm_libraries OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(llvm_libraries)

find_library(ZLIB_LIBRARY NAMES libz.a REQUIRED)
find_library(ZSTD_LIBRARY NAMES libzstd.a REQUIRED)

file(GLOB jit_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/jit/*.cc")
# It defines malloc, so calls of malloc in it are not to be made of what is no such call.
list(REMOVE_ITEM jit_sources "${PROJECT_SOURCE_DIR}/src/jit/memory.cc")
add_library(treadle_jit_memory OBJECT "${PROJECT_SOURCE_DIR}/src/jit/memory.cc")
target_include_directories(treadle_jit_memory PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_compile_options(treadle_jit_memory PRIVATE -fno-builtin -fno-rtti)
target_link_libraries(treadle_jit_memory PRIVATE treadle_options)
list(APPEND jit_sources # the tables of the engine that it reads
  "${PROJECT_SOURCE_DIR}/src/type/element_type.cc" "${PROJECT_SOURCE_DIR}/src/kernels/elementwise_ops.cc")
add_library(treadle_jit MODULE ${jit_sources})
treadle_add_native_version(treadle_jit)
target_include_directories(treadle_jit PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_include_directories(treadle_jit SYSTEM PRIVATE "${LLVM_INCLUDE_DIR}")
target_compile_options(treadle_jit PRIVATE -fno-rtti)
target_link_libraries(treadle_jit PRIVATE treadle_options treadle_jit_memory treadle_fmt ${llvm_libraries} "${ZLIB_LIBRARY}" "${ZSTD_LIBRARY}" ${CMAKE_DL_LIBS})
target_link_options(treadle_jit PRIVATE "LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/jit_exports.map"
  "LINKER:--exclude-libs,ALL" "LINKER:-z,nodelete")
if(NOT TREADLE_SANITIZE)
  # The C++ library inside, so that it asks for memory where LLVM does (src/jit/memory.h).
  target_link_options(treadle_jit PRIVATE "LINKER:-z,defs" -static-libstdc++)
endif()
set_target_properties(treadle_jit PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${TREADLE_LIB_DIR}")
