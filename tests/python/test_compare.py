"""`treadle.compare` and `treadle compare`: which value of which iteration differs first, and what each engine says alone."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import treadle

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"

needs_tool = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
# In iteration 5 of the outer Scan the inner Loop, of three iterations, uses FACTOR.
NESTED = (
    HEAD
    + """g (float[3] h, float[n, 3] x) => (float[3] last, float[n, 3] all)
<int64 zero = {0}, int64 one = {1}, int64 five = {5}, int64 three = {3}, bool yes = {1}, float half = {0.5}> {
  count, last, all = Scan <num_scan_inputs = 1, body = b (int64 i, float[3] s, float[3] e) => (int64 j, float[3] t, float[3] r) {
    j = Add (i, one)
    is_five = Equal (i, five)
    factor = If (is_five) <then_branch = y () => (float f) { f = Constant <value_float: float = FACTOR> () },
                           else_branch = z () => (float k) { k = Identity (half) }>
    u = Loop (three, yes, s) <body = c (int64 m, bool go, float[3] v) => (bool go, float[3] w) {
      p = Mul (v, factor)
      w = Add (p, e)
    }>
    t = Tanh (u)
    r = Neg (t)
  }> (zero, h, x)
}"""
)
FEEDS = {"h": np.float32([0, 0.5, 1]), "x": np.float32(np.random.default_rng(0).normal(size=(9, 3)))}


def nested(factor: float = 0.5) -> bytes:
    return treadle.parse_model(NESTED.replace("FACTOR", str(factor)))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.onnx").write_bytes(nested())
    (tmp_path / "b.onnx").write_bytes(nested(0.6))
    np.savez(tmp_path / "feeds.npz", **FEEDS)
    return tmp_path


def tool(*words, status: int = 0, cwd=None, **environment) -> str:
    environment = os.environ | {"TREADLE_PYTHON": sys.executable} | environment
    done = subprocess.run(
        [TOOL, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cwd, env=environment
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status in (0, 1) and done.stdout else done.stderr


@pytest.mark.parametrize("other", ["onnxruntime", "reference"])
def test_engines_that_agree(other):
    if other == "onnxruntime":
        pytest.importorskip("onnxruntime")
    found = treadle.compare(nested(), FEEDS, other, runs=1, inner=True)
    assert found.agrees and found.first is None, str(found)
    assert [output.name for output in found.outputs] == ["last", "all"]
    assert found.left_out == {} and found.notes == []
    ours, theirs = found.costs
    assert (ours.engine, theirs.engine) == ("treadle", other)
    assert all(cost.seconds > 0 and cost.peak_bytes > 1 << 20 for cost in found.costs)
    assert f"treadle and {other} agree" in str(found)


@pytest.mark.parametrize("memory", [1, 1 << 28])
def test_the_first_value_that_differs(memory):
    """By groups of one value, too. Before the Loop the branch of the If has another constant, which no node makes."""
    found = treadle.compare(nested(), FEEDS, nested(0.6), runs=1, memory=memory)
    assert not found.agrees
    assert found.first.name == "/Scan_0:body/factor" and found.first.op == "If"
    assert found.first.iterations == (5,)
    assert found.first.where == "/Scan_0 body, iteration 5"
    assert found.first.difference.found == pytest.approx(0.5) and found.first.difference.expected == pytest.approx(0.6)
    watched = treadle.compare(nested(), FEEDS, nested(0.6), runs=1, memory=memory, watch=["p", "/*/w"])
    assert watched.first.name == "/Scan_0:body/Loop_3:body/p" and watched.first.iterations == (5, 0)
    assert watched.first.where == "/Scan_0 body, iteration 5, /Scan_0:body/Loop_3 body, iteration 0"
    assert watched.first.inputs["/Scan_0:body/factor"] == pytest.approx(0.1)
    assert watched.first.verdict == "only amplifies"


def test_drift_of_states():
    found = treadle.compare(nested(), FEEDS, nested(0.6), runs=1)
    marks = dict(found.drift["/Scan_0:body/t"])
    assert marks[0] == 0 and marks[5] > 1e-3 and marks[8] > 0
    assert set(found.drift) == {"/Scan_0:body/t"}


# The sine of the one is a hyperbolic tangent in the other; before that, a value is off by less than the tolerance.
LATE = HEAD + "g (float[2] x) => (float[2] y) { a = ADDED b = Mul (a, a) c = Identity (b) y = Mul (c, million) }"


def late(constant: str) -> bytes:
    text = LATE.replace("=> (float[2] y)", f"=> (float[2] y) <float million = {{1e6}}, float small = {{{constant}}}>")
    return treadle.parse_model(text.replace("ADDED", "Add (x, small)"))


def test_a_node_that_only_amplifies(tmp_path):
    feeds = {"x": np.float32([1, 2])}
    found = treadle.compare(late("1e-6"), feeds, late("5e-6"), runs=1, atol=1e-3, rtol=0, save=tmp_path / "saved")
    assert found.first.name == "y" and found.first.op == "Mul"
    assert found.first.verdict == "only amplifies" and 0 < found.first.inputs["c"] < 1e-3
    assert "only amplifies" in str(found)
    assert (tmp_path / "saved" / "model.onnx").exists()
    assert json.loads((tmp_path / "saved" / "meta.json").read_text()) == {"atol": 1e-3, "rtol": 0}


SINE = HEAD + "g (float[2] x) => (float[2] y) { a = Neg (x) y = SINE (a) }"


@needs_tool
def test_the_saved_node_repeats_the_difference(tmp_path):
    """The other engine is an onnxruntime that computes a sine in another way."""
    (tmp_path / "onnxruntime.py").write_text(
        "import numpy as np, treadle\n"
        "from treadle import GraphOptimizationLevel\n"
        "__version__ = '0.0'\n"
        "class SessionOptions: pass\n"
        "class InferenceSession(treadle.InferenceSession):\n"
        "    def __init__(self, model, options, providers): super().__init__(model)\n"
        "    def run(self, names, feeds):\n"
        "        model = treadle.to_text(self._model_bytes or self._model_path)\n"
        "        results = super().run(names, feeds)\n"
        "        names = [o.name for o in self.get_outputs()]\n"
        "        return [r + 1 if n == 'y' else r for n, r in zip(names, results)]\n"
    )
    (tmp_path / "m.onnx").write_bytes(treadle.parse_model(SINE.replace("SINE", "Sin")))
    words = ["compare", "m.onnx", "x=[1, 2]", "--save", "saved", "--runs", 1]
    said = tool(*words, status=1, cwd=tmp_path, PYTHONPATH=f"{os.environ.get('PYTHONPATH', '')}:{tmp_path}")
    assert "Sin /Sin_1 is off, its inputs are equal" in said
    assert "it computes differently; saved" not in said and "it computes differently" in said
    assert "y: largest 1 at [0]: -0.841 against 0.159" in said
    assert "0 passed, 1 failed" in tool("test", "saved", cwd=tmp_path, status=1)


def test_values_of_other_names_are_paired_by_operators():
    other = SINE.replace("SINE", "Cos").replace("a =", "b =").replace("(a)", "(b)")
    found = treadle.compare(
        treadle.parse_model(SINE.replace("SINE", "Sin")), {"x": np.float32([1, 2])}, treadle.parse_model(other)
    )
    assert found.first.name == "y" and found.left_out == {}
    assert found.first.why_not_alone == "the models compute it differently: Sin here, Cos in the other model"


def test_what_differs_inside_alone():
    """`a` changes its sign in the other model, and the square does not tell."""
    square = HEAD + "g (float[2] x) => (float[2] y) { a = OP (x) y = Mul (a, a) }"
    models = [treadle.parse_model(square.replace("OP", op)) for op in ("Neg", "Identity")]
    feeds = {"x": np.float32([1, 2])}
    assert treadle.compare(models[0], feeds, models[1], runs=1).agrees
    found = treadle.compare(models[0], feeds, models[1], runs=1, inner=True)
    assert not found.agrees and found.first.name == "a"
    assert "agree in the outputs, and differ inside" in str(found)


def test_loops_of_unlike_length():
    """The other model makes one iteration more."""
    text = HEAD + "g (int64 n, float h) => (float y) <bool yes = {1}, int64 more = {MORE}> { m = Add (n, more) "
    text += "y = Loop (m, yes, h) <body = b (int64 i, bool c, float s) => (bool c, float t) { t = Add (s, s) }> }"
    models = [treadle.parse_model(text.replace("MORE", more)) for more in "01"]
    found = treadle.compare(models[0], {"n": np.array(3), "h": np.float32(1)}, models[1], runs=1, watch=["t"])
    assert found.first.iterations == (3,)
    assert found.first.difference.problem == "only the other one runs this"


def test_a_refusal_is_told():
    pytest.importorskip("onnxruntime")
    newest = treadle.parse_model(
        '<ir_version: 10, opset_import: ["" : 29]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    found = treadle.compare(newest, {"x": np.float32([1, 2])}, runs=1)
    assert not found.agrees and found.refused.startswith("onnxruntime refuses the model: ")
    assert [cost.engine for cost in found.costs] == ["treadle"]


def test_a_crash_is_told(tmp_path, monkeypatch):
    (tmp_path / "onnxruntime.py").write_text("import os\nos.abort()\n")
    monkeypatch.setenv("PYTHONPATH", f"{os.environ.get('PYTHONPATH', '')}:{tmp_path}")
    found = treadle.compare(nested(), FEEDS, runs=1)
    assert found.refused.startswith("onnxruntime gives no result: its process was ended by SIGABRT")


def test_a_value_that_cannot_be_handed_out_is_listed():
    """A Scan carries no sequences, and the length of NonZero's result changes."""
    text = HEAD + "g (float h, float[n, 3] x) => (float last) { "
    text += "last = Scan <num_scan_inputs = 1, body = b (float s, float[3] e) => (float t) "
    text += (
        "{ k = NonZero (e) c = Cast <to = 1> (k) q = ReduceSum <keepdims = 0> (c) o = OP (q) t = Add (s, o) }> (h, x) }"
    )
    models = [treadle.parse_model(text.replace("OP", op)) for op in ("Neg", "Identity")]
    found = treadle.compare(models[0], {"h": np.float32(0), "x": FEEDS["x"]}, models[1], runs=1)
    assert found.first.name == "/Scan_0:body/o" and found.first.iterations == (0,)
    assert list(found.left_out) == ["/Scan_0:body/k", "/Scan_0:body/c"]
    assert "a Scan carries no sequences" in found.left_out["/Scan_0:body/c"]


