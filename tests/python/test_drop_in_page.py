"""docs/drop-in.md says what of onnxruntime's Python package the alias has."""

import importlib.metadata
import re

import drop_in_table
import pytest
from treadle import _alias

try:
    INSTALLED = importlib.metadata.version("onnxruntime")
except importlib.metadata.PackageNotFoundError:
    INSTALLED = ""


@pytest.mark.skipif(INSTALLED != _alias.ONNXRUNTIME_VERSION, reason="needs the onnxruntime whose names are offered")
def test_the_table_is_what_the_alias_has(tmp_path):
    assert drop_in_table.in_page() == drop_in_table.table(tmp_path), "run tests/python/drop_in_table.py"


def test_the_page_names_the_version_that_is_offered():
    page = drop_in_table.PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"\b1\.\d+\.\d+\b", page)) == {_alias.ONNXRUNTIME_VERSION}


def test_the_table_holds_what_most_programs_need():
    rows = dict(re.findall(r"^\| `([\w.]+)` \| \d+ of \d+ \| (.*) \|", drop_in_table.in_page(), re.MULTILINE))
    for owner, names in {
        "onnxruntime": "InferenceSession SessionOptions RunOptions OrtValue get_available_providers set_seed",
        "InferenceSession": "run get_inputs get_outputs io_binding run_with_iobinding get_modelmeta",
        "capi.onnxruntime_pybind11_state": "Fail InvalidArgument NoSuchFile RuntimeException",
    }.items():
        covered = rows[owner].split(" | ")[0]
        assert [name for name in names.split() if f"`{name}`" not in covered] == []
