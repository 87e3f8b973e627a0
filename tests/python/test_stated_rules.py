"""What the documents of operators demand of attributes and arguments: a model that breaks a rule is refused when it is
loaded and inferred, and a full check has an error for its node. Nothing of it waits for the run."""

import onnx
import pytest
import treadle

X = "float[1,1,4,4] x"
W = "float[1,1,3,3] w"
WINDOWS = {  # operators with pads, and their other inputs
    "AveragePool": ("kernel_shape = [3,3], ", "(x)", X),
    "Conv": ("", "(x, w)", f"{X}, {W}"),
    "ConvInteger": ("", "(x, w)", "uint8[1,1,4,4] x, uint8[1,1,3,3] w"),
    "ConvTranspose": ("", "(x, w)", f"{X}, {W}"),
    "DeformConv": ("", "(x, w, o)", f"{X}, {W}, float[1,18,a,b] o"),
    "LpPool": ("kernel_shape = [3,3], ", "(x)", X),
    "MaxPool": ("kernel_shape = [3,3], ", "(x)", X),
    "MaxUnpool": ("kernel_shape = [2,2], ", "(x, i)", f"{X}, int64[1,1,4,4] i"),
    "QLinearConv": ("", "(x, s, z, w, s, z, s, z)", "uint8[1,1,4,4] x, uint8[1,1,3,3] w, float s, uint8 z"),
}
COLUMNS = "float[1,4,8] x <int64[2] i = {5,5}, int64[2] b = {2,2}>"
ROIS = "float[1,1,4,4] x, float[r,4] rois, int64[r] of"
IMAGE = "float[1,1,4,4] x"
HEADS = "float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,5,4] v"
GATES = "float[5,2,3] x, float[1,12,3] w, float[1,12,4] r"
SVM = (
    "coefficients=[1.0,1.0], kernel_params=[1.0,0.0,3.0], rho=[0.0], support_vectors=[1.0,2.0], vectors_per_class=[1,1]"
)
TREE = (
    "nodes_treeids=[0,0,0], nodes_nodeids=[0,1,2], nodes_featureids=[0,0,0], nodes_values=[0.0,0.0,0.0], "
    'nodes_modes=["BRANCH_LEQ","LEAF","LEAF"], nodes_truenodeids=[1,0,0], nodes_falsenodeids=[2,0,0], '
    "class_treeids=[0,0], class_nodeids=[1,2], class_ids=[0,1], class_weights=[1.0,1.0]"
)
BOTH_LABELS = 'classlabels_ints=[0,1], classlabels_strings=["a","b"]'

