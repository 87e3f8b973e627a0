"""Servers of live streams, with treadle and with onnxruntime as engine, in turns: build/venv/bin/python bench/bench_serving.py

An LSTM (40 features, 64 units), a step of one frame. The server has one core, the load another one. A rate is steps per
second of the server's own CPU time, all its threads together: what one core carries, whatever else the machine does.
The environment is that of tests/services (tools/requirements-kserve.txt).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
from models.registry import Built

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools" / "devtool"))

from environment import make_venv  # noqa: E402

VENV = HERE.parent / "build" / "venv-kserve"
ENGINES = ("treadle", "onnxruntime")
LOADS = (("websocket", 1), ("websocket", 32), ("websocket", 256), ("grpc", 256))
STEP = """
g (float[B,40] x, float[B,64] h, float[B,64] c) => (float[B,1] y, float[B,64] hn, float[B,64] cn) {
  xt = Unsqueeze (x, zero)
  h1 = Unsqueeze (h, zero)
  c1 = Unsqueeze (c, zero)
  Y, Yh, Yc = LSTM <hidden_size = 64> (xt, W, R, b, , h1, c1)
  hn = Squeeze (Yh, zero)
  cn = Squeeze (Yc, zero)
  y0 = MatMul (hn, V)
  y = Sigmoid (y0)
}"""


def model() -> bytes:
    rng = np.random.default_rng(1)
    shapes = {"W": (1, 256, 40), "R": (1, 256, 64), "b": (1, 512), "V": (64, 1)}
    weights = {name: (rng.standard_normal(shape) * 0.1).astype(np.float32) for name, shape in shapes.items()}
    return Built(STEP, weights | {"zero": np.array([0], np.int64)}, {}, 0).model()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def cpu_seconds(process: int) -> float:
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A server on the first core."""

    def __init__(self, command: Callable[[int, int], list[Any]], env: dict[str, str]) -> None:
        """`command`: what comes behind the interpreter, for the ports of HTTP and of gRPC."""
        self.http, self.grpc = free_port(), free_port()
        command = [VENV / "bin/python", *command(self.http, self.grpc)]
        self.process = subprocess.Popen(["taskset", "-c", "0", *map(str, command)], env=env)
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.http}/v2/health/ready", timeout=5)
                return
            except OSError:
                assert self.process.poll() is None
                time.sleep(0.1)

    def measure(self, program: str, *arguments: object, env: dict[str, str]) -> tuple[list[float], float]:
        """The figures that a load prints, which runs on another core, and the seconds of a core that the server took for it."""
        command = [VENV / "bin/python", HERE / program, *arguments]
        pinned = ["taskset", "-c", str(min(1, (os.cpu_count() or 1) - 1)), *map(str, command)]
        pipe = subprocess.PIPE
        with subprocess.Popen(pinned, env=env, stdin=pipe, stdout=pipe, text=True) as load:
            assert load.stdin and load.stdout and load.stdout.readline() == "READY\n"
            before = cpu_seconds(self.process.pid)
            load.stdin.write("\n")
            load.stdin.flush()
            figures = [float(word) for word in load.stdout.readline().split()]
            return figures, cpu_seconds(self.process.pid) - before


def environment() -> dict[str, str]:
    """Of servers and loads, whose Python packages are there behind this."""
    make_venv(VENV, HERE.parent / "tools" / "requirements-kserve.txt")
    return {**os.environ, "PYTHONPATH": str(HERE.parent / "build" / "python")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="how often the engines take turns; the best counts")
    parser.add_argument("--match", default="", metavar="TEXT", help="only loads with TEXT in the name")
    options = parser.parse_args()
    env = environment()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "lstm.onnx"
        path.write_bytes(model())
        program = HERE / "serving_server.py"
        servers = {
            engine: Server(lambda *ports, engine=engine: [program, engine, path, *ports], env) for engine in ENGINES
        }
        try:
            print(f"{'load':16}{'engine':13}{'steps/s of a core':>18}{'steps/s':>10}{'p50 ms':>9}{'p99 ms':>9}")
            for kind, streams in LOADS:
                if options.match not in kind:
                    continue
                found: dict[str, list[tuple[float, ...]]] = {engine: [] for engine in ENGINES}
                for _ in range(options.rounds):
                    for engine, server in servers.items():
                        port = server.grpc if kind == "grpc" else server.http
                        (count, took, p50, p99), cpu = server.measure(
                            "serving_load.py", kind, port, streams, options.seconds, env=env
                        )
                        found[engine].append((count / cpu, count / took, p50, p99))
                for engine in ENGINES:
                    core, rate, p50, p99 = max(found[engine])
                    print(f"{kind + ' ' + str(streams):16}{engine:13}{core:18,.0f}{rate:10,.0f}{p50:9.2f}{p99:9.2f}")
        finally:
            for server in servers.values():
                server.process.kill()


if __name__ == "__main__":
    main()
