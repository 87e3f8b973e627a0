"""A Loop without cond: the body's condition is ignored, as the specification says, or obeyed, as onnxruntime obeys it."""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import onnx.parser
import pytest
import treadle
import treadle.backend
from treadle import _ignored

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
WAYS = {
    "default": {},
    "native": {"treadle.jit": "always"},
    "reference": {"treadle.tier": "reference"},
    "unoptimised": {"treadle.optimize": "0"},
}
TEXT = """<ir_version: 8, opset_import: ["" : 16, "own" : 1]>
g (int64 m, int64 e, bool b) => (float last, int64[n] s) {{
  {node}
}}
<domain: "own", opset_import: ["" : 16]>
Run (m, e) => (last, s) {{ {loop} }}"""
LOOP = """z = Constant <value = float {{0.0}}> ()
  last, s = Loop ({count}, "", z) <body = b (int64{of_one} i, bool{of_one} c0, float a) => (bool{of_one} c1, float a1, int64 j) {{
     shape = Constant <value = int64[1] {{0}}> ()
     n = ReduceSum <keepdims = 0> (i)
     c1 = {condition}
     f = Cast <to = 1> (n)
     a1 = Add (a, f)
     j = Identity (n)
  }}>"""
BRANCH = """last, s = If (b) <
    then_branch = t () => (float last, int64[n] s) {{ {loop} }},
    else_branch = e () => (float last1, int64[n] s1) {{
      last1 = Constant <value = float {{0.0}}> ()
      s1 = Constant <value = int64[1] {{0}}> ()
    }}
  >"""
NESTED = """once = Constant <value = int64 {{1}}> ()
  lasts, ss = Loop (once, "") <body = o (int64 o, bool p) => (bool p1, float last, int64[n] s) {{
    p1 = Identity (p)
    {loop}
  }}>
  first = Constant <value = int64 {{0}}> ()
  last = Gather (lasts, first)
  s = Gather (ss, first)"""
PLACES = {"alone": "{loop}", "branch": BRANCH, "loop": NESTED, "function": "last, s = own.Run (m, e)"}
FEED = {"m": np.array(5), "e": np.array(2), "b": np.array(True)}
ENDED, WHOLE = [0, 1, 2], [0, 1, 2, 3, 4]


def text_of(place="alone", count="m", of_one="", condition="Less (i, e)"):
    loop = LOOP.format(count=count, of_one=of_one, condition=condition)
    node = PLACES[place].format(loop=loop)
    return TEXT.format(
        node=node, loop=loop if place == "function" else LOOP.format(count="m", of_one="", condition=condition)
    )


def model_of(*args, **kwargs):
    return onnx.parser.parse_model(text_of(*args, **kwargs)).SerializeToString()


def open_session(model, entries=()):
    options = treadle.SessionOptions()
    for key, value in dict(entries).items():
        options.add_session_config_entry(key, value)
    _ignored._said.clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        session = treadle.InferenceSession(model, options)
    return session, [str(warning.message) for warning in told]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_the_option_decides(place, way):
    for count, of_one in itertools.product(("m", '""'), ("", "[1]")):
        model = model_of(place, count, of_one)
        for wanted, expected in (("ignored", WHOLE), ("obeyed", ENDED), ("ignored", WHOLE)):
            if wanted == "ignored" and count == '""':
                continue  # nothing would end the loop
            session, told = open_session(model, {**WAYS[way], "treadle.loop_condition": wanted})
            assert any("loop_condition" in message for message in told) == (wanted == "ignored")
            for _ in range(2):
                last, s = session.run(["last", "s"], FEED)
                assert s.tolist() == expected and last == sum(expected)


def test_ignored_is_the_default():
    session, told = open_session(model_of())
    assert session.run(["s"], FEED)[0].tolist() == WHOLE
    assert [message for message in told if "onnxruntime" in message and "loop_condition = obeyed" in message]


STAYS_TRUE = (
    "Identity (c0)",
    "And (c0, c0)",
    "Or (c0, c0)",
    "Constant <value = bool {1}> ()",
    "Reshape (c0, shape)",
    "If (c0) <then_branch = t () => (bool p) { p = Identity (c0) }, else_branch = f () => (bool q) { q = Identity (c0) }>",
)


