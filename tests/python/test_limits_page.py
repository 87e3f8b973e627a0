"""The examples of docs/limits.md run as they stand there."""

import contextlib
import io
import pathlib
import re

import numpy as np
import treadle

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "limits.md"

MODEL = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[N] x) => (y) { y = Neg (x) }'


def test_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("model.onnx").write_text(MODEL)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    names = {"treadle": treadle, "x": np.ones(3, np.float32)}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert printed.getvalue().endswith("the loading was cancelled\n")
    np.testing.assert_array_equal(names["outputs"][0], -np.ones(3, np.float32))


def test_every_option_of_the_page_exists():
    options, run = treadle.SessionOptions(), treadle.RunOptions()
    for owner, name in re.findall(r"`(SessionOptions|RunOptions)\.(\w+)", PAGE.read_text()):
        assert hasattr(options if owner == "SessionOptions" else run, name), name
