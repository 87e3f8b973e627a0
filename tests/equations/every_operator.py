"""A valid node of small sizes for every operator that treadle runs: SAMPLES, made by samples().

Nodes come from three places: the cases of the onnx package's backend tests, the makers of nodes of com.microsoft
(contrib.py and the tests that use it), and RECIPES here for the operators that neither has. An operator without a node
stands in WITHOUT with the reason.
"""

import collections
import dataclasses
import functools
import importlib
import pathlib
import sys
import warnings

import numpy as np
import onnx
from one_node import treadle
from onnx import helper, numpy_helper

OPSETS = {"": 22, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1, "com.microsoft": 1}
CONTRIB = ["attention", "experts", "nbits", "norms", "products", "tensors"]
WITHOUT = {
    "ai.onnx.preview.training.Gradient": "becomes operators that have a node each",
    "com.microsoft.SparseToDenseMatMul": "takes a sparse constant, which no run feeds; becomes operators that have a node each",
    "com.microsoft.WhisperBeamSearch": "is BeamSearch with an encoder of sounds",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """One node and a value for each of its inputs."""

    name: str
    node: onnx.NodeProto  # its inputs are called x0, x1, ... and "" where one is left out; its outputs y0, y1, ...
    inputs: tuple  # by place: array, list of arrays, dict; None: left out
    opsets: tuple  # of (domain, version)
    types: tuple = ()  # TypeProtos of inputs that are no tensors, by place

    @property
    def op(self) -> str:
        return f"{self.node.domain}.{self.node.op_type}" if self.node.domain else self.node.op_type

    def fed(self, constants=()) -> dict:
        return {f"x{i}": x for i, x in enumerate(self.inputs) if x is not None and i not in constants}

    def model(self, constants=(), symbolic=False) -> bytes:
        """`constants`: places of inputs that are initialisers. `symbolic`: inputs have a symbol for each size."""
        values, initialisers = [], []
        for i, x in enumerate(self.inputs):
            if x is None:
                continue
            if i in constants:
                initialisers.append(numpy_helper.from_array(x, f"x{i}"))
            else:
                values.append(self.value_info(i, symbolic))
        made = [onnx.ValueInfoProto(name=name) for name in self.node.output if name]
        graph = helper.make_graph([self.node], "one", values, made, initialisers)
        opsets = [helper.make_opsetid(d, v) for d, v in self.opsets]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    def value_info(self, i: int, symbolic=False) -> onnx.ValueInfoProto:
        x, name = self.inputs[i], f"x{i}"
        if not isinstance(x, np.ndarray):
            return helper.make_value_info(name, self.types[i])
        sizes = [f"{name}_{k}" for k in range(x.ndim)] if symbolic else x.shape
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), sizes)

    def with_inputs(self, inputs) -> "Sample":
        return dataclasses.replace(self, inputs=tuple(inputs))


