# libtreadle.a: the engine and the libraries inside it as one object, in which only the names of treadle.h are global. So
# a program may have another version of fmt or RE2 of its own.

if(TREADLE_SANITIZE OR NOT BFD_LINKER OR NOT OBJCOPY)
  message(STATUS "libtreadle.a is left out: it takes ld.bfd and objcopy, and no sanitizer")
  return()
endif()

set(TREADLE_ARCHIVE "${TREADLE_LIB_DIR}/libtreadle.a")
set(joined "${PROJECT_BINARY_DIR}/treadle.o")
# Neither clang's table of address-significant symbols nor its notes for another linker survive the joining.
add_custom_command(OUTPUT "${TREADLE_ARCHIVE}"
  COMMAND "${BFD_LINKER}" -r --force-group-allocation -o "${joined}"
    --whole-archive $<TARGET_FILE:treadle_api> $<TARGET_FILE:treadle_core> --no-whole-archive
    --start-group $<TARGET_FILE:treadle_fmt> $<TARGET_FILE:treadle_re2> "${UTF8PROC_LIBRARY}" --end-group
  COMMAND "${OBJCOPY}" --wildcard --keep-global-symbol "treadle_*" --remove-section .llvm_addrsig "${joined}"
  COMMAND "${CMAKE_COMMAND}" -E rm -f "${TREADLE_ARCHIVE}"
  COMMAND "${CMAKE_AR}" qcD "${TREADLE_ARCHIVE}" "${joined}"
  COMMAND "${CMAKE_RANLIB}" -D "${TREADLE_ARCHIVE}"
  COMMAND "${CMAKE_COMMAND}" -E rm -f "${joined}"
  DEPENDS treadle_api treadle_core treadle_fmt treadle_re2
  COMMENT "Joining libtreadle.a"
  VERBATIM)
add_custom_target(treadle_archive ALL DEPENDS "${TREADLE_ARCHIVE}")
