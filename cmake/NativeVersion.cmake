# native_version() of src/plan/native.h: which native code fits which engine. One file for both of them.

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_program(LLVM_CONFIG NAMES llvm-config-19)
set(llvm_version "")
if(LLVM_CONFIG)
  execute_process(COMMAND "${LLVM_CONFIG}" --version OUTPUT_VARIABLE llvm_version OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()

set(TREADLE_NATIVE_VERSION "${PROJECT_BINARY_DIR}/generated/native_version.cc")
set(native_script "${PROJECT_SOURCE_DIR}/tools/gen_native_version.py")
file(GLOB native_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/jit/*.*" "${PROJECT_SOURCE_DIR}/src/base/*.h"
  "${PROJECT_SOURCE_DIR}/src/type/*.h" "${PROJECT_SOURCE_DIR}/src/kernels/*.h" "${PROJECT_SOURCE_DIR}/src/op/*.h"
  "${PROJECT_SOURCE_DIR}/src/plan/*.h")
add_custom_command(OUTPUT "${TREADLE_NATIVE_VERSION}"
  COMMAND "${Python3_EXECUTABLE}" "${native_script}" --source "${PROJECT_SOURCE_DIR}" "--llvm=${llvm_version}"
    --out "${TREADLE_NATIVE_VERSION}"
  DEPENDS ${native_sources} "${native_script}"
  COMMENT "Naming this version of native code"
  VERBATIM)
# The two targets that compile it must not both run the command.
add_custom_target(treadle_native_version DEPENDS "${TREADLE_NATIVE_VERSION}")

function(treadle_add_native_version target)
  target_sources(${target} PRIVATE "${TREADLE_NATIVE_VERSION}")
  add_dependencies(${target} treadle_native_version)
endfunction()
