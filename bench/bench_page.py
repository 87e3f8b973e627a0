"""./dev bench --page: measures what README, docs/index.md, docs/comparison.md and docs/benchmarks.md show, on this machine,
into docs/measurements.json, and writes the charts and tables of these pages from it (tools/site/measured.py).

Each part has a process of its own. --only NAME measures these parts again and leaves the other figures as they are;
--continue measures the parts that the last call, which ended early, did not come to.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import bench_engines
import environment
import onnxruntime
import treadle

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "page"  # the figures of each part that this call, or the call that it continues, has measured
sys.path.append(str(ROOT / "tools" / "site"))

import measured  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Part:
    """One call of bench.py. `isa` limits treadle and native code to an instruction set; its kinds then bear its name."""

    kind: str
    arguments: tuple[str, ...] = ()
    isa: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.isa}" if self.isa else self.kind


PARTS = (
    Part("loops", ("--rounds", "5")),
    Part("rnn"),
    Part("recurrent", ("--rounds", "5")),
    Part("recurrent", ("--rounds", "5"), isa="avx2"),
    Part("models"),
    Part("networks", ("--seconds", "0.25")),
    Part("operators"),
    Part("functions", ("--rounds", "5")),
    Part("searches", ("--rounds", "5")),
    Part("pools"),
    Part("table"),
    Part("growth"),
    Part("realtime"),
    Part("jitter"),
    Part("compiled"),
    Part("gallery"),
    Part("provider"),
    Part("engines"),
)


def measure(part: Part) -> dict[str, dict]:
    """The figures of a part, by kind, kept in build/page. jax comes from the environment of the other engines."""
    result = kept(part)
    others = [str(path) for path in (ROOT / "build" / "venv-engines" / "lib").glob("python3*/site-packages")]
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), *(others if part.kind == "loops" else [])]))
    env = os.environ | {"PYTHONPATH": path} | ({"TREADLE_ISA": part.isa} if part.isa else {})
    command = [sys.executable, ROOT / "bench" / "bench.py", part.kind, *part.arguments, "--json", result]
    subprocess.run(command, env=env, check=True)
    return figures_of(part)


def kept(part: Part) -> pathlib.Path:
    return KEPT / f"{part.name.replace(', ', '-')}.json"


def figures_of(part: Part) -> dict[str, dict]:
    found = json.loads(kept(part).read_text())
    return {f"{kind}, {part.isa}" if part.isa else kind: rows for kind, rows in found.items()}


def first_match(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else "unknown"


def cache_sizes() -> list[str]:
    """Of one core, data and unified ones, from the first level on."""
    folders = sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    return [(f / "size").read_text().strip() for f in folders if (f / "type").read_text().strip() != "Instruction"]


def is_quiet() -> bool:
    """Whether the last minutes left a processor for each thread that is measured."""
    return os.getloadavg()[1] < len(os.sched_getaffinity(0)) / 2


def machine(quiet: bool) -> dict:
    processor = pathlib.Path("/proc/cpuinfo").read_text()
    flags = first_match(r"^flags\s*:(.*)$", processor).split()
    sets = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "VNNI"}
    memory = int(first_match(r"^MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text()))
    return {
        "processor": first_match(r"^model name\s*:(.*)$", processor),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_sets": [name for flag, name in sets.items() if flag in flags],
        "caches": cache_sizes(),
        "memory_gib": round(memory / 2**20),
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "quiet": quiet,
    }


def versions() -> dict[str, str]:
    found = {"treadle": treadle.__version__, "onnxruntime": onnxruntime.__version__}
    found["python"] = platform.python_version()
    found["numpy"] = importlib.metadata.version("numpy")
    for name, python in bench_engines.interpreters().items():
        package = bench_engines.ENGINES[name][1]
        found.setdefault(package, bench_engines.version(python, package))
    found["jax"] = bench_engines.version(ROOT / "build" / "venv-engines" / "bin" / "python", "jax")
    clang = subprocess.run(["clang++-19", "--version"], capture_output=True, text=True, check=True).stdout
    found["clang"] = first_match(r"version (\S+)", clang)
    return {name: text.partition("+")[0] for name, text in sorted(found.items()) if text}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench --page", description=__doc__)
    parser.add_argument("--page", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", choices=[part.name for part in PARTS], metavar="NAME")
    parser.add_argument("--continue", action="store_true", dest="resumed", help="go on where a call ended early")
    parser.add_argument("--no-measuring", action="store_true", help="write the pages from the figures that are there")
    options = parser.parse_args()
    if not options.no_measuring:
        quiet = is_quiet()
        record = measured.load() if options.only else {}
        environment.make_venv(ROOT / "build" / "venv-engines", bench_engines.REQUIREMENTS)
        figures = record.get("figures", {})
        if not options.resumed:
            shutil.rmtree(KEPT, ignore_errors=True)
        KEPT.mkdir(exist_ok=True)
        for part in PARTS:
            if not options.only or part.name in options.only:
                figures |= figures_of(part) if kept(part).exists() else measure(part)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        whole = {"machine": machine(quiet), "date": today, "versions": versions(), "figures": figures}
        measured.save(whole)
    for path in measured.write_pages():
        print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
