"""serving_server.py ENGINE MODEL HTTP_PORT GRPC_PORT: the server of treadle.serving.kserve with either engine.

For onnxruntime, streams are what somebody writes by hand who has no pool: rows of two arrays, gathered for each batch, or
left where they are while the same streams come again.
"""

from __future__ import annotations

import sys

import numpy as np
from treadle.serving._server import Server
from treadle.serving.kserve import StreamModel

FEATURES, HIDDEN, CAPACITY = 40, 64, 4096
ROLES = {"state": {"h": "hn", "c": "cn"}, "time": {"x": 1}, "hop": FEATURES}
TEXT = "stream\n  time   x along axis 1  tensor(float)[B,40]\n  output y  tensor(float)[B,1], stacked\n"


class ByHand:
    """What `Streams` asks of a session, a stream and a pool, over onnxruntime."""

    why_single, output_names, _inputs = "", ["y"], ["x"]

    def __init__(self, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.get_outputs = self.session.get_outputs
        self.get_inputs = lambda: self.session.get_inputs()[:1]
        self.h, self.c = (np.zeros((2 * CAPACITY, HIDDEN), np.float32) for _ in range(2))
        self.together, self.states = np.zeros(0, np.int64), []

    def stream(self, **_):
        return self

    def streams(self, *_, **__):
        return self

    def fork(self, *_):
        return self

    def __str__(self):
        return TEXT

    def leave(self, number):
        self._part()
        self.h[number] = self.c[number] = 0

    def _part(self):
        if self.states:
            self.h[self.together], self.c[self.together] = self.states
            self.together, self.states = np.zeros(0, np.int64), []

    def push_batch(self, numbers, feed):
        if not np.array_equal(numbers, self.together):
            self._part()
            self.together, self.states = numbers, [self.h[numbers], self.c[numbers]]
        y, *self.states = self.session.run(None, {"x": feed["x"], "h": self.states[0], "c": self.states[1]})
        return y[None]

    def push(self, chunks):
        x = np.concatenate([chunk["x"] for chunk in chunks.values()])
        y = self.push_batch(np.fromiter(chunks, np.int64, len(chunks)), {"x": x})
        return {number: y[:, k : k + 1] for k, number in enumerate(chunks)}


class ByHandModel(StreamModel):
    """The same model of the server, with the other engine."""

    def _session(self):
        return ByHand(self._model)


if __name__ == "__main__":
    engine, path, http_port, grpc_port = sys.argv[1:]
    kind = StreamModel if engine == "treadle" else ByHandModel
    model = kind("lstm", path, capacity=CAPACITY, **ROLES)
    Server([model], http_port=int(http_port), grpc_port=int(grpc_port), drain_s=0).run()
