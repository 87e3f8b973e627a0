"""Walks of matrix products, by name."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

SCRIPT = """
import json, sys
import numpy as np, treadle
session = treadle.InferenceSession(sys.stdin.buffer.read())
a, b = (np.arange(size, dtype=np.float32).reshape(-1, 32) / size for size in (5 * 32, 40 * 32))
(y,) = session.run(None, {"a": a, "b": b})
explanation = session.explain({"a": a, "b": b}, json=True)
print(json.dumps({"methods": explanation["methods"], "text": session.explain({"a": a, "b": b}), "y": y.tolist()}))
"""


def run_with_walk(walk):
    graph = onnx.parser.parse_graph(
        "g (float[5, 32] a, float[40, 32] b) => (float[5, 40] y) { y = Gemm<transB = 1>(a, b) }"
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    env = os.environ | {"TREADLE_GEMM": walk, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = [sys.executable, "-c", SCRIPT]
    return subprocess.run(script, input=model.SerializeToString(), env=env, capture_output=True, check=False)


@pytest.mark.parametrize(("wanted", "taken"), [("", "grouped"), ("copied", "copied"), ("widened", "grouped")])
def test_the_walk_that_the_environment_names_computes_what_it_fits(wanted, taken):
    ran = json.loads(run_with_walk(wanted).stdout)
    assert ran["methods"] == [{"op": "Gemm", "method": taken, "count": 1}]
    assert f"1 by {taken}" in ran["text"]
    a, b = (np.arange(size, dtype=np.float32).reshape(-1, 32) / size for size in (5 * 32, 40 * 32))
    np.testing.assert_allclose(ran["y"], a @ b.T, rtol=1e-5)


def test_a_walk_that_there_is_not_is_refused():
    refused = run_with_walk("strassen")
    assert refused.returncode != 0
    assert b"TREADLE_GEMM names a walk of matrix products (dots, " in refused.stderr
    assert b"found 'strassen'" in refused.stderr
