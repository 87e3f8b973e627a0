"""The Python environments in build/venv and build/venv-types, and where the suites' shared data is."""

import hashlib
import os
import pathlib
import shutil
import sys

from console import BUILD, ROOT, run

VENV = BUILD / "venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "tools" / "requirements.txt"
TYPE_CHECKERS = ROOT / "tools" / "requirements-types.txt"
STAGED_PACKAGE = BUILD / "python"  # cmake/Python.cmake puts the importable package here


def made_from(venv: pathlib.Path, requirements: pathlib.Path = REQUIREMENTS) -> str:
    """What the file 'made-from' in a venv says while the venv is what the requirements ask for."""
    return hashlib.sha256(f"{requirements.read_text()}\n{sys.version}\n{venv}".encode()).hexdigest()


def make_venv(venv: pathlib.Path, requirements: pathlib.Path) -> None:
    """Makes an environment, or makes it anew when the requirements, the interpreter or the folder have changed."""
    stamp = venv / "made-from"
    wanted = made_from(venv, requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(venv, ignore_errors=True)
    run(f"making build/{venv.name}", [sys.executable, "-m", "venv", venv], log="venv")
    pip = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    install = [*pip, "install", "--progress-bar=off", "-r", requirements]
    run(f"installing tools/{requirements.name}", install, log="pip")
    if venv == VENV:
        [site_packages] = (venv / "lib").glob("python3*/site-packages")
        (site_packages / "treadle-checkout.pth").write_text(f"{STAGED_PACKAGE}\n")
    stamp.write_text(wanted)


def ensure_venv() -> None:
    make_venv(VENV, REQUIREMENTS)


def ensure_type_checkers() -> None:
    make_venv(BUILD / "venv-types", TYPE_CHECKERS)


def shared_folder() -> pathlib.Path | None:
    """Models and case collections that are too large for the repository: $TREADLE_SHARED, or ../shared."""
    folder = pathlib.Path(os.environ.get("TREADLE_SHARED", ROOT.parent / "shared"))
    return folder.resolve() if folder.is_dir() else None


def cpu_count() -> int:
    return len(os.sched_getaffinity(0))
