"""docs/contrib-operators.md: the operators that it lists as treadle's are in treadle; the rest are onnxruntime's
others.
"""

import pathlib
import re

import pytest
import treadle

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "contrib-operators.md"
DOMAIN = "com.microsoft"
HAS, HAS_NOT = PAGE.read_text(encoding="utf-8").split("## What treadle has not")


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][1:]


def named(text: str, column: int) -> list[str]:
    return [name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[column])]


def own() -> set[str]:
    return {operator["name"] for operator in treadle.operators() if operator["domain"] == DOMAIN}


def test_what_treadle_has():
    names = named(HAS, 1)
    assert len(names) == len(set(names))
    assert set(names) == own()


def test_what_treadle_has_not():
    pytest.importorskip("onnxruntime")
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    names = named(HAS_NOT, 0)
    assert len(names) == len(set(names))
    theirs = {schema.name for schema in get_all_operator_schema() if schema.domain == DOMAIN}
    assert set(names) == theirs - own()
    assert all(row[1] for row in rows(HAS_NOT))
