# The table of operators: every TREADLE_OP(...) block in src/ops/ becomes one entry of generated/op_table.cc. The file is
# rewritten only when the set of operators changes, so that editing an operator compiles that operator alone.

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

function(treadle_add_registry core)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/src/op/op_def.h")
    return()
  endif()
  file(GLOB_RECURSE op_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/ops/*.cc")
  set(table "${PROJECT_BINARY_DIR}/generated/op_table.cc")
  # Ninja does not run a command again because one of its inputs is gone, but it does when this list changes.
  set(listed "${PROJECT_BINARY_DIR}/generated/op_sources.txt")
  list(JOIN op_sources "\n" op_source_lines)
  file(CONFIGURE OUTPUT "${listed}" CONTENT "${op_source_lines}\n" @ONLY)
  set(script "${PROJECT_SOURCE_DIR}/tools/gen_registry.py")
  add_custom_command(OUTPUT "${table}"
    COMMAND "${Python3_EXECUTABLE}" "${script}" --ops "${PROJECT_SOURCE_DIR}/src/ops" --out "${table}"
    DEPENDS ${op_sources} "${listed}" "${script}"
    COMMENT "Listing operators"
    VERBATIM)
  target_sources(${core} PRIVATE "${table}")
endfunction()
