"""Damaged files of every kind that treadle reads: bytes flipped, removed and doubled in the first 64 KB, files cut short.

    mutations.py [--count N] [--seed S] [--kinds KIND,...] [--keep DIR] [MODEL.onnx ...]

| kind | what is damaged, and what has to happen |
| --- | --- |
| binary | models, those of random_programs/ or those given: refused, or loaded and run |
| text | the same models as ONNX text, bytes and words: refused, or loaded and run |
| ort | models in onnxruntime's own format, which onnxruntime writes: bytes, and offsets; refused, or loaded and run |
| inputs | .npy, .npz, .pb and WAV files given to the command line: refused (status 1 or 2), or run |
| snapshots | saved streams: refused, with the stream as it was, or loaded, and the stream can be pushed |
| cache | native code kept for later processes: never believed, the result is that of undamaged code |

What is loaded is run within limits of time, iterations and memory, in a process of its own: a crash, a hang, more memory than
MOST_MEMORY, an exception that is none of treadle's and one that calls itself internal are findings. Exit status 1 when
there was any.
"""

from __future__ import annotations

import argparse
import functools
import io
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import wave

import numpy as np
import treadle
from random_programs.blocks import OPSETS
from random_programs.generator import make_program

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
RUN_MEMORY = 256 << 20
# Beside what Python takes: a run at its limit, and what loading takes, which is bounded.
MOST_MEMORY = 512 << 20
if "LD_PRELOAD" in os.environ:
    MOST_MEMORY += 1 << 30  # a sanitizer keeps what was freed
