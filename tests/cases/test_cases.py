"""Cases as text files: a model in ONNX text, runs of it with inputs and results, and its expected plan.

    # The subject of the case.
    tolerance: exact                 or float (1e-5), half (1e-2): relative to the largest value

    == model
    ...
    == run
    in x = float[2] {1, 2}           tensors as the model's text has them; [v, v] is a sequence, none an empty optional
    out y = float[2] {2, 4}
    == run
    in x = float[0] {}
    error iteration 3                a part of the message
    == expect
    ...                              the engine's plans and loops: see test_plans.py

Each case is run in every tier of TIERS: interpreted, by the reference interpreter, with its loops as native code from their first iteration on
and from a later one, and on four threads. A model that can be streamed along a symbolic size is streamed as well. All of
that is done in every instruction set that the machine has.
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("treadle", reason="the Python package is not built")

from case_files import CASES, FOLDER, Case, compare
from observed import TIERS, open_session, stream_symbols, timed_inputs

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")

each_case = pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))


@pytest.mark.parametrize("tier", TIERS)
@each_case
def test_case(path, tier):
    case = Case(path)
    session = open_session(case, tier)
    for run in case.runs:
        if run.error is not None:
            with pytest.raises(Exception, match=re.escape(run.error)):
                session.run(None, run.feeds)
            continue
        results = session.run(list(run.results), run.feeds)
        for (name, expected), found in zip(run.results.items(), results, strict=True):
            compare(expected, found, case.tolerance, name)


def stream_axes(stream):
    """The axes along which the stream's outputs are joined, for outputs with such an axis."""
    return {name: int(axis) for name, axis in re.findall(r"output (\S+) .*frames along axis (\d+)", str(stream))}


def chunks(feeds, axes, size):
    """The inputs cut along time; inputs that are not cut come with every piece."""
    (length,) = {feeds[name].shape[axis] for name, axis in axes.items()}
    for begin in range(0, length, size):
        cut = {
            name: feeds[name].take(range(begin, min(begin + size, length)), axis=axis) for name, axis in axes.items()
        }
        yield {**feeds, **cut}


def streamed(session, symbol, feeds, size):
    """The joined results of pushes of `size` samples and the flush; for outputs without frames, the last result, if
    any.
    """
    stream = session.stream(time=timed_inputs(session, symbol), find_state=False)
    axes = {info.name: info.shape.index(symbol) for info in session.get_inputs() if symbol in info.shape}
    given = {name: value for name, value in feeds.items() if name not in axes}
    pieces = [stream.push(chunk) for chunk in chunks(feeds, axes, size)] + [stream.flush(given)]
    if len(stream.output_names) == 1:
        pieces = [[piece] for piece in pieces]
    joined = stream_axes(stream)
    by_name = zip(stream.output_names, zip(*pieces, strict=True), strict=True)
    return {
        name: np.concatenate(values, joined[name]) if name in joined else values[-1]
        for name, values in by_name
        if values[-1] is not None
    }


@each_case
def test_case_streamed(path):
    case = Case(path)
    session = open_session(case, "native")
    for symbol in stream_symbols(session):
        for size in (1, 2):
            for run in filter(lambda run: run.error is None, case.runs):
                found = streamed(session, symbol, run.feeds, size)
                for name, value in found.items():
                    compare(run.results[name], value, case.tolerance, f"{name} along {symbol}, {size} at a time")


def instruction_sets():
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    needs = {"baseline": "", "avx2": "avx2", "avx512": "avx512f"}
    return [name for name in INSTRUCTION_SETS if needs[name] in flags]


@pytest.mark.skipif("TREADLE_ISA" in os.environ, reason="the instruction set is chosen already")
@pytest.mark.parametrize("isa", instruction_sets())
def test_every_case_in_instruction_set(isa):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_case or test_plan"]
    command += ["--import-mode=importlib", FOLDER]
    result = subprocess.run(
        command, env={**os.environ, "TREADLE_ISA": isa}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert f"{len(CASES) * (len(TIERS) + 2)} passed" in result.stdout, result.stdout[-400:]
