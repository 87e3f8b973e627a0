"""Loops as exporters write them: bodies that declare their iteration number or condition with one element."""

import itertools

import numpy as np
import onnx
import pytest
import treadle

WAYS = {
    "default": {},
    "native": {"treadle.jit": "always"},
    "reference": {"treadle.tier": "reference"},
    "unoptimised": {"treadle.optimize": "0"},
}

# The nodes around the loop. `loop` is the node, `y` and `d` are its rows, `last` is its state.
ALONE = """<ir_version: 8, opset_import: ["" : 16]>
g (int64{m} m, bool{c} c, float[4] x) => (float last, int64 y, bool d, float z) {{
  zero = Constant <value = float {{0}}> ()
  {loop}
}}"""
IN_A_BRANCH = """<ir_version: 8, opset_import: ["" : 16]>
g (int64{m} m, bool{c} c, float[4] x, bool b) => (float last, int64 y, bool d, float z) {{
  last, y, d, z = If (b) <
    then_branch = t () => (float last, int64 y, bool d, float z) {{
      zero = Constant <value = float {{0}}> ()
      {loop}
    }},
    else_branch = e () => (float last1, int64 y1, bool d1, float z1) {{
      last1 = Constant <value = float {{0}}> ()
      y1 = Constant <value = int64[1] {{0}}> ()
      d1 = Constant <value = bool[1] {{0}}> ()
      z1 = Constant <value = float[1] {{0}}> ()
    }}
  >
}}"""
IN_A_LOOP = """<ir_version: 8, opset_import: ["" : 16]>
g (int64{m} m, bool{c} c, float[4] x) => (float last, int64 y, bool d, float z) {{
  once = Constant <value = int64 {{1}}> ()
  lasts, ys, ds, zs = Loop (once, "") <body = o (int64[1] o, bool[1] p) => (bool[1] p1, float last, int64 y, bool d, float z) {{
    p1 = Identity (p)
    zero = Constant <value = float {{0}}> ()
    {loop}
  }}>
  first = Constant <value = int64 {{0}}> ()
  last = Gather (lasts, first)
  y = Gather (ys, first)
  d = Gather (ds, first)
  z = Gather (zs, first)
}}"""
IN_A_FUNCTION = """<ir_version: 8, opset_import: ["" : 16, "own" : 1]>
g (int64{m} m, bool{c} c, float[4] x) => (float last, int64 y, bool d, float z) {{ last, y, d, z = own.Run (m, c, x) }}
<domain: "own", opset_import: ["" : 16]>
Run (m, c, x) => (last, y, d, z) {{
  zero = Constant <value = float {{0}}> ()
  {loop}
}}"""
AROUND = {"alone": ALONE, "branch": IN_A_BRANCH, "loop": IN_A_LOOP, "function": IN_A_FUNCTION}

LOOP = """last, y, d, z = Loop (m, c, zero) <body = b (int64{i} i, bool{c0} c0, float a) => (bool{c1} c1, float a1, int64 i1, bool d1, float z1) {{
    row = Gather (x, i)
    sum = ReduceSum <keepdims = 0> (row)
    a1 = Add (a, sum)
    z1 = Identity (a1)
    {condition}
    i1 = Identity (i)
    d1 = Identity (c0)
  }}>"""
CONDITIONS = {
    "kept": "c1 = Identity (c0)",
    "computed": "limit = Constant <value = float{c1} {{5}}> ()  c1 = Less (a1, limit)",
}


def without_shapes(graph):
    """Outputs without sizes, which text cannot write."""
    for value in graph.output:
        if value.name in ("last", "y", "d", "z", "i1", "d1", "last1", "y1", "z1", "lasts", "ys", "ds", "zs"):
            value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                without_shapes(attribute.g)


def model_of(around, m, c, i, c0, c1, condition):
    constant = CONDITIONS[condition].format(c1=c1).replace("{5}", "{5}")
    loop = LOOP.format(i=i, c0=c0, c1=c1, condition=constant)
    model = onnx.parser.parse_model(AROUND[around].format(m=m, c=c, loop=loop))
    without_shapes(model.graph)
    for function in model.functions:
        for node in function.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    without_shapes(attribute.g)
    return model.SerializeToString()


