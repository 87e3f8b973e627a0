"""Published libraries of operators that were made for onnxruntime, opened from Python: also in a Loop, they give what they
give in onnxruntime.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest
import treadle
from comparing import assert_alike

PROGRAM = pathlib.Path(__file__).resolve().parent / "clients" / "operators.py"
HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.contrib" : 1, "onnx_extended.ortops.tutorial.cpu" : 1]>'
LIBRARIES = {
    "onnxruntime-extensions==0.15.2": [
        """g (string[N] words) => (string[N] upper, int64[N] lengths) {
          upper = ai.onnx.contrib.StringUpper(words)
          lengths = ai.onnx.contrib.StringLength(upper)
        }""",
        """g (int64 n, string[N] words) => (string[N] last, string[iterations,N] all) {
          yes = Constant <value = bool {1}> ()
          last, all = Loop <body = b (int64 i, bool go, string[N] s) => (bool on, string[N] t, string[N] row) {
            on = Identity(go)
            t = ai.onnx.contrib.StringConcat(s, words)
            row = ai.onnx.contrib.StringUpper(t)
          }> (n, yes, words)
        }""",
    ],
    "onnx-extended==0.5.0": [
        "g (float[N,3] x) => (float[N,3] y) { y = onnx_extended.ortops.tutorial.cpu.MyCustomOp(x, x) }",
        """g (int64 n, float[N,3] x) => (float[N,3] last, float[iterations,N,3] all) {
          yes = Constant <value = bool {1}> ()
          last, all = Loop <body = b (int64 i, bool go, float[N,3] s) => (bool on, float[N,3] t, float[N,3] row) {
            on = Identity(go)
            t = onnx_extended.ortops.tutorial.cpu.MyCustomOp(s, x)
            row = Neg(t)
          }> (n, yes, x)
        }""",
    ],
}


def results(engine: str, package: pathlib.Path, name: str, models: list[pathlib.Path]):
    folders = [pathlib.Path(treadle.__file__).parent.parent, package]
    code = f"import sys; sys.path += {list(map(str, folders))!r}; sys.argv = sys.argv[1:]; import runpy; "
    code += "runpy.run_path(sys.argv[0])"
    command = [sys.executable, "-c", code, str(PROGRAM), engine, name, *map(str, models)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("requirement", LIBRARIES)
def test_gives_the_same_as_in_onnxruntime(installed, requirement, tmp_path):
    if importlib.util.find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime, which treadle is compared with, is not installed")
    package = installed(requirement)
    name = requirement.partition("=")[0].replace("-", "_")
    models = []
    for text in LIBRARIES[requirement]:
        models.append(tmp_path / f"{len(models)}.onnx")
        models[-1].write_bytes(treadle.parse_model(HEAD + text))
    expected = results("onnxruntime", package, name, models)
    assert_alike(results("treadle", package, name, models), expected, 1e-6)
