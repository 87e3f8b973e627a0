# Compiler and linker options shared by every target, as the interface library `treadle_options`.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source folder are hashed relative to it, so that several checkouts share one cache. Headers that are
  # parsed ahead (Precompile.cmake) cannot be preprocessed again, so what a file depends on comes from the compiler.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 "${CCACHE}")
endif()

add_library(treadle_options INTERFACE)
target_compile_options(treadle_options INTERFACE
  -Wall -Wextra -Wshadow $<$<BOOL:${TREADLE_WERROR}>:-Werror>
  -ffp-contract=off # tiers agree to the bit only where no compiler fuses a multiply and an add on its own
  -ffunction-sections -fdata-sections)
target_link_options(treadle_options INTERFACE "LINKER:--gc-sections")

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # These warn about correct code in g++ 12's own headers once it has inlined them.
  target_compile_options(treadle_options INTERFACE
    -Wno-uninitialized -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
else()
  target_link_options(treadle_options INTERFACE -fuse-ld=lld)
endif()

if(TREADLE_SANITIZE)
  set(sanitize_flags "-fsanitize=${TREADLE_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_compile_options(treadle_options INTERFACE ${sanitize_flags})
  target_link_options(treadle_options INTERFACE ${sanitize_flags})
endif()
