"""Damaged models: bytes flipped, removed and doubled in the first 64 KB, files cut short. treadle refuses them or runs them.

    mutations.py [--count N] [--seed S] [--keep DIR] [MODEL.onnx ...]

Without models, those that random_programs/ grows. Each damaged model is loaded and, where that works, run within limits of
time, trips and memory, in a process of its own: a crash, a hang, an exception that is none of treadle's and one that calls
itself internal are findings. Exit status 1 when there was any.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys
import tempfile

import numpy as np
import treadle
from random_programs.blocks import OPSETS
from random_programs.generator import make_program

FRONT = 64 << 10
SECONDS = 20  # after which a model hangs
REFUSALS = (
    treadle.Fail, treadle.InvalidArgument, treadle.InvalidGraph, treadle.InvalidProtobuf, treadle.LimitExceeded,
    treadle.NoSuchFile, treadle.NotImplemented, treadle.RuntimeException, ValueError,
)  # fmt: skip


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """One change or a few."""
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        at = int(rng.integers(min(len(changed), FRONT) or 1))
        kind = rng.integers(20)
        if not changed:
            break
        if kind < 12:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind < 15:
            changed[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
        elif kind < 17:
            del changed[at : at + int(rng.integers(1, 9))]
        elif kind < 19:
            changed[at:at] = changed[at : at + int(rng.integers(1, 17))]
        else:
            del changed[int(rng.integers(len(changed))) :]
    return bytes(changed)


def inputs_for(session: treadle.InferenceSession, rng: np.random.Generator) -> dict:
    """Arrays for what the damaged model asks for, as far as that is known; unknown sizes are small."""
    feeds = {}
    for info in session.get_inputs():
        shape = [size if isinstance(size, int) else int(rng.integers(0, 4)) for size in info.shape]
        if np.prod([float(size) for size in shape]) > 1e6:
            continue
        kind = info.type[len("tensor(") : -1] if info.type.startswith("tensor(") else ""
        dtype = {"float": "f4", "double": "f8", "float16": "f2", "bool": "?"}.get(kind, kind)
        if kind == "string":
            feeds[info.name] = np.full(shape, "text", object)
        elif kind:
            try:
                feeds[info.name] = rng.integers(0, 3, shape).astype(dtype)
            except TypeError:
                continue
    return feeds


def load_and_run(path: str, seed: int, tier: str) -> str:
    """What happened, in a word; raises what is a finding."""
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.tier", tier)
    try:
        session = treadle.InferenceSession(path, options)
    except REFUSALS as problem:
        return refused(problem)
    run_options = treadle.RunOptions()
    run_options.time_limit, run_options.trip_limit, run_options.memory_limit = 2.0, 10_000, 1 << 28
    try:
        session.run(None, inputs_for(session, np.random.default_rng(seed)), run_options)
    except REFUSALS as problem:
        return "loaded, " + refused(problem)
    return "ran"


def refused(problem: Exception) -> str:
    if getattr(problem, "code", "") == "internal":
        raise problem
    return "refused"


def in_child(work) -> tuple[str, str]:
    """(what `work` returned, or "" and what went wrong)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.close(read)
        try:
            answer = "+" + work()
        except BaseException as problem:
            answer = f"-{type(problem).__name__}: {problem}"
        os.write(write, answer.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if status:
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {status}"
        return "", f"{answer} {name}" + (f": still at it after {SECONDS} s" if name == "SIGALRM" else "")
    return (answer[1:], "") if answer.startswith("+") else ("", answer[1:])


def check(data: bytes, seed: int, keep: pathlib.Path | None = None) -> tuple[str, str]:
    """(what happened, what was found) for one damaged copy of a model."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(damage(data, rng))
        tier = str(rng.choice(["judge", "program"]))
        outcome, found = in_child(lambda: load_and_run(str(path), seed, tier))
        if found and keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{seed}.onnx").write_bytes(path.read_bytes())
    return outcome, f"{found} ({tier})" if found else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, nargs="*")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    counts: dict[str, int] = {}
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        if arguments.models:
            name = str(path := arguments.models[seed % len(arguments.models)])
            data = path.read_bytes()
        else:
            opset = OPSETS[seed % len(OPSETS)]
            name, data = f"opset {opset}", make_program(seed, opset)[0].SerializeToString()
        outcome, found = check(data, seed, arguments.keep)
        counts[outcome or "FOUND"] = counts.get(outcome or "FOUND", 0) + 1
        if found:
            print(f"seed {seed}, {name}: {found[:400]}", flush=True)
    wrong = counts.get("FOUND", 0)
    print(", ".join(f"{outcome} {count}" for outcome, count in sorted(counts.items())))
    print(f"{arguments.count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
