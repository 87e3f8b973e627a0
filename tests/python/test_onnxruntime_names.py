"""onnxruntime's less common names: the functions of onnxruntime_names.py hold for it and for treadle's alias."""

import functools
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import pytest
import treadle
from treadle import _alias

PROGRAM = pathlib.Path(__file__).with_name("onnxruntime_names.py")
FUNCTIONS = [
    line.split()[1].partition("(")[0] for line in PROGRAM.read_text("utf-8").splitlines() if line.startswith("def ")
]
HELPERS = ("session", "raised", "named_value", "matrix_model", "found")


@functools.cache
def problems(package: str) -> dict[str, str]:
    """The error of each function in a process where onnxruntime is that package."""
    alias = ["-m", "treadle.as_onnxruntime"] if package == "treadle" else []
    folders = [str(pathlib.Path(treadle.__file__).parent.parent), str(PROGRAM.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run([sys.executable, *alias, str(PROGRAM)], env=environment, capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("package", ["treadle", "onnxruntime"])
@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name not in HELPERS])
def test_programs_find_what_they_ask_for(function, package):
    if package == "onnxruntime":
        try:
            installed = importlib.metadata.version("onnxruntime")
        except importlib.metadata.PackageNotFoundError:
            installed = "none"
        if installed != _alias.ONNXRUNTIME_VERSION:
            pytest.skip(f"the names are those of onnxruntime {_alias.ONNXRUNTIME_VERSION}; installed: {installed}")
    assert problems(package)[function] == ""
