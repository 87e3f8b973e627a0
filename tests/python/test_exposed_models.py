"""Models that hand their inner values out (`treadle_model_expose`), real ones and random programs: their own outputs stay
the same, onnxruntime runs what it ran before, and the engines agree about the values."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from treadle import _core

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "fuzz"))

programs = pytest.importorskip("programs", reason="needs onnxruntime")

SHARED = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared")) / "models"
MODELS = sorted(path.parent.name for path in SHARED.glob("*/model.onnx"))
QUANTISED = ("dksplit_qdq_bilstm", "tashkeel_bilstm_qdq_lstm")  # rounding between layers makes steps of differences


def by_reference(data: bytes, feeds: dict) -> list:
    return programs.make_session(data, tier="reference").run(None, feeds)


def by_program(data: bytes, feeds: dict) -> list:
    return programs.make_session(data, jit="off").run(None, feeds)


def real_feeds(folder: pathlib.Path, graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    paths = sorted((folder / "test_data_set_0").glob("input_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    names = [value.name for value in graph.input]
    tensors = [numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())) for path in paths]
    return dict(zip(names, tensors, strict=False))


def is_close(a, b) -> bool:
    """Within a rounding of 1e-3 of the largest element."""
    if isinstance(a, (list, dict)) or a is None or b is None:
        return type(a) is type(b) and (a is None or len(a) == len(b))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fV":
        return bool(np.array_equal(a, b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = np.abs(b[np.isfinite(b)]).max(initial=1)
    return bool(np.allclose(a, b, 0, 1e-3 * scale, equal_nan=True))


def rows(value: dict, results: list) -> dict[tuple[int, ...], np.ndarray]:
    """The contents by the numbers of iterations."""
    if value["log_at"] is not None:
        elements = zip(results[value["log_at"]], results[value["output"]], strict=True)
        return {tuple(np.ravel(at).tolist()): np.asarray(element) for at, element in elements}
    whole = np.asarray(results[value["output"]])
    loops = sum(around["op"] != "If" for around in value["around"])
    ran = np.asarray(results[value["ran"]]) if value["ran"] is not None else np.ones(whole.shape[:loops], bool)
    return {at: whole[at] for at in np.ndindex(*whole.shape[:loops]) if ran[at]}


def expect_the_same(values: list[dict], found: list, expected: list) -> None:
    for value in values:
        a, b = rows(value, found), rows(value, expected)
        assert a.keys() == b.keys(), value["name"]
        differ = [at for at in a if not is_close(a[at], b[at])]
        assert not differ, (value["name"], differ[:3])


def check(data: bytes, feeds: dict, is_same_everywhere: bool = True, with_peer: bool = True) -> list[dict]:
    model, text = _core.expose_model(None, data, feeds, [])
    values = [value for value in json.loads(text) if not value["left_out"]]
    expected = by_reference(data, feeds)
    judged = by_reference(model, feeds)
    assert programs.difference(judged[: len(expected)], expected, exactly=True) == ""
    if is_same_everywhere:
        expect_the_same(values, by_program(model, feeds), judged)
    if (
        with_peer
        and is_same_everywhere
        and programs.attempt(lambda: programs.run_onnxruntime(data, [feeds]))[0] is not None
    ):
        expect_the_same(values, programs.run_onnxruntime(model, [feeds])[0], judged)
    return values


@pytest.mark.parametrize("name", MODELS)
def test_real_models(name):
    data = (SHARED / name / "model.onnx").read_bytes()
    feeds = real_feeds(SHARED / name, onnx.load_model_from_string(data).graph)
    if name in ("silero_scan_op15", "silero_loop_plain"):  # the reference interpreter takes seconds for all
        feeds = {key: x[: len(x) // 10] if x.size > 10000 else x for key, x in feeds.items()}
    values = check(data, feeds, is_same_everywhere=name not in QUANTISED)
    assert len(values) > 0


def draws(model: onnx.ModelProto) -> bool:
    """Whether results are drawn at random."""
    nodes = [node for graph in programs.subgraphs(model.graph) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    return any(node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial") for node in nodes)


def check_random(first: int) -> None:
    """Expects the same bits of both tiers, which run the same kernels in this process."""
    for seed in range(first, first + 20):
        model, feeds = programs.make_program(seed, programs.OPSETS[seed % len(programs.OPSETS)])
        data = model.SerializeToString()
        expected, _ = programs.attempt(lambda d=data, f=feeds[0]: by_reference(d, f))
        exposed, problem = programs.attempt(lambda d=data, f=feeds[0]: _core.expose_model(None, d, f, [])[0])
        if expected is None or "of several versions of ai.onnx" in problem:
            continue
        assert exposed is not None, f"seed {seed}: {problem}"
        judged = by_reference(exposed, feeds[0])
        assert not programs.difference(judged[: len(expected)], expected, exactly=True), f"seed {seed}"
        if not draws(model):
            assert not programs.difference(by_program(exposed, feeds[0]), judged, exactly=True), f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 300 if os.environ.get("TREADLE_TEST_LONG") else 60, 20))
def test_random_programs(first):
    command = [sys.executable, "-W", "ignore", __file__, str(first)]
    baseline = os.environ | {"TREADLE_ISA": "baseline"}
    done = subprocess.run(command, env=baseline, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    check_random(int(sys.argv[1]))
