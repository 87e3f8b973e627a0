# fuzz/NAME_fuzzer.cc -> bin/NAME_fuzzer, a libFuzzer target each.

file(GLOB fuzz_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/fuzz/*_fuzzer.cc")
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}")
  if(TARGET treadle_api)
    target_link_libraries(${name} PRIVATE treadle_api)
  endif()
  target_link_libraries(${name} PRIVATE treadle_core)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
