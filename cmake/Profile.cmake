# What reads, checks and infers models, and what is around a run of few operations, is compiled by counts of how often
# each of its branches is taken: a quarter less time for the former. The counts are in profile/models.proftext, written by `./dev train`; functions that have changed since are
# compiled as if there were none. They change what is inlined and where code lies, never results.

option(TREADLE_PROFILE "Compile by the counts in profile/models.proftext, if this is a release build by clang" ON)
option(TREADLE_TRAIN "Count the branches for profile/models.proftext" OFF)

set(trained_text "${PROJECT_SOURCE_DIR}/profile/models.proftext")
set(trained_data "generated/models.profdata")
# Functions of one file are known by its name alone, wherever it lies.
set(trained_options -mllvm -static-func-full-module-prefix=0)

file(GLOB_RECURSE trained_sources
  "${PROJECT_SOURCE_DIR}/python/*.cc"
  "${PROJECT_SOURCE_DIR}/src/api/*.cc" "${PROJECT_SOURCE_DIR}/src/base/*.cc" "${PROJECT_SOURCE_DIR}/src/check/*.cc"
  "${PROJECT_SOURCE_DIR}/src/run/*.cc" "${PROJECT_SOURCE_DIR}/src/session/*.cc" "${PROJECT_SOURCE_DIR}/src/stream/*.cc"
  "${PROJECT_SOURCE_DIR}/src/report/*.cc"
  "${PROJECT_SOURCE_DIR}/src/infer/*.cc" "${PROJECT_SOURCE_DIR}/src/ir/*.cc" "${PROJECT_SOURCE_DIR}/src/model/*.cc" "${PROJECT_SOURCE_DIR}/src/op/*.cc"
  "${PROJECT_SOURCE_DIR}/src/type/*.cc" "${PROJECT_SOURCE_DIR}/src/wire/*.cc")

function(treadle_use_profile)
  find_program(LLVM_PROFDATA NAMES llvm-profdata-19 llvm-profdata)
  if(NOT LLVM_PROFDATA OR NOT EXISTS "${trained_text}")
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${trained_text}")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated")
  set(made "${PROJECT_BINARY_DIR}/${trained_data}.new")
  execute_process(COMMAND "${LLVM_PROFDATA}" merge -o "${made}" "${trained_text}"
    RESULT_VARIABLE status ERROR_VARIABLE message)
  if(status)
    message(WARNING "profile/models.proftext is not used: ${message}")
    return()
  endif()
  # Every file of the list depends on it, so it keeps its time where its contents are the same.
  file(COPY_FILE "${made}" "${PROJECT_BINARY_DIR}/${trained_data}" ONLY_IF_DIFFERENT)
  set_property(SOURCE ${trained_sources} APPEND PROPERTY COMPILE_OPTIONS
    "-fprofile-use=${TREADLE_TOLD}${trained_data}" -Wno-profile-instr-out-of-date -Wno-profile-instr-unprofiled
    -Wno-backend-plugin ${trained_options})
  set_property(SOURCE ${trained_sources} APPEND PROPERTY OBJECT_DEPENDS "${PROJECT_BINARY_DIR}/${trained_data}")
endfunction()

if(TREADLE_TRAIN)
  set_property(SOURCE ${trained_sources} APPEND PROPERTY COMPILE_OPTIONS -fprofile-generate ${trained_options})
  target_link_options(treadle_options INTERFACE -fprofile-generate)
elseif(TREADLE_PROFILE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_BUILD_TYPE STREQUAL "Release"
    AND NOT TREADLE_SANITIZE AND NOT TREADLE_BUILD_FUZZ)
  treadle_use_profile()
endif()
