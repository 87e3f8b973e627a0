"""Type checkers see the package as it is: its own sources and the stub of its extension hold under mypy --strict."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest
import treadle

PACKAGE = pathlib.Path(treadle.__file__).parent


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
@pytest.mark.skipif(not (PACKAGE / "_core.pyi").exists(), reason="builds with a sanitizer have no stub")
def test_the_package_holds_under_a_strict_type_checker(tmp_path):
    # A plain process, whatever is preloaded into this one.
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    command = [sys.executable, "-m", "mypy", "--strict", "-p", "treadle", "--cache-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=PACKAGE.parent, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
