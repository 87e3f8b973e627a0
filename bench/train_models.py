"""What the counts in profile/models.proftext are taken from: models of many kinds, checked and inferred.

Run by `./dev train` with a treadle that counts. The models are a long one and, where TREADLE_SHARED names a folder with
`models/*/model.onnx`, real ones.
"""

from __future__ import annotations

import os
import pathlib
import tempfile

import treadle
from bench_check import network

NODES = 2_000
ROUNDS = 20  # the long one is one model among many


def models() -> list[bytes]:
    made = [network(NODES)] * ROUNDS
    if shared := os.environ.get("TREADLE_SHARED"):
        made += [path.read_bytes() for path in sorted(pathlib.Path(shared, "models").glob("*/model.onnx"))]
    return made


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for data in models():
            path = pathlib.Path(folder) / "model.onnx"
            path.write_bytes(data)
            treadle.check(str(path))
            treadle.check(str(path), full=True)
            treadle.infer_shapes(data)


if __name__ == "__main__":
    main()
