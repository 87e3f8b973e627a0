"""A library of this machine as a package of Conan's: $HEADERS and $LIBRARY name its parts."""

import os
import shutil
from pathlib import Path

from conan import ConanFile
from conan.tools.files import collect_libs


class Library(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def package(self):
        headers, library = Path(os.environ["HEADERS"]), os.environ["LIBRARY"]
        include = Path(self.package_folder, "include")
        include.mkdir()
        if headers.is_dir():
            shutil.copytree(headers, include / headers.name)
        else:
            shutil.copy(headers, include)
        if library:
            Path(self.package_folder, "lib").mkdir()
            shutil.copy(library, Path(self.package_folder, "lib", f"lib{self.name}.a"))

    def package_info(self):
        self.cpp_info.libs = collect_libs(self)
