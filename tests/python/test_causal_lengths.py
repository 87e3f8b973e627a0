"""Causal attention where there are more keys than queries, or fewer: each query sees the keys that it sees in
onnxruntime, in all operators that can be causal, with and without a past.
"""

from __future__ import annotations

import os

import numpy as np
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper

CASES = 2000 if os.environ.get("TREADLE_TEST_LONG") else 60  # of each operator
F = np.float32


class Case:
    """One node of random sizes; `feeds` in the order of its inputs, "" where one is left out."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.batch, self.heads, self.size = (int(n) for n in self.rng.integers([1, 1, 1], [3, 4, 9]))
        self.queries, self.keys, self.past = (int(self.rng.choice([1, 1, 2, 3, 5, 9])) for _ in range(3))
        self.feeds: dict[str, np.ndarray] = {}
        self.names: list[str] = []
        self.attributes: dict = {}

    def often(self) -> bool:
        return bool(self.rng.random() < 0.5)

    def give(self, array: np.ndarray | None) -> None:
        self.names.append("" if array is None else f"i{len(self.names)}")
        if array is not None:
            self.feeds[self.names[-1]] = array

    def numbers(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(F)

    def model(self, op: str, domain: str, outputs: int) -> bytes:
        made = [f"o{i}" for i in range(outputs)]
        node = helper.make_node(op, self.names, made, domain=domain, **self.attributes)
        types = {
            np.dtype(F): TensorProto.FLOAT,
            np.dtype(np.int32): TensorProto.INT32,
            np.dtype(bool): TensorProto.BOOL,
        }
        inputs = [helper.make_tensor_value_info(n, types[v.dtype], v.shape) for n, v in self.feeds.items()]
        results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in made]
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        graph = helper.make_graph([node], "g", inputs, results)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def multi_head(case: Case) -> tuple[str, str, int]:
    b, h, s, width = case.batch, case.heads, case.size, case.heads * case.size
    case.attributes = {"num_heads": h, "unidirectional": 1}
    past = case.past if case.often() else 0
    case.give(case.numbers(b, case.queries, width))
    by_heads = not past and case.often()
    for _ in range(2):
        case.give(case.numbers(b, h, case.keys, s) if by_heads else case.numbers(b, case.keys, width))
    case.give(None if by_heads or case.often() else case.numbers(3 * width))
    total = past + case.keys
    mask = (case.rng.random((b, total)) < 0.7).astype(np.int32)
    mask[:, 0] = 1
    case.give(mask if case.often() and not by_heads else None)
    case.give(case.numbers(1, h, case.queries, total) if case.often() else None)
    if past:
        case.give(case.numbers(b, h, past, s))
        case.give(case.numbers(b, h, past, s))
    return "MultiHeadAttention", "com.microsoft", 3 if past else 1


def projected(case: Case) -> tuple[str, str, int]:
    b, h, s, width = case.batch, case.heads, case.size, case.heads * case.size
    case.attributes = {"num_heads": h, "unidirectional": 1}
    past = case.past if case.often() else 0
    case.give(case.numbers(b, case.queries, 5))
    case.give(case.numbers(5, 3 * width))
    case.give(case.numbers(3 * width))
    case.give(None)
    case.give(case.numbers(2, b, h, past, s) if past else None)
    return "Attention", "com.microsoft", 2 if past else 1


def standard(case: Case) -> tuple[str, str, int]:
    b, h, s = case.batch, case.heads, case.size
    case.attributes = {"is_causal": 1}
    past = case.past if case.often() else 0
    if past and case.queries == 1:  # onnxruntime lets one query see all keys here, and the document does not
        case.keys = 1
    case.give(case.numbers(b, h, case.queries, s))
    case.give(case.numbers(b, h, case.keys, s))
    case.give(case.numbers(b, h, case.keys, s))
    case.give(case.numbers(case.queries, past + case.keys) if case.often() else None)
    if past:
        case.give(case.numbers(b, h, past, s))
        case.give(case.numbers(b, h, past, s))
    return "Attention", "", 3 if past else 1


def grouped(case: Case) -> tuple[str, str, int]:
    b, h, s = case.batch, case.heads, 8 * case.size
    case.attributes = {"num_heads": 2 * h, "kv_num_heads": h}
    past = case.past if case.often() else 0
    queries = case.queries if not past else 1
    case.give(case.numbers(b, queries, 2 * h * s))
    case.give(case.numbers(b, queries, h * s))
    case.give(case.numbers(b, queries, h * s))
    case.give(case.numbers(b, h, past, s) if past else None)
    case.give(case.numbers(b, h, past, s) if past else None)
    case.give(np.full(b, past + queries - 1, np.int32))
    case.give(np.array(past + queries, np.int32))
    return "GroupQueryAttention", "com.microsoft", 3


def run(model: bytes, feeds: dict, **entries) -> list[np.ndarray]:
    options = treadle.SessionOptions()
    for name, value in entries.items():
        options.add_session_config_entry(f"treadle.{name}", value)
    return treadle.InferenceSession(model, options).run(None, feeds)


@pytest.mark.parametrize("draw", [multi_head, projected, standard, grouped])
def test_what_queries_see(draw):
    for seed in range(CASES):
        case = Case(seed)
        model = case.model(*draw(case))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        expected = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(
            None, case.feeds
        )
        for entries in ({}, {"optimize": "0"}, {"tier": "reference"}):
            for a, b in zip(run(model, case.feeds, **entries), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=f"{draw.__name__} {seed} {entries}")


def test_the_last_query_sees_all_keys():
    """The rule of onnxruntime's MultiHeadAttention, written down: all rows of scores are masked but the last."""
    for queries, keys in ((1, 5), (2, 5), (4, 4), (5, 3)):
        case = Case(queries)
        q, k, v = (case.numbers(1, n, 4) for n in (queries, keys, keys))
        case.attributes = {"num_heads": 1, "unidirectional": 1}
        for array in (q, k, v):
            case.give(array)
        [found] = run(case.model("MultiHeadAttention", "com.microsoft", 1), case.feeds)
        for i in range(queries):
            seen = keys if i == queries - 1 else min(i + 1, keys)
            scores = q[0, i] @ k[0, :seen].T / 2
            weights = np.exp(scores - scores.max())
            np.testing.assert_allclose(found[0, i], weights / weights.sum() @ v[0, :seen], rtol=1e-4, atol=1e-5)
