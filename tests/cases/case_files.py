"""Reads the text files of this folder: a model, runs of it, and what its plan has to look like. See test_cases.py."""

import pathlib
import re

import numpy as np

FOLDER = pathlib.Path(__file__).parent
CASES = sorted(FOLDER.glob("**/*.txt"))
# Relative to the largest value: some roundings to float32, ten to float16.
TOLERANCES = {"exact": 0.0, "float": 1e-5, "half": 1e-2}
DTYPES = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "string": np.object_,
}  # fmt: skip
TENSOR = re.compile(r"(\w+)(?:\[([\d, ]*)\])?\s*\{([^}]*)\}")
EXPECT = "\n== expect\n"


class Case:
    def __init__(self, path):
        self.path = path
        head, *sections = re.split(r"^== ", path.read_text(), flags=re.MULTILINE)
        (option,) = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
        word, tolerance = option.split(": ")
        assert word == "tolerance", option
        self.tolerance = TOLERANCES[tolerance]
        titles, texts = zip(*(section.split("\n", 1) for section in sections), strict=True)
        if titles[-1] != "expect":  # a new case: test_plans names the command
            titles, texts = (*titles, "expect"), (*texts, "")
        assert titles == ("model", *["run"] * (len(titles) - 2), "expect"), titles
        self.model, self.expected = texts[0], texts[-1]
        self.runs = [Run(text) for text in texts[1:-1]]

    def write_expected(self, expected):
        """Makes `expected` the case's last section."""
        text = self.path.read_text().split(EXPECT)[0].rstrip("\n")
        self.path.write_text(f"{text}\n{EXPECT}{expected}")


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
