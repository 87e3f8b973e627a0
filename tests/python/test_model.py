"""check() and infer_shapes()."""

import models
import onnx
import pytest
import treadle


def broken() -> bytes:
    return models.model(
        [models.node("Add", ["x", "y"], ["z"], name="sum"), models.node("Ad", ["z", "zz"], ["w"])],
        [models.value("x", shape=[2]), models.value("y", shape=[3])],
        [models.value("w", shape=[2])],
    )


def test_check_finds_nothing_in_sound_models():
    assert treadle.check(models.add()) == []
    assert treadle.check(models.parse(models.division()), full=True) == []
    with pytest.raises(TypeError):
        treadle.check(3)


def test_check_reports_every_problem(tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(broken())
    unknown_name, unknown_operator = treadle.check(path)
    assert (unknown_name.code, unknown_name.severity, unknown_name.path) == ("name-unknown", "error", "/Ad_1")
    assert unknown_operator.code == "operator-unknown"
    assert "did you mean" in unknown_operator.hint
    assert "/Ad_1 (Ad): " in str(unknown_operator) and "[operator-unknown]" in str(unknown_operator)


def test_full_check_infers(tmp_path):
    model = models.model(
        [models.node("Add", ["x", "y"], ["z"], name="sum")],
        [models.value("x", shape=[2]), models.value("y", shape=[3])],
        [models.value("z", shape=[2])],
    )
    assert treadle.check(model) == []
    (problem,) = treadle.check(model, full=True)
    assert (problem.code, problem.path, problem.operator) == ("inference", "/sum", "Add-14")
    assert "[2]" in problem.found and "[3]" in problem.found


def test_infer_shapes():
    proto = models.parse(
        models.model(
            [models.node("Transpose", ["x"], ["t"]), models.node("Neg", ["t"], ["y"])],
            [models.value("x", shape=["n", 3])],
            [models.value("y")],
        )
    )
    typed = treadle.infer_shapes(proto)
    assert isinstance(typed, onnx.ModelProto)
    shape = typed.graph.output[0].type.tensor_type.shape
    assert shape.dim[0].dim_value == 3 and shape.dim[1].dim_param == "n"
    assert [v.name for v in typed.graph.value_info] == ["t"]
    assert isinstance(treadle.infer_shapes(proto.SerializeToString()), bytes)


@pytest.mark.parametrize("stash_type", [0, 7, 17, 99])
def test_statistics_that_are_no_floats_are_refused(stash_type):
    text = f"""
      <ir_version: 8, opset_import: ["" : 17]>
      normal (float[2, 2] x) => (y) {{
        v, mean = LayerNormalization <stash_type = {stash_type}> (x, x)
        y = LogSoftmax (mean)
      }}"""
    with pytest.raises(treadle.InvalidGraph, match=f"stash_type is {stash_type}, expected a float type"):
        treadle.InferenceSession(onnx.parser.parse_model(text).SerializeToString())


def with_initializer(declared, *, body: bool = False, value_info=None, ir_version: int = 8) -> bytes:
    """x is [8,7], and declared as something else."""
    weights = onnx.helper.make_tensor("x", models.FLOAT, [8, 7], [1.0] * 56)
    inputs = [models.value("x", shape=declared)] if declared else []
    infos = [models.value("x", shape=value_info)] if value_info else []
    negated = [models.node("Neg", ["x"], ["y"])]
    outputs = [models.value("y", shape=["a", "b"])]
    graph = onnx.helper.make_graph(negated, "g", inputs, outputs, [weights], value_info=infos)
    if body:
        yes = models.node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
        graph = onnx.helper.make_graph([yes], "g", [models.value("c", onnx.TensorProto.BOOL, [])], outputs)
    imports = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=ir_version).SerializeToString()


@pytest.mark.parametrize("declared", [[4, 3], [8], [8, 7, 1], [8, 6]])
@pytest.mark.parametrize("ir_version", [3, 8])
def test_an_initializer_of_another_type_than_its_input_is_refused(declared, ir_version):
    model = with_initializer(declared, ir_version=ir_version)
    with pytest.raises(Exception, match=r'input "x" is declared as .* but its initializer is tensor\(float\)\[8,7\]'):
        treadle.InferenceSession(model)
    with pytest.raises(Exception, match='input "x" is declared as'):
        treadle.infer_shapes(model)
    treadle.infer_shapes(model, strict_mode=False)
    assert "type-contradiction" in [p.code for p in treadle.check(model, full=True)]


def test_an_initializer_fits_symbols_and_remarks_do_not_matter_to_runs():
    assert treadle.check(with_initializer(["a", 7]), full=True) == []
    assert treadle.InferenceSession(with_initializer(["a", 7])).run(None, {})[0].shape == (8, 7)
    remark = with_initializer(None, value_info=[4, 3])
    assert treadle.InferenceSession(remark).run(None, {})[0].shape == (8, 7)
    assert [p.code for p in treadle.check(remark, full=True)] == ["type-contradiction"]
    with pytest.raises(Exception, match='"x" is declared as'):
        treadle.infer_shapes(remark)


def test_initializers_of_bodies_are_held_against_their_remarks():
    remark = with_initializer(None, value_info=[4, 3], body=True)
    assert {p.code for p in treadle.check(remark, full=True)} == {"type-contradiction"}


