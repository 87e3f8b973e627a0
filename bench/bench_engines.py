"""How many models each engine that is installed runs with the right results: the backend cases of the onnx package, and
the real models of SHARED/models (a folder beside the repository, or $TREADLE_SHARED).

SHARED/conformance runs the cases, in processes that may crash. Engines other than treadle are those of build/venv and of
build/venv-engines, which this makes (tools/requirements-engines.txt).
"""

from __future__ import annotations

import collections
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import onnx
import record
from bench_real import CONTROL_FLOW

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tools" / "devtool"), str(ROOT / "tests" / "suites")]
import backend_cases  # noqa: E402
import environment  # noqa: E402

WORK = ROOT / "build" / "suites"
REQUIREMENTS = ROOT / "tools" / "requirements-engines.txt"
SECONDS = 60  # that a case may take
# By name in tables: the name that run_cases.py has, and the package whose version counts.
ENGINES = {
    "treadle": ("session:treadle", "treadle"),
    "onnxruntime": ("ort", "onnxruntime"),
    "OpenVINO": ("openvino", "openvino"),
    "tract": ("tract", "tract"),
    "onnx reference evaluator": ("ref", "onnx"),
}


def interpreters() -> dict[str, pathlib.Path]:
    """By the engine's name; treadle is imported by this interpreter alone."""
    venv = ROOT / "build" / "venv-engines"
    environment.make_venv(venv, REQUIREMENTS)
    return {name: pathlib.Path(sys.executable) if name == "treadle" else venv / "bin" / "python" for name in ENGINES}


def version(python: pathlib.Path, package: str) -> str:
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    if package == "treadle":
        asked = "import treadle; print(treadle.__version__)"
    found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def run_cases(python: pathlib.Path, backend: str, cases: pathlib.Path, tolerance: str) -> set[str]:
    """The names of the cases that give the expected results."""
    result = WORK / f"engines-{cases.name}-{backend.rpartition(':')[2]}.json"
    command = [
        sys.executable,
        environment.shared_folder() / "conformance" / "run_cases.py",
        "--cases",
        cases,
        "--backend",
        backend,
    ]
    command += ["--python", python, "--jobs", str(len(os.sched_getaffinity(0))), "--timeout", str(SECONDS)]
    command += ["--out", result, "--atol", tolerance]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    return {case["case"] for case in json.loads(result.read_text()) if case["status"] == "pass"}


def real_collections() -> dict[str, set[str]]:
    """The real models, and parts of them by what they hold."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    for path in sorted((environment.shared_folder() / "models").glob("*/model.onnx")):
        inside = backend_cases.operators(onnx.load(path, load_external_data=False).graph)
        case = str(path.parent)
        found["real models"].add(case)
        if inside & CONTROL_FLOW:
            found["with control flow"].add(case)
        if "Loop" in inside:
            found["with Loop"].add(case)
    return found


def bench_engines(options) -> None:
    if environment.shared_folder() is None:
        print("engines: no folder ../shared beside the repository, and no $TREADLE_SHARED\n")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    cases = backend_cases.exported_cases(environment.shared_folder() / "conformance")
    collections_ = real_collections()
    pythons = interpreters()
    onnx_version = importlib.metadata.version("onnx")
    print(f"| engine | backend cases of onnx {onnx_version} | {' | '.join(collections_)} |")
    print(f"| --- | --- |{' --- |' * len(collections_)}")
    for name, (backend, package) in ENGINES.items():
        known = version(pythons[name], package)
        if not known:
            continue
        every = len(list(cases.glob("*/*/model.onnx")))
        counts = {"backend cases": [len(run_cases(pythons[name], backend, cases, "0")), every]}
        ran = run_cases(pythons[name], backend, environment.shared_folder() / "models", "1e-3")
        counts |= {title: [len(ran & members), len(members)] for title, members in collections_.items()}
        record.keep("engines", name, version=known, counts=counts)
        print(f"| {name} {known} | {' | '.join(f'{a} of {b}' for a, b in counts.values())} |", flush=True)
    print()
