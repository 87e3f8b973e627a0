# fuzz/NAME_fuzzer.cc -> bin/NAME_fuzzer, a libFuzzer target each; fuzz/support/ is linked into all of them.

file(GLOB fuzz_support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/support/*.cc")
add_library(treadle_fuzz_support STATIC ${fuzz_support})
target_include_directories(treadle_fuzz_support PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(treadle_fuzz_support PUBLIC treadle_core)
add_executable(fuzz_words "${PROJECT_SOURCE_DIR}/fuzz/words.cc")
set_target_properties(fuzz_words PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}")
target_link_libraries(fuzz_words PRIVATE treadle_fuzz_support)
add_custom_target(dev_fuzz DEPENDS fuzz_words)

file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*_fuzzer.cc")
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}")
  target_link_libraries(${name} PRIVATE treadle_fuzz_support)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(dev_fuzz ${name})
endforeach()

# This one runs native code. The compiler is instrumented, too, and finds the sanitizers' callbacks in the executable.
if(TARGET treadle_jit)
  set_target_properties(run_fuzzer PROPERTIES ENABLE_EXPORTS ON)
  add_dependencies(run_fuzzer treadle_jit)
endif()
