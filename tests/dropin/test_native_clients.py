"""Programs in C, C++ and Rust, built here, that call onnxruntime's C functions (native/). They print the same with
treadle's library as with onnxruntime's own.
"""

import os
import pathlib
import shutil
import subprocess

import pytest
import treadle
from test_function_table import onnxruntime_library

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADERS = ("/usr/include/onnxruntime", "/usr/include/onnxruntime/core/session", "/usr/local/include/onnxruntime")

MODELS = {
    "loop": """g (int64 n, float[N,3] x) => (float[N,3] y, float[iterations,N] sums) {
      yes = Constant <value = bool {1}> ()
      y, sums = Loop <body = b (int64 i, bool go, float[N,3] s) => (bool on, float[N,3] t, float[N] sum) {
        on = Identity(go)
        u = Add(s, x)
        t = Tanh(u)
        axes = Constant <value_ints = [1]> ()
        sum = ReduceSum <keepdims = 0> (t, axes)
      }> (n, yes, x)
    }""",
    "texts": "g (string[N] words) => (string[M] joined) { joined = Concat <axis = 0> (words, words) }",
    "sequences": """g (seq(float[N]) s) => (seq(float[N]) t) {
      zero = Constant <value = int64 {0}> ()
      first = SequenceAt(s, zero)
      twice = Add(first, first)
      t = SequenceInsert(s, twice)
    }""",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("models")
    for name, graph in MODELS.items():
        text = '<ir_version: 8, opset_import: ["" : 17]>' + graph
        (folder / f"{name}.onnx").write_bytes(treadle.parse_model(text))
    return folder


def compiler(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    return found or pytest.skip(f"needs one of the compilers {', '.join(names)}")


def header_of_onnxruntime() -> str:
    """The folder of the C++ header, which neither Debian 12 nor PyPI has."""
    folders = [os.environ.get("TREADLE_ONNXRUNTIME_INCLUDE", ""), *HEADERS]
    found = next((folder for folder in folders if os.path.exists(f"{folder}/onnxruntime_cxx_api.h")), None)
    return found or pytest.skip(f"needs onnxruntime_cxx_api.h in {HEADERS} or TREADLE_ONNXRUNTIME_INCLUDE")


def command(language: str) -> list[str]:
    source = str(HERE / "native" / f"client.{language}")
    if language == "c":
        return [compiler("cc", "gcc", "clang-19"), "-std=c11", "-Wall", "-Werror", f"-I{ROOT}", source]
    if language == "cc":
        return [compiler("c++", "g++", "clang++-19"), "-std=c++17", f"-I{header_of_onnxruntime()}", source]
    return [compiler("rustc"), "--edition=2021", "-D", "warnings", source]


@pytest.mark.parametrize("language", ["c", "cc", "rs"])
def test_prints_the_same_as_with_onnxruntime(library, models, language, tmp_path):
    build = command(language)
    program = tmp_path / "client"
    link = ["-L", str(library.parent), *(["-lonnxruntime"] if language != "rs" else [])]
    built = subprocess.run([*build, "-o", program, *link], capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr

    def printed(of: pathlib.Path) -> str:
        folder = tmp_path / of.parent.name
        folder.mkdir()
        (folder / "libonnxruntime.so.1").symlink_to(of)
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        done = subprocess.run([program, models], capture_output=True, text=True, timeout=100, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    found = printed(library)
    assert "text 'ü'" in found and found.count("bound [") == 2
    other = onnxruntime_library()
    if other is None:
        pytest.skip("needs the onnxruntime package to compare with")
    assert found == printed(other)