# Operator set, the node that makes r (or a list s), the graph's inputs with its initializers, a part of the message.
BROKEN = [
    *((22, f"r = {op} <{more}pads=[-1,0,0,0]> {inputs}", of, "pads") for op, (more, inputs, of) in WINDOWS.items()),
    *((22, f"r = {op} <{more}strides=[0,1]> {inputs}", of, "strides") for op, (more, inputs, of) in WINDOWS.items()),
    *(
        (22, f'r = {op} <auto_pad="VALID", pads=[0,0,0,0]> {WINDOWS[op][1]}', WINDOWS[op][2], "auto_pad")
        for op in ("Conv", "ConvInteger", "ConvTranspose", "QLinearConv")
    ),
    (22, "r = ConvTranspose <output_padding=[2,0]> (x, w)", f"{X}, {W}", "output_padding"),
    (22, "r = ConvTranspose <group=2> (x, w)", "float[1,2,4] x, float[2,9223372036854775807,1] w", "too many channels"),
    (22, "r = Col2Im <pads=[-1,0,0,0]> (x, i, b)", COLUMNS, "pads"),
    (22, "r = Col2Im <strides=[0,1]> (x, i, b)", COLUMNS, "strides"),
    (22, "r = Col2Im <dilations=[0,1]> (x, i, b)", COLUMNS, "dilations"),
    (22, "r = Col2Im (x, i, b)", COLUMNS.replace("[1,4,8]", "[1,4,9]"), "columns"),
    (
        22,
        "r = Col2Im (x, i, b)",
        COLUMNS.replace("{2,2}", "{9223372036854775807,2}"),
        "expected at most 2^63 - 1 elements",
    ),
    (22, "r = LpPool <kernel_shape=[2,2], p=0> (x)", X, "attribute p is 0"),
    (22, "r = GlobalLpPool <p=0> (x)", X, "attribute p is 0"),
    (22, "r = MaxPool <kernel_shape=[2,2], storage_order=2> (x)", X, "storage_order"),
    (22, "r = Cast <to=15> (x)", X, "complex128"),
    (22, "r = CumSum <exclusive=2> (x, a)", "float[2] x <int64 a = {0}>", "exclusive"),
    (22, "r = CumSum <reverse=2> (x, a)", "float[2] x <int64 a = {0}>", "reverse"),
    (22, "r = ConcatFromSequence <axis=0, new_axis=2> (l)", "seq(float[2]) l", "new_axis"),
    (20, "r = DFT <onesided=2> (x)", "float[1,4,1] x", "onesided"),
    (22, "r = Unique <sorted=2> (x)", "float[4] x", "sorted"),
    (22, "r = RoiAlign <sampling_ratio=-1> (x, rois, of)", ROIS, "sampling_ratio"),
    (22, 'r = RoiAlign <coordinate_transformation_mode="corner"> (x, rois, of)', ROIS, "'corner'"),
    (22, "r = Transpose <perm=[0,-1]> (x)", "float[2,3] x", "perm holds -1"),
    (22, "r = Transpose <perm=[0,0]> (x)", "float[2,3] x", "perm"),
    (22, 'r = BitShift <direction="UP"> (x, x)', "uint8[2] x", "'UP'"),
    (22, 'r = Gelu <approximate="erf"> (x)', X, "'erf'"),
    (22, 'r = Resize <keep_aspect_ratio_policy="no"> (x, , s)', f"{IMAGE}, float[4] s", "'no'"),
    (22, "r = Resize (x, , s, z)", f"{IMAGE}, float[4] s, int64[4] z", "found both"),
    (9, "r = Upsample (x, s)", f"{IMAGE} <float[4] s = {{1,1,0.5,2}}>", "a scale is 0.5"),
    (22, 'r = ScatterElements <reduction="sub"> (x, i, x)', "float[2,3] x, int64[2,3] i", "'sub'"),
    (22, 'r = ScatterND <reduction="sub"> (x, i, u)', "float[2,3] x, int64[1,2] i, float[1] u", "'sub'"),
    (22, "r, t = Split <num_outputs=2> (x, n)", "float[4] x, int64[2] n", "found both"),
    (22, "r, t = Split (x)", "float[4] x", "found neither"),
    (22, "r = Mod (x, x)", X, "fmod is 0"),
    (22, "r = Dropout (x, p)", "float[2] x <float p = {1.5}>", "ratio is 1.5"),
    (23, "r = RMSNormalization <stash_type=7> (x, s)", "float[1,4] x, float[4] s", "stash_type"),
    (22, "r = GroupNormalization <num_groups=1, stash_type=7> (x, s, s)", "float[1,4,2] x, float[4] s", "stash_type"),
    (25, "r = Attention <q_num_heads=2> (q, k, v)", HEADS, "q_num_heads"),
    (25, "r, t = Attention (q, k, v)", HEADS, "present_key and present_value"),
    (25, "r, , t = Attention (q, k, v)", HEADS, "present_key and present_value"),
    (25, "r, t, u = Attention (q, k, v, , , , n)", f"{HEADS}, int64[1] n", "nonpad_kv_seqlen"),
    (
        22,
        'r = ml.OneHotEncoder <cats_int64s=[1], cats_strings=["b"]> (x)',
        "int64[2] x",
        "found cats_int64s, cats_strings",
    ),
    (22, "r = ml.OneHotEncoder (x)", "int64[2] x", "found none"),
    (
        22,
        'r = ml.DictVectorizer <string_vocabulary=["a"], int64_vocabulary=[1]> (x)',
        "map(int64,float[1]) x",
        "one and",
    ),
    (
        22,
        'r = ml.LabelEncoder <keys_int64s=[1], values_floats=[1.0], values_strings=["b"]> (x)',
        "int64[2] x",
        "one and",
    ),
    (
        22,
        'r = ml.LabelEncoder <keys_int64s=[1], keys_tensor=int64[1] {1}, values_strings=["a"]> (x)',
        "int64[2] x",
        "one",
    ),
    (22, 'r = ml.LabelEncoder <keys_tensor=int64[1,2] {1,2}, values_strings=["a","b"]> (x)', "int64[2] x", "rank 2"),
    (
        22,
        'r = ml.LabelEncoder <keys_int64s=[1], values_strings=["a"], default_tensor=string[2] {"a","b"}> (x)',
        "int64[2] x",
        "the default has 2 elements",
    ),
    (
        22,
        f"r, t = ml.LinearClassifier <coefficients=[1.0,2.0], intercepts=[0.0,0.0], {BOTH_LABELS}> (x)",
        "float[2,1] x",
        "at most one",
    ),
    (22, f"r, t = ml.SVMClassifier <{SVM}, {BOTH_LABELS}> (x)", "float[2,1] x", "one and only one"),
    (
        22,
        f"r, t = ml.TreeEnsembleClassifier <{TREE}, {BOTH_LABELS.replace('_ints', '_int64s')}> (x)",
        "float[2,1] x",
        "one and only one",
    ),
    (
        22,
        f"r, t = ml.TreeEnsembleClassifier <{TREE}, classlabels_int64s=[0,1], base_values=[1.0,1.0], "
        "base_values_as_tensor=float[2] {1.0,1.0}> (x)",
        "float[2,1] x",
        "at most one",
    ),
    (22, "r = DequantizeLinear (x, s, z)", "uint8[2,4] x, float[4] s, uint8[3] z", "zero point has shape [3]"),
    (22, "r = QuantizeLinear (x, s, z)", "float[2,4] x, float[4] s, uint8[1] z", "zero point has shape [1]"),
    (22, "r = MatMulInteger (x, x, z)", "uint8[2,2] x, uint8[3] z", "one for each of 2 rows"),
    (
        22,
        "r = QLinearMatMul (x, s, z, x, t, u, s, z)",
        "uint8[2,2] x, float s, uint8 z, float[3] t, uint8[3] u",
        "2 col",
    ),
    (22, "r, t = TopK (x, k)", "float[2,3] x, int64[1,1] k", "expected one element"),
    (22, "r = OneHot (i, d, v)", "int64[2] i, int64[2] d, float[2] v", "expected one element"),
    (22, "r = SequenceAt (l, i)", "seq(float[2]) l, int64[2] i", "expected one element"),
    (22, "s = SequenceErase (l, i)", "seq(float[2]) l, int64[2] i", "expected one element"),
    (22, "r = Pad (x, p)", "float[2,3] x, int64[3] p", "pads has 3 elements, expected 4: two for each of 2 axes"),
    (22, "r = Slice (x, a, b)", "float[2,3] x, int64[1] a, int64[2] b", "starts and ends have 1 and 2"),
    (22, "r = Tile (x, n)", "float[2,3] x, int64[3] n", "repeats has 3 elements"),
    (22, "r = Compress (x, c)", "float[2,3] x, bool[2,2] c", "expected rank 1"),
    (22, "r = GridSample (x, g)", "float[1,1,2,2] x, float[2,2,2,2] g", "grid has shape"),
    (22, "r = NonMaxSuppression (b, s)", "float[1,5,4] b, float[1,1,6] s", "expected [B,N,4] and [B,C,N]"),
    (22, "r = NonMaxSuppression <center_point_box=2> (b, s)", "float[1,5,4] b, float[1,1,5] s", "center_point_box"),
    (22, 'r = ml.Normalizer <norm="L3"> (x)', "float[2,1] x", "'L3'"),
    (22, "r = ml.Scaler <offset=[1.0,2.0], scale=[1.0]> (x)", "float[2,2] x", "offset and scale"),
    (22, "r = ml.Scaler <offset=[1.0,2.0,3.0]> (x)", "float[2,2] x", "offset has 3 entries"),
    (
        22,
        "r = ml.Imputer <imputed_value_floats=[1.0], imputed_value_int64s=[1]> (x)",
        "float[2,2] x",
        "one and only one",
    ),
    (22, "r = ml.Imputer <imputed_value_floats=[1.0,2.0,3.0]> (x)", "float[2,2] x", "has 3 entries"),
    (22, "s = ml.ZipMap <classlabels_int64s=[0,1,2]> (x)", "float[2,2] x", "expected [N,3]"),
    (
        22,
        "r = If (c) <then_branch = a () => (float d) { d = Constant <value_float=1.0> () }, "
        "else_branch = b () => (float[2] d) { d = Conv <pads=[-1,0,0,0]> (x, w) }>",
        f"bool c, {X}, {W}",
        "pads",
    ),
]

