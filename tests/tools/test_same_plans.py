"""tools/same_plans.py: two recordings of one build are equal, and a change of a plan is found and shown."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("treadle", reason="the Python package is not built")

SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "same_plans.py"


def call(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_recordings_of_one_build_are_equal_and_a_change_is_found(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        made = call("record", folder, "--group", "cases", "--match", "scan/", "--isa", "avx2")
        assert made.returncode == 0, made.stderr
    equal = call("compare", before, after)
    assert equal.returncode == 0, equal.stdout
    assert equal.stdout.endswith(" models compared, 0 differ\n")

    changed = sorted(after.rglob("*.txt"))[0]
    text = changed.read_text()
    assert "== off\n" in text
    assert "\ncode " in text
    changed.write_text(text.replace("results ", "results 0", 1))
    different = call("compare", before, after)
    assert different.returncode == 1
    assert str(changed.relative_to(after)) in different.stdout
    assert "+results 0" in different.stdout


def test_nothing_recorded_is_no_success(tmp_path):
    assert call("compare", tmp_path, tmp_path).returncode == 1
