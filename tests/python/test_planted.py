"""bench/planted.py: what is planted is where it says; `treadle.compare` and the search for NaN find it."""

import pathlib
import sys

import numpy as np
import pytest
import treadle

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="benchmarks run it beside treadle")
# Tests beside this one import another module named models, in the same process.
hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "models"}
try:
    planted = __import__("planted")
    looking = __import__("bench_looking")
finally:
    for name in [name for name in sys.modules if name.split(".")[0] == "models"]:
        del sys.modules[name]
    sys.modules.update(hidden)

# A Scan with two states in a Loop; its inner body has a branch.
TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[3] h, float[4, 3] x) => (float[3] last) <int64 twice = {2}, bool yes = {1}, float[3] zeros = {0, 0, 0}> {
  last = Loop (twice, yes, h) <body = outer (int64 i, bool go, float[3] s) => (bool go, float[3] t) {
    t, c = Scan <num_scan_inputs = 1, body = inner (float[3] u, float[3] k, float[3] e) => (float[3] v, float[3] l) {
      d = Add (u, e)
      v = Identity (d)
      l = Add (k, e)
    }> (s, zeros, x)
  }>
}"""
FEEDS = {"h": np.float32([0, 0.5, 1]), "x": np.float32(np.arange(12).reshape(4, 3) / 10)}


@pytest.mark.parametrize("value", ["/Loop.0:body/Scan.0:body/d", "/Loop.0:body/Scan.0:body/l"])
def test_one_element_of_one_iteration_changes(value):
    """The Scan counts its iterations: a second run of the Loop begins to count anew."""
    subject = planted.subject("", onnx.parser.parse_model(TEXT), FEEDS)
    place = planted.Place(value, (1, 2), 1)
    changed = planted.plant(subject.model, place, planted.adding(np.float32, 1.0))
    onnx.checker.check_model(changed, full_check=True)
    made = []
    for model in (subject.model, changed):
        handed = planted.exposed(model.SerializeToString(), FEEDS, [value])
        made.append(planted.Rows(handed.values[0], planted.run_plainly(handed.model, FEEDS)))
    before, after = made
    differ = {at: (after[at] - before[at]).tolist() for at in before.iterations() if (after[at] != before[at]).any()}
    assert min(differ) == (1, 2) and differ[1, 2] == pytest.approx([0, 1, 0], abs=1e-5)
    assert len(before.iterations()) == 8


def test_a_place_says_where_it_is():
    assert str(planted.Place("/Scan_1:body/q", (41,), 3)) == "/Scan_1:body/q, iteration 41, element 3"
    assert str(planted.Place("q", (), 3)) == "q, element 3"


def test_differences_in_random_programs_are_found():
    rows = [*planted.differences(real=0, programs=6)]
    assert [row for row in rows if not row.right] == [] and len(rows) == 6


def test_differences_in_real_models_are_found():
    rows = [*planted.differences(real=4, programs=0, seed=1)]
    assert [row for row in rows if not row.right] == []


def test_faults_in_random_programs_are_found_and_repeated_by_the_node_alone():
    rng = np.random.default_rng(3)
    plantings = []
    for subject in planted.random_subjects(20):
        if (planting := looking.planting(subject, rng)) is not None:
            plantings.append((planting.fault.name, str(planting.place), looking.problem_of(planting, subject.feeds)))
        if len(plantings) == 12:
            break
    assert [planting for planting in plantings if planting[2]] == []


def test_what_is_not_found_is_no_success(monkeypatch):
    """Nothing is planted, so nothing can be found."""
    subject = planted.subject("", onnx.parser.parse_model(TEXT), FEEDS)
    monkeypatch.setattr(planted, "plant", lambda model, place, change: model)
    row = planted.look_for(subject, planted.Place("/Loop.0:body/t", (1,), 1), np.float32)
    assert not row.right and row.found == "nothing"
    assert isinstance(treadle.compare(TEXT.encode(), FEEDS, "reference", runs=1), treadle.Comparison)
