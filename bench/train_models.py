"""What the counts in profile/ are taken from: models that are planned, and short runs; with `models` also models of many
kinds that are checked and inferred.

Run by `./dev train` with a treadle that counts. The models are long ones and, where TREADLE_SHARED names a folder with
`models/*/model.onnx`, real ones.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile

import bench_rnn
import growth_models
import numpy as np
import onnx.parser
import treadle
from bench_check import network

NODES = 2_000
CALLS = 20_000
ROUNDS = 20  # the long one is one model among many
PLANNED = 300  # nodes of each of the models whose nodes are all alike


def real_models() -> list[bytes]:
    shared = os.environ.get("TREADLE_SHARED")
    return [path.read_bytes() for path in sorted(pathlib.Path(shared, "models").glob("*/model.onnx"))] if shared else []


def check_models() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for data in [network(NODES)] * ROUNDS + real_models():
            path = pathlib.Path(folder) / "model.onnx"
            path.write_bytes(data)
            treadle.check(str(path))
            treadle.check(str(path), full=True)
            treadle.infer_shapes(data)


def plan_models() -> None:
    for _ in range(ROUNDS):
        for make in growth_models.KINDS.values():
            data, feed = make(PLANNED)
            treadle.InferenceSession(data).run(None, feed)
    for data in real_models():
        treadle.InferenceSession(data)


def run_steps() -> None:
    """Calls that take about as long as what is around them: a model of one node, a cell by hand, a stream."""
    data, feeds, _ = bench_rnn.step_model(16)
    streamed = bench_rnn.step_model(16, "y")[0]
    copy = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (float y) { y = Identity(x) }'
    )
    one_thread = treadle.SessionOptions()
    one_thread.intra_op_num_threads = 1
    for more in ([], [one_thread]):
        session = treadle.InferenceSession(data, *more)
        single = treadle.InferenceSession(copy.SerializeToString(), *more)
        stream = treadle.InferenceSession(streamed, *more).stream(state=bench_rnn.STATES)
        for _ in range(CALLS):
            single.run(None, {"x": np.float32(1)})
            session.run(None, feeds)
            session.run(["c2"], feeds)
            stream.push(X=feeds["X"])


def main() -> None:
    if "models" in sys.argv:
        check_models()
    plan_models()
    run_steps()


if __name__ == "__main__":
    main()