@pytest.mark.parametrize("condition", STAYS_TRUE)
def test_no_warning_where_the_condition_stays_true(condition):
    if "Reshape" in condition:
        model = model_of(condition="Squeeze (d0) d0 = Unsqueeze (c0, shape)")
    else:
        model = model_of(condition=condition)
    session, told = open_session(model)
    assert not [message for message in told if "loop_condition" in message]
    assert session.run(["s"], FEED)[0].tolist() == WHOLE


def test_no_warning_where_one_iteration_runs_at_most():
    text = text_of(count="one").replace("z = Constant", "one = Constant <value = int64 {1}> ()\n  z = Constant", 1)
    assert not open_session(onnx.parser.parse_model(text).SerializeToString())[1]


def test_check_names_the_option():
    problems = [p for p in treadle.check(model_of("branch"), full=True) if p.code == "loop-condition-ignored"]
    assert problems and all(p.severity == "warning" and "loop_condition" in p.hint for p in problems)


def test_another_value_is_refused():
    with pytest.raises(treadle.InvalidArgument, match="loop_condition is ignored or obeyed, not 'perhaps'"):
        open_session(model_of(), {"treadle.loop_condition": "perhaps"})


def test_the_backend_obeys():
    last, s = treadle.backend.run_model(onnx.parser.parse_model(text_of()), [FEED["m"], FEED["e"], FEED["b"]])
    assert s.tolist() == ENDED


def run_as_onnxruntime(entry=None):
    code = f"""
import warnings, json, numpy as np, onnxruntime
warnings.simplefilter("error")
options = onnxruntime.SessionOptions()
if {entry!r}:
    warnings.simplefilter("ignore")
    options.add_session_config_entry("treadle.loop_condition", {entry!r})
session = onnxruntime.InferenceSession({model_of()!r}, options)
feed = {{"m": np.array(5), "e": np.array(2), "b": np.array(True)}}
print(json.dumps(session.run(["s"], feed)[0].tolist()))
"""
    command = [sys.executable, "-m", "treadle.as_onnxruntime", "-c", code]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)


def test_the_alias_obeys_and_the_program_may_say_otherwise():
    assert run_as_onnxruntime() == ENDED
    assert run_as_onnxruntime("ignored") == WHOLE


@pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
def test_the_tool_takes_the_option(tmp_path):
    model = tmp_path / "loop.onnx"
    model.write_bytes(model_of())
    for name, value in FEED.items():
        np.save(tmp_path / f"{name}.npy", value)
    inputs = [f"{name}={tmp_path / name}.npy" for name in FEED]
    for options, expected in (([], WHOLE), (["--option", "loop_condition=obeyed"], ENDED)):
        out = tmp_path / "s.npy"
        command = [TOOL, "run", model, *inputs, "--out", f"s={out}", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert ("loop_condition" in done.stderr) == (not options)
        assert np.load(out).tolist() == expected
    refused = subprocess.run([TOOL, "run", model, "--option", "loop_condition"], capture_output=True, text=True)
    assert refused.returncode == 2 and "NAME=VALUE" in refused.stderr


STREAMED = """<ir_version: 8, opset_import: ["" : 16]>
g (float[T] x, float h) => (float[n] y, float h1) {
  n = Shape (x)
  h1, y = Loop (n, "", h) <body = b (int64 i, bool c, float s) => (bool c1, float s1, float y1) {
    row = Gather (x, i)
    s1 = Add (s, row)
    y1 = Identity (s1)
    limit = Constant <value = float {3}> ()
    c1 = Less (s1, limit)
  }>
}"""


def test_streams_follow_their_session():
    for wanted, expected in (("ignored", [1, 3, 6, 10]), ("obeyed", [1, 3])):
        session, _ = open_session(STREAMED.encode(), {"treadle.loop_condition": wanted})
        stream = session.stream(state={"h": "h1"})
        found = stream.push({"x": np.array([1, 2, 3, 4], np.float32)})
        assert np.ravel(found).tolist() == expected
