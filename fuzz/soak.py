"""A process as a server's would be, for as long as it takes: threads that load sessions, run them under limits, push
streams and pools, fork, and give everything up again.

    soak.py [--seconds S] [--threads N] [--seed S]

Every result is compared with what one quiet run gave before; an error must be one that the limits at hand explain. The
memory of the process is looked at every ten seconds: after a first fifth of the time it may not go on growing. The exit
status is 1 where any of that does not hold.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import sys
import threading
import time
import traceback

import numpy as np
import treadle

HEAD = b'<ir_version: 10, opset_import: ["" : 21]>\n'
MODELS = {
    "recurrence": b"""g (float[T,4] x, float[4] s0) => (float[4] s, float[T,4] ys) {
      s, ys = Scan<num_scan_inputs=1, body = b (float[4] a, float[4] v) => (float[4] n, float[4] o) {
        n = Add(a, v) o = Tanh(n) }>(s0, x) }""",
    "lstm": b"""g (float[T,2,8] x) => (float[T,1,2,16] y) <float[1,64,8] w = W, float[1,64,16] r = R> {
      y = LSTM<hidden_size=16>(x, w, r) }""",
    "growing": b"""g (float[1,8] x, int64 n) => (y) {
      y = Loop(n, , x) <body = b (int64 i, bool c, float[N,8] s) => (bool d, float[M,8] o) {
        d = Identity(c) o = Concat<axis=0>(s, x) }> }""",
    "texts": b"""g (string[N] x, int64 n) => (y) {
      y = Loop(n, , x) <body = b (int64 i, bool c, string[N] s) => (bool d, string[N] o) {
        d = Identity(c) o = StringConcat(s, x) }> }""",
    "product": b"g (float[N,N] a) => (float[N,N] y) { z = MatMul(a, a) y = Tanh(z) }",
    "lists": b"""g (float[N,4] x) => (y) { one = Constant<value_int=1>() parts = SplitToSequence(x, one)
      back = SequenceMap(parts) <body = b (float[1,4] p) => (float[1,4] q) { q = Exp(p) }>
      y = ConcatFromSequence<axis=0>(back) }""",
}


def weights(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 4


def lstm_text() -> bytes:
    def written(shape, seed):
        return b"{" + ",".join(f"{v:.6g}" for v in weights(shape, seed).ravel()).encode() + b"}"

    text = MODELS["lstm"].replace(b"= W", b"= " + written((1, 64, 8), 1))
    return text.replace(b"= R", b"= " + written((1, 64, 16), 2))


def feeds(name: str) -> list[dict]:
    x = weights((40, 64), 3)
    return {
        "recurrence": [{"x": x[:n, :4].copy(), "s0": x[0, :4].copy()} for n in (1, 7, 40)],
        "lstm": [{"x": x[:n, :16].reshape(n, 2, 8).copy()} for n in (1, 9, 40)],
        "growing": [{"x": x[:1, :8].copy(), "n": np.array(n)} for n in (0, 20, 3000)],
        "texts": [{"x": np.array(["ab", "xyz" * 20], object), "n": np.array(n)} for n in (0, 3, 500)],
        "product": [{"a": weights((n, n), n)} for n in (8, 33, 200)],
        "lists": [{"x": x[:n, :4].copy()} for n in (1, 5, 40)],
    }[name]


def open_session(name: str, threads: int = 1, jit: str = "auto") -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("treadle.jit", jit)
    text = lstm_text() if name == "lstm" else MODELS[name]
    return treadle.InferenceSession(HEAD + text, options)


def same(got, wanted) -> bool:
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(same, got, wanted))
    return got.shape == wanted.shape and bool((got == wanted).all())


class Soak:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.end = 0.0
        self.counts: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.shared = {name: open_session(name, threads=2) for name in MODELS}
        self.expected = {name: [self.shared[name].run(None, feed) for feed in feeds(name)] for name in MODELS}

    def work(self, number: int) -> None:
        rng = random.Random(self.seed * 1000 + number)
        kinds = [self.run, self.run, self.run_limited, self.load, self.stream, self.lstm_stream, self.pool, self.cancel]
        if number == 0:
            kinds.append(self.fork)
        while time.monotonic() < self.end and not self.wrong:
            kind = rng.choice(kinds)
            try:
                kind(rng)
            except BaseException:
                self.wrong.append(f"{kind.__name__}: {traceback.format_exc()}")
            self.counts[kind.__name__] += 1

    def compare(self, what: str, got, wanted) -> None:
        if not same(got, wanted):
            self.wrong.append(f"{what}: another result than before")

    def choose(self, rng: random.Random) -> tuple[str, int]:
        return rng.choice(list(MODELS)), rng.randrange(3)

    def run(self, rng: random.Random) -> None:
        name, case = self.choose(rng)
        self.compare(f"run of {name}", self.shared[name].run(None, feeds(name)[case]), self.expected[name][case])

    def run_limited(self, rng: random.Random) -> None:
        name, case = self.choose(rng)
        limits = treadle.RunOptions()
        which = rng.randrange(3)
        if which == 0:
            limits.time_limit = 10 ** rng.uniform(-6, -2)
        elif which == 1:
            limits.memory_limit = int(10 ** rng.uniform(1, 7))
        else:
            limits.iteration_limit = rng.randrange(1, 3000)
        try:
            got = self.shared[name].run(None, feeds(name)[case], limits)
        except treadle.LimitExceeded:
            return
        self.compare(f"limited run of {name}", got, self.expected[name][case])

    def cancel(self, rng: random.Random) -> None:
        name, case = self.choose(rng)
        limits = treadle.RunOptions()
        timer = threading.Timer(rng.uniform(0, 0.002), lambda: setattr(limits, "terminate", True))
        timer.start()
        try:
            got = self.shared[name].run(None, feeds(name)[case], limits)
            self.compare(f"run of {name} beside a cancel", got, self.expected[name][case])
        except treadle.Fail:
            pass
        timer.join()

    def load(self, rng: random.Random) -> None:
        name, case = self.choose(rng)
        session = open_session(name, rng.choice([1, 2]), rng.choice(["auto", "always", "off"]))
        self.compare(f"new session of {name}", session.run(None, feeds(name)[case]), self.expected[name][case])

    def stream(self, rng: random.Random) -> None:
        feed, [_, rows] = feeds("recurrence")[2], self.expected["recurrence"][2]
        stream = self.shared["recurrence"].stream(time={"x": 0}, bind={"s0": feed["s0"]})
        got, at = [], 0
        while at < 40:
            step = rng.randrange(1, 12)
            out = stream.push(x=feed["x"][at : at + step])
            got.append(out[-1] if isinstance(out, list) else out)
            at += step
            if rng.random() < 0.2:
                stream = stream.fork()
            if rng.random() < 0.2:
                snapshot = stream.save()
                stream.push(x=feed["x"][:3])
                stream.load(snapshot)
        out = stream.flush()
        got.append(out[-1] if isinstance(out, list) else out)
        self.compare("stream", np.concatenate([np.asarray(g) for g in got if g is not None and np.size(g)]), rows)

    def lstm_stream(self, rng: random.Random) -> None:
        feed, [rows] = feeds("lstm")[2], self.expected["lstm"][2]
        stream = self.shared["lstm"].stream(time={"x": 0})
        got, at = [], 0
        while at < 40:
            step = rng.randrange(1, 12)
            got.append(stream.push(x=feed["x"][at : at + step]))
            at += step
        got.append(stream.flush())
        joined = np.concatenate([g for g in got if g is not None and np.size(g)])
        if not np.allclose(joined, rows, atol=1e-6):
            self.wrong.append("LSTM stream: another result than one run")

    def pool(self, rng: random.Random) -> None:
        """Streams that come and go; one that stays gives what a stream on its own gives."""
        pool = self.shared["recurrence"].streams(8, time={"x": 0}, bind={"s0": feeds("recurrence")[2]["s0"]})
        x, [_, rows] = feeds("recurrence")[2]["x"], self.expected["recurrence"][2]
        got = []
        for at in range(0, 40, 8):
            ids = {0, *rng.sample(range(1, 8), rng.randrange(6))}
            outputs = pool.push({i: {"x": x[at : at + 8]} for i in ids})
            got.append(outputs[0][-1] if isinstance(outputs[0], list) else outputs[0])
            for i in range(1, 8):
                if i in pool and rng.random() < 0.3:
                    pool.leave(i)
        if not np.allclose(np.concatenate(got), rows, atol=1e-6):
            self.wrong.append("pool: another result than one run")

    def fork(self, rng: random.Random) -> None:
        if rng.random() < 0.9:
            return
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            name, case = self.choose(rng)
            good = same(self.shared[name].run(None, feeds(name)[case]), self.expected[name][case])
            os._exit(0 if good else 1)
        _, status = os.waitpid(child, 0)
        if status:
            self.wrong.append(f"a forked child ended with {os.waitstatus_to_exitcode(status)}")


def resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    soak = Soak(arguments.seed)
    begin = time.monotonic()
    soak.end = begin + arguments.seconds
    threads = [threading.Thread(target=soak.work, args=(i,)) for i in range(arguments.threads)]
    for thread in threads:
        thread.start()
    memory: list[tuple[float, float]] = []
    while any(thread.is_alive() for thread in threads):
        time.sleep(min(10.0, max(arguments.seconds / 20, 0.1)))
        memory.append((time.monotonic() - begin, resident_mb()))
    early = [mb for at, mb in memory if arguments.seconds / 5 <= at <= arguments.seconds / 2]
    late = [mb for at, mb in memory if at >= arguments.seconds / 2]
    print(", ".join(f"{kind} {count:,}" for kind, count in sorted(soak.counts.items())))
    if early and late:
        print(f"resident memory: at most {max(early):.0f} MB before half of the time, {max(late):.0f} MB after")
        if max(late) > 1.1 * max(early) + 8:
            soak.wrong.append("memory goes on growing")
    for problem in soak.wrong[:5]:
        print(problem)
    print(f"{sum(soak.counts.values()) - len(soak.wrong)} passed, {len(soak.wrong)} failed")
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
