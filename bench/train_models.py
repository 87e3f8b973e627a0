"""What the counts in profile/models.proftext are taken from: models of many kinds, checked and inferred, and short runs.

Run by `./dev train` with a treadle that counts. The models are a long one and, where TREADLE_SHARED names a folder with
`models/*/model.onnx`, real ones.
"""

from __future__ import annotations

import os
import pathlib
import tempfile

import bench_rnn
import treadle
from bench_check import network

NODES = 2_000
CALLS = 20_000
ROUNDS = 20  # the long one is one model among many


def models() -> list[bytes]:
    made = [network(NODES)] * ROUNDS
    if shared := os.environ.get("TREADLE_SHARED"):
        made += [path.read_bytes() for path in sorted(pathlib.Path(shared, "models").glob("*/model.onnx"))]
    return made


def run_steps() -> None:
    """Calls that take about as long as what is around them: a model of one node, a cell by hand, a stream."""
    data, feeds, _ = bench_rnn.step_model(16)
    streamed = bench_rnn.step_model(16, "y")[0]
    one_thread = treadle.SessionOptions()
    one_thread.intra_op_num_threads = 1
    for more in ([], [one_thread]):
        session = treadle.InferenceSession(data, *more)
        stream = treadle.InferenceSession(streamed, *more).stream(state=bench_rnn.STATES)
        for _ in range(CALLS):
            session.run(None, feeds)
            session.run(["c2"], feeds)
            stream.push(X=feeds["X"])


def main() -> None:
    run_steps()
    with tempfile.TemporaryDirectory() as folder:
        for data in models():
            path = pathlib.Path(folder) / "model.onnx"
            path.write_bytes(data)
            treadle.check(str(path))
            treadle.check(str(path), full=True)
            treadle.infer_shapes(data)


if __name__ == "__main__":
    main()
