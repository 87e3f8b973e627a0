"""./dev test: the C++ tests, the Python tests and the suites, summed up in one line."""

import dataclasses
import json
import os
import re
import xml.etree.ElementTree

from building import build
from console import BUILD, ROOT, Failure, run, run_together, say
from environment import PYTHON, cpu_count, shared_folder

RESULTS = BUILD / "test"
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@dataclasses.dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        return self

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def test(options) -> int:
    if options.all:
        os.environ["TREADLE_TEST_LONG"] = "1"  # tests that draw at random draw more
    if shared := shared_folder():
        os.environ["TREADLE_SHARED"] = str(shared)
    build("dev_test")
    tally = Tally()
    tally += cpp_tests("release", options.match)
    tally += python_tests(options)
    if not options.match:
        tally += suites(options.all)
    if options.all:
        for preset in ("debug", "asan", "tsan"):
            tally += other_configuration(preset, options.match)
        tally += compile_check("gcc")
    say("")
    say(str(tally))
    return 1 if tally.failed or not tally.passed else 0


def cpp_tests(preset, match=None) -> Tally:
    """The GoogleTest binary, split over the processors."""
    folder = BUILD if preset == "release" else BUILD / preset
    binary = folder / "bin" / "treadle_tests"
    if not binary.exists():
        say(f"-- C++ tests ({preset}): there are none")
        return Tally()
    RESULTS.mkdir(parents=True, exist_ok=True)
    shards = cpu_count() if not match else 1
    results = [RESULTS / f"cpp-{preset}.{i}.json" for i in range(shards)]
    commands, environments = [], []
    for i, result in enumerate(results):
        result.unlink(missing_ok=True)
        filters = [f"--gtest_filter=*{match}*"] if match else []
        commands.append([binary, "--gtest_brief=1", f"--gtest_output=json:{result}", *filters])
        sharding = {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(i)}
        environments.append({**SANITIZER_ENVIRONMENT, **sharding})
    what = f"C++ tests ({preset})"
    statuses = run_together(what, commands, log=f"test-{preset}", env=environments, check=False, tail=200)
    tally = Tally()
    for result, status in zip(results, statuses, strict=True):
        counted = gtest_tally(json.loads(result.read_text())) if result.exists() else Tally()
        if status and not counted.failed:
            counted.failed += 1  # it died, or a sanitizer spoke up at the end
        tally += counted
    say(f"   {what}: {tally}")
    return tally


def gtest_tally(report) -> Tally:
    tally = Tally()
    for suite in report["testsuites"]:
        for case in suite["testsuite"]:
            if case["status"] != "RUN":
                continue
            if case.get("failures"):
                tally.failed += 1
            elif case["result"] == "SKIPPED":
                tally.skipped += 1
            else:
                tally.passed += 1
    return tally


def python_tests(options) -> Tally:
    names = ["tests/tools", "tests/python", "tests/reference", "tests/onnx"] + (["tests/dropin"] if options.all else [])
    folders = [name for name in names if list((ROOT / name).glob("**/test_*.py"))]
    if not folders:
        return Tally()
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = RESULTS / "python.xml"
    report.unlink(missing_ok=True)
    command = [PYTHON, "-m", "pytest", "-q", "--tb=short", "-n", cpu_count(), f"--junitxml={report}", *folders]
    if options.match:
        command += ["-k", options.match]
    accept = (0, 5) if options.match else (0,)  # 5: nothing matched
    status = run("Python tests", command, log="test-python", check=False, tail=200, accept=accept)
    tally = junit_tally(xml.etree.ElementTree.parse(report)) if report.exists() else Tally()
    if status not in accept and not tally.failed:
        tally.failed += 1
    say(f"   Python tests: {tally}")
    return tally


def junit_tally(report) -> Tally:
    tally = Tally()
    for suite in report.iter("testsuite"):
        count = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        failed = count["failures"] + count["errors"]
        tally += Tally(count["tests"] - failed - count["skipped"], failed, count["skipped"])
    return tally


def suites(everything) -> Tally:
    """tests/suites/NAME.py SHARED [--all], each a script that ends with a line 'N passed, N failed[, N skipped]'."""
    tally = Tally()
    shared = shared_folder()
    for script in sorted((ROOT / "tests" / "suites").glob("*.py")):
        if shared is None:
            say(f"-- suite {script.stem}: skipped, there is no ../shared beside the repository")
            tally.skipped += 1
            continue
        command = [PYTHON, script, shared] + (["--all"] if everything else [])
        status = run(f"suite {script.stem}", command, log=f"suite-{script.stem}", check=False)
        log = (BUILD / "log" / f"suite-{script.stem}.log").read_text(errors="replace")
        summaries = SUMMARY.findall(log)
        counted = Tally(*(int(number or 0) for number in summaries[-1])) if summaries else Tally()
        if (status or not summaries) and not counted.failed:
            counted.failed += 1
        say(f"   suite {script.stem}: {counted}")
        tally += counted
    return tally


def other_configuration(preset, match) -> Tally:
    try:
        build("dev_test", preset)
    except Failure:
        return Tally(failed=1)
    return cpp_tests(preset, match)


def compile_check(preset) -> Tally:
    try:
        build("dev_test", preset)
    except Failure:
        return Tally(failed=1)
    return Tally(passed=1)
