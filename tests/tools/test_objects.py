"""No file makes a compiler slow or large: the object code of each file of the release build stays in bounds.

Time and memory differ between machines and from run to run; the amount of code does not. Files of three times the bound
took one to three minutes, and up to 3 GB.
"""

import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(__file__).parents[2] / "build" / "release"
BOUND = 500_000  # bytes of code and constants


def test_no_object_is_large():
    objects = sorted((BUILD / "CMakeFiles").glob("**/*.cc.o"))
    if not objects:
        pytest.skip("there is no release build")
    lines = subprocess.run(["size", *objects], capture_output=True, text=True, check=True).stdout.splitlines()
    sizes = {line.split()[-1]: int(line.split()[0]) for line in lines[1:]}
    assert len(sizes) == len(objects)
    large = [f"{pathlib.Path(name).relative_to(BUILD)}: {size}" for name, size in sizes.items() if size > BOUND]
    assert not large, f"objects of at most {BOUND} bytes were expected; split the file, or instantiate less in it"
