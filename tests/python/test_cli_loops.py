"""The tool's report of iterations, and inputs that are drawn so that loops run."""

import json
import subprocess

import numpy as np
import pytest
from test_cli import TOOL, tool

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

HEAD = '<ir_version: 10, opset_import: ["" : 22]>\n'

# A loop of n iterations around three: one of x[0] iterations, one that a condition ends, one over 5 rows.
NESTED = (
    HEAD
    + """nested (int64 n, float[8] x, float[5,8] rows) => (float[8] y) {
  yes = Constant <value = bool {1}> ()
  y = Loop <body = outer (int64 i, bool go, float[8] s) => (bool on, float[8] t) {
    on = Identity (go)
    again = Identity (go)
    a = Loop <body = counted (int64 j, bool go2, float[8] u) => (bool on2, float[8] v) {
      on2 = Identity (go2)
      v = Tanh (u)
    }> (i, again, s)
    half = Constant <value = float {0.5}> ()
    b = Loop <body = while (int64 k, bool go3, float[8] p) => (bool on3, float[8] q) {
      q = Mul (p, half)
      most = ReduceMax <keepdims = 0> (q)
      small = Constant <value = float {0.001}> ()
      on3 = Greater (most, small)
    }> ("", again, a)
    c = Scan <num_scan_inputs = 1, body = scan (float[8] d, float[8] row) => (float[8] e) { e = Add (d, row) }> (b, rows)
    t = Identity (c)
  }> (n, yes, x)
}"""
)


@pytest.fixture
def model(tmp_path):
    def write(text: str):
        path = tmp_path / "model.onnxtxt"
        path.write_text(text)
        return path

    return write


def iterations(*arguments) -> list[dict]:
    return json.loads(tool("run", "--json", *arguments))["iterations"]["loops"]


def by_hand(n: int, x: np.ndarray, rows: np.ndarray) -> tuple[int, int]:
    """Iterations of the counted loop and of the one that a condition ends."""
    counted = ended = 0
    s = x
    for i in range(n):
        for _ in range(i):
            s = np.tanh(s)
            counted += 1
        while True:
            s = s * np.float32(0.5)
            ended += 1
            if not s.max() > np.float32(0.001):
                break
        s = s + rows.sum(0)
    return counted, ended


def test_every_tier_counts_the_same_iterations(model, tmp_path):
    path = model(NESTED)
    x, rows = np.full(8, 0.9, np.float32), np.full((5, 8), 0.125, np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "rows.npy", rows)
    inputs = ["n=20", f"x={tmp_path / 'x.npy'}", f"rows={tmp_path / 'rows.npy'}"]
    program, native = (iterations(path, *inputs, "--tier", tier) for tier in ("program", "native"))
    assert program == native
    outer, counted, ended, scan = program
    assert [loop["parent"] for loop in program] == [None, 0, 0, 0]
    assert (outer["times"], outer["iterations"]) == (1, 20)
    expected = by_hand(20, x, rows)
    assert (counted["times"], counted["iterations"], ended["times"], ended["iterations"]) == (
        20,
        expected[0],
        20,
        expected[1],
    )
    assert scan["iterations_each_time"] == 5
    profile = json.loads(tool("profile", path, *inputs, "--json", "--runs", "2"))["loops"]
    assert profile == program
    bench = json.loads(tool("bench", path, *inputs, "--json", "--seconds", "0.01"))
    assert bench["iterations"]["loops"] == program


def test_people_read_the_same(model, tmp_path):
    np.save(tmp_path / "x.npy", np.full(8, 0.9, np.float32))
    np.save(tmp_path / "rows.npy", np.full((5, 8), 0.125, np.float32))
    inputs = [model(NESTED), "n=20", f"x={tmp_path / 'x.npy'}", f"rows={tmp_path / 'rows.npy'}"]
    for text in (tool("run", *inputs), tool("bench", *inputs, "--seconds", "0.01"), tool("profile", *inputs)):
        assert "(Loop)  20 iterations\n" in text
        assert "(Loop)  190 iterations, 9.5 each of 20 times\n" in text
        assert "(Scan)  5 iterations each time\n" in text
    assert "loops" not in tool("run", model(HEAD + "g (float[2] x) => (float[2] y) { y = Tanh (x) }"), "--random", "1")


def test_a_loop_that_does_not_run_is_named(model):
    text = tool("run", model(NESTED), "n=0", "--random", "1")
    assert "(Loop)  0 iterations\n" in text and "(Loop)  did not run\n" in text


COUNT = "count = Div (length, wide)\n"
DRAWN = {
    # as many iterations as the length holds windows
    "windows": ("float[N] x", "wide = Constant <value = int64[1] {200}> ()\n" + COUNT),
    # a condition on numbers that are drawn on both sides of zero
    "condition": ("float[N] x", None),
}


def drawn_model(kind: str) -> str:
    signature, count = DRAWN[kind]
    start = (
        "zero = Constant <value = int64[1] {0}> () first = Gather (x, zero) zeros = Constant <value = float {0}> () "
    )
    start += "positive = Greater (first, zeros) yes = Squeeze (positive)"
    if count:
        start = "length = Shape (x) yes = Constant <value = bool {1}> ()" + count + "iterations = Squeeze (count)"
    else:
        start += " iterations = Constant <value = int64 {3}> ()"
    return (
        HEAD
        + f"""g ({signature}) => (y) {{
      {start}
      y = Loop <body = b (int64 i, bool go, float[N] s) => (bool on, float[N] t) {{
        on = Identity (go)
        t = Tanh (s)
      }}> (iterations, yes, x)
    }}"""
    )


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("seed", range(4))
def test_inputs_are_drawn_so_that_loops_run(model, kind, seed):
    [loop] = iterations(model(drawn_model(kind)), "--random", seed)
    assert loop["iterations"] > 0
    assert iterations(model(drawn_model(kind)), "--random", seed) == [loop]


def test_a_loop_that_nothing_makes_run_is_told_of(model):
    never = (
        HEAD
        + """g (float[2] x) => (y) {
      no = Constant <value = bool {0}> ()
      never = And (no, no)
      c = ReduceMax <keepdims = 0> (x)
      d = Less (c, c)
      y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity (go) t = Tanh (s) }> ("", d, x)
    }"""
    )
    done = subprocess.run([TOOL, "run", model(never), "--random", "1"], capture_output=True, text=True, check=True)
    assert "nothing that was tried makes the loop" in done.stderr
