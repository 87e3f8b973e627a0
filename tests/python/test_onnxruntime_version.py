"""One place states the release of onnxruntime whose names are offered (dropin/version.h). Files that cannot include it
agree with it.
"""

import ctypes
import importlib.metadata
import pathlib
import re

import pytest
from treadle import _alias

ROOT = pathlib.Path(__file__).parents[2]
VERSION = _alias.ONNXRUNTIME_VERSION


@pytest.mark.parametrize("list_of_packages", ["requirements.txt", "requirements-kserve.txt"])
def test_the_pinned_packages(list_of_packages):
    pins = re.findall(r"^onnxruntime==(.*)$", (ROOT / "tools" / list_of_packages).read_text("utf-8"), re.MULTILINE)
    assert pins == [VERSION]


def test_the_metadata_under_the_alias():
    [found] = importlib.metadata.distributions(path=[_alias._FOLDER])
    assert (found.metadata["Name"], found.version) == ("onnxruntime", VERSION)
    assert pathlib.Path(str(found._path)).name == f"onnxruntime-{VERSION}.dist-info"


def test_the_function_table_says_the_same():
    library = ROOT / "build" / "lib" / "onnxruntime" / "libonnxruntime.so"
    if not library.exists():
        pytest.skip("needs libonnxruntime.so")

    class Base(ctypes.Structure):
        _fields_ = [
            ("GetApi", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
            ("GetVersionString", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ]

    get_base = ctypes.CDLL(str(library)).OrtGetApiBase
    get_base.restype = ctypes.POINTER(Base)
    assert get_base().contents.GetVersionString().decode().partition("+")[0] == VERSION


@pytest.mark.parametrize(
    "page, around",
    [
        ("docs/contrib-operators.md", r"operators of the installed onnxruntime\s+\((\S+)\)"),
        ("docs/drop-in.md", r"[Tt]he public names of onnxruntime (\d+\.\d+\.\d+)"),
        ("CHANGELOG.md", r"with the names of onnxruntime (\d+\.\d+\.\d+)"),
    ],
)
def test_pages_that_name_the_release(page, around):
    assert set(re.findall(around, (ROOT / page).read_text("utf-8"))) == {VERSION}
