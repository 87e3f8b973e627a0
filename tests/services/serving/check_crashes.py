"""Servers that die or make room for newer ones: every stream goes on from its caller's snapshot, with equal results."""

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from servers import Served, free_port, levels, samples
from tritonclient.utils import InferenceServerException

KILLS = 50 if os.environ.get("TREADLE_TEST_LONG") else 3
STREAMS = 64
TOGETHER = 32  # streams that share a request; the others have requests of their own
BOTH = ["level", "treadle_state"]


class Caller:
    """Streams as their callers see them: the samples that were sent, results, and the newest snapshot of each."""

    def __init__(self, rng):
        self.rng = rng
        self.sent = [[] for _ in range(STREAMS)]
        self.found = [[] for _ in range(STREAMS)]
        self.states = [b""] * STREAMS
        self.starts = [True] * STREAMS

    def check(self):
        for sent, found in zip(self.sent, self.found, strict=True):
            assert found == levels(sent).tolist()

    def keep(self, stream, chunk, level, state):
        self.sent[stream].append(chunk)
        self.found[stream].append(float(level))
        self.states[stream], self.starts[stream] = bytes(state), False

    def rows(self, client, streams):
        """A step of several streams in one request."""
        x = np.concatenate([samples(self.rng, 4) for _ in streams])
        states = np.array([self.states[i] if self.starts[i] else b"" for i in streams], object)
        inputs = [
            tensor(grpc, "x", x, "FP32"),
            tensor(grpc, "sequence_id", np.array(streams, np.int64) + 1, "INT64"),
            tensor(grpc, "sequence_start", np.array([self.starts[i] for i in streams]), "BOOL"),
            tensor(grpc, "treadle_state", states, "BYTES"),
        ]
        result = client.infer("sums", inputs, outputs=[grpc.InferRequestedOutput(name) for name in BOTH])
        level, state = result.as_numpy("level"), result.as_numpy("treadle_state")
        for k, stream in enumerate(streams):
            self.keep(stream, x[k : k + 1], level[0, k, 0], state[k])

    def one(self, client, stream, module=grpc):
        """A step of one stream."""
        x = samples(self.rng, 4)
        inputs = [tensor(module, "x", x, "FP32")]
        if self.starts[stream] and self.states[stream]:
            inputs.append(tensor(module, "treadle_state", np.frombuffer(self.states[stream], np.uint8)[None], "UINT8"))
        result = client.infer(
            "sums",
            inputs,
            outputs=[module.InferRequestedOutput(name) for name in BOTH],
            sequence_id=f"stream {stream}",
            sequence_start=self.starts[stream],
        )
        self.keep(stream, x, result.as_numpy("level").item(), result.as_numpy("treadle_state").tobytes())


def tensor(module, name, array, kind):
    found = module.InferInput(name, list(array.shape), kind)
    found.set_data_from_numpy(array)
    return found


def a_round(caller, server):
    """A step of every stream; raises where the server dies meanwhile, and the caller knows which steps were answered."""
    with grpc.InferenceServerClient(server.grpc_url) as client:
        for a in range(0, TOGETHER, 16):
            caller.rows(client, list(range(a, a + 16)))
        for stream in range(TOGETHER, STREAMS):
            caller.one(client, stream)


def test_streams_outlive_servers_that_are_killed(tmp_path):
    random.seed(5)
    caller, died = Caller(np.random.default_rng(5)), 0
    (tmp_path / "servers").mkdir()
    now, spare = Served(tmp_path / "servers").wait(), Served(tmp_path / "servers").wait()
    try:
        for _ in range(KILLS):
            for _ in range(random.randint(1, 3)):
                a_round(caller, now)
            assassin = threading.Timer(random.random() * 0.15, now.kill)
            assassin.start()
            while True:
                try:
                    a_round(caller, now)
                except InferenceServerException as e:
                    assert e.status() in ("StatusCode.UNAVAILABLE", "StatusCode.CANCELLED"), e
                    break
            assassin.join()
            died += 1
            caller.starts = [True] * STREAMS
            now, spare = spare.wait(), Served(tmp_path / "servers")
            a_round(caller, now)
            caller.check()
        assert died == KILLS and len(caller.sent[0]) >= 3 * KILLS
    finally:
        now.kill(), spare.kill()


HAPROXY = """
global
  maxconn 1000
defaults
  mode http
  timeout connect 20s
  timeout check 20s
  timeout client 60s
  timeout server 60s
  option redispatch
  retries 3
  retry-on conn-failure empty-response 503
frontend public
  bind 127.0.0.1:{port}
  default_backend streams
backend streams
  balance hdr(x-sequence-id)
  hash-type consistent
  option httpchk GET /v2/health/ready
  default-server check inter 100ms fall 1 rise 1 on-marked-down shutdown-sessions
  server a 127.0.0.1:{a}
  server b 127.0.0.1:{b}
"""


class Proxy:
    """haproxy, which sends each sequence to the server that its id hashes to."""

    def __init__(self, folder, a, b):
        self.port = free_port()
        (folder / "haproxy.cfg").write_text(HAPROXY.format(port=self.port, a=a, b=b))
        self.process = subprocess.Popen([haproxy(), "-f", folder / "haproxy.cfg", "-db"])
        latest = time.monotonic() + 30
        while time.monotonic() < latest:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("haproxy does not listen")


def haproxy():
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")


def send(caller, client, stream):
    """A step through the proxy, as often as it takes; how often the stream had to begin from its snapshot."""
    moved = 0
    while True:
        try:
            caller.one(HeaderClient(client, stream), stream, http)
            return moved
        except InferenceServerException as e:
            said = str(e)
            if "must specify the START flag" in said:  # another server has it now
                caller.starts[stream] = True
                moved += 1
            else:
                assert "503" in said or "about to end" in said or "No server is available" in said, said
                time.sleep(0.05)


class HeaderClient:
    """A client whose requests say the sequence in a header, for the proxy."""

    def __init__(self, client, stream):
        self.client, self.stream = client, stream

    def infer(self, *arguments, **more):
        return self.client.infer(*arguments, headers={"x-sequence-id": f"stream {self.stream}"}, **more)


@pytest.mark.skipif(not haproxy(), reason="haproxy is not installed")
def test_a_rolling_update_behind_a_hashing_proxy(tmp_path):
    """Two processes are replaced one after the other while 64 streams go on; none is lost, no step is lost or doubled."""
    caller, moved = Caller(np.random.default_rng(6)), 0
    ports = [(free_port(), free_port()) for _ in range(2)]
    servers = [Served(tmp_path, pair, drain_s=10).wait() for pair in ports]
    proxy = Proxy(tmp_path, ports[0][0], ports[1][0])
    try:
        client = http.InferenceServerClient(f"127.0.0.1:{proxy.port}")

        def rounds(count):
            return sum(send(caller, client, stream) for _ in range(count) for stream in range(STREAMS))

        assert rounds(2) == 0
        live = [server.metric("treadle_streams", "sums") for server in servers]
        assert sum(live) == STREAMS and min(live) > 0  # each has its share
        for k in range(2):
            servers[k].process.send_signal(signal.SIGTERM)
            while servers[k].process.poll() is None:
                moved += rounds(1)
            assert servers[k].process.returncode == 0
            servers[k] = Served(tmp_path, ports[k], drain_s=10)
            while not servers[k].ready():
                moved += rounds(1)
            moved += rounds(2)
        caller.check()
        assert moved > 0
    finally:
        proxy.process.kill()
        for server in servers:
            server.kill()
