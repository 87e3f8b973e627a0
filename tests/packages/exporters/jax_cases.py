"""The cases of jax2onnx's own plugins for control flow: each is exported, and the results of the module onnxruntime are
compared with jax.

Runs where jax2onnx is installed, under pytest alone (onnxruntime) or under `python -m treadle.as_onnxruntime -m pytest`.
"""

import jax
import numpy as np
import onnxruntime
import pytest
from jax2onnx import to_onnx
from jax2onnx.plugins import plugin_system

plugin_system.import_all_plugins()
LOOPS = (
    "cond",
    "fori_loop",
    "scan",
    "while_loop",
    "associative_scan",
    "map",
    "switch",
    "select_n",
    "cumsum",
    "cumprod",
)
OPTIONS = ("opset", "enable_double_precision", "inputs_as_nchw", "outputs_as_nchw")


def cases():
    """Name, function, shapes or values of inputs, options of the export."""
    for name, plugin in sorted(plugin_system.PLUGIN_REGISTRY.items()):
        metadata = getattr(plugin, "metadata", {})
        if not any(word in name for word in LOOPS):
            continue
        for case in metadata.get("testcases", []):
            yield pytest.param(case, id=f"{name}-{case['testcase']}")


def drawn(shape, dtype):
    sizes = [3 if isinstance(size, str) else size for size in shape]
    return np.random.default_rng(0).standard_normal(sizes).astype(dtype)


def inputs_of(case):
    if "input_values" in case:
        return [np.asarray(value) for value in case["input_values"]]
    dtypes = case.get("input_dtypes") or [np.float32] * len(case.get("input_shapes", []))
    return [drawn(shape, dtype) for shape, dtype in zip(case.get("input_shapes", []), dtypes, strict=True)]


@pytest.mark.parametrize("case", cases())
def test_case(case, tmp_path):
    if case.get("expected_exception") or case.get("skip_numeric_validation") or "input_params" in case:
        pytest.skip("the case has no values to compare")
    function = case["callable"]
    if hasattr(function, "with_dtype"):
        function = function.with_dtype(np.float32)
    if hasattr(function, "instantiate"):
        function = function.instantiate()
    values = inputs_of(case)
    specs = case.get("input_shapes") or [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in values]
    if case.get("input_dtypes"):
        specs = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in values]
    path = tmp_path / "model.onnx"
    to_onnx(function, specs, return_mode="file", output_path=str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {node.name: v for node, v in zip(session.get_inputs(), values, strict=True)}
    got = session.run(None, feeds)
    want = jax.tree_util.tree_leaves(function(*values))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, np.asarray(w), rtol=1e-4, atol=1e-5)
