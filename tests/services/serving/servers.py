"""Servers that tests start and end, their models, and common parts of their clients."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np

# Sums of windows of 4 samples, carried; whole numbers stay whole.
SUMS = """<ir_version: 10, opset_import: ["" : 22]>
sums (float[B,N] x, float[B,1] state) => (float[B,1] level, float[B,1] stateN) {
  axis = Constant <value = int64[1] {1}> ()
  total = ReduceSum <keepdims = 1> (x, axis)
  stateN = Add (state, total)
  level = Identity (stateN)
}"""

# A quotient that fails where a sample is 0, over windows of 2 whole numbers.
QUOTIENTS = """<ir_version: 10, opset_import: ["" : 22]>
quotients (int32[B,N] x, int32[B,1] state) => (int32[B,1] level, int32[B,1] stateN) {
  axis = Constant <value = int64[1] {1}> ()
  much = Constant <value = int32 {5040}> ()
  q = Div (much, x)
  total = ReduceSum <keepdims = 1> (q, axis)
  stateN = Add (state, total)
  level = Identity (stateN)
}"""

# Over time: a convolution that looks two samples ahead, and the sum of the samples so far.
SMOOTH = """<ir_version: 10, opset_import: ["" : 22]>
smooth (float[B,1,T] x) => (float[B,1,T] y) <float[1,1,3] w = {1, 2, 4}> {
  y = Conv <pads = [0, 2]> (x, w)
}"""

# No sequence at all: texts and numbers of one request.
TEXTS = """<ir_version: 10, opset_import: ["" : 22]>
texts (string[B,N] a, int32[B,N] b) => (string[B,N] c, int32[B,N] d) {
  n = Cast <to = 6> (a)
  d = Sub (n, b)
  sum = Add (n, b)
  c = Cast <to = 8> (sum)
}"""

MODELS = {
    "sums": {"text": SUMS, "time": {"x": 1}, "hop": 4, "state": {"state": "stateN"}},
    "quotients": {"text": QUOTIENTS, "time": {"x": 1}, "hop": 2, "state": {"state": "stateN"}},
    "smooth": {"text": SMOOTH, "time": {"x": 2}},
    "texts": {"text": TEXTS, "find_state": False},
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


TOKEN = "open sesame"


class Served:
    """A process that serves MODELS; `log` is its output."""

    def __init__(self, folder, ports=None, *arguments, **options):
        self.folder = pathlib.Path(folder)
        self.http, self.grpc = ports or (free_port(), free_port())
        entries = []
        for name, model in MODELS.items():
            (self.folder / f"{name}.onnxtxt").write_text(model["text"])
            roles = {key: value for key, value in model.items() if key != "text"}
            entries.append({"name": name, "model": f"{name}.onnxtxt", **roles})
        (self.folder / "models.json").write_text(json.dumps(entries))
        flags = [f"--{key}={value}" for key, value in options.items()]
        self.log = self.folder / f"log-{self.http}.txt"
        command = [sys.executable, "-m", "treadle.serving.kserve", self.folder / "models.json", *flags, *arguments]
        command += ["--http_port", self.http, "--grpc_port", self.grpc]
        with self.log.open("ab") as out:
            env = {**os.environ, "TREADLE_JIT_CACHE": "off"}
            self.process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out, env=env)

    @property
    def url(self):
        return f"127.0.0.1:{self.http}"

    @property
    def grpc_url(self):
        return f"127.0.0.1:{self.grpc}"

    def ready(self):
        try:
            return self.get("/v2/health/ready")[0] == 200
        except OSError:
            return False

    def wait(self, seconds=120):
        latest = time.monotonic() + seconds
        while not self.ready():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < latest, self.log.read_text()
            time.sleep(0.05)
        return self

    def get(self, path, body=None, headers=()):
        """Status and body of a GET, or of a POST of `body`."""
        request = urllib.request.Request(f"http://{self.url}{path}", body, dict(headers))
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()

    def metric(self, name, model):
        """The value of a metric."""
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(f'{name}{{model="{model}"'):
                return float(line.rpartition(" ")[2])
        return None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    def __enter__(self):
        try:
            return self.wait()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.kill()


def samples(rng, count):
    """Whole numbers [1, count]."""
    return rng.integers(-50, 50, (1, count)).astype(np.float32)


def levels(chunks):
    """The results of SUMS for a signal in one piece."""
    signal = np.concatenate(chunks, axis=1)
    whole = signal[:, : signal.shape[1] // 4 * 4]
    return whole.reshape(-1, 4).sum(1).cumsum()