def axes(text):
    """The sizes that a declaration such as "[1]" or "[n]" gives one element."""
    return [1] * (text.count(",") + 1) if text else []


def session_of(model, way):
    options = treadle.SessionOptions()
    for key, value in WAYS[way].items():
        options.add_session_config_entry(key, value)
    return treadle.InferenceSession(model, options)


COMBINATIONS = list(
    itertools.product(
        AROUND, ["", "[1]"], ["", "[1]"], ["", "[1]", "[n]", "[1,1]"], ["", "[1]"], ["", "[1]"], CONDITIONS
    )
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("around", AROUND)
def test_a_body_gets_what_it_declares(around, way):
    x = np.array([1, 2, 3, 4], np.float32)
    tried = 0
    for where, m, c, i, c0, c1, condition in COMBINATIONS:
        if where != around:
            continue
        session = session_of(model_of(around, m, c, i, c0, c1, condition), way)
        for iterations in (3, 0, 3):
            feed = {"m": np.full(axes(m), iterations), "c": np.full(axes(c), True), "x": x}
            if around == "branch":
                feed["b"] = np.array(True)
            last, y, d, z = session.run(None, feed)
            assert last == x[:iterations].sum()
            assert y.shape == (iterations, *axes(i)), (m, c, i, c0, c1, condition, iterations)
            assert d.shape == (iterations, *axes(c0)), (m, c, i, c0, c1, condition, iterations)
            assert y.ravel().tolist() == list(range(iterations)) and d.all() and z.shape == (iterations,)
        tried += 1
    assert tried == len(COMBINATIONS) // len(AROUND)


@pytest.mark.parametrize("around", sorted(AROUND.keys() - {"branch"}))  # the other branch has other ranks
def test_inference_and_check_say_the_same(around):
    for i, c0 in itertools.product(["", "[1]"], ["", "[1]"]):
        model = model_of(around, "", "", i, c0, c0, "kept")
        typed = onnx.load_from_string(treadle.infer_shapes(model))
        ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in typed.graph.output}
        assert ranks == {"last": 0, "y": 1 + len(axes(i)), "d": 1 + len(axes(c0)), "z": 1}
        assert not [p for p in treadle.check(model, full=True) if p.severity == "error" and p.code != "type-missing"]


def test_the_model_that_a_session_writes_is_one_that_onnx_accepts(tmp_path):
    options = treadle.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "written.onnx")
    treadle.InferenceSession(model_of("function", "[1]", "[1]", "[1]", "[1]", "[1]", "computed"), options)
    onnx.checker.check_model(str(tmp_path / "written.onnx"), full_check=True)
    session = treadle.InferenceSession(str(tmp_path / "written.onnx"))
    feed = {"m": np.array([3]), "c": np.array([True]), "x": np.array([1, 2, 3, 4], np.float32)}
    assert session.run(["y"], feed)[0].tolist() == [[0], [1], [2]]


STREAMED = """<ir_version: 8, opset_import: ["" : 16]>
g (float[T] x, float[1] h) => (float[T,1] y, float[1] h1) {
  n = Shape (x)
  yes = Constant <value = bool[1] {1}> ()
  h1, y = Loop (n, yes, h) <body = b (int64[1] i, bool[1] c, float[1] s) => (bool[1] c1, float[1] s1, float[1] y1) {
    row = Gather (x, i)
    s1 = Add (s, row)
    y1 = Identity (s1)
    c1 = Identity (c)
  }>
}"""


def test_a_stream_of_such_a_loop_equals_one_run():
    session = treadle.InferenceSession(STREAMED.encode())
    x = np.arange(12, dtype=np.float32)
    whole = session.run(["y"], {"x": x, "h": np.zeros(1, np.float32)})[0]
    stream = session.stream(state={"h": "h1"})
    pieces = [stream.push({"x": x[at : at + 4]}) for at in range(0, 12, 4)]
    found = np.concatenate([piece[0] if isinstance(piece, (list, tuple)) else piece for piece in pieces])
    assert found.tolist() == whole.tolist()
