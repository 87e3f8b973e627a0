"""The Python environment in build/venv, and where the suites' shared data is."""

import hashlib
import os
import pathlib
import shutil
import sys

from console import BUILD, ROOT, run

VENV = BUILD / "venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "tools" / "requirements.txt"
STAGED_PACKAGE = BUILD / "python"  # cmake/Python.cmake puts the importable package here


def made_from(venv: pathlib.Path) -> str:
    """What the file 'made-from' in a venv says while the venv is what REQUIREMENTS asks for."""
    return hashlib.sha256(f"{REQUIREMENTS.read_text()}\n{sys.version}\n{venv}".encode()).hexdigest()


def ensure_venv() -> None:
    """Makes build/venv, or makes it anew when the requirements, the interpreter or the folder have changed."""
    stamp = VENV / "made-from"
    wanted = made_from(VENV)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    run("making build/venv", [sys.executable, "-m", "venv", VENV], log="venv")
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    run("installing tools/requirements.txt", [*pip, "install", "--progress-bar=off", "-r", REQUIREMENTS], log="pip")
    [site_packages] = (VENV / "lib").glob("python3*/site-packages")
    (site_packages / "treadle-checkout.pth").write_text(f"{STAGED_PACKAGE}\n")
    stamp.write_text(wanted)


def shared_folder() -> pathlib.Path | None:
    """Models and case collections that are too large for the repository: $TREADLE_SHARED, or ../shared."""
    folder = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared"))
    return folder.resolve() if folder.is_dir() else None


def cpu_count() -> int:
    return len(os.sched_getaffinity(0))
