# src/kernels/isa/*.cc, compiled once per instruction set. The sources put themselves into the inner namespace
# TREADLE_ISA_NAMESPACE; src/kernels/ picks one at run time.
#
# An inline function of a header (std::min, a vector's growth) that is compiled with AVX-512 must never be the copy that
# the linker keeps for everyone. So the objects of an instruction set are joined into one, in which only the symbols of its
# own namespace stay global. Sanitizers want their own symbols seen; such builds skip the joining, as does every linker
# without the options for it.

set(TREADLE_ISA_FLAGS_baseline "")
set(TREADLE_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(TREADLE_ISA_FLAGS_avx512 ${TREADLE_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)

# The register tiles unroll into tens of thousands of checked accesses each: with all of the undefined-behaviour checks a
# file of them takes minutes and gigabytes. Theirs are left to the address sanitizer, which sees every access.
set(TREADLE_TILED_KERNELS gemm/*.cc conv/direct.cc conv/depthwise*.cc conv/im2col.cc conv/implicit_gemm*.cc conv/pointwise*.cc
  conv/col2im.cc)

find_program(BFD_LINKER NAMES ld.bfd)
find_program(OBJCOPY NAMES objcopy)

function(treadle_add_isa_kernels core)
  set(folder "${PROJECT_SOURCE_DIR}/src/kernels/isa")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc" "${folder}/conv/*.cc" "${folder}/gemm/*.cc")
  if(NOT sources)
    return()
  endif()
  set(isas baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(isas ${TREADLE_KERNELS})
  endif()
  foreach(isa IN LISTS isas)
    if(NOT DEFINED TREADLE_ISA_FLAGS_${isa})
      message(FATAL_ERROR "TREADLE_KERNELS names ${isa}, expected baseline, avx2 or avx512")
    endif()
  endforeach()
  if(NOT isas)
    message(FATAL_ERROR "TREADLE_KERNELS is empty, expected some of baseline, avx2 and avx512")
  endif()
  # Told to files that pick kernels alone, so that a build with more of them compiles little else anew.
  file(GLOB picking CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/kernels/*.cc" "${PROJECT_SOURCE_DIR}/src/base/cpu.cc")
  foreach(isa IN LISTS isas)
    string(TOUPPER ${isa} upper)
    set_property(SOURCE ${picking} APPEND PROPERTY COMPILE_DEFINITIONS TREADLE_HAS_${upper}_KERNELS=1)
  endforeach()
  if(TREADLE_SANITIZE MATCHES "undefined")
    list(TRANSFORM TREADLE_TILED_KERNELS PREPEND "${PROJECT_SOURCE_DIR}/src/kernels/isa/" OUTPUT_VARIABLE tiled)
    file(GLOB tiled CONFIGURE_DEPENDS ${tiled})
    set_source_files_properties(${tiled} PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
  endif()
  foreach(isa IN LISTS isas)
    set(kernels treadle_kernels_${isa})
    add_library(${kernels} OBJECT ${sources})
    string(TOUPPER ${isa} upper)
    target_compile_definitions(${kernels} PRIVATE TREADLE_ISA_NAMESPACE=${isa} TREADLE_HAS_${upper}_KERNELS=1)
    target_compile_options(${kernels} PRIVATE $<$<CONFIG:Release>:-O3> ${TREADLE_ISA_FLAGS_${isa}})
    target_include_directories(${kernels} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${kernels} PRIVATE treadle_options treadle_fmt)
    if(isa STREQUAL "baseline" OR TREADLE_SANITIZE OR NOT BFD_LINKER OR NOT OBJCOPY)
      target_sources(${core} PRIVATE $<TARGET_OBJECTS:${kernels}>)
      continue()
    endif()
    # Neither clang's table of address-significant symbols nor g++'s unique symbols survive the joining.
    target_compile_options(${kernels} PRIVATE $<$<CXX_COMPILER_ID:Clang>:-fno-addrsig>
                                              $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
    string(LENGTH ${isa} length)
    set(joined "${PROJECT_BINARY_DIR}/${kernels}.o")
    add_custom_command(OUTPUT "${joined}"
      COMMAND "${BFD_LINKER}" -r --force-group-allocation -o "${joined}" $<TARGET_OBJECTS:${kernels}>
      COMMAND "${OBJCOPY}" --wildcard --keep-global-symbol "*${length}${isa}*" "${joined}"
      DEPENDS ${kernels} $<TARGET_OBJECTS:${kernels}>
      COMMENT "Joining the ${isa} kernels"
      COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${joined}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(${core} PRIVATE "${joined}")
  endforeach()
endfunction()
