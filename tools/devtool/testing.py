"""./dev test: the C++ tests, the Python tests and the suites, summed up in one line."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree

from building import build
from console import BUILD, ROOT, Failure, run, run_together, say
from environment import PYTHON, cpu_count, ensure_type_checkers, shared_folder

RESULTS = BUILD / "test"
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
# SIGBUS, by which a mapped file that was cut short makes itself felt, is the engine's to handle, and Python's.
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1:handle_sigbus=0",
    "TSAN_OPTIONS": f"handle_sigbus=0:suppressions={ROOT / 'tools' / 'tsan.supp'}",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
SHORT = {"TREADLE_TEST_LONG": ""}  # the long random runs are made once, by the release build
INSTRUCTION_SETS = ("baseline", "avx2")  # beside the widest, which every other run takes
OTHER_PRESETS = ("debug", "asan", "tsan")


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
    everything = options.all = bool(options.all or options.only)
    if everything:
        os.environ["TREADLE_TEST_LONG"] = "1"  # tests that draw at random draw more
    if shared := shared_folder():
        os.environ["TREADLE_SHARED"] = str(shared)
    wanted = options.only or (CONFIGURATIONS if everything else ["release"])
    configurations = {name: run_tests for name, run_tests in CONFIGURATIONS.items() if name in wanted}
    if "release" not in configurations:  # programs of pages run with it beside whatever build is tested
        build("dev_test")
    tally, lines = Tally(), [""]
    for name, run_tests in configurations.items():
        start = time.monotonic()
        found = run_tests(options)
        lines.append(f"{name:11}{found}, {time.monotonic() - start:.0f} s")
        tally += found
    say("\n".join(lines) if everything else "")
    say(str(tally))
    return 1 if tally.failed or not tally.passed else 0


def release(options) -> Tally:
    build("dev_test")
    tally = cpp_tests("release", options.match)
    if not options.match:
        tally += allocation_faults("release")
    tally += python_tests(options)
    if not options.match:
        tally += suites(options.all)
    return tally


def instruction_set(isa, options) -> Tally:
    """The release build with narrower vectors than the machine has."""
    env = {"TREADLE_ISA": isa, **SHORT}
    tally = cpp_tests("release", options.match, env, isa)
    tally += python_tests(options, ["tests/python", "tests/equations"], env, isa)
    if not options.match:
        tally += suite("models", (), env, what=isa)
    return tally


def streamed(options) -> Tally:
    """Every case that can be, pushed in blocks; those that cannot are counted as skipped, with their reasons in the log."""
    return suite("streamed", ["--all"]) if not options.match else Tally()


def platforms(options) -> Tally:
    """Models as C on other processors and systems, by cross compilers and emulators; what is not there is skipped."""
    return suite("platforms", ["--all"]) if not options.match else Tally()


def tutorial(options) -> Tally:
    """Every step of docs/extending.md in a copy of the checkout, which is built anew, mostly from the compiler's cache."""
    return python_tests(options, ["tests/tools/tutorial.py"], what="tutorial", jobs=1)


def cpp_tests(preset, match=None, env=None, what=None) -> Tally:
    """The GoogleTest binary of a preset, split over the processors; `what` names the run where `env` makes it another."""
    folder = BUILD if preset == "release" else BUILD / preset
    binary = folder / "bin" / "treadle_tests"
    if not binary.exists():
        say(f"-- C++ tests ({preset}): there are none")
        return Tally()
    RESULTS.mkdir(parents=True, exist_ok=True)
    shards = cpu_count() if not match else 1
    name = what or preset
    results = [RESULTS / f"cpp-{name}.{i}.json" for i in range(shards)]
    commands, environments = [], []
    for i, result in enumerate(results):
        result.unlink(missing_ok=True)
        filters = [f"--gtest_filter=*{match}*"] if match else []
        commands.append([binary, "--gtest_brief=1", f"--gtest_output=json:{result}", *filters])
        sharding = {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(i)}
        environments.append({**SANITIZER_ENVIRONMENT, **sharding, **(env or {})})
    what = f"C++ tests ({name})"
    statuses = run_together(what, commands, log=f"test-{name}", env=environments, check=False, tail=200)
    tally = Tally()
    for result, status in zip(results, statuses, strict=True):
        counted = gtest_tally(json.loads(result.read_text())) if result.exists() else Tally()
        if status and not counted.failed:
            counted.failed += 1  # it died, or a sanitizer spoke up at the end
        tally += counted
    say(f"   {what}: {tally}")
    return tally


def allocation_faults(preset, env=None) -> Tally:
    """Every request for memory made to fail in turn (tests/allocation/); shows how many points each phase has."""
    folder = BUILD if preset == "release" else BUILD / preset
    log, what = f"test-allocation-{preset}", f"allocation faults ({preset})"
    status = run(what, [folder / "bin" / "treadle_allocation_tests"], log=log, env=env, check=False, tail=200)
    text = (BUILD / "log" / f"{log}.log").read_text(errors="replace")
    summaries = SUMMARY.findall(text)
    tally = Tally(*(int(number or 0) for number in summaries[-1])) if summaries else Tally()
    if (status or not summaries) and not tally.failed:
        tally.failed += 1
    table = text[text.rfind("\nphase ") + 1 :].splitlines()
    say("".join(f"   {line}\n" for line in table[:-1]) + f"   {what}: {tally}")
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


