"""conanfile.py: `conan create` makes a package that the programs of examples/embedding build with and run.

The libraries that treadle is made of, which Conan would fetch, are packages made from this machine's libraries: to the
recipe they look like packages of a server.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "devtool"))

from environment import make_venv  # noqa: E402
from test_embedding import build, check_programs  # noqa: E402

VENV = ROOT / "build" / "venv-conan"
RELEASE = ROOT / "build" / "release"
RE2 = ROOT / "build" / "third_party" / "re2" / "include" / "re2"
SYSTEM = pathlib.Path("/usr/include")
PROFILE = """
[settings]
os=Linux
arch={arch}
compiler=clang
compiler.version=19
compiler.libcxx=libstdc++11
compiler.cppstd=20
build_type=Release
[conf]
tools.build:compiler_executables={{"c": "clang-19", "cpp": "clang++-19"}}
tools.cmake.cmaketoolchain:extra_variables={{"TREADLE_KERNELS": "baseline", "TREADLE_PROFILE": "OFF"}}
"""


def static_library(name):
    return next(pathlib.Path("/usr/lib").glob(f"*/{name}"))


@pytest.fixture(scope="module")
def conan(tmp_path_factory):
    """Runs Conan with a home of its own, which has packages of the libraries that treadle is made of."""
    folder = tmp_path_factory.mktemp("conan")
    make_venv(VENV, ROOT / "tools" / "requirements-conan.txt")
    arch = {"x86_64": "x86_64", "aarch64": "armv8"}[os.uname().machine]
    (folder / "profile").write_text(PROFILE.format(arch=arch))

    def run(*arguments, check=True, **environment):
        command = [VENV / "bin" / "conan", *arguments, "-pr:a", folder / "profile"]
        env = {**os.environ, "CONAN_HOME": str(folder / "home"), **environment}
        done = subprocess.run(list(map(str, command)), cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
        return done

    for name, version, headers, library in (
        ("fmt", "9.1.0", SYSTEM / "fmt", RELEASE / "libtreadle_fmt.a"),
        ("protozero", "1.7.1", SYSTEM / "protozero", ""),
        ("re2", "20220601", RE2, RELEASE / "libtreadle_re2.a"),
        ("utf8proc", "2.8.0", SYSTEM / "utf8proc.h", static_library("libutf8proc.a")),
    ):
        recipe = pathlib.Path(__file__).parent / "conan_library"
        # Without a folder of its own for them, Conan writes scripts beside the recipe.
        made = ["--name", name, "--version", version, "-of", folder / name]
        run("export-pkg", recipe, *made, HEADERS=str(headers), LIBRARY=str(library))
    return run


def test_a_missing_compiler_of_loops_is_told_of(conan, tmp_path):
    """Conan refuses before it builds; the message says what to install."""
    for tool in ("sh", "cmake", "clang-19", "clang++-19", "ninja", "git"):
        if found := shutil.which(tool):
            (tmp_path / tool).symlink_to(found)
    refused = conan("create", ROOT, check=False, PATH=str(tmp_path))
    assert refused.returncode != 0
    assert "there is no llvm-config-19: install llvm-19-dev" in refused.stderr


def test_programs_build_with_the_package(conan, tmp_path):
    conan("create", ROOT, "-o", "treadle/*:jit=False")
    conan("install", "--requires=treadle/[>=0]", "-o", "treadle/*:jit=False", "-g", "CMakeDeps", "-g", "CMakeToolchain",
          "-of", tmp_path)  # fmt: skip
    options = [f"-DCMAKE_TOOLCHAIN_FILE={tmp_path / 'conan_toolchain.cmake'}", "-DCMAKE_BUILD_TYPE=Release"]
    check_programs(build(tmp_path / "build", *options))
