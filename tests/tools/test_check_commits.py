"""The rule for subjects of commits."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))

import check_commits


@pytest.mark.parametrize(
    "subject, files",
    [
        ("run: keep states of streams in one block", ["src/run/frame.cc"]),
        ("kernels, docs: name the address", ["src/kernels/move.cc", "docs/index.md"]),
        ("ops: fix a read past a list in Split", ["src/ops/sequence/split.cc", "tests/cases/split/list.txt"]),
        ("docs: fix a link", ["docs/index.md"]),
    ],
)
def test_good_subjects(subject, files):
    assert check_commits.problems(subject, files) == []


@pytest.mark.parametrize(
    "subject, files, problem",
    [
        ("run: " + "x" * 68, [], "at most 72 characters were expected, found 73"),
        ("Keep states in one block", [], "expected `area: what it does`"),
        ("run:", [], "expected `area: what it does`"),
        ("ops: fix a read past a list", ["src/ops/sequence/split.cc"], "a fix of src/ was expected to bring a test"),
    ],
)
def test_bad_subjects(subject, files, problem):
    assert check_commits.problems(subject, files) == [problem]
