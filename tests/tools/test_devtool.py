"""./dev: how results are counted, and that a quiet command does not leave the terminal silent."""

import contextlib
import os
import pathlib
import pty
import re
import subprocess
import sys
import time
import types
import xml.etree.ElementTree
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "devtool"))

import console  # noqa: E402
import fuzzing  # noqa: E402
import releasing  # noqa: E402
import testing  # noqa: E402


def test_gtest_results_are_counted():
    cases = [
        {"status": "RUN", "result": "COMPLETED"},
        {"status": "RUN", "result": "COMPLETED", "failures": [{"failure": "no"}]},
        {"status": "RUN", "result": "SKIPPED"},
        {"status": "NOTRUN", "result": "SUPPRESSED"},
    ]
    tally = testing.gtest_tally({"testsuites": [{"testsuite": cases[:2]}, {"testsuite": cases[2:]}]})
    assert str(tally) == "1 passed, 1 failed, 1 skipped"


def test_pytest_results_are_counted():
    text = '<testsuites><testsuite tests="10" failures="2" errors="1" skipped="3"/></testsuites>'
    tally = testing.junit_tally(xml.etree.ElementTree.ElementTree(xml.etree.ElementTree.fromstring(text)))
    assert str(tally) == "4 passed, 3 failed, 3 skipped"


def test_a_suites_last_line_is_its_summary():
    assert testing.SUMMARY.findall("12 passed, 0 failed\nmore\n3 passed, 1 failed, 2 skipped\n")[-1] == ("3", "1", "2")
    assert testing.SUMMARY.findall("all 12 passed, 0 failed today\n") == []


def test_a_fuzzers_last_words_are_its_totals():
    log = """#61\tINITED cov: 9974 ft: 24300 corp: 52/23Kb exec/s: 0 rss: 74Mb
#20000\tREDUCE cov: 10130 ft: 24720 corp: 55/24Kb lim: 8192 exec/s: 0 rss: 75Mb L: 338/1386 MS: 1 Custom-
"""
    stopped = fuzzing.read_totals(fuzzing.Totals("model", 1.5), log)
    assert (stopped.executions, stopped.covered, stopped.features, stopped.corpus) == (20000, 10130, 24720, 55)
    ended = fuzzing.read_totals(stopped, log + "stat::number_of_executed_units: 20467\nstat::peak_rss_mb:  90\n")
    assert (ended.executions, ended.memory) == (20467, 90)
    assert "FOUND" not in str(ended)
    ended.finding = True
    assert str(ended).endswith("FOUND SOMETHING")


def test_every_case_gives_the_fuzzers_a_model():
    kept, cases = fuzzing.seeds("model")
    assert len(list(cases.iterdir())) == len(list((ROOT / "tests" / "cases").glob("*/*.txt")))
    assert all(path.read_text().lstrip().startswith(("<", "#")) for path in [*kept.iterdir(), *cases.iterdir()])
    assert set(fuzzing.targets()) > {"model", "text", "infer", "run"}
    assert "programs" in fuzzing.generators()


def test_a_quiet_command_is_spoken_for(capsys, monkeypatch):
    monkeypatch.setattr(console, "HEARTBEAT", 0.5)
    console.run("waiting", [sys.executable, "-c", "print('step 1'); import time; time.sleep(1.6)"], log="test-console")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "-- waiting"
    assert sum("step 1" in line for line in lines) >= 1
    assert lines[-1].startswith("   waiting: ")


