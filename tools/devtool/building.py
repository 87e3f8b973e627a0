"""Configuring and building one of the presets of CMakePresets.json."""

import pathlib
import re
from collections.abc import Sequence

from console import BUILD, run
from environment import PYTHON, cpu_count

WITH_PYTHON = ("release", "asan", "train", "deb")


def kernels_of_this_processor() -> str:
    """The widest instruction set of this processor among those that kernels are built for."""
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    found = set(flags[1].split()) if flags else set()
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= found:
        return "avx512"
    return "avx2" if {"avx2", "fma", "bmi1", "bmi2"} <= found else "baseline"


COMPILER_BYTES = 1 << 30  # that the largest files take


def jobs() -> int:
    """Compilers at once: one on each processor, as far as memory is left for them."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
    fit = int(found[1]) * 1024 // COMPILER_BYTES if found else 1
    return max(1, min(cpu_count(), fit))


def build(target: str, preset: str = "release", options: Sequence[str] = (), fast: bool = False) -> None:
    """Builds one target; presets whose Python extension is tested carry it, for the interpreter of build/venv.

    `fast`: a release build has kernels for this processor alone.
    """
    if preset == "release":
        options = [*options, kernels_option(fast), "-DTREADLE_BUILD_CLI=ON"]
    configure_and_build(target, preset, options)


def build_example() -> None:
    """What examples/run.py imports: the Python package without the tool, for this processor. A checkout that more has
    been built in keeps more."""
    configured = (BUILD / "release" / "CMakeCache.txt").exists()
    configure_and_build("dev_run", "release", () if configured else (kernels_option(True), "-DTREADLE_BUILD_CLI=OFF"))


def kernels_option(fast: bool) -> str:
    return f"-DTREADLE_KERNELS={kernels_of_this_processor() if fast else 'baseline;avx2;avx512'}"


def configure_and_build(target: str, preset: str, options: Sequence[str]) -> None:
    arguments = ["-DPython3_EXECUTABLE=" + str(PYTHON), *options]
    if preset in WITH_PYTHON:
        arguments += ["-DTREADLE_BUILD_PYTHON=ON", "-DPython_EXECUTABLE=" + str(PYTHON)]
    run(f"configuring {preset}", ["cmake", "--preset", preset, *arguments], log=f"configure-{preset}")
    command = ["cmake", "--build", BUILD / preset, "--target", target, "-j", jobs()]
    run(f"building {target} ({preset})", command, log=f"build-{preset}")
