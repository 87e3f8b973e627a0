# treadle_precompile(TARGET HEADER FLAGS...): its files are compiled with cmake/HEADER.h parsed ahead, in a release build
# by clang: a third to a half of the time of most files. FLAGS: those of the target that decide how headers are read.
#
# CMake's own precompiled headers contain the path of the build, by which a compiler cache takes the files of every
# checkout for different ones. Here the header is read from standard input in the folder /, so that nothing but the
# system's headers is named in it.

function(treadle_precompile target header)
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
  set(name "generated/${header}${addressing}.pch")
  set(parsed "${PROJECT_BINARY_DIR}/${name}")
  if(NOT TARGET treadle_${header}${addressing})
    separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE}")
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated")
    add_custom_command(OUTPUT "${parsed}"
      COMMAND sh -c "exec \"$@\" <\"$0\"" "${PROJECT_SOURCE_DIR}/cmake/${header}.h" "${CMAKE_CXX_COMPILER}" ${flags}
        ${ARGN} -std=c++20 ${addressing} -fvisibility=hidden -fvisibility-inlines-hidden -Xclang -fno-pch-timestamp
        -MD -MF "${parsed}.d" -MT "${name}" -x c++-header - -o "${parsed}"
      DEPENDS "${PROJECT_SOURCE_DIR}/cmake/${header}.h" DEPFILE "${parsed}.d" WORKING_DIRECTORY / VERBATIM
      COMMENT "Parsing ${header}.h")
    add_custom_target(treadle_${header}${addressing} DEPENDS "${parsed}")
  endif()
  target_compile_options(${target} PRIVATE "SHELL:-include-pch ${TREADLE_TOLD}${name}")
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${parsed}")
  add_dependencies(${target} treadle_${header}${addressing})
endfunction()