@pytest.mark.parametrize("feeds, message", [([], "input_feed is a dict"), (None, "input_feed is a dict")])
def test_wrong_feeds(feeds, message):
    with pytest.raises(TypeError, match=message):
        treadle.compare(nested(), feeds)


@needs_tool
def test_the_command(folder):
    said = tool("compare", "a.onnx", "b.onnx", "feeds.npz", "--runs", 1, "--save", "saved", cwd=folder, status=1)
    assert said.startswith("result      the model and the other model differ\n")
    assert "first       /Scan_0 body, iteration 5: If /Scan_0:body/If_2 is off" in said
    found = json.loads(tool("compare", "a.onnx", "b.onnx", "feeds.npz", "--json", "--runs", 1, cwd=folder, status=1))
    assert found["first"]["iterations"] == [5] and found["agrees"] is False
    assert tool("compare", "a.onnx", "feeds.npz", "--with", "reference", "--runs", 1, cwd=folder).startswith(
        "result      treadle and reference agree\n"
    )
    piped = subprocess.run(
        [TOOL, "compare", "-", "--with", "reference", "--runs", "1", "--dim", "n=5"],
        input=nested(), capture_output=True, check=True, env=os.environ | {"TREADLE_PYTHON": sys.executable},
    )  # fmt: skip
    assert b"tensor(float)[5,3]" in piped.stderr


