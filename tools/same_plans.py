#!/usr/bin/env python3
"""Records what the engine makes of models, so that a refactoring can show that it changed nothing.

    build/venv/bin/python tools/same_plans.py record FOLDER [--match TEXT] [--code] [--group GROUP ...]
    build/venv/bin/python tools/same_plans.py compare BEFORE AFTER

`record` plans and runs the cases of tests/cases, the real models of ../shared and the models of the benchmarks, for each
instruction set that this machine and this build have. It writes a file for each model: the plan of the program tier, the
plan of the native tier with a digest of its LLVM code (with --code the code itself), a digest of the results of both.
A plan names the kernels that the engine chose. `compare` prints each file that differs with its first lines that do, and
exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
ISAS = ("baseline", "avx2", "avx512")
SEED = 1  # of what operators draw

sys.path.append(str(ROOT / "bench"))

from corpus import GROUPS  # noqa: E402


@contextlib.contextmanager
def standard_error() -> Iterator[list[str]]:
    """What is written to file descriptor 2 meanwhile, also by code that is not Python."""
    found: list[str] = []
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            found.append(file.read().decode(errors="replace"))


def digest(values: object) -> str:
    """The digest of the bits of arrays, lists and texts."""
    found = hashlib.sha256()

    def add(value: object) -> None:
        if isinstance(value, list | tuple):
            found.update(f"[{len(value)}".encode())
            for each in value:
                add(each)
        elif hasattr(value, "dtype") and value.dtype != object:
            found.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        else:
            found.update(repr(value.tolist() if hasattr(value, "tolist") else value).encode())

    add(values)
    return found.hexdigest()[:16]


def results_of(session, feeds: dict) -> str:
    try:
        return digest(session.run(None, feeds))
    except Exception as problem:  # cases expect some
        return f"{type(problem).__name__}: {problem}"


def plan_of(session, feeds: dict) -> str:
    try:
        return session.dump_plan(feeds)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"


def tier(data: bytes, runs: list[dict], jit: str, keep_code: bool) -> str:
    """What one tier makes of the runs of a model, as text."""
    import treadle

    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("treadle.jit", jit)
    options.add_session_config_entry("treadle.jit_cache", "off")
    treadle.set_seed(SEED)
    try:
        session = treadle.InferenceSession(data, options)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}\n"
    lines = []
    for feeds in runs:
        with standard_error() as written:
            results = results_of(session, feeds)
        code = written[0]
        lines += [plan_of(session, feeds), f"results {results}"]
        if jit != "off":
            lines.append(code if keep_code else f"code {digest(code)}")
    return "\n".join(lines) + "\n"


def file_name(name: str) -> str:
    return re.sub(r"[^\w.,=-]+", "_", name) + ".txt"


def record_here(options) -> None:
    """In this process, which TREADLE_ISA has told the instruction set."""
    sys.path.insert(0, str(ROOT / "build/python"))
    isa = os.environ["TREADLE_ISA"]
    for group in options.group:
        folder = options.folder / isa / group
        folder.mkdir(parents=True, exist_ok=True)
        for name, data, runs in GROUPS[group]():
            if options.match not in name:
                continue
            text = "".join(
                f"== {jit}\n{tier(data, runs, jit, options.code)}"
                for jit in ("off", "always")
            )  # fmt: skip
            (folder / file_name(name)).write_text(text)


def record(options) -> None:
    """A process for each instruction set, one behind the other: two would share memory and caches."""
    for isa in options.isa:
        env = os.environ | {"TREADLE_ISA": isa, "TREADLE_JIT_DUMP": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, *sys.argv[1:], "--here"]
        subprocess.run(command, env=env, check=True)
        count = sum(1 for _ in (options.folder / isa).rglob("*.txt"))
        print(f"{isa}: {count} models")


def compare(options) -> int:
    def names(folder: pathlib.Path) -> set[str]:
        return {str(path.relative_to(folder)) for path in folder.rglob("*.txt")}

    before, after = names(options.before), names(options.after)
    differing = 0
    for name in sorted(before | after):
        if name not in before or name not in after:
            print(f"{name}: only in {options.before if name in before else options.after}")
            differing += 1
            continue
        old, new = ((folder / name).read_text().splitlines() for folder in (options.before, options.after))
        if old != new:
            changes = [
                line for line in difflib.unified_diff(old, new, lineterm="", n=0) if not line.startswith(("---", "+++"))
            ]
            print(f"{name}:", *changes[: options.lines], sep="\n  ")
            differing += 1
    print(f"{len(before & after)} models compared, {differing} differ")
    return 1 if differing or not before & after else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("record")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--match", default="", metavar="TEXT", help="models whose name contains TEXT")
    command.add_argument("--group", nargs="+", choices=GROUPS, default=list(GROUPS), help="of these (all)")
    command.add_argument("--isa", nargs="+", choices=ISAS, default=list(ISAS), help="instruction sets (all)")
    command.add_argument("--code", action="store_true", help="write native code, not a digest of it")
    command.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    command.set_defaults(call=lambda options: record_here(options) if options.here else record(options))
    command = commands.add_parser("compare")
    command.add_argument("before", type=pathlib.Path)
    command.add_argument("after", type=pathlib.Path)
    command.add_argument("--lines", type=int, default=6, help="of each difference (6)")
    command.set_defaults(call=compare)
    options = parser.parse_args()
    return options.call(options) or 0


if __name__ == "__main__":
    sys.exit(main())
