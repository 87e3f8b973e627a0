"""A first run that is stopped while it packs constant weights leaves nothing that a later run, another session with the
same weights, another thread or the child of a fork would notice: results have the same bits as those of a session that
was never stopped.

What is timed runs with TREADLE_TEST_LONG alone; `./dev bench stops` lists how late each kind stops.
"""

import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import packed_weights
import pytest
import treadle
from packed_weights import KINDS, build, draw_kind, open_session

LONG = bool(os.environ.get("TREADLE_TEST_LONG"))
DRAWN = 300 if LONG else 24
LIMIT_S = 0.02
PROMISED_S = 0.05


def run(session, feeds, limit: float = 0) -> list | None:
    """None: the run was stopped."""
    options = treadle.RunOptions()
    options.time_limit = limit
    with contextlib.suppress(treadle.LimitExceeded):
        return session.run(None, feeds, options)
    return None


def expected(model: bytes, feeds: dict) -> tuple[list, float]:
    """The results of a session that is then closed, with all its packs, and the time of its first run."""
    session = open_session(model)
    start = time.perf_counter()
    results = [np.array(x) for x in run(session, feeds)]
    took = time.perf_counter() - start
    del session
    gc.collect()
    return results, took


def same(results: list | None, right: list) -> bool:
    """A run that was stopped is not wrong."""
    return results is None or all(a.tobytes() == b.tobytes() for a, b in zip(results, right, strict=True))


def check(model: bytes, feeds: dict, rng, rounds: int = 3) -> int:
    """How many runs were stopped."""
    right, took = expected(model, feeds)
    stopped = 0
    for _ in range(rounds):
        session, other = open_session(model), open_session(model, threads=2)  # which share what they pack
        for one in (session, other, session):
            results = run(one, feeds, took * rng.uniform(0.02, 1.2))
            stopped += results is None
            assert same(results, right)
        for one in (other, session):
            assert same(run(one, feeds), right)
    return stopped


@pytest.mark.parametrize("in_run", [False, True], ids=["planned", "in_the_run"])
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_at_drawn_moments(kind, in_run):
    check(*build(kind, 0.5, in_run), np.random.default_rng(list(KINDS).index(kind)))


@pytest.mark.parametrize("seed", range(DRAWN))
def test_drawn_sizes(seed):
    told, model, feeds = draw_kind(seed)
    print(told)
    check(model, feeds, np.random.default_rng(seed), rounds=2)


def test_runs_are_stopped():
    """A test whose runs all end before their limits would say nothing."""
    rng = np.random.default_rng(7)
    kinds = ("MatMul: float16", "MatMulInteger", "MatMulNBits", "Conv: few filters")
    assert sum(check(*build(kind, 4), rng, rounds=2) for kind in kinds) > 0


@pytest.mark.parametrize(
    "kind", ["MatMul: three columns", "MatMulInteger", "MatMulNBits", "Conv", "ConvInteger", "LSTM"]
)
@pytest.mark.parametrize("in_run", [False, True], ids=["planned", "in_the_run"])
def test_under_threads(kind, in_run):
    """Two sessions with the same weights, and threads of each that are stopped or not."""
    model, feeds = build(kind, 2, in_run)
    right, took = expected(model, feeds)
    sessions = [open_session(model), open_session(model)]
    wrong = []

    def work(number):
        rng = np.random.default_rng(number)
        for _ in range(4):
            limit = took * rng.uniform(0.02, 1.5) if number % 2 else 0
            results = run(sessions[number // 2 % 2], feeds, limit)
            if not same(results, right) or (results is None and not limit):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_of_stopped_runs_is_used_again():
    model, feeds = build("MatMul: three columns", 8)  # 32 MB
    session = open_session(model)
    run(session, feeds, 1e-4)
    before = resident_bytes()
    for i in range(30):
        run(session, feeds, 1e-4 * (i + 1))
    assert resident_bytes() - before < 80 << 20  # one that came to its end has packed its weights
    assert same(run(session, feeds), expected(model, feeds)[0])


def test_fork_while_another_thread_packs():
    """The child, which does not have that thread, packs by itself."""
    script = """
        import os, signal, sys, threading, time
        sys.path.insert(0, {folder!r})
        from packed_weights import build, open_session
        for i, kind in enumerate(["MatMul: three columns", "MatMulInteger", "Conv: few filters"] * 4):
            model, feeds = build(kind, 4, in_run=bool(i % 2))
            session = open_session(model)
            thread = threading.Thread(target=lambda: session.run(None, feeds))
            thread.start()
            time.sleep(0.003 * (i % 5))
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os.write(1, b"%d\\n" % hash(session.run(None, feeds)[0].tobytes()))
                os._exit(0)
            thread.join()
            assert os.waitpid(child, 0)[1] == 0  # before this process prints: their lines must not mix
            print(hash(session.run(None, feeds)[0].tobytes()), flush=True)
    """
    script = textwrap.dedent(script).format(folder=os.path.dirname(packed_weights.__file__))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split()
    assert len(lines) == 24
    assert all(lines[i] == lines[i + 1] for i in range(0, 24, 2)), lines


@pytest.mark.skipif(not LONG, reason="looks at time: with TREADLE_TEST_LONG")
@pytest.mark.parametrize("kind", KINDS)
def test_stops_in_time(kind):
    model, feeds = build(kind, 24)  # some 100 MB
    late = min(late_by(open_session(model), feeds) for _ in range(2))  # the machine may have been busy
    assert late < PROMISED_S, f"stopped {late * 1e3:.0f} ms late"


def late_by(session, feeds) -> float:
    """The processor time of a stopped run beyond its limit."""
    start = time.process_time()
    run(session, feeds, LIMIT_S)
    return time.process_time() - start - LIMIT_S