def type_of_result(graph: str, opset: int = 21, rules: str = "treadle") -> str:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {graph}')
    typed = treadle.infer_shapes(model, rules=rules)
    tensor = typed.graph.value_info[-1].type
    is_list = tensor.HasField("sequence_type")
    tensor = (tensor.sequence_type.elem_type if is_list else tensor).tensor_type
    sizes = [str(d.dim_value) if d.HasField("dim_value") else "?" for d in tensor.shape.dim]
    return f"{'list of ' if is_list else ''}{tensor.elem_type}[{','.join(sizes)}]"


def test_shapes_of_sequence_elements_and_crops_are_inferred():
    even = "(float[6,4] x) => (int64 n) <int32[2] s = {3,3}> { l = SplitToSequence (x, s) n = SequenceLength (l) }"
    assert type_of_result(even) == "list of 1[3,4]"
    assert type_of_result(even.replace("{3,3}", "{2,4}")) == "list of 1[?,4]"
    rois = "(float[2,3,9,9] x, float[r,4] rois, int64[15] of) => (int64 n) { y = RoiAlign (x, rois, of) n = Size (y) }"
    assert type_of_result(rois) == "1[15,3,1,1]"
    # Types are inferred also for an operator that no tier can run.
    image = "(uint8[n] x) => (int64 n) { y = ImageDecoder (x) n = Size (y) }"
    assert type_of_result(image) == "2[?,?,3]"


def test_onnx_takes_an_axis_for_known_only_in_transforms_that_are_not_onesided():
    transform = "(float[2,5,5,1] x, int64 a) => (int64 n) { y = DFT <onesided = 1> (x, , a) n = Size (y) }"
    assert type_of_result(transform, 20, "onnx") == type_of_result(transform, 20) == "1[?,?,?,2]"
    whole = transform.replace("onesided = 1", "onesided = 0")
    assert type_of_result(whole, 20, "onnx") == type_of_result(whole, 20) == "1[2,5,5,2]"


def test_a_check_says_which_operators_nothing_runs():
    image = """<ir_version: 10, opset_import: ["" : 21]>
    g (uint8[n] x) => (uint8[a,b,3] y) { y = ImageDecoder (x) }"""
    (problem,) = treadle.check(image.encode(), full=True)
    assert (problem.code, problem.severity) == ("not-implemented", "warning")
    assert "decode images" in problem.message and problem.path == "/ImageDecoder_0"


LOOP = """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (bool go, bool other, float[2] x) => (float[2] y) {
  y = Loop (, go, x) <body = iteration (int64 i, bool on, float[2] h) => (bool out, float[2] h_out) {
    h_out = Add (h, h)
    BODY
  }>
}
<domain: "my", opset_import: ["" : 21, "my" : 1]> pass (a, b) => (c) { c = Identity (a) }
<domain: "my", opset_import: ["" : 21, "my" : 1]> twice (a, b) => (c) { d = my.pass (b, a) c = my.pass (d, b) }
<domain: "my", opset_import: ["" : 21, "my" : 1]> differs (a, b) => (c) { c = Xor (a, b) }
"""
BRANCHES = (
    "out = If (other) <then_branch = t () => (bool p) { p = Identity (%s) }, "
    "else_branch = e () => (bool q) { q = If (other) <then_branch = u () => (bool r) { r = Identity (on) }, "
    "else_branch = v () => (bool s) { s = Identity (%s) }> }>"
)


@pytest.mark.parametrize(
    "body",
    [
        "out = Identity (on)",
        "a = Identity (on) b = Identity (a) out = Identity (b)",
        "out = Identity (go)",  # what the Loop began with
        "out = Constant <value = bool {1}> ()",
        "t = Constant <value = bool {1}> () out = And (on, t)",
        "out = Or (other, on)",
        BRANCHES % ("on", "on"),
        BRANCHES % ("go", "on"),
        "out = my.pass (on, other)",
        "out = my.twice (other, on)",
    ],
)
def test_a_loop_that_hands_its_condition_on_never_ends(body):
    problems = treadle.check(LOOP.replace("BODY", body).encode())
    assert [(p.code, p.severity, p.path) for p in problems] == [("loop-endless", "warning", "/Loop_0")]
    assert "nothing ends the Loop" in problems[0].message and problems[0].hint


@pytest.mark.parametrize(
    "body",
    [
        "out = Not (on)",
        "out = Identity (other)",
        "out = And (on, other)",
        "out = Constant <value = bool {0}> ()",
        "s = ReduceSum <keepdims = 0> (h_out) z = Constant <value = float {9}> () out = Less (s, z)",
        BRANCHES % ("other", "on"),
        BRANCHES % ("on", "other"),
        "out = my.pass (other, on)",
        "out = my.differs (on, other)",
    ],
)
def test_a_loop_that_computes_its_condition_may_end(body):
    assert treadle.check(LOOP.replace("BODY", body).encode()) == []


def test_loops_that_something_else_ends():
    body = "out = Identity (on)"
    counted = LOOP.replace("(bool go", "(int64 n, bool go").replace("Loop (, go", "Loop (n, go").replace("BODY", body)
    assert treadle.check(counted.encode()) == []
    never = LOOP.replace("Loop (, go", "Loop (, no").replace(
        "  y = Loop", "  no = Constant <value = bool {0}> ()\n  y = Loop"
    )
    assert treadle.check(never.replace("BODY", body).encode()) == []
