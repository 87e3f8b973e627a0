"""Test suites of packages that write ONNX models, run on onnxruntime and on treadle in its place.

A suite's environment is made from tools/requirements-exporters-NAME.txt. Its tests are those of the package's source
distribution, or a file of this folder where the distribution has none. `differences.toml` lists, per suite, the tests
that pass on onnxruntime alone, each with its reason.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tomllib
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).parents[3]
HERE = pathlib.Path(__file__).parent
DIFFERENCES = HERE / "differences.toml"


@dataclasses.dataclass(frozen=True)
class Suite:
    """`tests`: files and folders in the source distribution, or in this folder if there is no `source`."""

    name: str
    tests: tuple[str, ...]
    source: str = ""  # the package whose source distribution has the tests
    folder: str = ""  # of the distribution, where its tests are run
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    options: tuple[str, ...] = ()
    seconds: int = 1200


TF_TESTS = ("loops", "cond", "lstm", "gru", "custom_rnncell", "stacked_lstm", "lstmblock", "grublock", "string_ops")
SUITES = {
    suite.name: suite
    for suite in (
        Suite("spox", ("tests",), source="spox", options=("-n", "2")),
        Suite("onnxscript", ("onnxscript_loops.py",)),
        Suite(
            "skl2onnx",
            ("tests",),
            source="skl2onnx",
            # scikit-learn's threads and those of two workers get in each other's way: three times as slow.
            environment={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            # In these two, scikit-learn takes more than a minute each before a model is made.
            options=("-n", "2", "--timeout", "120", "-k", "not test_x_issue_789"),
        ),
        Suite(
            "tf2onnx",
            tuple(f"test_{name}.py" for name in TF_TESTS),
            source="tf2onnx",
            folder="tests",
            environment={"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
            options=("-c", os.devnull, "--rootdir", "."),
        ),
        Suite("jax2onnx", ("jax_cases.py",)),
    )
}


def requirements(suite: Suite) -> pathlib.Path:
    return ROOT / "tools" / f"requirements-exporters-{suite.name}.txt"


def version(suite: Suite) -> str:
    """The version of `suite.source` that the requirements pin."""
    pinned = re.search(rf"^{suite.source}==(\S+)$", requirements(suite).read_text(), re.MULTILINE)
    assert pinned, f"{requirements(suite)} does not pin {suite.source}"
    return pinned[1]


def unpack(suite: Suite, python: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The unpacked source distribution, or this folder for a suite without one."""
    if not suite.source:
        return HERE
    wanted = f"{suite.source}=={version(suite)}"
    command = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", suite.source, "-d", folder, wanted]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    [archive] = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder)
    return folder / archive.name.removesuffix(".tar.gz")


def run(suite: Suite, python: pathlib.Path, source: pathlib.Path, engine: str, report: pathlib.Path) -> dict[str, str]:
    """Outcome (passed, failed, skipped) of each test under `engine`, "onnxruntime" or "treadle"; a log lies beside `report`."""
    start = ["-m", "treadle.as_onnxruntime", "-m", "pytest"] if engine == "treadle" else ["-m", "pytest"]
    command = [python, *start, "-q", "-p", "no:cacheprovider", "-W", "ignore", *suite.options]
    command += [f"--junitxml={report}", *suite.tests]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PYTHON"))}
    paths = [source] + ([ROOT / "build" / "python"] if engine == "treadle" else [])
    environment = inherited | suite.environment | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    with report.with_suffix(".log").open("w") as log:
        subprocess.run(
            command,
            cwd=source / suite.folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=suite.seconds,
            check=False,
        )
    return outcomes(report)


def outcomes(report: pathlib.Path) -> dict[str, str]:
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        outcome = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        elif case.find("skipped") is not None:
            outcome = "skipped"
        found[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return found


def lost(peer: dict[str, str], own: dict[str, str]) -> set[str]:
    """Tests that pass on onnxruntime and not on treadle."""
    return {name for name, outcome in peer.items() if outcome == "passed" and own.get(name) != "passed"}


def explained(suite: Suite) -> dict[str, str]:
    """Regular expressions of names of tests, and why tests with such names pass on onnxruntime alone."""
    return tomllib.loads(DIFFERENCES.read_text()).get(suite.name, {})


def counts(found: dict[str, str]) -> str:
    """`12 passed, 1 failed, 3 skipped`."""
    words = ("passed", "failed", "skipped")
    return ", ".join(f"{sum(outcome == word for outcome in found.values())} {word}" for word in words)


def unexplained(suite: Suite, names: set[str]) -> tuple[set[str], set[str]]:
    """Names without a reason, and reasons that no name needs."""
    reasons = explained(suite)
    used = {pattern for pattern in reasons if any(re.search(pattern, name) for name in names)}
    return {name for name in names if not any(re.search(pattern, name) for pattern in used)}, set(reasons) - used