def on_a_terminal(script):
    """The picture that a script of Python's draws on a terminal of 80 columns."""
    try:
        ours, theirs = pty.openpty()
    except OSError as problem:
        pytest.skip(f"this machine gives no terminal: {problem}")
    env = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT / "tools" / "devtool")}
    process = subprocess.Popen([sys.executable, "-c", script], stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # the other end was closed
        while data := os.read(ours, 65536):
            drawn += data
    os.close(ours)
    assert process.wait() == 0, drawn
    return drawn.decode()


def test_a_terminal_gets_a_bar():
    loop = "for i in 1 2 3 4; do echo step $i/4; sleep 0.4; done"
    drawn = on_a_terminal(f"import console; console.run('counting', ['sh', '-c', {loop!r}], log='test-console')")
    assert "\r   counting: 0:00 |############            |  50%, 0:00 left  step 2/4" in drawn
    assert all(len(line) < 80 for line in drawn.replace("\x1b[K", "").split("\r"))
    drawn = on_a_terminal("import console; console.run('waiting', ['sleep', '1'], log='test-console', seconds=1)")
    assert re.search(r"waiting: 0:00 \|#+ *\| +\d+%, 0:0\d left", drawn)


def test_a_failure_shows_the_end_of_the_log_and_raises(capsys):
    command = [sys.executable, "-c", "[print('line', i) for i in range(9)]; raise SystemExit(3)"]
    with pytest.raises(console.Failure):
        console.run("failing", command, log="test-console", tail=2)
    text = capsys.readouterr().out
    assert "line 8" in text
    assert "line 6" not in text
    assert "exit status 3" in text


def test_help_answers_at_once_and_an_unknown_command_is_an_error():
    start = time.monotonic()
    done = subprocess.run([ROOT / "dev", "--help"], capture_output=True, text=True, check=True)
    assert time.monotonic() - start < 5
    for command in ("setup", "run", "build", "test", "bench", "lint", "fmt", "fuzz", "train"):
        assert f"\n  {command} " in done.stdout
    done = subprocess.run([ROOT / "dev", "frobnicate"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "frobnicate" in done.stderr


def test_all_runs_every_configuration_and_sums_them_up(capsys, monkeypatch):
    seen = []

    def cpp_tests(preset, match=None, env=None, what=None):
        seen.append((preset, (env or {}).get("TREADLE_ISA")))
        return testing.Tally(passed=2)

    def python_tests(options, names=None, env=None, what="release", jobs=None):
        return testing.Tally(passed=1, failed=what == "asan")

    monkeypatch.setattr(testing, "build", lambda target, preset="release": None)
    monkeypatch.setattr(testing, "cpp_tests", cpp_tests)
    monkeypatch.setattr(testing, "allocation_faults", lambda preset: testing.Tally(passed=1))
    monkeypatch.setattr(testing, "python_tests", python_tests)
    monkeypatch.setattr(testing, "shared_folder", lambda: None)
    monkeypatch.setitem(testing.CONFIGURATIONS, "same-plans", lambda options: testing.Tally(passed=1))
    monkeypatch.setenv("TREADLE_TEST_LONG", "")  # it sets this
    options = types.SimpleNamespace(all=True, only=None, match=None)
    assert testing.test(options) == 1
    assert seen == [
        ("release", None),
        ("release", "baseline"),
        ("release", "avx2"),
        ("debug", None),
        ("asan", None),
        ("tsan", None),
    ]
    lines = capsys.readouterr().out.splitlines()
    configurations = ["release", "streamed", "baseline", "avx2", "debug", "asan", "tsan", "gcc"]
    configurations += ["same-plans", "tutorial", "platforms"]
    assert [line.split()[0] for line in lines[-12:-1]] == configurations
    assert lines[-7].startswith("asan       4 passed, 1 failed, 1 skipped, ")
    assert lines[-1].startswith("23 passed, 1 failed, ")
    seen.clear()
    assert testing.test(types.SimpleNamespace(all=False, only=["tsan", "avx2"], match=None)) == 0
    assert seen == [("release", "avx2"), ("tsan", None)]


def test_a_release_folder_lists_and_sums_all_that_is_in_it(tmp_path, monkeypatch):
    """The builders of the parts are replaced: real ones take minutes (tests/packages)."""

    def written(path, data=b"x"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def made_wheel():
        path = tmp_path / "wheels" / "treadle-0.1.0-cp311-abi3-linux.whl"
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("treadle-0.1.0.dist-info/sboms/treadle.cdx.json", "{}")
        return [path]

    monkeypatch.setattr(releasing, "RELEASE", tmp_path / "out")
    monkeypatch.setattr(releasing, "ROOT", tmp_path)
    monkeypatch.setattr(releasing.wheels, "make_wheels", made_wheel)
    monkeypatch.setattr(releasing.wheels, "make_sources", lambda: written(tmp_path / "sdist" / "treadle-0.1.0.tar.gz"))
    monkeypatch.setattr(releasing.debs, "command_debs", lambda options: written(tmp_path / "debs" / "treadle.deb"))
    monkeypatch.setattr(releasing.debs, "DEBS", tmp_path / "debs")
    monkeypatch.setattr(
        releasing.documenting, "docs", lambda options: written(tmp_path / "docs" / "html" / "index.html")
    )
    monkeypatch.setattr(releasing.documenting, "DOCS", tmp_path / "docs")
    assert releasing.release(None) == 0
    out = tmp_path / "out"
    sums = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, capture_output=True, text=True, check=True).stdout
    names = {line.removesuffix(": OK") for line in sums.splitlines()}
    assert names == {"debs/treadle.deb", "treadle-0.1.0-cp311-abi3-linux.whl", "treadle-0.1.0-site.tar.gz",
                     "treadle-0.1.0.tar.gz", "treadle.cdx.json"}  # fmt: skip
    text = (out / "README.md").read_text()
    assert all(f"`{name}`" in text for name in names) and "{" not in text
    first = (out / "treadle-0.1.0-site.tar.gz").read_bytes()
    releasing.pack_site(out / "treadle-0.1.0-site.tar.gz")
    assert len(first) == (out / "treadle-0.1.0-site.tar.gz").stat().st_size