@needs_tool
@pytest.mark.parametrize(
    "words, message",
    [
        (["a.onnx", "--with", "other"], "--with other compares two models"),
        (
            ["a.onnx", "b.onnx", "--with", "reference"],
            "--with reference compares one model, and b.onnx is a second one",
        ),
        (["a.onnx", "--with", "tensorrt"], "tensorrt"),
        (["a.onnx", "--rtol", "-1"], "-1"),
        (["a.onnx", "--inner", "--outputs-only"], "--inner"),
    ],
)
def test_wrong_use(folder, words, message):
    assert message in tool("compare", *words, cwd=folder, status=2)


@needs_tool
def test_without_python(folder):
    words = ["compare", "a.onnx", "feeds.npz"]
    assert "'no-python' does not start" in tool(*words, cwd=folder, status=1, TREADLE_PYTHON="no-python")
    (folder / "bare").write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    (folder / "bare").chmod(0o755)
    said = tool(*words, cwd=folder, status=1, TREADLE_PYTHON=folder / "bare")
    assert "needs the Python package treadle, which" in said and "pip install treadle" in said


def test_a_weight_that_differs():
    """The second model has one other weight: it is named, and not only the node that reads it."""
    text = HEAD + "g (float[2] x) => (float[2] y, int64 i) <float[2,2] w = {1, 2, 3, WEIGHT}, float[2] b = {1, 1}> "
    text += "{ p = MatMul (x, w) y = Add (p, b) i = ArgMax <keepdims = 0> (y) }"
    models = [treadle.parse_model(text.replace("WEIGHT", weight)) for weight in ("4", "0.5")]
    found = treadle.compare(models[0], {"x": np.float32([1, 2])}, models[1], runs=1)
    assert found.first.op == "MatMul" and found.first.verdict == "has other constants"
    assert list(found.first.constants) == ["w"]
    apart = found.first.constants["w"]
    assert (apart.wrong, apart.at, apart.found, apart.expected) == (1, (1, 1), 4, 0.5)
    assert "constant w differs in 1 of 4 elements: largest 3.5 at [1, 1]: 4 against 0.5\n" in str(found)
    assert "largest 7 at [1]: 11 against 4 (1 of 2 beyond" in str(found)


