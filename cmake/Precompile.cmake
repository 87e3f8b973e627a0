# treadle_precompile(TARGET "NAME;..." FLAGS...): its files are compiled with cmake/NAME.h, one behind the other, parsed
# ahead, in a release build by clang: a half of the time of most files. FLAGS: those of the target that decide how headers
# are read; a target that has some shares what is parsed with no other.
#
# Templates that the headers use are instantiated ahead as well. CMake's own precompiled headers contain the path of the
# build, by which a compiler cache takes the files of every checkout for different ones. Here the headers are read from
# standard input, and own headers are named relative to the build.

function(treadle_precompile target names)
  if(NOT TARGET ${target} OR NOT TREADLE_PRECOMPILE OR TREADLE_FIND_PACKAGES OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
      OR NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR TREADLE_SANITIZE OR TREADLE_BUILD_FUZZ)
    return()
  endif()
  # Code of libraries and of programs addresses what it refers to in two ways.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set(addressing -fPIE)
  else()
    set(addressing -fPIC)
  endif()
  if(ARGN)
    set(joined ${target})
  else()
    list(JOIN names "-" joined)
  endif()
  set(name "generated/${joined}${addressing}.pch")
  set(parsed "${PROJECT_BINARY_DIR}/${name}")
  if(NOT TARGET precompiled_${joined}${addressing})
    separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE}")
    set(headers "${names}")
    list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/cmake/")
    list(TRANSFORM headers APPEND ".h")
    list(JOIN headers "' '" quoted)
    file(RELATIVE_PATH sources "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}/src")
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated")
    add_custom_command(OUTPUT "${parsed}"
      COMMAND sh -c "cat '${quoted}' | PWD=/proc/self/cwd \"$0\" \"$@\"" "${CMAKE_CXX_COMPILER}" ${flags} ${ARGN}
        -I "${sources}"
        -Wall -Wextra -Wshadow "$<$<BOOL:${TREADLE_WERROR}>:-Werror>" -ffp-contract=off
        -std=c++20 ${addressing} -fvisibility=hidden -fvisibility-inlines-hidden
        -fpch-instantiate-templates -Xclang -fno-pch-timestamp
        -Xclang -relocatable-pch -Xclang -isysroot -Xclang /proc/self/cwd
        -MD -MF "${name}.d" -MT "${name}" -x c++-header - -o "${name}"
      DEPENDS ${headers} DEPFILE "${parsed}.d" WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" COMMAND_EXPAND_LISTS VERBATIM
      COMMENT "Parsing ${joined}")
    add_custom_target(precompiled_${joined}${addressing} DEPENDS "${parsed}")
  endif()
  target_compile_options(${target} PRIVATE
    "SHELL:-include-pch ${TREADLE_TOLD}${name}" "SHELL:-Xclang -isysroot -Xclang ./${TREADLE_TOLD}")
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${parsed}")
  add_dependencies(${target} precompiled_${joined}${addressing})
endfunction()