def python_tests(options, names=None, env=None, what="release", jobs=None) -> Tally:
    whole = not names and not options.match
    own = ["tests/tools", "tests/python", "tests/equations", "tests/onnx", "tests/cases", "tests/provider"]
    names = names or own + (["tests/dropin", "tests/packages", "tests/services"] if options.all else [])
    found = [name for name in names if name.endswith(".py") or list((ROOT / name).glob("**/test_*.py"))]
    if not found:
        return Tally()
    ensure_type_checkers()
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = RESULTS / f"python-{what}.xml"
    report.unlink(missing_ok=True)
    command = [PYTHON, "-m", "pytest", "-q", "--tb=short", "-n", jobs or cpu_count(), f"--junitxml={report}", *found]
    if options.match:
        command += ["-k", options.match]
    accept = (0, 5) if options.match else (0,)  # 5: nothing matched
    title = "Python tests" if what == "release" else f"Python tests ({what})"
    types = RESULTS / "types.txt"
    if whole:
        types.unlink(missing_ok=True)
        env = {**(env or {}), "TREADLE_TYPE_TABLE": str(types)}
    status = run(title, command, log=f"test-python-{what}", env=env, check=False, tail=200, accept=accept)
    tally = junit_tally(xml.etree.ElementTree.parse(report)) if report.exists() else Tally()
    if status not in accept and not tally.failed:
        tally.failed += 1
    say(f"   {title}: {tally}")
    if whole and types.exists():
        say("".join(f"   {line}\n" for line in types.read_text().splitlines()).rstrip())
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
    for script in sorted((ROOT / "tests" / "suites").glob("*.py")):
        if script.stem in CONFIGURATIONS:
            continue
        tally += suite(script.stem, ["--all"] if everything else [])
    return tally


def suite(name, arguments=(), env=None, what="release") -> Tally:
    log = f"suite-{name}-{what}"
    what = f"suite {name}" if what == "release" else f"suite {name} ({what})"
    shared = shared_folder()
    if shared is None:
        say(f"-- {what}: skipped, there is no ../shared beside the repository")
        return Tally(skipped=1)
    status = run(what, [PYTHON, ROOT / f"tests/suites/{name}.py", shared, *arguments], log=log, env=env, check=False)
    summaries = SUMMARY.findall((BUILD / "log" / f"{log}.log").read_text(errors="replace"))
    tally = Tally(*(int(number or 0) for number in summaries[-1])) if summaries else Tally()
    if (status or not summaries) and not tally.failed:
        tally.failed += 1
    say(f"   {what}: {tally}")
    return tally


def other_configuration(preset, options) -> Tally:
    """The same tests on another build: C++, the command-line tool with the models, and for asan the Python package.

    An extension under the address sanitizer is imported by preloading the sanitizer's runtime, which the tool, having one
    of its own, must not see. The thread sanitizer's runtime cannot be preloaded into Python: there the tool stands for it.
    What the debug build asserts, the asan build asserts as well, so the package is tested on the latter alone. Only the
    asan build has the kernels of every instruction set: races and assertions do not depend on how wide a vector is.
    """
    try:
        build("dev_test", preset)
    except Failure:
        return Tally(failed=1)
    tool = {**SHORT, **SANITIZER_ENVIRONMENT, "TREADLE_BIN_DIR": str(BUILD / preset / "bin")}
    tally = cpp_tests(preset, options.match)
    tally += python_tests(options, ["tests/python/test_cli.py"], tool, f"{preset}-tool")
    if not options.match:
        tally += suite("models", ["--all"] if preset == "asan" else [], tool, preset)
    if preset == "asan":
        package = {**SHORT, **SANITIZER_ENVIRONMENT, "PYTHONPATH": str(BUILD / preset / "python")}
        package |= {"TREADLE_TEST_SLOWNESS": "100"}  # tests of time allow for a build that takes so much longer
        package |= {"TREADLE_BIN_DIR": str(tool_by_itself(preset)), "LD_PRELOAD": sanitizer_runtime()}
        # Python itself leaks.
        package |= {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_sigbus=0"}
        files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "python").glob("test_*.py"))
        files = [file for file in files if not file.endswith("test_cli.py")]
        tally += python_tests(options, [*files, "tests/equations"], package, preset)
    return tally


def tool_by_itself(preset) -> pathlib.Path:
    """A folder with the tool as a script that calls it without what is preloaded into Python."""
    folder = BUILD / preset / "bin-by-itself"
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "treadle"
    script.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {BUILD / preset / "bin" / "treadle"} "$@"\n')
    script.chmod(0o755)
    return folder


def sanitizer_runtime() -> str:
    """What has to be there before Python starts; libstdc++ as well, whose exceptions the runtime looks for."""
    machine = os.uname().machine
    names = (f"libclang_rt.asan-{machine}.so", "libstdc++.so.6")
    found = [subprocess.check_output(["clang++-19", f"-print-file-name={name}"], text=True).strip() for name in names]
    return ":".join(found)


def compile_check(preset, options) -> Tally:
    try:
        build("dev_test", preset)
    except Failure:
        return Tally(failed=1)
    return Tally(passed=1)


def same_plans(options) -> Tally:
    """Two recordings of tools/same_plans.py are equal: what the engine makes of a model is not a matter of chance."""
    folders = [BUILD / "same-plans" / name for name in ("first", "second")]
    try:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
            run(f"recording plans ({folder.name})", [PYTHON, "tools/same_plans.py", "record", folder], log="same-plans")
        run("comparing plans", [PYTHON, "tools/same_plans.py", "compare", *folders], log="same-plans")
    except Failure:
        return Tally(failed=1)
    return Tally(passed=1)


# What --all runs, in this order.
CONFIGURATIONS = {
    "release": release,
    "streamed": streamed,
    **{isa: functools.partial(instruction_set, isa) for isa in INSTRUCTION_SETS},
    **{preset: functools.partial(other_configuration, preset) for preset in OTHER_PRESETS},
    "gcc": functools.partial(compile_check, "gcc"),
    "same-plans": same_plans,
    "tutorial": tutorial,
    "platforms": platforms,
}