def plain(name: str, node: onnx.NodeProto, values: dict, opsets, types=None) -> Sample:
    """The node with its inputs and outputs renamed."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    inputs = [value_of(values[n]) if n else None for n in node.input]
    copy.input[:] = [f"x{i}" if n else "" for i, n in enumerate(node.input)]
    copy.output[:] = [f"y{i}" if n else "" for i, n in enumerate(node.output)]
    kinds = tuple((types or {}).get(n) for n in node.input)
    return Sample(name, copy, tuple(inputs), tuple(opsets), kinds)


# The onnx package's cases -------------------------------------------------------------------------------------------


def value_of(x):
    if isinstance(x, onnx.TensorProto):
        return numpy_helper.to_array(x)
    if isinstance(x, onnx.SequenceProto):
        return numpy_helper.to_list(x)
    if isinstance(x, onnx.OptionalProto):
        return numpy_helper.to_optional(x)
    return x if isinstance(x, list | dict) else np.asarray(x)


def from_backend_cases():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or not case.data_sets:
            continue
        values = {i.name: value_of(x) for i, x in zip(graph.input, case.data_sets[0][0], strict=False)}
        values |= {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        if any(n and n not in values for n in graph.node[0].input) or any(x is None for x in values.values()):
            continue
        types = {i.name: i.type for i in graph.input}
        opsets = [(o.domain, o.version) for o in case.model.opset_import]
        yield plain(case.name, graph.node[0], values, opsets, types)


# The makers of nodes of com.microsoft -------------------------------------------------------------------------------


def from_makers(seeds: int):
    for module in CONTRIB:
        tests = importlib.import_module(f"test_contrib_{module}")
        for maker in getattr(tests, "DAMAGED", tests.MAKERS):
            for seed in range(seeds):
                drawn = maker(np.random.default_rng([seed, 7]))
                model = onnx.load_from_string(drawn.model(drawn.inputs, drawn.outputs))
                values = {f"x{i}": x for i, x in enumerate(drawn.inputs) if x is not None}
                opsets = [(o.domain, o.version) for o in model.opset_import]
                yield plain(f"{maker.__name__} {seed}", model.graph.node[0], values, opsets)


# Recipes ------------------------------------------------------------------------------------------------------------

DRAWN = np.random.default_rng(1)


def floats(*shape) -> np.ndarray:
    return DRAWN.random(shape, np.float32) + np.float32(0.1)


def integers(below: int, *shape, dtype=np.int64) -> np.ndarray:
    return DRAWN.integers(0, below, shape, dtype)


def octets(*shape) -> np.ndarray:
    return integers(255, *shape, dtype=np.uint8)


def texts(*values) -> np.ndarray:
    return np.array(values, object)


SCALE, ZERO = np.array(0.05, np.float32), np.array(128, np.uint8)
ONE_SCALE, ONE_ZERO = SCALE.reshape(1), ZERO.reshape(1)
QUANTISED = (SCALE, ZERO)
PLANES = (2, 3, 6, 5)


def elementwise_of_bytes(*more) -> list:
    return [octets(2, 5), *QUANTISED, *more, *QUANTISED]


def boxes(*rows) -> np.ndarray:
    return np.array(rows, np.float32)


FOREST = {
    "nodes_treeids": [0] * 3,
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
SUPPORT = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0], "support_vectors": [0.5] * 12, "rho": [0.1]}
# (operator, attributes, inputs, outputs) or the same with imports.
RECIPES = [
    # ---- ai.onnx: operators that ended, and operators without backend tests
    ("Affine", {"alpha": 2.0}, [floats(*PLANES)], 1, {"": 8}),
    ("Scale", {"scale": 2.0}, [floats(*PLANES)], 1, {"": 8}),
    ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}, [floats(*PLANES)], 1, {"": 8}),
    ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}, [floats(*PLANES)], 1, {"": 8}),
    ("ImageScaler", {"bias": [1.0, 2.0, 3.0]}, [floats(*PLANES)], 1, {"": 8}),
    ("Crop", {"border": [1, 1, 1, 1]}, [floats(*PLANES)], 1, {"": 8}),
    ("DynamicSlice", {}, [floats(4, 5), np.array([1, 0]), np.array([3, 4])], 1, {"": 8}),
    ("ConcatFromSequence", {"axis": 0}, [[floats(2, 3), floats(4, 3)]], 1),
    ("SequenceAt", {}, [[floats(2, 3), floats(4, 3)], np.array(1)], 1),
    ("SequenceConstruct", {}, [floats(2, 3), floats(4, 3)], 1),
    ("SequenceEmpty", {}, [], 1),
    ("SequenceLength", {}, [[floats(2, 3), floats(4, 3)]], 1),
    ("Optional", {}, [floats(2, 3)], 1),
    ("SequenceErase", {}, [[floats(2, 3), floats(4, 3)], np.array(1)], 1),
    ("GlobalLpPool", {}, [floats(*PLANES)], 1),
    ("MaxRoiPool", {"pooled_shape": [2, 2]}, [floats(*PLANES), boxes([0, 0, 0, 4, 4], [1, 1, 0, 3, 2])], 1),
    ("Multinomial", {"sample_size": 4, "seed": 1.0}, [floats(2, 5)], 1),
    ("RandomNormal", {"shape": [2, 3], "seed": 1.0}, [], 1),
    ("RandomUniform", {"shape": [2, 3], "seed": 1.0}, [], 1),
    ("RandomNormalLike", {"seed": 1.0}, [floats(2, 3)], 1),
    ("RandomUniformLike", {"seed": 1.0}, [floats(2, 3)], 1),
    ("SimplifiedLayerNormalization", {}, [floats(2, 3, 4), floats(4)], 2),
    # ---- products and sums of more than a few elements, where kernels have forms of their own
    *(
        ("MatMul", {}, [x(*a), x(*b)], 1)
        for x in (floats, lambda *s: floats(*s).astype(np.float64), lambda *s: integers(9, *s, dtype=np.int32))
        for a, b in (((33, 19), (19, 7)), ((3, 19), (19, 70)), ((2, 33, 19), (2, 19, 7)), ((40, 19), (19, 2)))
    ),
    ("GroupedMatMul", {}, [floats(33, 19), floats(4, 19, 7), integers(4, 33, 2)], 1, {"": 29}),
    ("MatMul", {}, [floats(33, 19).astype(np.float16), floats(19, 7).astype(np.float16)], 1),
    *(
        ("Gemm", {"transA": a, "transB": b, "alpha": 0.5}, [floats(*(19, m)[:: 1 if a else -1]), floats(*(n, 19)[:: 1 if b else -1]), floats(n)], 1)
        for a in (0, 1) for b in (0, 1) for m, n in ((33, 7), (3, 300))
    ),
    ("Einsum", {"equation": "ik,jk->ij"}, [floats(3, 19), floats(70, 19)], 1),
    ("Einsum", {"equation": "bik,bkj->bij"}, [floats(2, 33, 19), floats(2, 19, 7)], 1),
    *(
        ("Conv", {"group": g, "pads": [1] * 2 * k}, [floats(2, c, *[9, 8, 7][:k]), floats(m, c // g, *[3] * k), floats(m)], 1)
        for k in (1, 2, 3) for g, c, m in ((1, 5, 20), (3, 3, 3), (2, 4, 6))
    ),
    ("Conv", {}, [floats(1, 20, 9, 8), floats(30, 20, 1, 1), floats(30)], 1),
    *(
        ("ConvTranspose", {"group": g, "strides": [2] * k}, [floats(2, c, *[5, 4, 3][:k]), floats(c, m, *[3] * k), floats(m * g)], 1)
        for k in (1, 2, 3) for g, c, m in ((1, 5, 20), (2, 4, 3))
    ),
    ("MatMulInteger", {}, [octets(33, 19), octets(19, 40), ZERO, ZERO], 1),
    ("QLinearMatMul", {}, [octets(33, 19), *QUANTISED, octets(19, 40), *QUANTISED, *QUANTISED], 1),
    ("ConvInteger", {"pads": [1] * 4}, [octets(2, 5, 9, 8), octets(20, 5, 3, 3), ZERO], 1),
    ("QLinearConv", {}, [octets(2, 5, 9, 8), *QUANTISED, octets(20, 5, 3, 3), *QUANTISED, *QUANTISED, integers(9, 20, dtype=np.int32)], 1),
    ("QLinearConv", {"group": 5}, [octets(2, 5, 9, 8), *QUANTISED, octets(5, 1, 3, 3), *QUANTISED, *QUANTISED], 1),
    *(
        (op, {"hidden_size": 6}, [floats(4, 2, 5), floats(1, gates * 6, 5), floats(1, gates * 6, 6), floats(1, gates * 12)], outputs)
        for op, gates, outputs in (("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2))
    ),
    *(
        (op, {"hidden_size": 6, "direction": "bidirectional"}, [floats(4, 2, 5), floats(2, gates * 6, 5), floats(2, gates * 6, 6), floats(2, gates * 12), np.array([4, 3], np.int32)], outputs)
        for op, gates, outputs in (("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2))
    ),
    ("Attention", {}, [floats(2, 3, 9, 8), floats(2, 3, 20, 8), floats(2, 3, 20, 8)], 1, {"": 24}),
    ("Attention", {"is_causal": 1}, [floats(2, 3, 9, 8), floats(2, 3, 7, 8), floats(2, 3, 7, 8), None, floats(2, 3, 6, 8), floats(2, 3, 6, 8)], 3, {"": 24}),
    ("Attention", {"q_num_heads": 2, "kv_num_heads": 1}, [floats(2, 9, 8), floats(2, 20, 4), floats(2, 20, 4), floats(9, 20)], 1, {"": 24}),
    # ---- ai.onnx.ml
    ("ai.onnx.ml.CastMap", {}, [{1: np.float32(0.5), 7: np.float32(2)}], 1),
    ("ai.onnx.ml.CategoryMapper", {"cats_int64s": [1, 2], "cats_strings": ["a", "b"]}, [texts("a", "b", "c")], 1),
    ("ai.onnx.ml.DictVectorizer", {"int64_vocabulary": [1, 7]}, [{1: np.float32(0.5)}], 1),
    ("ai.onnx.ml.FeatureVectorizer", {"inputdimensions": [4, 3]}, [floats(2, 4), floats(2, 3)], 1),
    ("ai.onnx.ml.Imputer", {"imputed_value_floats": [1.0], "replaced_value_float": 0.5}, [floats(2, 4)], 1),
    ("ai.onnx.ml.LinearClassifier", {"coefficients": [0.1] * 12, "classlabels_ints": [1, 2, 3], "intercepts": [0.0] * 3}, [floats(5, 4)], 2),
    ("ai.onnx.ml.LinearRegressor", {"coefficients": [0.1] * 4}, [floats(5, 4)], 1),
    ("ai.onnx.ml.Normalizer", {"norm": "L2"}, [floats(5, 4)], 1),
    ("ai.onnx.ml.OneHotEncoder", {"cats_int64s": [1, 2, 3]}, [integers(4, 5)], 1),
    ("ai.onnx.ml.Scaler", {"offset": [0.5], "scale": [2.0]}, [floats(5, 4)], 1),
    ("ai.onnx.ml.SVMClassifier", SUPPORT | {"coefficients": [0.1] * 3, "vectors_per_class": [1, 2], "classlabels_ints": [0, 1]}, [floats(5, 4)], 2),
    ("ai.onnx.ml.SVMRegressor", SUPPORT | {"coefficients": [0.1] * 3, "n_supports": 3}, [floats(5, 4)], 1),
    ("ai.onnx.ml.TreeEnsembleClassifier", FOREST | {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1], "class_weights": [0.25, 0.75], "classlabels_int64s": [0, 1]}, [floats(5, 4)], 2, {"ai.onnx.ml": 3}),
    ("ai.onnx.ml.TreeEnsembleRegressor", FOREST | {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 1], "target_weights": [0.25, 0.75], "n_targets": 2}, [floats(5, 4)], 1, {"ai.onnx.ml": 3}),
    ("ai.onnx.ml.ZipMap", {"classlabels_int64s": [1, 2, 3]}, [floats(5, 3)], 1),
    # ---- com.microsoft: bytes
    ("com.microsoft.DequantizeLinear", {}, [octets(3, 4), *QUANTISED], 1),
    ("com.microsoft.QuantizeLinear", {}, [floats(3, 4), *QUANTISED], 1),
    ("com.microsoft.MatMulIntegerToFloat", {}, [octets(33, 19), octets(19, 40), SCALE, SCALE, ZERO, ZERO, floats(40)], 1),
    ("com.microsoft.DynamicQuantizeMatMul", {}, [floats(33, 19), octets(19, 40), SCALE, ZERO, floats(40)], 1),
    ("com.microsoft.MatMulInteger16", {}, [integers(99, 33, 19, dtype=np.int16), integers(99, 19, 40, dtype=np.int16)], 1),
    ("com.microsoft.MulInteger", {}, [octets(3, 4), ZERO, octets(3, 4), ZERO], 1),
    ("com.microsoft.QGemm", {"transB": 1}, [octets(33, 19), *QUANTISED, octets(40, 19), *QUANTISED, integers(9, 40, dtype=np.int32), *QUANTISED], 1),
    *((f"com.microsoft.{op}", {}, [octets(2, 5), *QUANTISED, octets(2, 5), *QUANTISED, *QUANTISED], 1) for op in ("QLinearAdd", "QLinearMul")),
    ("com.microsoft.QLinearAveragePool", {"kernel_shape": [2, 2]}, [octets(*PLANES), *QUANTISED, *QUANTISED], 1),
    ("com.microsoft.QLinearGlobalAveragePool", {}, [octets(*PLANES), *QUANTISED, *QUANTISED], 1),
    ("com.microsoft.QLinearConcat", {"axis": 1}, [*QUANTISED, octets(2, 3), *QUANTISED, octets(2, 5), *QUANTISED], 1),
    ("com.microsoft.QLinearConv", {}, [octets(2, 5, 9, 8), *QUANTISED, octets(20, 5, 3, 3), *QUANTISED, *QUANTISED], 1),
    ("com.microsoft.QLinearLeakyRelu", {"alpha": 0.2}, elementwise_of_bytes(), 1),
    ("com.microsoft.QLinearSigmoid", {}, elementwise_of_bytes(), 1),
    ("com.microsoft.QLinearReduceMean", {"axes": [1], "keepdims": 0}, elementwise_of_bytes(), 1),
    ("com.microsoft.QLinearSoftmax", {"opset": 13}, [octets(2, 5), *QUANTISED, np.array(1 / 256, np.float32), np.array(0, np.uint8)], 1),
    ("com.microsoft.QLinearWhere", {}, [octets(2, 5) > 99, octets(2, 5), *QUANTISED, octets(2, 5), *QUANTISED, *QUANTISED], 1),
    ("com.microsoft.ReduceSumInteger", {"axes": [1], "keepdims": 0}, [octets(3, 4)], 1),
    ("com.microsoft.QAttention", {"num_heads": 2}, [octets(2, 5, 8), octets(8, 24), floats(24), SCALE, SCALE, None, ZERO, ZERO], 1),
    ("com.microsoft.DynamicQuantizeLSTM", {"hidden_size": 6}, [floats(4, 2, 5), octets(1, 5, 24), octets(1, 6, 24), floats(1, 48), None, floats(1, 2, 6), floats(1, 2, 6), None, ONE_SCALE, ONE_ZERO, ONE_SCALE, ONE_ZERO], 3),
    ("com.microsoft.DynamicQuantizeLSTM", {"hidden_size": 6}, [floats(4, 2, 5), octets(1, 5, 24), octets(1, 6, 24), floats(1, 48), None, floats(1, 2, 6), floats(1, 2, 6), None, floats(1, 24), octets(1, 24), floats(1, 24), octets(1, 24)], 3),
    # ---- com.microsoft: operators that the makers rarely draw
    ("com.microsoft.NhwcFusedConv", {"activation": "Relu"}, [floats(2, 9, 8, 5), floats(20, 5, 1, 1), floats(20), floats(2, 9, 8, 20)], 1),
    ("com.microsoft.RemovePadding", {}, [floats(2, 3, 4), np.array([3, 1], np.int32)], 4),
    ("com.microsoft.MoE", {"k": 2}, [floats(5, 8), floats(5, 4), floats(4, 8, 8), None, floats(4, 8, 8)], 1),
]  # fmt: skip


def from_recipes():
    for number, (op, attributes, inputs, outputs, *imports) in enumerate(RECIPES):
        domain, _, op_type = op.rpartition(".")
        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
        types = tuple(None if x is None or isinstance(x, np.ndarray) else type_of(x) for x in inputs)
        yield Sample(f"{op} {number}", node, tuple(inputs), tuple((OPSETS | (imports or [{}])[0]).items()), types)


def from_searches():
    """Greedy and beam search. Their decoders compute sizes from their inputs."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
    from searches import decoder_only, encoder_and_decoder, search

    tokens = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    attributes = {"eos_token_id": 7, "pad_token_id": 0}
    greedy = {"input_ids": tokens, "max_length": 6}
    beams = greedy | {"num_beams": 2, "num_return_sequences": 1}
    decoder = {"decoder": decoder_only(1, 30)}
    for op, bodies, feeds, more, outputs in (
        ("GreedySearch", decoder, greedy, {}, 1),
        ("Sampling", decoder, greedy, {"temperature": 0.7, "top_p": 0.9}, 1),
        ("BeamSearch", decoder, beams, {}, 3),
        ("BeamSearch", encoder_and_decoder(1, 30), beams, {"model_type": 1, "decoder_start_token_id": 2}, 3),
    ):
        model, fed = search(op, bodies, feeds, attributes | more, outputs, False)
        parsed = onnx.load_from_string(model)
        opsets = [(o.domain, o.version) for o in parsed.opset_import]
        yield plain(f"{op} {len(bodies)}", parsed.graph.node[0], fed, opsets)