# Models that a document forbids, or seems to, and that all engines run.
ALLOWED = [
    (9, "r = Scan <num_scan_inputs=1, scan_input_axes=[-2], body = b (float[2] a) => (float[2] c) {c = Neg (a)}> (x)", "float[3,2] x"),
    (22, 'r = MaxPool <kernel_shape=[3,3], auto_pad="VALID", pads=[1,1,1,1]> (x)', X),
    (22, "r = Clip (x, m)", "float[2] x, float[1] m"),
    (23, "r = Attention <q_num_heads=2, kv_num_heads=2> (q, k, v)", HEADS),
    (22, 'r = Conv <auto_pad="NOTSET", pads=[1,1,1,1]> (x, w)', f"{X}, {W}"),
    (11, "r = Resize (x, q, s, z)", f"{IMAGE}, float[8] q <float[0] s = {{}}, int64[4] z = {{1,1,2,2}}>"),
    (22, "r = RNN <hidden_size=4> (x, w, r0)", "float[5,2,3] x, float[1,4,3] w, float[1,4,4] r0"),
    (7, 'r = RNN <hidden_size=4, direction="reverse"> (x, w, r0)', "float[5,2,3] x, float[1,4,3] w, float[1,4,4] r0"),
    (22, "r = GRU <hidden_size=4> (x, w, r0)", GATES.replace(" r", " r0")),
]  # fmt: skip


