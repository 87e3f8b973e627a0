# Libraries that treadle is built on (THIRD_PARTY.md names them with their licences). All of them are linked statically.

find_package(Threads REQUIRED)

find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)

# Debian ships fmt as a shared library only; its implementation is one header, compiled once here.
find_path(FMT_INCLUDE_DIR fmt/format-inl.h REQUIRED)
add_library(treadle_fmt STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt.cc")
target_include_directories(treadle_fmt SYSTEM PUBLIC "${FMT_INCLUDE_DIR}")

find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY NAMES libutf8proc.a REQUIRED)
add_library(treadle::utf8proc STATIC IMPORTED)
set_target_properties(treadle::utf8proc PROPERTIES IMPORTED_LOCATION "${UTF8PROC_LIBRARY}")

if(TREADLE_BUILD_CLI)
  find_package(CLI11 REQUIRED)
endif()
