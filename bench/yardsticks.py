"""The hand-written loops of native/loops, compiled into one shared object and called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "native" / "loops"
FLAGS = ["-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared"]


def compiler() -> str:
    for name in (os.environ.get("CXX"), "clang++-19", "clang++"):
        if name and shutil.which(name):
            return name
    raise RuntimeError("the hand-written loops need clang++; CXX may name it")


@functools.cache
def library() -> ctypes.CDLL:
    """Compiled again only when the sources, the compiler or the machine have changed."""
    command = [compiler(), *FLAGS]
    made_from = [subprocess.run([*command, "-###", "-xc++", "-c", "/dev/null"], capture_output=True).stderr]
    made_from += [path.read_bytes() for path in sorted(SOURCES.iterdir())]
    folder = HERE.parent / "build" / "bench"
    target = folder / f"yardsticks-{hashlib.sha256(b''.join(made_from)).hexdigest()[:16]}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, "-o", unfinished, *sorted(SOURCES.glob("*.cc"))], check=True)
        unfinished.replace(target)
    return ctypes.CDLL(str(target))


def bind(name: str, sizes: tuple[int, ...], arrays: list[np.ndarray], outputs: list[np.ndarray]):
    """A call of the yardstick `name` that fills and returns `outputs`."""
    function = getattr(library(), name)
    function.restype = None
    held = [np.ascontiguousarray(a) for a in arrays]
    arguments = [ctypes.c_int64(s) for s in sizes] + [ctypes.c_void_p(a.ctypes.data) for a in [*held, *outputs]]

    def run() -> list[np.ndarray]:
        function(*arguments)
        return outputs

    run.held = held
    return run


def number(name: str, *arguments, result=ctypes.c_double) -> float:
    """A function of machine.cc that gives a number."""
    function = getattr(library(), name)
    function.restype = result
    return function(
        *[ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in arguments]
    )
