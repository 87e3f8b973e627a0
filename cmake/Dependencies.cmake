# Libraries that treadle is built on (THIRD_PARTY.md names them with their licences). All of them are linked statically.

find_package(Threads REQUIRED)

find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)

# Debian ships fmt as a shared library only; its implementation is one header, compiled once here.
find_path(FMT_INCLUDE_DIR fmt/format-inl.h REQUIRED)
add_library(treadle_fmt STATIC "${CMAKE_SOURCE_DIR}/cmake/fmt.cc")
target_include_directories(treadle_fmt SYSTEM PUBLIC "${FMT_INCLUDE_DIR}")

find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(RE2_LIBRARY NAMES libre2.a re2 REQUIRED)
add_library(treadle_re2 INTERFACE)
target_include_directories(treadle_re2 SYSTEM INTERFACE "${RE2_INCLUDE_DIR}")
target_link_libraries(treadle_re2 INTERFACE "${RE2_LIBRARY}" Threads::Threads)

find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY NAMES libutf8proc.a utf8proc REQUIRED)
add_library(treadle_utf8proc INTERFACE)
target_include_directories(treadle_utf8proc SYSTEM INTERFACE "${UTF8PROC_INCLUDE_DIR}")
target_link_libraries(treadle_utf8proc INTERFACE "${UTF8PROC_LIBRARY}")

if(TREADLE_BUILD_CLI)
  find_package(CLI11 REQUIRED)
endif()