FRONT = 64 << 10
SECONDS = 20  # after which a model hangs
REFUSALS = (
    treadle.Fail, treadle.InvalidArgument, treadle.InvalidGraph, treadle.InvalidProtobuf, treadle.LimitExceeded,
    treadle.NoSuchFile, treadle.NotImplemented, treadle.RuntimeException, ValueError,
)  # fmt: skip


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """One change or a few."""
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        at = int(rng.integers(min(len(changed), FRONT) or 1))
        kind = rng.integers(20)
        if not changed:
            break
        if kind < 12:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind < 15:
            changed[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
        elif kind < 17:
            del changed[at : at + int(rng.integers(1, 9))]
        elif kind < 19:
            changed[at:at] = changed[at : at + int(rng.integers(1, 17))]
        else:
            del changed[int(rng.integers(len(changed))) :]
    return bytes(changed)


def inputs_for(session: treadle.InferenceSession, rng: np.random.Generator) -> dict:
    """Arrays for what the damaged model asks for, as far as that is known; unknown sizes are small."""
    feeds = {}
    for info in session.get_inputs():
        shape = [size if isinstance(size, int) else int(rng.integers(0, 4)) for size in info.shape]
        if np.prod([float(size) for size in shape]) > 1e6:
            continue
        kind = info.type[len("tensor(") : -1] if info.type.startswith("tensor(") else ""
        dtype = {"float": "f4", "double": "f8", "float16": "f2", "bool": "?"}.get(kind, kind)
        if kind == "string":
            feeds[info.name] = np.full(shape, "text", object)
        elif kind:
            try:
                feeds[info.name] = rng.integers(0, 3, shape).astype(dtype)
            except TypeError:
                continue
    return feeds


def run_limits() -> treadle.RunOptions:
    limits = treadle.RunOptions()
    limits.time_limit, limits.iteration_limit, limits.memory_limit = 2.0, 10_000, RUN_MEMORY
    return limits


def load_and_run(model: str | bytes, seed: int, tier: str) -> str:
    """What happened, in a word; raises what is a finding."""
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.tier", tier)
    try:
        session = treadle.InferenceSession(model, options)
    except REFUSALS as problem:
        return refused(problem)
    try:
        session.run(None, inputs_for(session, np.random.default_rng(seed)), run_limits())
    except REFUSALS as problem:
        return "loaded, " + refused(problem)
    return "ran"


def refused(problem: Exception) -> str:
    if getattr(problem, "code", "") == "internal":
        raise problem
    return "refused"


def in_child(work) -> tuple[str, str]:
    """(what `work` returned, or "" and what went wrong)."""
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.close(read)
        try:
            answer = "+" + work()
        except BaseException as problem:
            answer = f"-{type(problem).__name__}: {problem}"
        os.write(write, answer.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read().decode(errors="replace")
    _, status, used = os.wait4(child, 0)
    if status:
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {status}"
        return "", f"{answer} {name}" + (f": still at it after {SECONDS} s" if name == "SIGALRM" else "")
    if used.ru_maxrss << 10 > MOST_MEMORY + inherited:
        return "", f"took {used.ru_maxrss >> 10} MB of memory ({answer})"
    return (answer[1:], "") if answer.startswith("+") else ("", answer[1:])


# ---- Kinds: what is damaged, by its number, and what is done with it in a process of its own


def damage_text(text: bytes, rng: np.random.Generator) -> bytes:
    """Words exchanged, doubled and left out, or bytes damaged."""
    if rng.integers(3) == 0:
        return damage(text, rng)
    words = re.findall(rb"\s+|\w+|[^\s\w]", text)
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        if not words:
            break
        at, other = (int(rng.integers(len(words))) for _ in range(2))
        kind = rng.integers(5)
        if kind == 0:
            words[at], words[other] = words[other], words[at]
        elif kind == 1:
            words[at] = words[other]
        elif kind == 2:
            del words[at : at + int(rng.integers(1, 6))]
        elif kind == 3:
            words[at:at] = words[other : other + int(rng.integers(1, 12))]
        else:
            words[at] = rng.choice([b"-1", b"9223372036854775807", b"0", b"1e999", b"nan", b'""', b"<", b"}", b"["])
    return b"".join(words)


def program(seed: int) -> bytes:
    return make_program(seed, OPSETS[seed % len(OPSETS)])[0].SerializeToString()


def binary(data: bytes, seed: int, rng: np.random.Generator, folder: pathlib.Path) -> str:
    (folder / "model.onnx").write_bytes(damage(data, rng))
    return load_and_run(str(folder / "model.onnx"), seed, str(rng.choice(["reference", "program"])))


def text(data: bytes, seed: int, rng: np.random.Generator, folder: pathlib.Path) -> str:
    damaged = damage_text(treadle.to_text(data).encode(), rng)
    (folder / "model.onnxtxt").write_bytes(damaged)
    return load_and_run(damaged, seed, str(rng.choice(["reference", "program"])))


WRITE_ORT_FILES = """
import pathlib, sys, onnxruntime
for path in map(pathlib.Path, sys.argv[1:]):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(path.with_suffix(".ort"))
    options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception:  # some programs are none for onnxruntime
        path.with_suffix(".ort").unlink(missing_ok=True)
"""


@functools.cache
def ort_files() -> list[bytes]:
    """Written by a process of its own, since processes are forked off this one; none without onnxruntime."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{seed}.onnx" for seed in range(12)]
        for seed, path in enumerate(paths):
            path.write_bytes(program(seed))
        subprocess.run([sys.executable, "-c", WRITE_ORT_FILES, *paths], capture_output=True, timeout=300, check=False)
        return [path.read_bytes() for path in sorted(pathlib.Path(folder).glob("*.ort"))]


def damage_offsets(data: bytes, rng: np.random.Generator) -> bytes:
    """Words of four bytes, as offsets, lengths and counts are, become others of the file or near ones."""
    words = np.frombuffer(data[: len(data) // 4 * 4], "<u4").copy()
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        at, other = (int(rng.integers(2, len(words))) for _ in range(2))
        near = (int(words[at]) + 4 * int(rng.integers(1, 5))) % 2**32
        edges = [words[other], near, 0, 1, len(data), len(data) - 4 * at, 2**31 - 1, 2**31, 2**32 - 1]
        words[at] = rng.choice(np.array(edges, "u4"))
    return words.tobytes() + data[words.nbytes :]


def ort(data: bytes, seed: int, rng: np.random.Generator, folder: pathlib.Path) -> str:
    if not ort_files():
        return "no file"
    whole = ort_files()[int(rng.integers(len(ort_files())))]
    damaged = damage(whole, rng) if rng.integers(3) == 0 else damage_offsets(whole, rng)
    (folder / "model.ort").write_bytes(damaged)
    return load_and_run(str(folder / "model.ort"), seed, str(rng.choice(["reference", "program"])))


@functools.cache
def input_files() -> list[tuple[str, bytes]]:
    """(how the name ends, contents) of what the command line reads."""
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    files = []
    for array in (x, x.astype(np.float16), np.asfortranarray(x), np.arange(5), np.array(2.5), x[:0]):
        stream = io.BytesIO()
        np.save(stream, array)
        files.append(("npy", stream.getvalue()))
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, x=x)
        files.append(("npz", stream.getvalue()))
    # TensorProto: sizes, float, values as raw bytes.
    files.append(("pb", b"\x08\x04\x08\x06\x10\x01\x4a\x60" + x.tobytes()))
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes((1000 * x).astype(np.int16).tobytes())
    files.append(("wav", stream.getvalue()))
    return files


def inputs(data: bytes, seed: int, rng: np.random.Generator, folder: pathlib.Path) -> str:
    kind, data = input_files()[int(rng.integers(len(input_files())))]
    element = rng.choice(["float", "float", "int64", "string"])
    model = f'<ir_version: 10, opset_import: ["" : 21]>\ng ({element}[N] x) => (y) {{ y = Identity(x) }}\n'
    (folder / "model.onnxtxt").write_text(model)
    (folder / f"x.{kind}").write_bytes(damage(data, rng))
    command = [TOOL, "run", folder / "model.onnxtxt", f"x={folder}/x.{kind}", "--out", folder / "y.npy"]
    ran = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    if ran.returncode not in (0, 1, 2) or used > MOST_MEMORY:
        raise AssertionError(f"{kind}: status {ran.returncode}, {used >> 20} MB: {ran.stderr.decode()[-300:]}")
    return "ran" if ran.returncode == 0 else "refused"


STREAMED = (
    """g (float[1,3,T] x) => (float[1,2,U] y) <float[2,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}> {
      y = Conv<kernel_shape=[3], pads=[1,1]>(x, w) }""",
    """g (float[T,4] x, float[4] s0) => (float[4] s, float[T,4] ys) {
      s, ys = Scan<num_scan_inputs=1, body = b (float[4] a, float[4] v) => (float[4] n, float[4] o) {
        n = Add(a, v) o = Tanh(n) }>(s0, x) }""",
)


@functools.cache
def streams() -> list:
    """Streams in the middle of a signal, with how they are pushed on."""
    made = []
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.jit", "off")
    head = '<ir_version: 10, opset_import: ["" : 21]>\n'
    for source, settings, block in (
        (STREAMED[0], {"time": {"x": 2}}, np.ones((1, 3, 5), np.float32)),
        (STREAMED[1], {"time": {"x": 0}}, np.ones((5, 4), np.float32)),
    ):
        session = treadle.InferenceSession((head + source).encode(), options)
        stream = session.stream(**settings)
        stream.push(x=block)
        made.append((stream, block))
    return made


def snapshots(data: bytes, seed: int, rng: np.random.Generator, folder: pathlib.Path) -> str:
    stream, block = streams()[int(rng.integers(len(streams())))]
    before = stream.save()
    damaged = damage(before, rng)
    (folder / "snapshot").write_bytes(damaged)
    try:
        stream.load(damaged)
    except REFUSALS as problem:
        if stream.save() != before:
            raise AssertionError("a snapshot was refused, but the stream has changed") from problem
        return refused(problem)
    try:
        stream.push(x=block, run_options=run_limits())
    except REFUSALS as problem:
        return "loaded, " + refused(problem)
    return "ran"


LOOP = b"""<ir_version: 10, opset_import: ["" : 21]>
g (float[8] x) => (y) { n = Constant<value_int=50>() y = Loop(n, , x) <body = b (int64 i, bool c, float[8] s)
  => (bool d, float[8] o) { d = Identity(c) a = Sin(s) o = Add(a, x) }> }"""


def run_native(folder: pathlib.Path) -> np.ndarray:
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.jit", "always")
    options.add_session_config_entry("treadle.jit_cache", str(folder))
    return treadle.InferenceSession(LOOP, options).run(None, {"x": np.arange(8, dtype=np.float32)})[0]


@functools.cache
def kept_code() -> tuple[str, bytes, bytes]:
    """Name and contents of a file of native code, and what the loop gives."""
    with tempfile.TemporaryDirectory() as folder:
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, run_native(pathlib.Path(folder)).tobytes())
            os._exit(0)
        os.wait()
        [file] = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
        return str(file.relative_to(folder)), file.read_bytes(), os.read(read, 4096)


def cache(data: bytes, seed: int, rng: np.random.Generator, folder: pathlib.Path) -> str:
    name, contents, expected = kept_code()
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    file.write_bytes(damage(contents, rng))
    file.chmod(0o600)
    if run_native(folder).tobytes() != expected:
        raise AssertionError("damaged code was run")
    return "ran"


KINDS = {work.__name__: work for work in (binary, text, ort, inputs, snapshots, cache)}


def check(data: bytes, seed: int, keep: pathlib.Path | None = None, kind: str = "binary") -> tuple[str, str]:
    """(what happened, what was found) for one damaged file; `data`: the model, where one is damaged."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        makes = {"snapshots": streams, "cache": kept_code, "ort": ort_files}
        if kind in makes:
            makes[kind]()  # once, before processes are
        outcome, found = in_child(lambda: KINDS[kind](data, seed, np.random.default_rng(seed), folder))
        if found and keep:
            shutil.copytree(folder, keep / f"{kind}-{seed}", dirs_exist_ok=True)
    return outcome, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, nargs="*")
    parser.add_argument("--count", type=int, default=500, help="in all, the kinds in turn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    counts: dict[str, int] = {}
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        kind = kinds[seed % len(kinds)]
        source, data = "", b""
        if kind in ("binary", "text"):
            if arguments.models:
                path = arguments.models[seed // len(kinds) % len(arguments.models)]
                source, data = str(path), path.read_bytes()
            else:
                source, data = f"opset {OPSETS[seed % len(OPSETS)]}", program(seed)
        outcome, found = check(data, seed, arguments.keep, kind)
        outcome = f"{kind} {outcome or 'FOUND'}"
        counts[outcome] = counts.get(outcome, 0) + 1
        if found:
            print(f"{kind} {seed}, {source}: {found[:400]}", flush=True)
    wrong = sum(count for outcome, count in counts.items() if outcome.endswith("FOUND"))
    print("\n".join(f"{outcome}: {count}" for outcome, count in sorted(counts.items())))
    print(f"{arguments.count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
