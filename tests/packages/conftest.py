"""Files here import each other by their plain names."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from commands import call  # noqa: E402


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """A folder with what is installed."""
    release = ROOT / "build" / "release"
    call("cmake", "--build", release, "--target", "dev_build")  # as ./dev build does
    folder = tmp_path_factory.mktemp("prefix")
    call("cmake", "--install", release, "--prefix", folder)
    return folder
