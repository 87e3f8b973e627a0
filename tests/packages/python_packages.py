"""Packages from PyPI, for the tests that need them."""

import fcntl
import pathlib
import shutil
import subprocess
import sys

import pytest

PACKAGES = pathlib.Path(__file__).parents[2] / "build" / "packages-recipes"


def installed(requirements, *options):
    """The folder of packages, which stays for later runs; skips the test with pip's message where they cannot be had."""
    folder = PACKAGES / f"{'-'.join(requirements)}-python{sys.version_info.major}.{sys.version_info.minor}"
    PACKAGES.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_name(f"{folder.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "-q", "--no-input", *options, "--target", partial]
            done = subprocess.run([*pip, *requirements], capture_output=True, text=True, timeout=900, check=False)
            if done.returncode:
                pytest.skip(f"{', '.join(requirements)} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
            partial.rename(folder)
    return folder