def type_of(x) -> onnx.TypeProto:
    float_type = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    if isinstance(x, dict):
        return helper.make_map_type_proto(
            onnx.TensorProto.INT64, helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
        )
    return helper.make_sequence_type_proto(float_type)


def signature(sample: Sample):
    """Samples of one operator with the same signature take more or less the same path through it."""
    kinds = tuple((x.dtype.str, x.ndim) if isinstance(x, np.ndarray) else type(x).__name__ for x in sample.inputs)
    return sample.op, kinds, len(sample.node.output), tuple(sorted(a.name for a in sample.node.attribute))


@functools.lru_cache
def drawn_samples(seeds: int) -> list[Sample]:
    return [*from_makers(seeds), *from_backend_cases()]


def samples(most=1000, seeds=1) -> list[Sample]:
    """At most so many nodes of each operator beside those of RECIPES, of different kinds; `seeds`: for each maker."""
    found, counts, seen = [*from_recipes(), *from_searches()], collections.Counter(), set()
    for sample in drawn_samples(seeds):
        key = signature(sample)
        if counts[sample.op] >= most or key in seen:
            continue
        seen.add(key)
        counts[sample.op] += 1
        found.append(sample)
    return found


def without_a_sample(found: list[Sample]) -> list[str]:
    """Operators that run and have neither a sample nor a reason."""
    names = [
        f"{op['domain']}.{op['name']}" if op["domain"] else op["name"] for op in treadle.operators() if op["tiers"]
    ]
    there = {sample.op for sample in found} | set(WITHOUT)
    return [name for name in names if name not in there]
