"""libonnxruntime.so: the checks of tests/dropin/function_table_test.cc must hold for onnxruntime's own library too."""

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "build" / "bin" / "treadle_tests"
TOOL = ROOT / "build" / "bin" / "treadle"


def onnxruntime_library() -> pathlib.Path | None:
    """The library inside the installed package, found without importing the package."""
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so.1*"))), None)


def test_onnxruntime_itself_passes_the_tests():
    if "LD_PRELOAD" in os.environ:
        pytest.skip("a sanitizer is preloaded, for which onnxruntime was not built")
    library = onnxruntime_library()
    if library is None or not TESTS.exists():
        pytest.skip("needs the onnxruntime package and the C++ tests")
    env = dict(os.environ, TREADLE_TEST_ONNXRUNTIME=str(library))
    done = subprocess.run(
        [TESTS, "--gtest_filter=FunctionTable.*:CustomOperators.*"],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def library() -> pathlib.Path:
    if not TOOL.exists():
        pytest.skip("needs the tool")
    return pathlib.Path(
        subprocess.run([TOOL, "onnxruntime-lib"], check=True, capture_output=True, text=True).stdout.strip()
    )


def test_the_tool_says_where_it_is(library):
    assert library.name == "libonnxruntime.so"
    assert library.exists()


def test_it_can_be_closed_and_opened_again(library):
    # In a process of its own: this one has other libraries loaded.
    program = f"""
import ctypes, _ctypes
for _ in range(3):
    handle = ctypes.CDLL({str(library)!r})
    handle.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
    version = ctypes.CFUNCTYPE(ctypes.c_char_p)(handle.OrtGetApiBase()[1])
    print(version().decode())
    _ctypes.dlclose(handle._handle)
"""
    done = subprocess.run(["python3", "-c", program], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"(1\.\d+\.\d+\+treadle\.[\d.]+\n){3}", done.stdout)


def test_its_symbols_have_no_versions(library):
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", library], check=True, capture_output=True, text=True
    ).stdout
    exported = [line.split()[-1] for line in symbols.splitlines() if " GLOBAL " in line and " UND " not in line]
    assert sorted(exported) == ["OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"]
    assert ctypes.CDLL(str(library)).OrtGetApiBase


def test_the_page_counts_the_functions():
    rows = re.findall(r"^X\((\w+),", (ROOT / "dropin" / "entries.inc").read_text(), re.M)
    assert len(rows) == 429
    page = (ROOT / "docs" / "drop-in.md").read_text()
    ours = sum(row != "refused" for row in rows)
    assert f"{ours} do their work" in page.replace("\n", " ")
