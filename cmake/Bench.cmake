# bench/native/*.cc -> one Google Benchmark binary.

find_package(benchmark REQUIRED)

file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/native/*.cc")
if(bench_sources)
  add_executable(treadle_bench ${bench_sources})
  set_target_properties(treadle_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}")
  if(TARGET treadle_api)
    target_link_libraries(treadle_bench PRIVATE treadle_api)
  endif()
  target_link_libraries(treadle_bench PRIVATE treadle_core benchmark::benchmark_main)
endif()

# What bench/conv_prices.py fits prices to.
file(GLOB conv_costs_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/native/conv_costs/*.cc")
add_executable(treadle_conv_costs ${conv_costs_sources})
set_target_properties(treadle_conv_costs PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}")
target_link_libraries(treadle_conv_costs PRIVATE treadle_core)
