"""Configuring and building one of the presets of CMakePresets.json."""

from collections.abc import Sequence

from console import BUILD, run
from environment import PYTHON, cpu_count

WITH_PYTHON = ("release", "asan", "train", "deb")


def build(target: str, preset: str = "release", options: Sequence[str] = ()) -> None:
    """Builds one target; presets whose Python extension is tested carry it, for the interpreter of build/venv."""
    arguments = ["-DPython3_EXECUTABLE=" + str(PYTHON), *options]
    if preset in WITH_PYTHON:
        arguments += ["-DTREADLE_BUILD_PYTHON=ON", "-DPython_EXECUTABLE=" + str(PYTHON)]
    run(f"configuring {preset}", ["cmake", "--preset", preset, *arguments], log=f"configure-{preset}")
    command = ["cmake", "--build", BUILD / preset, "--target", target, "-j", cpu_count()]
    run(f"building {target} ({preset})", command, log=f"build-{preset}")
