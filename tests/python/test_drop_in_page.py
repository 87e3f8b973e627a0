"""docs/drop-in.md lists the names of onnxruntime's Python package that the alias has."""

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
def test_the_table_lists_the_names_of_the_alias(tmp_path):
    assert drop_in_table.in_page() == drop_in_table.table(tmp_path), "run tests/python/drop_in_table.py"


@pytest.mark.skipif(INSTALLED != _alias.ONNXRUNTIME_VERSION, reason="needs the onnxruntime whose names are offered")
def test_additional_names_of_other_releases_are_listed(tmp_path):
    """Here the other release is the installed one."""
    lines = drop_in_table.missing(tmp_path, "")
    assert lines[0] == f"onnxruntime {INSTALLED} beside the names of {INSTALLED}"
    assert {"onnxruntime: LoraAdapter", "RunOptions: add_active_adapter", "operator: com.microsoft EPContext"} <= {
        *lines
    }
    assert not [line for line in lines if line.startswith("function table")]
    assert [line for line in lines[1:] if not drop_in_table.reason(line)] == []


@pytest.mark.skipif(INSTALLED != _alias.ONNXRUNTIME_VERSION, reason="needs the onnxruntime whose names are offered")
def test_every_name_that_is_not_covered_has_a_reason():
    rows = re.findall(r"^\| `(onnxruntime|capi\.\w+)` \|.*\| ([^|]*) \|$", drop_in_table.in_page(), re.MULTILINE)
    missing = {name for _, cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert missing == set(_alias._REASONS)
    for name in missing:
        with pytest.raises(AttributeError, match=re.escape(_alias._REASONS[name])):
            _alias._refusing("onnxruntime")(name)


def test_the_page_names_the_version_that_is_offered():
    page = drop_in_table.PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"\b1\.\d+\.\d+\b", page)) == {_alias.ONNXRUNTIME_VERSION}


def test_the_table_holds_the_names_that_most_programs_use():
    rows = dict(re.findall(r"^\| `([\w.]+)` \| \d+ of \d+ \| (.*) \|", drop_in_table.in_page(), re.MULTILINE))
    for owner, names in {
        "onnxruntime": "InferenceSession SessionOptions RunOptions OrtValue get_available_providers set_seed",
        "InferenceSession": "run get_inputs get_outputs io_binding run_with_iobinding get_modelmeta",
        "capi.onnxruntime_pybind11_state": "Fail InvalidArgument NoSuchFile RuntimeException",
    }.items():
        covered = rows[owner].split(" | ")[0]
        assert [name for name in names.split() if f"`{name}`" not in covered] == []
