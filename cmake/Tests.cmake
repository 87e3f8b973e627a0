# tests/**/*_test.cc -> one GoogleTest binary.

find_package(GTest REQUIRED)
enable_testing()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*_test.cc")
file(GLOB_RECURSE test_support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
set(failing_malloc "${PROJECT_SOURCE_DIR}/tests/support/failing_malloc.cc")
list(REMOVE_ITEM test_support ${test_sources} "${failing_malloc}")
if(test_sources)
  configure_file("${PROJECT_SOURCE_DIR}/tests/support/source_dir.cc.in" "${PROJECT_BINARY_DIR}/generated/source_dir.cc" @ONLY)
  # X(FUNCTION) for each function of treadle.h, for tests of them all.
  set(public_header "${PROJECT_SOURCE_DIR}/include/treadle/treadle.h")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${public_header}")
  file(READ "${public_header}" public_declarations)
  string(REGEX MATCHALL "\nTREADLE_API [A-Za-z0-9_* ]+\\(" public_functions "${public_declarations}")
  list(TRANSFORM public_functions REPLACE "^.*(treadle_[a-z0-9_]+)\\($" "X(\\1)")
  list(JOIN public_functions "\n" public_functions)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/public_functions.inc" CONTENT "${public_functions}\n" @ONLY)
  add_executable(treadle_tests ${test_sources} ${test_support} "${PROJECT_BINARY_DIR}/generated/source_dir.cc")
  set_target_properties(treadle_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}")
  target_include_directories(treadle_tests PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/tests"
    "${PROJECT_BINARY_DIR}/generated")
  if(TARGET treadle_api)
    target_link_libraries(treadle_tests PRIVATE treadle_api)
  endif()
  target_link_libraries(treadle_tests PRIVATE treadle_core GTest::gmock GTest::gtest GTest::gtest_main)
  add_test(NAME treadle_tests COMMAND treadle_tests)
  # For Python tests, which preload it.
  add_library(treadle_failing_malloc MODULE "${failing_malloc}")
  target_link_libraries(treadle_failing_malloc PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(treadle_failing_malloc PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${TREADLE_LIB_DIR}"
    CXX_VISIBILITY_PRESET default)
  add_dependencies(treadle_tests treadle_failing_malloc)
  if(TARGET treadle_dropin)
    add_dependencies(treadle_tests treadle_dropin) # tests/dropin/ opens it
  endif()
endif()

# tests/allocation/ -> an executable of its own, whose allocator fails on demand.
file(GLOB allocation_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/allocation/*.cc")
# The thread sanitizer has operators new of its own.
if(allocation_sources AND TARGET treadle_api AND NOT TREADLE_SANITIZE MATCHES "thread")
  add_executable(treadle_allocation_tests ${allocation_sources} "${PROJECT_SOURCE_DIR}/tests/support/no_native_cache.cc")
  set_target_properties(treadle_allocation_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}")
  target_include_directories(treadle_allocation_tests PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(treadle_allocation_tests PRIVATE treadle_api treadle_core)
  foreach(function malloc calloc realloc aligned_alloc posix_memalign free mmap munmap mremap realpath
          pthread_create)
    target_link_options(treadle_allocation_tests PRIVATE "LINKER:--wrap=${function}")
  endforeach()
endif()

# tests/realtime/ -> an executable with the compiler's sanitizer for real time, if the compiler has it. The sanitizer
# replaces functions of the C library, so the program exports them to the libraries that it loads.
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-resource-dir OUTPUT_VARIABLE resources ERROR_QUIET
  OUTPUT_STRIP_TRAILING_WHITESPACE)
set(realtime_sanitizer "${resources}/lib/linux/libclang_rt.rtsan-${CMAKE_SYSTEM_PROCESSOR}.a")
if(EXISTS "${realtime_sanitizer}" AND TARGET treadle_api AND NOT TREADLE_SANITIZE)
  add_executable(treadle_realtime_tests "${PROJECT_SOURCE_DIR}/tests/realtime/main.cc"
    "${PROJECT_SOURCE_DIR}/tests/support/no_native_cache.cc")
  set_target_properties(treadle_realtime_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TREADLE_BIN_DIR}"
    ENABLE_EXPORTS ON)
  target_link_libraries(treadle_realtime_tests PRIVATE treadle_api treadle_core
    -Wl,--whole-archive "${realtime_sanitizer}" -Wl,--no-whole-archive ${CMAKE_DL_LIBS})
endif()