def test_the_first_element_that_differs():
    """Beside the largest difference, which says little of tokens, stands the first one."""
    text = HEAD + "g (int64[4] x) => (int64[4] y) <int64[4] w = {0, 1, 9, 0}> { y = OP (x, w) }"
    models = [treadle.parse_model(text.replace("OP", op)) for op in ("Add", "Sub")]
    found = treadle.compare(models[0], {"x": np.array([5, 5, 5, 5])}, models[1], runs=1)
    assert "largest 18 at [2]: 14 against -4 (2 of 4 differ, the first at [1])" in str(found)


def test_a_nan_in_front_of_the_difference_is_told():
    text = HEAD + "g (float[2] x) => (float[2] y) { a = Log (x) y = OP (a) }"
    models = [treadle.parse_model(text.replace("OP", op)) for op in ("Exp", "Abs")]
    found = treadle.compare(models[0], {"x": np.float32([2, -1])}, models[1], runs=1)
    assert found.notes == ["a has nan, which engines treat differently: treadle run --find nan says why"]


def test_a_model_whose_inner_values_cannot_be_had():
    """Functions of another operator set than the model's cannot be exported, so outputs alone are compared."""
    text = """<ir_version: 10, opset_import: ["" : 20, "own" : 1]>
g (float[2] x) => (float[2] y) { a = own.f (x) y = Exp (a) }
<domain: "own", opset_import: ["" : 13]>
f (a) => (b) { b = Mul (a, a) }"""
    model = treadle.parse_model(text)
    found = treadle.compare(model, {"x": np.float32([1, 2])}, "reference", inner=True, runs=1)
    assert found.agrees
    assert any("inner values are not compared" in note for note in found.notes) or found.first is None


def test_the_commands_refusals_are_messages(tmp_path):
    """An input that is missing, and a model that does not load."""
    path = tmp_path / "m.onnx"
    path.write_bytes(
        treadle.parse_model('<ir_version: 10, opset_import: ["" : 20]> g (float[2] x) => (float[2] y) { y = Exp (x) }')
    )
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x0anonsense")
    for model in (path, tmp_path / "broken.onnx"):
        command = [sys.executable, "-m", "treadle._compare_command", str(model), "--other", "reference"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        assert "refuses" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
