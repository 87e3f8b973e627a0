# treadle as an overlay port, from the checkout that this file lies in:
#
#   vcpkg install treadle --overlay-ports=packaging/vcpkg
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES jit TREADLE_BUILD_JIT tool TREADLE_BUILD_CLI)
if("jit" IN_LIST FEATURES)
  find_program(LLVM_CONFIG NAMES llvm-config-19)
  if(NOT LLVM_CONFIG)
    message(FATAL_ERROR "treadle's compiler of loops takes LLVM 19, and there is no llvm-config-19: install llvm-19-dev, "
      "or go without (treadle[core]): loops run as programs then")
  endif()
  list(APPEND options "-DLLVM_CONFIG=${LLVM_CONFIG}")
endif()

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options}
  -DTREADLE_BUILD_TESTS=OFF -DTREADLE_BUILD_TRITON=OFF -DTREADLE_BUILD_DROPIN=OFF
  -DTREADLE_BUILD_PROVIDER=OFF -DTREADLE_FIND_PACKAGES=ON -DTREADLE_WERROR=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/treadle)
vcpkg_fixup_pkgconfig()
if("tool" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES treadle AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/THIRD_PARTY.md")
