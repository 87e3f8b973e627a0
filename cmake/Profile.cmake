# What reads, checks and infers models, and what plans and runs them around the kernels, is compiled by counts of how
# often each of its branches is taken: a fifth to a quarter less time. The counts are in profile/, written by
# `./dev train`; functions that have changed since are compiled as if there were none. They change what is inlined and
# where code lies, never results.

option(TREADLE_PROFILE "Compile by the counts in profile/, if this is a release build by clang" ON)
set(TREADLE_TRAIN "" CACHE STRING "Count the branches for profile/NAME.proftext: models or runs")

# Functions of one file are known by its name alone, wherever it lies.
set(trained_options -mllvm -static-func-full-module-prefix=0)

# Each of these takes the counts of its own training, so that one can be renewed without compiling the other anew.
file(GLOB_RECURSE trained_for_models
  "${PROJECT_SOURCE_DIR}/src/base/*.cc" "${PROJECT_SOURCE_DIR}/src/check/*.cc" "${PROJECT_SOURCE_DIR}/src/infer/*.cc"
  "${PROJECT_SOURCE_DIR}/src/ir/*.cc" "${PROJECT_SOURCE_DIR}/src/model/*.cc" "${PROJECT_SOURCE_DIR}/src/op/*.cc"
  "${PROJECT_SOURCE_DIR}/src/report/*.cc" "${PROJECT_SOURCE_DIR}/src/type/*.cc" "${PROJECT_SOURCE_DIR}/src/wire/*.cc")
file(GLOB_RECURSE trained_for_runs
  "${PROJECT_SOURCE_DIR}/python/*.cc" "${PROJECT_SOURCE_DIR}/src/api/*.cc" "${PROJECT_SOURCE_DIR}/src/kernels/fused*.cc"
  "${PROJECT_SOURCE_DIR}/src/opt/*.cc" "${PROJECT_SOURCE_DIR}/src/plan/*.cc" "${PROJECT_SOURCE_DIR}/src/run/*.cc"
  "${PROJECT_SOURCE_DIR}/src/session/*.cc" "${PROJECT_SOURCE_DIR}/src/stream/*.cc")

function(treadle_use_profile name)
  set(text "${PROJECT_SOURCE_DIR}/profile/${name}.proftext")
  find_program(LLVM_PROFDATA NAMES llvm-profdata-19 llvm-profdata)
  if(NOT LLVM_PROFDATA OR NOT EXISTS "${text}")
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${text}")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated")
  set(data "generated/${name}.profdata")
  set(made "${PROJECT_BINARY_DIR}/${data}.new")
  execute_process(COMMAND "${LLVM_PROFDATA}" merge -o "${made}" "${text}"
    RESULT_VARIABLE status ERROR_VARIABLE message)
  if(status)
    message(WARNING "profile/${name}.proftext is not used: ${message}")
    return()
  endif()
  # Every file of the list depends on it, so it keeps its time where its contents are the same.
  file(COPY_FILE "${made}" "${PROJECT_BINARY_DIR}/${data}" ONLY_IF_DIFFERENT)
  set_property(SOURCE ${trained_for_${name}} APPEND PROPERTY COMPILE_OPTIONS
    "-fprofile-use=${TREADLE_TOLD}${data}" -Wno-profile-instr-out-of-date -Wno-profile-instr-unprofiled
    -Wno-backend-plugin ${trained_options})
  set_property(SOURCE ${trained_for_${name}} APPEND PROPERTY OBJECT_DEPENDS "${PROJECT_BINARY_DIR}/${data}")
endfunction()

foreach(name models runs)
  if(TREADLE_TRAIN STREQUAL name)
    set_property(SOURCE ${trained_for_${name}} APPEND PROPERTY COMPILE_OPTIONS -fprofile-generate ${trained_options})
    target_link_options(treadle_options INTERFACE -fprofile-generate)
  elseif(TREADLE_PROFILE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_BUILD_TYPE STREQUAL "Release"
      AND NOT TREADLE_SANITIZE AND NOT TREADLE_BUILD_FUZZ)
    treadle_use_profile(${name})
  endif()
endforeach()