def model(opset: int, node: str, inputs: str) -> bytes:
    inputs, _, initializers = inputs.partition(" <")
    initializers = initializers and f"<{initializers}"
    last = "y = Size (r)" if not node.startswith("s = ") else "y = SequenceLength (s)"
    ml = 4 if "LabelEncoder" in node or opset > 9 else 1
    text = f"""<ir_version: 10, opset_import: ["" : {opset}, "ai.onnx.ml" : {3 if "TreeEnsembleC" in node and "_as_" not in node else ml}]>
g ({inputs}) => (int64 y) {initializers} {{
  {node.replace("ml.", "ai.onnx.ml.")}
  {last}
}}
"""
    return onnx.parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize(("opset", "node", "inputs", "message"), BROKEN, ids=[f"{n[:70]} {o}" for o, n, _, _ in BROKEN])
def test_what_breaks_a_rule_is_refused_at_once(opset, node, inputs, message):
    broken = model(opset, node, inputs)
    with pytest.raises(Exception, match="_0 ") as refused:
        treadle.InferenceSession(broken)
    assert message in str(refused.value)
    with pytest.raises(Exception, match="_0 ") as refused:
        treadle.infer_shapes(broken)
    assert message in str(refused.value)
    problems = [p for p in treadle.check(broken, full=True) if p.severity == "error"]
    assert len(problems) == 1 and message in str(problems[0]) and problems[0].path


@pytest.mark.parametrize(("opset", "node", "inputs"), ALLOWED, ids=[f"{n[:70]} {o}" for o, n, _ in ALLOWED])
def test_what_everybody_runs_is_taken(opset, node, inputs):
    allowed = model(opset, node, inputs)
    treadle.InferenceSession(allowed)
    treadle.infer_shapes(allowed)
    assert not [p for p in treadle.check(allowed, full=True) if p.severity == "error"]


def warnings_of(opset, node, inputs):
    return [p.code for p in treadle.check(model(opset, node, inputs))]


def test_some_of_it_is_warned_of():
    assert warnings_of(*ALLOWED[0]) == ["axis-negative"]
    assert warnings_of(*ALLOWED[1]) == ["attribute-ignored"]
    assert warnings_of(*ALLOWED[4]) == []
