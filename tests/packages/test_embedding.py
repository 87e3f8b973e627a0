"""The programs of examples/embedding build and run in every way in which a project can take treadle: what is installed, by
CMake, pkg-config and as a static library, and the sources as a part of the project."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from commands import call

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "embedding"
MODEL = PROGRAMS / "smooth.onnxtxt"
SMOOTH = "0.000 1.000 1.750 2.312 1.734 1.301 \n"
# The output of each program, by its name.
PRINTED = {
    "run_c": SMOOTH,
    "run_cpp": "x: tensor(float)[time,batch]\ny: tensor(float)[time,batch]\n" + SMOOTH,
    "stream_c": SMOOTH,
    "stream_cpp": SMOOTH,
    "check_c": "0 errors, 0 warnings\n",
    "check_cpp": "0 errors, 0 warnings\ny: tensor(float)[time,batch]\n",
}
POOL = """\
1: 0.000 0.000  2: 0.000 0.000  3: 0.000 0.000  
1: 0.250 0.438  2: 0.500 0.875  3: 0.750 1.312  
1: 0.828 1.121  2: 1.656 2.242  3: 2.484 3.363  
3 runs, 0 streams
"""  # noqa: W291
PRINTED |= {"pool_c": POOL, "pool_cpp": POOL}


def build(folder, *options, env=None):
    call("cmake", "-S", PROGRAMS, "-B", folder, *options, env=env)
    call("cmake", "--build", folder, "-j", os.cpu_count(), env=env)
    return folder


def check_programs(folder, env=None):
    for name, printed in PRINTED.items():
        assert call(folder / name, MODEL, env=env) == printed, name


def test_the_installed_files_are_listed(prefix):
    version = re.search(r"^project\(treadle VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    found = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    assert {path.split("/")[0] for path in found} <= {"bin", "include", "lib", "share"}
    headers = {f"include/treadle/{path.name}" for path in (ROOT / "include" / "treadle").iterdir()}
    assert (
        headers
        | {
            "bin/treadle",
            "share/man/man1/treadle.1",
            "share/bash-completion/completions/treadle",
            "lib/libtreadle.a",
            "lib/libtreadle.so",
            "lib/libtreadle.so.0",
            f"lib/libtreadle.so.{version}",
            "lib/pkgconfig/treadle.pc",
            "lib/pkgconfig/treadle-static.pc",
            "lib/cmake/treadle/treadleConfig.cmake",
            "lib/cmake/treadle/treadleConfigVersion.cmake",
            f"lib/treadle/{version}/libtreadle_jit.so",
        }
        <= found
    )
    assert {path for path in found if path.startswith("include/")} == headers


@pytest.mark.parametrize("link", ["treadle", "static"])
def test_find_package(prefix, tmp_path, link):
    check_programs(build(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DLINK={link}"))


def test_an_unknown_component_is_named(prefix, tmp_path):
    options = ["-S", PROGRAMS, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", "-DLINK=shared"]
    done = subprocess.run(["cmake", *options], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no component 'shared'" in done.stderr


def pkg_config(prefix, *words):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    return call("pkg-config", *words, env=env).split()


@pytest.mark.parametrize("way", ["shared", "static"])
@pytest.mark.parametrize("compiler", ["gcc", "g++", "clang-19", "clang++-19"])
def test_pkg_config(prefix, tmp_path, compiler, way):
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    plus = compiler in ("g++", "clang++-19")
    package = "treadle-static" if way == "static" else "treadle"
    flags, libraries = pkg_config(prefix, "--cflags", package), pkg_config(prefix, "--libs", package)
    for name in ("run", "stream", "pool", "check"):
        source = PROGRAMS / (name + (".cc" if plus else ".c"))
        strict = ["-Wall", "-Wextra", "-Werror", "-std=c++17" if plus else "-std=c99", "-pedantic"]
        call(compiler, *strict, *flags, source, "-o", tmp_path / name, *libraries)
        env = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
        assert call(tmp_path / name, MODEL, env=env) == PRINTED[name + ("_cpp" if plus else "_c")]


def test_a_prefix_may_be_moved(prefix, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved, symlinks=True)
    for package, library in (("treadle", "-ltreadle"), ("treadle-static", f"{moved}/lib/libtreadle.a")):
        words = [
            word.replace(f"{moved}/lib/pkgconfig/../..", str(moved))
            for word in pkg_config(moved, "--cflags", "--libs", package)
        ]
        assert f"-I{moved}/include" in words
        assert library in words
    text = (moved / "lib" / "pkgconfig" / "treadle.pc").read_text()
    assert str(prefix) not in text and "/usr/local" not in text


@pytest.mark.parametrize("link", ["treadle", "static"])
def test_native_code_is_found(prefix, tmp_path, link):
    """Native code is found by a program with the shared library and the tool, and by a program with the static library
    in any folder, if it is told where.
    """
    build(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DLINK={link}")
    env = {key: value for key, value in os.environ.items() if not key.startswith("TREADLE_")}
    env |= {"TREADLE_JIT": "required", "TREADLE_JIT_CACHE": "off"}
    if link == "static":
        env["TREADLE_JIT_LIBRARY"] = str(next(prefix.glob("lib/treadle/*/libtreadle_jit.so")))
    check_programs(tmp_path, env)
    assert call(prefix / "bin" / "treadle", "explain", MODEL, "--dim", "time=64", "--dim", "batch=4", env=env)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder that both ways build in, which gives both the same objects to link."""
    return tmp_path_factory.mktemp("project")


@pytest.mark.parametrize("way", ["add_subdirectory", "FetchContent"])
def test_as_a_part_of_a_project(project, way):
    """With the parts that compile quickly: the baseline's kernels, no native tier."""
    quick = [
        "-DTREADLE_KERNELS=baseline",
        "-DTREADLE_BUILD_JIT=OFF",
        "-DTREADLE_PROFILE=OFF",
        "-DTREADLE_PRECOMPILE=OFF",
    ]
    compilers = [f"-DCMAKE_{language}_COMPILER={name}" for language, name in (("C", "clang-19"), ("CXX", "clang++-19"))]
    fetch = "-DFETCH=" + ("ON" if way == "FetchContent" else "OFF")
    link = "-DLINK=" + ("static" if way == "FetchContent" else "treadle")
    for program in PRINTED:
        (project / program).unlink(missing_ok=True)
    (project / "CMakeCache.txt").unlink(missing_ok=True)
    check_programs(build(project, f"-DTREADLE={ROOT}", fetch, link, "-DCMAKE_BUILD_TYPE=Release", *quick, *compilers))
