# Libraries that treadle is built on, as CMake packages: from Conan (packaging/conan) or vcpkg (packaging/vcpkg), or from any
# prefix. Whether they are linked statically is for those who made them to say; what treadle makes of them is the shared
# library, the tool and the native tier.

find_package(Threads REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(re2 CONFIG REQUIRED)
find_package(utf8proc CONFIG REQUIRED)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)

add_library(treadle_fmt INTERFACE)
target_link_libraries(treadle_fmt INTERFACE fmt::fmt)
add_library(treadle::re2 ALIAS re2::re2)
add_library(treadle::utf8proc ALIAS utf8proc::utf8proc)

if(TREADLE_BUILD_CLI)
  find_package(CLI11 CONFIG REQUIRED)
endif()
