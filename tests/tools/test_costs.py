"""Constants that say what elements, steps and words take: each stands in one of the headers that `./dev bench costs`
measures, and has a row there."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
HEADERS = ("kernels/costs.h", "ops/costs.h")
TIME = re.compile(r"\bconstexpr (?:double|float|auto) [^;(]*?\bk\w*Ns\b[^;]*;")

# Elsewhere: times that somebody has chosen, and costs that other benchmarks measure.
POLICIES = {
    "base/in_pieces.h": "kByteNs: what a byte takes that nobody has touched before, for threads that touch memory first",
    "base/stop.h": "how soon a run that is told to stop stops",
    "base/thread_pool.h": "how much work is worth a thread",
    "base/thread_pool.cc": "how much work is worth a thread that is awake",
    "kernels/gemm.h": "of the products that `treadle_bench gemm` measures",
    "kernels/isa/conv/windows.h": "of the convolutions that `treadle_bench conv` measures",
    "op/costs.h": "of the engine: the first table of `./dev bench costs`",
    "plan/program.h": "how often a run looks at its limits",
    "reference/folding.cc": "what the limits of loading count: they must not depend on the machine",
    "report/advice.cc": "what other engines take for a node beside its work",
    "report/loop_cost.cc": "the shortest measured time that is believed",
    "report/node_times.cc": "how long another process keeps a processor",
    "run/native.cc": "how long a look into a folder takes",
    "session/plan_cache.cc": "how short a run is that needs no look at limits",
}


def sources():
    return [path for pattern in ("*.h", "*.cc") for path in sorted(SRC.rglob(pattern))]


def test_times_of_elements_stand_in_the_headers_that_are_measured():
    found = {path.relative_to(SRC).as_posix() for path in sources() if TIME.search(path.read_text(encoding="utf-8"))}
    assert found == POLICIES.keys() | set(HEADERS)


def test_every_constant_is_used():
    code = {path: path.read_text(encoding="utf-8") for path in sources()}
    names = [name for header in HEADERS for name in re.findall(r"double (k\w+) =", code[SRC / header])]
    assert len(names) == len(set(names))
    used = {name for text in code.values() for name in re.findall(r"\bcosts::(k\w+)", text)}
    assert set(names) <= used


@pytest.fixture(scope="module")
def bench_costs():
    pytest.importorskip("treadle", reason="the Python package is not built")
    pytest.importorskip("onnxruntime", reason="benchmarks run it beside treadle")
    # Tests of tests/python import another module named models, in the same process.
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "models"}
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return __import__("bench_costs")
    finally:
        sys.path.remove(str(ROOT / "bench"))
        for name in [name for name in sys.modules if name.split(".")[0] == "models"]:
            del sys.modules[name]
        sys.modules.update(hidden)


def test_constants_and_rows_belong_together(bench_costs):
    constants = bench_costs.read_constants()
    lines = [
        line
        for header in HEADERS
        for line in (SRC / header).read_text(encoding="utf-8").splitlines()
        if line.startswith("inline")
    ]
    assert len(constants) == len(lines)  # each is read with the name of its row
    assert sorted(constant.row for constant in constants) == sorted(bench_costs.kernel_costs.ROWS)
    names = {constant.name for constant in constants}
    assert all(names >= row.beside.keys() for row in bench_costs.kernel_costs.ROWS.values())


def test_a_row_measures_what_a_unit_takes(bench_costs):
    ns = bench_costs.kernel_costs.ROWS["number read or printed"].ns({}, rounds=3, each=0.002)
    assert 10 < ns < 10_000


def test_constants_that_are_far_off_are_written(bench_costs, tmp_path, monkeypatch):
    header = tmp_path / "costs.h"
    text = 'inline constexpr double kNearNs = 2;   // "near"\ninline constexpr double kFarNs = 0.5;  // "far"\n'
    header.write_text(text)
    monkeypatch.setattr(bench_costs, "HEADERS", [header])
    bench_costs.write_constants({"kNearNs": 2.9, "kFarNs": 1.2345})
    assert header.read_text() == text.replace("= 0.5;", "= 1.2;")
