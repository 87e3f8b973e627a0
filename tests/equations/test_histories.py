"""Earlier runs of a session change nothing: histories.py, for one node of each operator."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("every_operator", reason="there is no table of nodes")
LONG = bool(os.environ.get("TREADLE_TEST_LONG"))
HOW_MUCH = ["20000"] if LONG else ["1", "--most", "1", "--tiers", "default"]


def test_sessions_refuse_what_new_ones_refuse_in_the_same_words():
    script = os.path.join(os.path.dirname(__file__), "histories.py")
    run = subprocess.run([sys.executable, script, *HOW_MUCH], capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if not line.startswith("at ")]
    assert run.returncode == 0, "\n".join(run.stdout.splitlines()[-3:] + [run.stderr[-2000:]])
    assert " 0 wrong, 0 vague," in lines[-1], "\n".join(lines)[:4000]
