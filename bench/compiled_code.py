"""Models as C by `write_c` and by emx-onnx-cgen, compiled and called through ctypes.

emx-onnx-cgen has an environment of its own (tools/requirements-emx.txt, build/venv-emx).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
import treadle
import yardsticks

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools" / "devtool"))
import environment  # noqa: E402

REQUIREMENTS = ROOT / "tools" / "requirements-emx.txt"
COMPILERS = ("gcc", "clang-19")
SECONDS = 120  # that a writer or a compiler may take
# Of treadle's kernels and of the C: TREADLE_ISA=avx2 limits both.
PROCESSOR = {"avx2": "haswell", "baseline": "x86-64"}.get(os.environ.get("TREADLE_ISA", ""), "native")


class Refused(Exception):
    """A model cannot be written or compiled, with the reason."""


def folder() -> pathlib.Path:
    place = ROOT / "build" / "bench" / "compiled"
    place.mkdir(parents=True, exist_ok=True)
    return place


def finished(command: list, what: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired as slow:
        raise Refused(f"{what} takes more than {SECONDS} s") from slow
    if done.returncode:
        raise Refused(f"{what}: {(done.stdout + done.stderr).strip().splitlines()[-1][:200]}")
    return done.stdout


def compiled(source: str, compiler: str, flags: tuple[str, ...], name: str) -> pathlib.Path:
    """A shared object, made again only when the source, the compiler or the flags have changed. Its object file lies
    beside it."""
    command = [compiler, "-O3", f"-march={PROCESSOR}", *flags, "-fPIC"]
    host = finished([*command, "-###", "-xc", "-c", "/dev/null"], compiler)
    key = hashlib.sha256("\0".join([" ".join(command), host, source]).encode()).hexdigest()[:16]
    made = folder() / f"{name}-{compiler}-{key}.so"
    if not made.exists():
        text = made.with_suffix(".c")
        text.write_text(source, encoding="utf-8")
        finished([*command, "-c", text, "-o", made.with_suffix(".o")], compiler)
        finished([compiler, "-shared", made.with_suffix(".o"), "-o", made, "-lm"], compiler)
        text.unlink()
    return made


def sizes(library: pathlib.Path) -> tuple[int, int]:
    """Bytes of code and of data in the object file."""
    sections = re.findall(
        r"^\.(\w+)\S*\s+(\d+)", finished(["size", "-A", library.with_suffix(".o")], "size"), re.MULTILINE
    )
    total = lambda names: sum(int(n) for name, n in sections if name in names)  # noqa: E731
    return total({"text"}), total({"rodata", "data", "bss"})


def stack_of(*call) -> int:
    measured = yardsticks.library().stack_of_call
    measured.restype = ctypes.c_int64
    return measured(*call)


class Code:
    """A compiled model and its arguments. `run(calls)`, `results()`; `code`, `data`, `working`: bytes; working memory is
    scratch and stack."""

    code: int
    data: int
    working: int

    def results(self) -> list[np.ndarray]:
        return self._results


class OurCode(Code):
    def __init__(self, written: tuple[str, str], name: str, compiler: str, feeds: dict, like: list[np.ndarray]) -> None:
        source, header = written
        # One text: the header goes where the source includes it.
        whole = source.replace('#include "model.h"\n', header)
        library = compiled(whole, compiler, ("-std=c11", "-ffp-contract=off"), name)
        self.code, self.data = sizes(library)
        self._library = ctypes.CDLL(str(library))
        names = self._inputs_of(header)
        held = [np.ascontiguousarray(feeds[n]) for n in names]
        self._results = [np.empty_like(a, order="C") for a in like]
        scratch_bytes = int(re.search(r"_SCRATCH_BYTES (\d+)", header)[1])
        scratch = np.zeros(scratch_bytes + 64, np.uint8)
        pointers = lambda arrays: (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))  # noqa: E731
        self._inputs, self._outputs = pointers(held), pointers(self._results)
        self._scratch = ctypes.c_void_p(scratch.ctypes.data + -scratch.ctypes.data % 64)
        self._held = held, scratch
        self.working = scratch_bytes + stack_of(self._function(), self._inputs, self._outputs, self._scratch)

    @staticmethod
    def _inputs_of(header: str) -> list[str]:
        """The model's names of the structure's members."""
        body = re.search(r"typedef struct model_inputs \{(.*?)\n\}", header, re.DOTALL)[1]
        return re.findall(r"\*\w+; /\* \"(.*?)\": ", body)

    def _function(self) -> ctypes.c_void_p:
        return ctypes.cast(self._library.model_run, ctypes.c_void_p)

    def run(self, calls: int = 1) -> None:
        repeat = yardsticks.library().run_model_repeatedly
        repeat.restype = ctypes.c_int64
        if error := repeat(ctypes.c_int64(calls), self._function(), self._inputs, self._outputs, self._scratch):
            raise RuntimeError(f"the code returned {error}")


def ours(model: bytes, feeds: dict[str, np.ndarray], fixed: tuple[str, ...]) -> tuple[str, str]:
    session = treadle.InferenceSession(model)
    dims = {}
    for info in session.get_inputs():
        open_axes = [k for k, size in enumerate(info.shape) if not isinstance(size, int)]
        if info.name not in fixed:
            dims |= {f"{info.name}:{k}": feeds[info.name].shape[k] for k in open_axes}
    try:
        return session.write_c(dims=dims, fixed={name: feeds[name] for name in fixed})
    except treadle.NotImplemented as refusal:
        reasons = sorted({line.strip() for line in str(refusal).splitlines()[1:]})
        raise Refused(f"{reasons[0]}{f', and {len(reasons) - 1} more' if len(reasons) > 1 else ''}") from refusal


@functools.cache
def emx() -> pathlib.Path:
    venv = ROOT / "build" / "venv-emx"
    environment.make_venv(venv, REQUIREMENTS)
    return venv / "bin" / "emx-onnx-cgen"


def with_sizes(model: bytes, feeds: dict[str, np.ndarray], results: list[np.ndarray]) -> bytes:
    """The model with the sizes of inputs and outputs, which it may leave open."""
    made = onnx.load_from_string(model)
    arrays = [*(feeds[value.name] for value in made.graph.input if value.name in feeds), *results]
    values = [*(value for value in made.graph.input if value.name in feeds), *made.graph.output]
    for value, array in zip(values, arrays, strict=True):
        element = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, element, array.shape))
    return made.SerializeToString()


def theirs(model: bytes, feeds: dict[str, np.ndarray], results: list[np.ndarray]) -> str:
    """The source by emx-onnx-cgen, weights in it and all memory on the stack, with a function `call` of all arrays."""
    place = folder() / "emx.onnx"
    place.write_bytes(with_sizes(model, feeds, results))
    options = ["--large-weight-threshold", "0", "--large-temp-threshold", "0", "--model-name", "model"]
    text = place.with_suffix(".c")
    finished([emx(), "compile", "--color", "never", *options, place, text], "emx-onnx-cgen")
    source = text.read_text()
    arguments = re.search(r"^void model\((.*)\) \{$", source, re.MULTILINE)[1]
    count = len(re.findall(r",(?![^\[]*\])", arguments)) + 1
    if re.match(r"int \w+", arguments):
        raise Refused("sizes stay arguments of the code")
    listed = ", ".join(f"arrays[{k}]" for k in range(count))
    return f"{source}\nvoid call(void **arrays);\nvoid call(void **arrays) {{ model({listed}); }}\n"


class TheirCode(Code):
    def __init__(self, source: str, name: str, compiler: str, feeds: dict, like: list[np.ndarray]) -> None:
        self._results = [np.empty_like(a, order="C") for a in like]
        held = [np.ascontiguousarray(a) for a in feeds.values()]
        arrays = [*held, *self._results]
        self._arrays = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        self._held = held
        flags = ("-std=gnu11", "-w")  # products and sums may be joined
        library = compiled(source, compiler, flags, name)
        self.code, self.data = sizes(library)
        self._library = ctypes.CDLL(str(library))
        self.working = stack_of(self._function(), self._arrays, None, None)

    def _function(self) -> ctypes.c_void_p:
        return ctypes.cast(self._library.call, ctypes.c_void_p)

    def run(self, calls: int = 1) -> None:
        yardsticks.library().run_arrays_repeatedly(ctypes.c_int64(calls), self._function(), self._arrays)
