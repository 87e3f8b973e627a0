"""The section 'expect' of each case holds the engine's plans and loops, so that a loop that silently stops compiling
fails.

    == expect
    plans: 1                              how many the runs of the case took, each made twice
    allocations of warm runs: 0 error 1   how many tensors each run allocated the second time
    streams over: n                       the symbolic sizes of inputs along which the model can be streamed
    Loop /Loop_2: interpreted as chain; with jit native; rewrites elided Identity, 2 hoisted Add; calls Conv

A line per loop says what `explain` says of the loop in the plan of the last run that succeeds:

    interpreted as   "program" (instruction by instruction) or "chain" (one instruction), with jit = off
    with jit         with jit = always: "native", "inside" of a native loop around it, or what the interpreter does
    rewrites         what was done to the loop while planning: the change and the operator of the node
    calls            kernels that native code calls instead of containing them
    by the engine    nodes and loops that keep the loop from being native code, or run by calls back into the engine

A line "no loop any more" says which rewrite took a loop apart.

The section is the same in all tiers, on one thread and on several, and in every instruction set: what depends on a processor
(sizes in bytes, estimates of time) is not in it. A deliberate change of it is made by one command, and read in the diff:

    ./dev build && build/venv/bin/python -m pytest tests/cases --update-expect
"""

import pytest

pytest.importorskip("treadle", reason="the Python package is not built")

from case_files import CASES, FOLDER, Case
from observed import expect_section

COMMAND = "build/venv/bin/python -m pytest tests/cases --update-expect"


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))
def test_plan(path, pytestconfig):
    case = Case(path)
    found = expect_section(case)
    if pytestconfig.getoption("--update-expect", default=False):
        case.write_expected(found)
    else:
        assert found == case.expected, f"if this is meant: {COMMAND}"
