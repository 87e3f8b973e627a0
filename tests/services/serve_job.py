"""Streams behind Ray Serve, by the programs of docs/howto/ray-serve.md, which lie in the current folder.

Runs in the environment of Ray: serve_job.py PORT; writes to found.json what became of each case: "passed" or a traceback.
"""

import base64
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import traceback
import wave

import numpy as np
import ray
import requests
import treadle
from ray import serve
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

sys.path.insert(0, os.getcwd())
os.environ["PYTHONPATH"] = f"{os.getcwd()}:{os.environ['PYTHONPATH']}"

import live  # noqa: E402
from caller import Caller  # noqa: E402

URL = f"http://127.0.0.1:{sys.argv[1]}"
CALLERS, BLOCKS = 12, 120
with wave.open("recording.wav") as recording:
    AUDIO = np.frombuffer(recording.readframes(recording.getnframes()), np.int16).astype(np.float32) / 32768


def alone(blocks):
    """The results of a stream of the model for blocks, and for its end."""
    stream = treadle.InferenceSession(live.MODEL).stream(**live.ROLES)
    return np.concatenate([stream.push(block[None]).reshape(-1) for block in blocks] + [stream.flush().reshape(-1)])


class Talk(threading.Thread):
    """A caller at its own pace, with blocks of sizes of its own."""

    def __init__(self, number, blocks=BLOCKS, pause=0.1):
        super().__init__(daemon=True)
        rng = np.random.default_rng(number)
        sizes = rng.integers(1, 1200, blocks)
        self.blocks = np.split(AUDIO[number * 1000 :][: sizes.sum()], np.cumsum(sizes)[:-1])
        self.caller, self.pause, self.done, self.error = Caller(URL), pause, 0, None

    def run(self):
        got = []
        try:
            for k, block in enumerate(self.blocks):
                got += self.caller.push(block, end=k + 1 == len(self.blocks))
                self.done += 1
                time.sleep(self.pause)
            np.testing.assert_allclose(np.float32(got), alone(self.blocks), atol=1e-4)
        except BaseException as e:
            self.error = e


def talk_all(blocks, during=lambda talks: None):
    talks = [Talk(k, blocks) for k in range(CALLERS)]
    for talk in talks:
        talk.start()
    during(talks)
    for talk in talks:
        talk.join()
        if talk.error:
            raise talk.error
    return sum(talk.caller.lost for talk in talks)


def replicas():
    """Processes of replicas that were started from this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().startswith(b"ray::ServeReplica") and (path / "cwd").samefile("."):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def until(talks, blocks):
    while min(talk.done for talk in talks) < blocks and any(talk.is_alive() for talk in talks):
        time.sleep(0.02)


def steady():
    """Nothing happens to the replicas: each session stays where it is."""
    talk_all(3)  # routers have heard of all replicas behind this
    assert talk_all(20) == 0


def disturbed():
    """A replica is killed, one is added, all are updated one after the other."""

    def during(talks):
        until(talks, 20)
        os.kill(replicas()[0], signal.SIGKILL)
        until(talks, 50)
        serve.run(live.Live.options(num_replicas=3).bind())
        until(talks, 80)
        serve.run(live.Live.options(num_replicas=3, ray_actor_options={"num_cpus": 0.5}).bind())

    before = set(replicas())
    assert talk_all(BLOCKS, during) >= CALLERS
    assert not before & set(replicas())


def refused():
    """Wrong messages are refused with the reason, and change nothing for the stream."""
    block = base64.b64encode(AUDIO[:512].tobytes()).decode()
    header = {"x-session-id": "refused"}

    def post(message, **more):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        reply = requests.post(f"{URL}/step", data=body, headers=header | more, timeout=30)
        return reply.status_code, reply.json().get("detail", reply.json())

    status, first = post({"id": "a", "start": True, "samples": block})
    assert status == 200
    good = {"id": "a", "samples": block}
    for wrong, status, words in (
        ({"id": "b", "samples": block}, 409, "must specify the START flag"),
        (b"{", 400, "no JSON"),
        (b"\xff\xfe", 400, "no JSON"),
        ([], 400, "an object with an id"),
        ({"samples": block}, 400, "an object with an id"),
        (good | {"id": 2.5}, 400, "a sequence id is"),
        (good | {"id": ["a"]}, 400, "a sequence id is"),
        (good | {"id": "x" * 200}, 400, "128 bytes"),
        (good | {"samples": "NaN"}, 400, "no step"),
        (good | {"samples": [1.0]}, 400, "no step"),
        (good | {"samples": "AAA="}, 400, "no step"),
        (good | {"state": "AAAA"}, 400, "together with the START flag"),
        (good | {"id": "c", "start": True, "state": "AAAA"}, 400, "snapshot"),
        (good | {"samples": "A" * (1 << 20)}, 413, "bytes at most"),
    ):
        found, said = post(wrong)
        assert found == status and words in said, (wrong if len(str(wrong)) < 500 else "long", found, said)
    status, second = post(good | {"end": True})
    blocks = [AUDIO[:512], AUDIO[:512]]
    np.testing.assert_allclose(np.float32(first["speech"] + second["speech"]), alone(blocks), atol=1e-4)
    assert second["state"] == "" and post(good)[0] == 409


def sockets():
    """A stream by a WebSocket, which goes on over another connection from a snapshot."""
    blocks, got, state = np.split(AUDIO[:16000], 20), [], ""
    for part in (blocks[:7], blocks[7:]):
        with connect(f"{URL.replace('http', 'ws')}/stream") as socket:
            for k, block in enumerate(part):
                message = {"samples": base64.b64encode(block.tobytes()).decode(), "end": block is blocks[-1]}
                socket.send(json.dumps(message | ({"state": state} if k == 0 else {})))
                answer = json.loads(socket.recv())
                got, state = got + answer["speech"], answer["state"]
    np.testing.assert_allclose(np.float32(got), alone(blocks), atol=1e-4)
    for wrong in ("{", "[]", '{"samples": 1}', '{"state": "AAAA", "samples": ""}'):
        with connect(f"{URL.replace('http', 'ws')}/stream") as socket:
            socket.send(wrong)
            try:
                raise AssertionError(f"{wrong}: {socket.recv()}")
            except ConnectionClosed as e:
                assert e.rcvd.code == 1008, (wrong, e)


def sockets_of_the_dead():
    """Connections to replicas that die close; the streams go on over others."""
    with connect(f"{URL.replace('http', 'ws')}/stream") as socket:
        socket.send('{"samples": ""}')
        socket.recv()
        for process in replicas():
            os.kill(process, signal.SIGKILL)
        try:
            while True:
                socket.recv(timeout=60)
        except ConnectionClosed as e:
            assert e.rcvd is None, e  # clients call this 1006
    talk_all(5)


def page():
    """The program of the page prints what the page shows."""
    env = os.environ | {"LIVE": URL}
    done = subprocess.run([sys.executable, "detect.py"], env=env, check=True, capture_output=True, text=True)
    pathlib.Path("printed.txt").write_text(done.stdout)


CASES = (page, steady, refused, sockets, disturbed, sockets_of_the_dead)


def main():
    quiet = {"include_dashboard": False, "logging_level": "error", "log_to_driver": False}
    ray.init(address="local", num_cpus=8, object_store_memory=200 << 20, **quiet)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(live.live)
    found = {}
    for case in CASES:
        try:
            case()
            found[case.__name__] = "passed"
        except BaseException:
            found[case.__name__] = traceback.format_exc()
    serve.shutdown()
    pathlib.Path("found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
