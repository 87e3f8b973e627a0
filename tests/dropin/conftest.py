"""Packages of PyPI, each with what it needs in a folder of its own, which stays in build/packages for later runs.

The other modules here and in tests/python are imported by their plain names.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build" / "packages"
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(ROOT / "tests" / "python")]


def install(requirement: str) -> pathlib.Path:
    target = PACKAGES / f"{requirement.replace('==', '-')}-python{sys.version_info.major}.{sys.version_info.minor}"
    PACKAGES.mkdir(parents=True, exist_ok=True)
    with open(target.with_name(target.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests of several processes ask for one package
        if target.exists():
            return target
        partial = target.with_name(target.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", str(partial), requirement]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            pytest.skip(f"{requirement} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
        partial.rename(target)
    return target


@pytest.fixture(scope="session")
def installed():
    """The folder of a requirement, installed if needed; skips the test with pip's message if that fails."""
    return install


@pytest.fixture(scope="session")
def library() -> pathlib.Path:
    """treadle's libonnxruntime.so."""
    tool = ROOT / "build" / "bin" / "treadle"
    if not tool.exists():
        pytest.skip("needs the tool")
    path = subprocess.run([tool, "onnxruntime-lib"], check=True, capture_output=True, text=True).stdout.strip()
    return pathlib.Path(path).resolve()


@pytest.fixture
def on_treadle(library, tmp_path):
    """A copy of an installed package in which treadle's library lies in place of the files of these patterns.

    A file's own name stays, since that is what loaders look for. All other files are links to those of the package.
    """

    def replace(package: pathlib.Path, *patterns: str) -> pathlib.Path:
        copy = tmp_path / package.name
        shutil.copytree(package, copy, copy_function=os.link)
        files = [file for pattern in patterns for file in copy.glob(pattern)]
        assert files, f"{package} has no {patterns}"
        for file in files:
            file.unlink()
            shutil.copy(library, file)
        return copy

    return replace
