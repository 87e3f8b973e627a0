"""treadle for Conan 2: `conan create .`, then `self.requires("treadle/0.1.0")` and CMake's `treadle::treadle`.

What is made is the shared library, with the compiler of loops beside it and, where it is asked for, the command-line tool.
"""

import re
import shutil
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Treadle(ConanFile):
    name = "treadle"
    description = "An ONNX engine for models that loop"
    license = "Apache-2.0"
    topics = ("onnx", "inference", "rnn", "loop", "streaming")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"jit": [True, False], "tool": [True, False]}
    default_options = {"jit": True, "tool": False}
    exports = "CMakeLists.txt"
    exports_sources = (
        "CMakeLists.txt", "LICENSE", "THIRD_PARTY.md", "cli/*", "cmake/*", "include/*", "profile/*", "src/*", "tools/*.py",
    )  # fmt: skip

    def set_version(self):
        text = Path(self.recipe_folder, "CMakeLists.txt").read_text()
        self.version = re.search(r"^project\(treadle VERSION (\S+)", text, re.MULTILINE)[1]

    def requirements(self):
        self.requires("fmt/[>=9 <13]")
        self.requires("protozero/[>=1.7 <2]")
        self.requires("re2/[>=20220601]")
        self.requires("utf8proc/[>=2.8 <3]")
        if self.options.tool:
            self.requires("cli11/[>=2.3 <3]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux" or self.settings.compiler not in ("clang", "gcc"):
            raise ConanInvalidConfiguration("treadle is built for Linux, by clang (fastest) or g++")

    def validate_build(self):
        if self.options.jit and not shutil.which("llvm-config-19"):
            raise ConanInvalidConfiguration(
                "treadle's compiler of loops takes LLVM 19, and there is no llvm-config-19: install llvm-19-dev, or go "
                "without (-o 'treadle/*:jit=False'): loops run as programs then"
            )

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables |= {
            "TREADLE_BUILD_CLI": bool(self.options.tool),
            "TREADLE_BUILD_JIT": bool(self.options.jit),
            "TREADLE_BUILD_TESTS": False,
            "TREADLE_BUILD_TRITON": False,
            "TREADLE_BUILD_DROPIN": False,
            "TREADLE_BUILD_PROVIDER": False,
            "TREADLE_FIND_PACKAGES": True,
            "TREADLE_WERROR": False,
        }
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="dev_build")

    def package(self):
        CMake(self).install()
        for name in ("LICENSE", "THIRD_PARTY.md"):
            copy(self, name, self.source_folder, str(Path(self.package_folder, "licenses")))

    def package_info(self):
        self.cpp_info.libs = ["treadle"]
        self.cpp_info.set_property("cmake_file_name", "treadle")
        self.cpp_info.set_property("cmake_target_name", "treadle::treadle")
        self.cpp_info.set_property("pkg_config_name", "treadle")
