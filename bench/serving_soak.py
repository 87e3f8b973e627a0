"""serving_soak.py PORT PROCESS MODEL MINUTES PAUSE: callers of bench_soak.py, and a line a minute of how the server is."""

from __future__ import annotations

import contextlib
import json
import pathlib
import random
import re
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import treadle
from websockets.sync.client import connect

CALLERS = 12
ROLES = {"state": {"state": "stateN"}, "time": {"input": 1}, "hop": 512, "context": 64, "bind": {"sr": np.array(16000)}}


class Caller(threading.Thread):
    """Streams one after the other, until told to end."""

    def __init__(self, number: int, http: int, model: str, pause: float) -> None:
        super().__init__(daemon=True)
        self.rng, self.http, self.model, self.pause = random.Random(number), http, model, pause
        self.steps, self.error, self.ending = 0, None, False
        self.number, self.made = number, 0

    def run(self) -> None:
        samples = np.random.default_rng(self.number).standard_normal(1 << 17).astype(np.float32) * 0.1
        session = treadle.InferenceSession(self.model)
        try:
            while not self.ending:
                alone = session.stream(**ROLES)
                sizes = [self.rng.randint(0, 3000) for _ in range(self.rng.randint(1, 30))]
                blocks = np.split(samples, np.cumsum(sizes))[:-1]
                wanted = [alone.push(block[None]) for block in blocks]
                wanted = [np.zeros(0, np.float32) if w is None else w.ravel() for w in wanted]
                self.rng.choice((self.by_socket, self.by_requests, self.wrong))(blocks, wanted)
        except BaseException as e:
            self.error = e

    def check(self, got: bytes, wanted) -> None:
        np.testing.assert_allclose(np.frombuffer(got, np.float32), wanted, atol=1e-4)
        self.steps += 1
        time.sleep(self.pause)

    def by_socket(self, blocks, wanted) -> None:
        """A stream that moves to another connection by its snapshot now and then."""
        at, state = 0, None
        while at < len(blocks):
            with connect(f"ws://127.0.0.1:{self.http}/v2/models/vad/stream") as socket:
                socket.send(json.dumps({"parameters": {"treadle_state": state}} if state else {}))
                socket.recv()
                for _ in range(self.rng.randint(1, 20)):
                    if at == len(blocks):
                        break
                    socket.send(blocks[at].tobytes())
                    self.check(socket.recv(), wanted[at])
                    at += 1
                socket.send('{"parameters": {"snapshot": true}}')
                state = json.loads(socket.recv())["parameters"]["treadle_state"]
                if self.rng.random() < 0.2:
                    socket.socket.close()  # gone without a word

    def by_requests(self, blocks, wanted) -> None:
        self.made += 1
        name = f"{self.number}/{self.made}"
        for k, (block, want) in enumerate(zip(blocks, wanted, strict=True)):
            given = {"sequence_id": name, "sequence_start": k == 0}
            tensor = {"name": "input", "shape": [1, len(block)], "datatype": "FP32", "data": block.tolist()}
            found = self.post({"parameters": given, "inputs": [tensor]})
            if self.rng.random() < 0.1:
                return  # left for the idle limit
                self.check(np.float32(found["outputs"][0]["data"]).tobytes(), want)
        tensor = {"name": "input", "shape": [1, 0], "datatype": "FP32", "data": []}
        self.post({"parameters": {"sequence_id": name, "sequence_end": True}, "inputs": [tensor]})

    def wrong(self, blocks, wanted) -> None:
        for body in (
            {"inputs": []},
            {"parameters": {"sequence_id": 99}, "inputs": []},
            {"inputs": [{"name": "input", "shape": [1, 9], "datatype": "FP32", "data": [1, 2]}]},
            {"parameters": {"sequence_id": "w", "sequence_start": True}, "inputs": [{"name": "x"}]},
        ):
            with contextlib.suppress(urllib.error.HTTPError):
                self.post(body)
                raise AssertionError(f"{body} was taken")
        time.sleep(self.pause)

    def post(self, body: dict) -> dict:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.http}/v2/models/vad/infer",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)


def memory(process: int) -> float:
    """Resident megabytes."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def metric(http: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics", timeout=60) as reply:
        found = re.search(rf'^{name}{{model="vad"}} (\S+)', reply.read().decode(), re.MULTILINE)
    return float(found[1]) if found else float("nan")


def main() -> None:
    http, process, model, minutes, pause = sys.argv[1:]
    callers = [Caller(k, int(http), model, float(pause)) for k in range(CALLERS)]
    for caller in callers:
        caller.start()
    begun = time.monotonic()
    while (left := 60 * float(minutes) - (time.monotonic() - begun)) > 0:
        time.sleep(min(60, left))
        for caller in callers:
            if caller.error:
                raise caller.error
        live, steps = metric(int(http), "treadle_streams"), sum(caller.steps for caller in callers)
        took = (time.monotonic() - begun) / 60
        print(f"{took:6.1f} min {steps:9,} steps {memory(int(process)):8.1f} MB {live:5.0f} streams", flush=True)
    for caller in callers:
        caller.ending = True


if __name__ == "__main__":
    main()
