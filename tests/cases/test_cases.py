"""Cases as text files: a model in ONNX text, and runs of it with inputs and what they give.

    # What the case is about.
    tolerance: exact                 or float (1e-5), half (1e-2): relative to the largest value
    expect: plans <= 2               after all runs, in the program tier

    == model
    ...
    == run
    in x = float[2] {1, 2}           tensors as the model's text has them; [v, v] is a sequence, none an empty optional
    out y = float[2] {2, 4}
    == run
    in x = float[0] {}
    error trip 3                     what the message has to contain

Each case is run in both tiers, with its loops as native code from their first trip on and from a later one, here and in
every instruction set that the machine has.
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

treadle = pytest.importorskip("treadle", reason="the Python package is not built")

FOLDER = pathlib.Path(__file__).parent
CASES = sorted(FOLDER.glob("**/*.txt"))
TIERS = {
    "program": {"jit": "off"},
    "judge": {"tier": "judge"},
    "native": {"jit": "always"},
    "native from trip 2": {"jit": "always", "jit_trip": "2"},
}
INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
TOLERANCES = {"exact": 0.0, "float": 1e-5, "half": 1e-2}
DTYPES = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "string": np.object_,
}  # fmt: skip
COUNTERS = {"plans": "plans", "allocations per run": "allocations_last_run"}
TENSOR = re.compile(r"(\w+)(?:\[([\d, ]*)\])?\s*\{([^}]*)\}")


class Case:
    def __init__(self, path):
        head, *sections = re.split(r"^== ", path.read_text(), flags=re.MULTILINE)
        options = [line.split(":", 1) for line in head.splitlines() if line.strip() and not line.startswith("#")]
        self.tolerance = TOLERANCES[dict(options)["tolerance"].strip()]
        self.expectations = [value.strip() for key, value in options if key == "expect"]
        titles = [section.split("\n", 1)[0].strip() for section in sections]
        assert titles and titles[0] == "model" and set(titles[1:]) == {"run"}, titles
        self.model = sections[0].split("\n", 1)[1]
        self.runs = [Run(section.split("\n", 1)[1]) for section in sections[1:]]


class Run:
    def __init__(self, text):
        self.feeds, self.results, self.error = {}, {}, None
        for line in filter(None, map(str.strip, text.splitlines())):
            word, rest = line.split(" ", 1)
            if word == "error":
                self.error = rest
                continue
            name, value = rest.split(" = ", 1)
            {"in": self.feeds, "out": self.results}[word][name] = parse_value(value)


def parse_value(text):
    text = text.strip()
    if text == "none":
        return None
    if text.startswith("["):
        return [parse_tensor(match) for match in TENSOR.finditer(text)]
    return parse_tensor(TENSOR.fullmatch(text))


def parse_tensor(match):
    dtype, dims, values = match.groups()
    items = [item.strip() for item in values.split(",")] if values.strip() else []
    shape = [int(dim) for dim in dims.split(",")] if dims else []
    dtype = np.dtype(DTYPES[dtype])
    if dtype == np.bool_:
        items = [int(item) for item in items]
    elif dtype == np.object_:
        items = [item.strip('"') for item in items]
    elif dtype.kind in "iu":
        items = [int(item) for item in items]
    return np.array(items, dtype).reshape(shape)


def compare(expected, found, tolerance, name):
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), f"{name}: {found}"
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            compare(one, other, tolerance, f"{name}[{index}]")
    elif expected is None:
        assert found is None, f"{name}: {found}"
    else:
        found = np.asarray(found)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
        if tolerance and expected.dtype.kind == "f":
            bound = tolerance * max(1, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0, atol=bound, err_msg=name)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)


def open_session(case, tier):
    options = treadle.SessionOptions()
    for key, value in TIERS[tier].items():
        options.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(case.model.encode(), options)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))
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
    if tier != "judge":
        counters = session.counters()
        for expectation in case.expectations:
            name, relation, number = re.fullmatch(r"(.+?) (<=|==) (\d+)", expectation).groups()
            value = counters[COUNTERS[name]]
            assert value == int(number) if relation == "==" else value <= int(number), f"{expectation}: {value}"


def instruction_sets():
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    needs = {"baseline": "", "avx2": "avx2", "avx512": "avx512f"}
    return [name for name in INSTRUCTION_SETS if needs[name] in flags]


@pytest.mark.skipif("TREADLE_ISA" in os.environ, reason="the instruction set is chosen already")
@pytest.mark.parametrize("isa", instruction_sets())
def test_every_case_in_instruction_set(isa):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_case", __file__]
    result = subprocess.run(
        command, env={**os.environ, "TREADLE_ISA": isa}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert f"{len(CASES) * len(TIERS)} passed" in result.stdout, result.stdout[-400:]
