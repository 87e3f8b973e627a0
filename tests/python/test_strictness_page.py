"""docs/strictness.md shows models that onnx takes and treadle refuses, and models that treadle takes all the same."""

import pathlib
import re

import onnx
import pytest
import treadle

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "strictness.md"
REFUSED, _, ACCEPTED = PAGE.read_text().partition("## Accepted all the same")


def models(text: str) -> list[str]:
    return re.findall(r"```\n(<ir_version.*?)```", text, re.DOTALL)


def test_the_page_has_both():
    assert len(models(REFUSED)) > 10 and len(models(ACCEPTED)) > 3


@pytest.mark.parametrize("text", models(REFUSED))
def test_refused_here_and_taken_by_onnx(text):
    if onnx.__version__.startswith("1.23."):
        onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text), check_type=True, strict_mode=True)
    with pytest.raises(Exception, match="_0 "):
        treadle.InferenceSession(text.encode())
    with pytest.raises(Exception, match="_0 "):
        treadle.infer_shapes(text.encode())
    assert [p for p in treadle.check(text.encode(), full=True) if p.severity == "error" and p.path]


@pytest.mark.parametrize("text", models(ACCEPTED))
def test_accepted_all_the_same(text):
    treadle.InferenceSession(text.encode())
    treadle.infer_shapes(text.encode())
    problems = treadle.check(text.encode(), full=True)
    assert all(p.severity == "warning" and f"(`{p.code}`)" in ACCEPTED for p in problems)
