"""Models as C: every case that `write_c` takes is compiled and run, and gives the bits of the engine.

    compiled.py SHARED [--all] [--only TEXT] [--compilers gcc,clang-19] [--why]

The models of SHARED/models and the onnx package's backend cases, and with --all those of its older releases. Without
--all every tenth backend case is compiled. The engine runs with the kernels of AVX2, whose order of sums the C has.
--why lists the reasons for which cases are refused.
"""

import argparse
import collections
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("TREADLE_ISA", "avx2")

import backend_cases  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.numpy_helper  # noqa: E402
import treadle  # noqa: E402

WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Werror".split()
FLAGS = ["-std=c11", "-O1", "-march=haswell", "-ffp-contract=off", "-shared", "-fPIC", *WARNINGS]
MOST_FIXED = 64  # elements of an input that decides sizes


class Refused(Exception):
    """The model cannot be written as C, with the reason."""


def tensor_of(path: pathlib.Path):
    message = onnx.TensorProto()
    message.ParseFromString(path.read_bytes())
    return onnx.numpy_helper.to_array(message)


def feeds_of(folder: pathlib.Path, session) -> dict:
    names = [i.name for i in session.get_inputs()]
    files = sorted(folder.glob("test_data_set_0/input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    feeds = {}
    for name, path, info in zip(names, files, session.get_inputs(), strict=False):
        if not info.type.startswith("tensor(") or info.type == "tensor(string)":
            raise Refused(f"an input is {info.type}")
        feeds[name] = tensor_of(path)
    return feeds


def dims_of(session, feeds: dict, fixed: dict) -> list[str]:
    options = []
    for info in session.get_inputs():
        if info.name in fixed or info.name not in feeds:
            continue
        for axis, size in enumerate(info.shape):
            if not isinstance(size, int):
                options.append(f"dim={info.name}:{axis}={feeds[info.name].shape[axis]}")
    return options


def written(session, feeds: dict, options: list[str]):
    """The source, the header, and the inputs whose values became part of it."""

    def is_short(value) -> bool:
        return value.size <= MOST_FIXED and value.ndim <= 1

    # As few inputs as suffice: none, then integers, then scales as well.
    attempts = [
        {},
        {n: v for n, v in feeds.items() if (v.dtype.kind in "iub" and is_short(v)) or v.size == 1},
        {n: v for n, v in feeds.items() if (v.dtype.kind in "iubf" and is_short(v)) or v.size == 1},
    ]
    refusal = None
    for fixed in attempts:
        if refusal is not None and not fixed:
            continue
        try:
            return (*session._engine.write_c(options + dims_of(session, feeds, fixed), fixed), fixed)
        except treadle.NotImplemented as refused:
            refusal = refused
            if "only when it runs" not in str(refused) and "its result" not in str(refused):
                raise
    raise refusal


def fields_of(header: str, kind: str) -> list[str]:
    """The names of a structure's members, in order, beside the names in the model."""
    body = re.search(r"typedef struct \w+_" + kind + r" \{(.*?)\n\}", header, re.DOTALL).group(1)
    return re.findall(r"\*\w+; /\* \"(.*?)\": ", body)


def held(array: np.ndarray) -> np.ndarray:
    """The array as C holds it: numpy keeps the low bits of int4 and int2, C their sign as well."""
    return array.astype(np.int8) if array.dtype.name in ("int4", "int2") else array


def run_compiled(library: pathlib.Path, header: str, prefix: str, feeds: dict, expected: list) -> list:
    code = ctypes.CDLL(str(library))
    run = getattr(code, f"{prefix}_run")
    names = fields_of(header, "inputs")
    arrays = [np.ascontiguousarray(held(feeds[n])) for n in names]
    results = [np.zeros_like(held(e), order="C") for e in expected]
    size = int(re.search(r"_SCRATCH_BYTES (\d+)", header).group(1))
    scratch = np.full(size + 64, 0xA5, np.uint8)
    start = (-scratch.ctypes.data) % 64
    inputs = (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])
    outputs = (ctypes.c_void_p * max(1, len(results)))(*[r.ctypes.data for r in results])
    status = run(inputs, outputs, ctypes.c_void_p(scratch.ctypes.data + start))
    if status != 0:
        raise AssertionError(f"the run returned {status}")
    return results


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def difference(got: np.ndarray, wanted: np.ndarray) -> str:
    wanted = held(wanted)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    width = wanted.dtype.itemsize
    other = (bits(got).reshape(-1, width) != bits(wanted).reshape(-1, width)).any(axis=1)
    if wanted.dtype.kind == "f":  # NaNs are alike
        other &= ~(np.isnan(got.reshape(-1)) & np.isnan(wanted.reshape(-1)))
    at = np.flatnonzero(other)
    if at.size == 0:
        return ""
    i = int(at[0])
    return f"{at.size} of {other.size} elements, first {i}: {got.reshape(-1)[i]} instead of {wanted.reshape(-1)[i]}"


def check(folder: pathlib.Path, compilers: list[str], options: list[str]) -> tuple[str, str]:
    """The verdict on one case, and its reason."""
    try:
        session_options = treadle.SessionOptions()
        session_options.intra_op_num_threads = 1
        session_options.add_session_config_entry("treadle.jit", "off")
        session = treadle.InferenceSession(str(folder / "model.onnx"), session_options)
        feeds = feeds_of(folder, session)
        expected = session.run(None, feeds)
        if not all(isinstance(e, np.ndarray) for e in expected):
            raise Refused("an output is no tensor")
    except Refused as e:
        return "refused", str(e)
    except Exception as e:  # the engine's own matter
        return "skipped", f"{type(e).__name__}: {e}"
    try:
        source, header, fixed = written(session, feeds, ["prefix=model", *options])
    except treadle.NotImplemented as e:
        return "refused", str(e)
    except Exception as e:
        return "failed", f"write_c: {type(e).__name__}: {e}"
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        (place / "model.c").write_text(source)
        (place / "model.h").write_text(header)
        for compiler in compilers:
            library = place / f"{compiler}.so"
            made = subprocess.run(
                [compiler, *FLAGS, place / "model.c", "-o", library, "-lm"], capture_output=True, text=True, check=False
            )
            if made.returncode != 0:
                return "failed", f"{compiler}: {made.stderr[:1500]}"
            # In a process of its own: a fault of the code must not end the others.
            child = os.fork()
            if child == 0:
                try:
                    got = run_compiled(
                        library, header, "model", {n: v for n, v in feeds.items() if n not in fixed}, expected
                    )
                    wrong = [f"output {i}: {d}" for i, d in enumerate(map(difference, got, expected)) if d]
                    (place / "wrong").write_text("; ".join(wrong))
                    os._exit(0)
                except BaseException as e:
                    (place / "wrong").write_text(f"{type(e).__name__}: {e}")
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            if status != 0:
                return "failed", f"{compiler}: the code ended by signal {status & 127}"
            wrong = (place / "wrong").read_text()
            if wrong:
                return "failed", f"{compiler}: {wrong}"
    return "passed", ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--compilers", default="gcc")
    parser.add_argument("--options", default="libm=1")
    asked = parser.parse_args()
    backend_cases.WORK.mkdir(parents=True, exist_ok=True)
    conformance = asked.shared / "conformance"
    exported = backend_cases.exported_cases(conformance)
    cases = sorted(p.parent for p in exported.rglob("model.onnx"))
    if not asked.all and not asked.only:
        cases = cases[::10]
    cases += sorted(p.parent for p in (asked.shared / "models").rglob("model.onnx"))
    cases = [c for c in cases if re.search(asked.only, str(c))]
    counts = collections.Counter()
    reasons = collections.Counter()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        n = len(cases)
        verdicts = pool.map(check, cases, [asked.compilers.split(",")] * n, [asked.options.split()] * n, chunksize=4)
        for case, (verdict, why) in zip(cases, verdicts, strict=True):
            counts[verdict] += 1
            if verdict == "failed":
                print(f"{case}: {why}", flush=True)
            if verdict in ("refused", "skipped") and asked.why:
                lines = why.splitlines()
                found = {re.sub(r"^.*\((\w+)-\d+\)", r"\1", line.strip()) for line in lines[1:]} or {
                    f"{verdict}: {why[:90]}"
                }
                for line in found:
                    reasons[line] += 1
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['refused'] + counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
