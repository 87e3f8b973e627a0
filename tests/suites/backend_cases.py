"""The onnx package's backend cases, those of its older releases, and a collection of small evaluated models.

    backend_cases.py SHARED [--all]

Cases are exported or unpacked once into build/suites/ and run through SHARED/conformance/run_cases.py, with --all in
every configuration of the engine. A case with an operator that treadle knows but does not run counts as skipped.
"""

import collections
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import onnx

ROOT = pathlib.Path(__file__).parents[2]
WORK = ROOT / "build" / "suites"
ENGINES = pathlib.Path(__file__).parent / "engines"
NOT_RUN = {"ImageDecoder"}

# Session options; the first as users have them who ask for nothing.
CONFIGURATIONS = {
    "as it comes": "",
    "reference": "tier=reference",
    "program": "jit=off threads=1",
    "native": "jit=always threads=1",
    "two threads": "jit=always threads=2",
}

# Cases that no engine has to pass, with the reason.
SKIPPED = {
    r"/history/v1\.[1-4]\.\d/test_thresholdedrelu\w*$": "experimental until version 10; that schema is gone",
    r"/node/test_training_dropout(_default)?(_mask)?$": "the mask is what numpy's generator draws for the seed",
    r"/test_bernoulli(_double|_seed)?(_expanded)?$": "expects what numpy's generator draws",
    r"/node/test_dft_inverse(_opset19)?$": "expects numpy's rounding residue, 1.9e-7, where the exact result is 0",
    r"/node/test_attention_4d_causal_fp16_expanded$": "expects sums rounded to float16 term by term; ours are in float32",
}


def operators(graph) -> set[str]:
    """The operator names of a graph and of every body in it."""
    names = {node.op_type for node in graph.node}
    for node in graph.node:
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs]:
                names |= operators(body)
    return names


def exported_cases(conformance: pathlib.Path) -> pathlib.Path:
    folder = WORK / f"onnx-{importlib.metadata.version('onnx')}"
    if not (folder / ".complete").exists():
        print(f"exporting to {folder.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-W", "ignore", conformance / "export_cases.py", folder], check=True)
        (folder / ".complete").touch()
    return folder


def unpacked_cases(archive: pathlib.Path) -> pathlib.Path:
    folder = WORK / archive.stem
    if not (folder / ".complete").exists():
        print(f"unpacking {archive.name}", flush=True)
        with tarfile.open(archive) as tar:
            tar.extractall(folder)  # the archive is ours
        (folder / ".complete").touch()
    return folder / archive.stem


def run_cases(conformance: pathlib.Path, cases: pathlib.Path, options: str) -> list[dict]:
    result = WORK / f"{cases.name}.json"
    command = [sys.executable, conformance / "run_cases.py", "--cases", cases, "--backend", "session:treadle_as_asked"]
    command += ["--jobs", str(len(os.sched_getaffinity(0))), "--out", result, "--verbose"]
    path = os.pathsep.join(filter(None, [str(ENGINES), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "TREADLE_SUITE_OPTIONS": options}
    result.unlink(missing_ok=True)
    subprocess.run(command, env=environment, check=False)
    return json.loads(result.read_text())


def verdict(record: dict) -> str:
    if record["status"] == "pass":
        return "passed"
    if record["status"] != "crash" and any(re.search(pattern, record["case"]) for pattern in SKIPPED):
        return "skipped"
    if record["status"] == "load_error" and record["msg"].startswith("NotImplemented:"):
        model = onnx.load(record["case"] + "/model.onnx", load_external_data=False)
        if operators(model.graph) & NOT_RUN:
            return "skipped"
    return "failed"


def main() -> int:
    conformance = pathlib.Path(sys.argv[1]) / "conformance"
    WORK.mkdir(parents=True, exist_ok=True)
    folders = [exported_cases(conformance)]
    folders += [unpacked_cases(conformance / f"{name}.tgz") for name in ("history", "refeval")]
    counts = collections.Counter()
    for name, options in CONFIGURATIONS.items() if "--all" in sys.argv else [*CONFIGURATIONS.items()][:1]:
        for folder in folders:
            for record in run_cases(conformance, folder, options):
                outcome = verdict(record)
                counts[outcome] += 1
                if outcome == "failed":
                    print(f"{name}: {record['status']}: {record['case']}: {record['msg'][:300]}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
