# RE2 as the static library treadle::re2, compiled from Debian's source package: Debian's own libre2.a is not position
# independent, so it cannot go into a shared library.
#
# The archive is fetched by apt, from the mirror that this machine takes its packages from, and checked against the hash
# below. It is kept, so that later configurations and builds need no network. Where there is no apt, set
# TREADLE_RE2_SOURCE to a folder that holds RE2 2022-06-01.

set(TREADLE_RE2_SOURCE "" CACHE PATH "RE2's sources; empty: those of Debian's source package")
set(TREADLE_THIRD_PARTY_DIR "${PROJECT_SOURCE_DIR}/build/third_party" CACHE PATH "Where fetched sources are kept")

set(RE2_ARCHIVE "re2_20220601+dfsg.orig.tar.xz")
set(RE2_HASH 3bc61251da3b0b97be40a8a127818c517c62516e4eda11fc901d29496663df54)

function(treadle_fetch_re2 target)
  # Sources lie beside the packages made from them.
  execute_process(COMMAND apt-get download --print-uris libre2-dev
    OUTPUT_VARIABLE uris ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT uris MATCHES "'([^']+)/[^/']+\\.deb'")
    message(FATAL_ERROR "apt knows no package libre2-dev: run apt-get update, or set TREADLE_RE2_SOURCE")
  endif()
  set(uri "${CMAKE_MATCH_1}/${RE2_ARCHIVE}")
  message(STATUS "Fetching ${uri}")
  execute_process(COMMAND /usr/lib/apt/apt-helper download-file "${uri}" "${target}" "SHA256:${RE2_HASH}"
    OUTPUT_QUIET ERROR_VARIABLE problem RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${uri} could not be fetched: ${problem}")
  endif()
endfunction()

# Debian leaves out what can be generated, so three tables are made here, as in its own build: from the scripts in the
# archive and the Unicode data of package unicode-data.
function(treadle_generate_re2_tables folder)
  file(READ "${folder}/unicode.py" script)
  string(REGEX REPLACE "_UNICODE_DIR = \"[^\"]*\"" "_UNICODE_DIR = \"/usr/share/unicode\"" script "${script}")
  string(REPLACE "from six.moves import urllib" "import urllib.request" script "${script}") # what Python 3 calls it
  file(WRITE "${folder}/unicode.py" "${script}")
  foreach(table perl_groups unicode_casefold unicode_groups)
    set(generator python3 -B "make_${table}.py")
    if(table STREQUAL "perl_groups")
      set(generator perl "make_${table}.pl")
    endif()
    execute_process(COMMAND ${generator} WORKING_DIRECTORY "${folder}" OUTPUT_FILE "${folder}/${table}.cc"
      ERROR_VARIABLE problem RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "RE2's table ${table} could not be made (is unicode-data installed?): ${problem}")
    endif()
  endforeach()
endfunction()

function(treadle_unpack_re2 folder)
  set(archive "${TREADLE_THIRD_PARTY_DIR}/${RE2_ARCHIVE}")
  set(hash "")
  if(EXISTS "${archive}")
    file(SHA256 "${archive}" hash)
  endif()
  if(NOT hash STREQUAL RE2_HASH)
    treadle_fetch_re2("${archive}")
  endif()
  set(unpacked "${folder}.unpacked")
  file(REMOVE_RECURSE "${folder}" "${unpacked}")
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${unpacked}")
  file(GLOB top "${unpacked}/re2-*")
  treadle_generate_re2_tables("${top}/re2")
  file(MAKE_DIRECTORY "${folder}")
  file(RENAME "${top}" "${folder}/include")
  file(REMOVE_RECURSE "${unpacked}")
endfunction()

set(RE2_INCLUDE_DIR "${TREADLE_RE2_SOURCE}")
if(NOT TREADLE_RE2_SOURCE)
  set(re2_folder "${TREADLE_THIRD_PARTY_DIR}/re2")
  set(RE2_INCLUDE_DIR "${re2_folder}/include")
  file(MAKE_DIRECTORY "${TREADLE_THIRD_PARTY_DIR}")
  file(LOCK "${TREADLE_THIRD_PARTY_DIR}" DIRECTORY) # several builds may be configured at once
  if(NOT EXISTS "${RE2_INCLUDE_DIR}/re2/re2.h")
    treadle_unpack_re2("${re2_folder}")
  endif()
  file(LOCK "${TREADLE_THIRD_PARTY_DIR}" DIRECTORY RELEASE)
endif()

set(re2_sources
  bitstate compile dfa mimics_pcre nfa onepass parse perl_groups prog re2 regexp simplify stringpiece tostring
  unicode_casefold unicode_groups)
list(TRANSFORM re2_sources PREPEND "${RE2_INCLUDE_DIR}/re2/")
list(TRANSFORM re2_sources APPEND ".cc")
add_library(treadle_re2 STATIC ${re2_sources} "${RE2_INCLUDE_DIR}/util/rune.cc" "${RE2_INCLUDE_DIR}/util/strutil.cc")
target_include_directories(treadle_re2 SYSTEM PUBLIC "${RE2_INCLUDE_DIR}")
target_link_libraries(treadle_re2 PRIVATE treadle_options PUBLIC Threads::Threads)
target_compile_options(treadle_re2 PRIVATE -w) # its warnings are its authors'
# Only these operators see RE2.
foreach(operator regex_full_match tokenizer)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/ops/text/${operator}.cc" PROPERTIES
    COMPILE_OPTIONS "-isystem${RE2_INCLUDE_DIR}")
endforeach()
add_library(treadle_re2_linked INTERFACE)
target_link_libraries(treadle_re2_linked INTERFACE $<LINK_ONLY:treadle_re2>)
add_library(treadle::re2 ALIAS treadle_re2_linked)
