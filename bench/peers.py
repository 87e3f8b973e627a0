"""RTNeural and Neural Amp Modeler's core, compiled from checkouts of them and called through ctypes.

TREADLE_RTNEURAL and TREADLE_NAM name the checkouts; without them there are no such columns. RTNeural needs Eigen
(libeigen3-dev) or its submodule modules/xsimd, the core Eigen and its own copy of nlohmann/json.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import yardsticks

SOURCES = yardsticks.HERE / "native" / "peers"
BUILT = yardsticks.HERE.parent / "build" / "bench"
FLAGS = ["-std=c++20", "-O3", "-march=native", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]
EIGEN = pathlib.Path(os.environ.get("EIGEN_FOLDER", "/usr/include/eigen3"))


def checkout(variable: str) -> pathlib.Path | None:
    folder = os.environ.get(variable)
    if folder and not pathlib.Path(folder).is_dir():
        raise FileNotFoundError(f"{variable}: expected a folder, found {folder}")
    return pathlib.Path(folder).resolve() if folder else None


def built(name: str, arguments: list[str]) -> ctypes.CDLL:
    """Compiled again only when the compiler, the checkout's sources or ours have changed."""
    command = [yardsticks.compiler(), *FLAGS, *arguments]
    files = [pathlib.Path(a) for a in arguments if pathlib.Path(a).suffix in (".cc", ".cpp")]
    made_from = [" ".join(map(str, command)).encode(), *(path.read_bytes() for path in files)]
    target = BUILT / f"{name}-{hashlib.sha256(b''.join(made_from)).hexdigest()[:16]}.so"
    if not target.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        print(f"compiling {name}", flush=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*command, "-o", unfinished], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name} does not compile:\n{done.stderr[-3000:]}")
        unfinished.replace(target)
    library = ctypes.CDLL(str(target))
    library.peer_open.restype = ctypes.c_void_p
    return library


@functools.cache
def rtneural() -> dict[str, ctypes.CDLL]:
    """By back end; empty: there is no checkout."""
    folder = checkout("TREADLE_RTNEURAL")
    if not folder:
        return {}
    sources = [str(SOURCES / "rtneural.cc"), str(folder / "RTNeural" / "RTNeural.cpp")]
    common = ["-DRTNEURAL_NAMESPACE=RTNeural", f"-I{folder}", f"-I{folder / 'modules' / 'json'}", *sources]
    found = {}
    if EIGEN.is_dir():  # networks of 128 units are larger than what Eigen puts on the stack unasked
        eigen = ["-DRTNEURAL_USE_EIGEN=1", "-DRTNEURAL_DEFAULT_ALIGNMENT=32", "-DEIGEN_STACK_ALLOCATION_LIMIT=0"]
        found["Eigen"] = built("rtneural-eigen", [*eigen, f"-I{EIGEN}", *common])
    xsimd = folder / "modules" / "xsimd" / "include"
    if xsimd.is_dir():
        simd = ["-DRTNEURAL_USE_XSIMD=1", "-DRTNEURAL_DEFAULT_ALIGNMENT=64", f"-I{xsimd}"]
        found["xsimd"] = built("rtneural-xsimd", [*simd, *common])
    if not found:
        found["STL"] = built("rtneural-stl", ["-DRTNEURAL_USE_STL=1", "-DRTNEURAL_DEFAULT_ALIGNMENT=32", *common])
    return found


@functools.cache
def nam() -> ctypes.CDLL | None:
    folder = checkout("TREADLE_NAM")
    if not folder or not EIGEN.is_dir():
        return None
    sources = [SOURCES / "nam.cc", *sorted((folder / "NAM").rglob("*.cpp"))]
    options = ["-DNAM_SAMPLE_FLOAT", "-DNAM_ENABLE_A2_FAST"]
    folders = [folder, folder / "Dependencies" / "nlohmann", EIGEN]
    return built("nam", [*options, *(f"-I{f}" for f in folders), *map(str, sources)])


class Peer:
    """A network of a peer that processes one block again and again."""

    def __init__(self, library: ctypes.CDLL, net: int | None, signal: np.ndarray, outputs: int, held=()) -> None:
        if not net:
            raise ValueError("the peer has no such network")
        self._library, self._net, self._held = library, ctypes.c_void_p(net), held
        self._in = np.ascontiguousarray(signal, np.float32)
        self._out = np.zeros((len(signal), outputs), np.float32)

    def run(self, calls: int) -> None:
        frames, pointers = len(self._in), [ctypes.c_void_p(a.ctypes.data) for a in (self._in, self._out)]
        self._library.peer_process(self._net, ctypes.c_int64(calls), *pointers, ctypes.c_int64(frames))

    def result(self) -> np.ndarray:
        """[frames, channels] of the first block."""
        self.run(1)
        return self._out.copy()

    def __del__(self) -> None:
        if net := getattr(self, "_net", None):
            self._library.peer_close(net)


def rtneural_net(library: ctypes.CDLL, kind: str, units: int, weights, is_static: bool, signal: np.ndarray) -> Peer:
    held = [np.ascontiguousarray(w, np.float32) for w in weights]
    pointers = (ctypes.c_void_p * len(held))(*(w.ctypes.data for w in held))
    net = library.peer_open(kind.encode(), ctypes.c_int64(units), ctypes.c_int64(is_static), pointers)
    return Peer(library, net, signal, units, held)


def nam_net(library: ctypes.CDLL, text: str, signal: np.ndarray) -> Peer:
    with tempfile.NamedTemporaryFile("w", suffix=".nam") as file:
        file.write(text)
        file.flush()
        net = library.peer_open(file.name.encode(), ctypes.c_int64(len(signal)))
    return Peer(library, net, signal, 1)
