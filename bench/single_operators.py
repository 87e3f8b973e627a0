"""Models of one operator each, of the sizes and types that people use: what `./dev bench operators` measures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
from onnx import helper, numpy_helper

OPSET = 21
PLANES = (1, 64, 56, 56)
ROWS = (64, 1024)
VIDEO = (1, 16, 16, 28, 28)
TOKENS = (1, 128, 768)

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """`inputs` are given to each run, `constants` lie in the model."""

    op: str
    name: str
    inputs: dict[str, np.ndarray]
    constants: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    attributes: dict[str, object] = dataclasses.field(default_factory=dict)
    order: tuple[str, ...] = ()  # of the node's inputs where it is not inputs, then constants; "": an input left out
    outputs: int = 1
    opset: int = OPSET

    def title(self) -> str:
        return f"{self.op} {self.name}"

    def model(self) -> bytes:
        names = self.order or (*self.inputs, *self.constants)
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, **self.attributes)
        inputs = [
            helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for k, v in self.inputs.items()
        ]
        tensors = [numpy_helper.from_array(v, k) for k, v in self.constants.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in results]
        graph = helper.make_graph([node], self.op, inputs, outputs, tensors)
        opsets = [helper.make_opsetid("", self.opset)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def floats(*shape: int, dtype=np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def integers(low: int, high: int, *shape: int, dtype=np.int64, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def bools(share: float, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape) < share


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def sizes(shape: Shape) -> str:
    return "x".join(map(str, shape))


# --- Windows


def pool(op: str, shape: Shape, kernel: Shape, stride: int = 1, dtype=np.float32, **more) -> Case:
    outputs = more.pop("outputs", 1)
    said = [f"{k} {v}" for k, v in more.items() if k != "pads"]
    if "pads" in more:
        said.append("padded")
        more["pads"] = [more["pads"]] * (2 * len(kernel))
    if "dilations" in more:
        more["dilations"] = [more["dilations"]] * len(kernel)
    attributes = {"kernel_shape": list(kernel), "strides": [stride] * len(kernel), **more}
    x = floats(*shape) if dtype is np.float32 else (10 * floats(*shape)).astype(dtype)
    said.append(np.dtype(dtype).name) if dtype is not np.float32 else None
    said.append("with indices") if outputs > 1 else None
    name = ", ".join([f"{sizes(kernel)} stride {stride} @ {sizes(shape)}", *said])
    return Case(op, name, {"x": x}, {}, attributes, outputs=outputs)


def pools() -> Iterator[Case]:
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield pool(op, (1, 64, 112, 112), (3, 3), 2, pads=1)
        yield pool(op, PLANES, (2, 2), 2)
        yield pool(op, PLANES, (3, 3), 1, pads=1)
        yield pool(op, (1, 256, 14, 14), (3, 3), 1, pads=1)
        yield pool(op, (1, 512, 7, 7), (2, 2), 1)
        yield pool(op, (1, 128, 20, 20), (5, 5), 1, pads=2)
        yield pool(op, PLANES, (3, 3), 3)
        yield pool(op, (1, 64, 1000), (3,), 2, pads=1)
        yield pool(op, (1, 256, 100), (5,), 5)
        yield pool(op, VIDEO, (2, 2, 2), 2)
        yield pool(op, VIDEO, (3, 3, 3), 1, pads=1)
        yield pool(op, PLANES, (3, 3), 1, pads=2, dilations=2)
        yield pool(op, (1, 64, 57, 57), (3, 3), 2, ceil_mode=1)
        yield Case("Global" + op, sizes((1, 512, 7, 7)), {"x": floats(1, 512, 7, 7)})
        yield Case("Global" + op, sizes((1, 64, 112, 112)), {"x": floats(1, 64, 112, 112)})
    yield pool("MaxPool", PLANES, (2, 2), 2, outputs=2)
    yield pool("MaxPool", PLANES, (3, 3), 1, pads=1, outputs=2)
    yield pool("MaxPool", PLANES, (3, 3), 2, np.int8, pads=1)
    yield pool("MaxPool", PLANES, (2, 2), 2, np.uint8)
    yield pool("MaxPool", PLANES, (3, 3), 2, np.float64, pads=1)
    yield pool("MaxPool", (1, 512, 14, 14), (5, 5), 1, pads=2)
    yield pool("MaxPool", (1, 256, 20, 20), (13, 13), 1, pads=6)
    yield pool("AveragePool", (1, 64, 112, 112), (3, 3), 2, pads=1, count_include_pad=1)
    yield pool("AveragePool", (1, 512, 7, 7), (7, 7), 1)
    yield pool("LpPool", PLANES, (3, 3), 2, p=1)
    yield pool("LpPool", PLANES, (3, 3), 2, p=3)


# --- Moving


def transpose(shape: Shape, permutation: Shape, dtype=np.float32) -> Case:
    name = f"{sizes(shape)} to {sizes(permutation)} {np.dtype(dtype).name}"
    return Case("Transpose", name, {"x": floats(*shape).astype(dtype)}, {}, {"perm": list(permutation)})


def transposes() -> Iterator[Case]:
    for dtype in (np.float32, np.uint8, np.float16, np.int64):
        yield transpose((512, 768), (1, 0), dtype)
        yield transpose((1, 64, 56, 56), (0, 2, 3, 1), dtype)
        yield transpose((1, 56, 56, 64), (0, 3, 1, 2), dtype)
        yield transpose((1, 128, 12, 64), (0, 2, 1, 3), dtype)
    yield transpose((1, 128, 12, 64), (0, 2, 3, 1))
    yield transpose((1, 3, 224, 224), (0, 2, 3, 1))
    yield transpose((1, 224, 224, 3), (0, 3, 1, 2))
    yield transpose((1, 224, 224, 3), (0, 3, 1, 2), np.uint8)
    yield transpose((100, 16, 80), (1, 0, 2))
    yield transpose((16, 80, 100), (0, 2, 1))
    yield transpose((1, 8, 32, 4, 8, 16), (0, 3, 5, 1, 4, 2))
    yield transpose((2, 3, 4, 5, 6, 7), (5, 4, 3, 2, 1, 0))
    yield transpose((16, 64, 64), (2, 1, 0))
    yield transpose((1000, 4), (1, 0))
    yield transpose((4, 1000), (1, 0))
    yield transpose((1, 36, 84, 85), (0, 3, 1, 2))


def pad(shape: Shape, pads: tuple[int, ...], mode: str = "constant", dtype=np.float32) -> Case:
    name = f"{mode} {sizes(shape)} by {','.join(map(str, pads))} {np.dtype(dtype).name}"
    return Case("Pad", name, {"x": floats(*shape).astype(dtype)}, {"pads": ints(*pads)}, {"mode": mode})


def paddings() -> Iterator[Case]:
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield pad(PLANES, (0, 0, 1, 1, 0, 0, 1, 1), mode)
        yield pad((1, 3, 224, 224), (0, 0, 3, 3, 0, 0, 3, 3), mode)
        yield pad((1, 16000), (0, 200, 0, 200), mode)
        yield pad((1, 80, 1000), (0, 0, 4, 0, 0, 0), mode)
    yield pad((64, 1000, 3), (0, 0, 0, 0, 0, 1))
    yield pad((1, 56, 56, 64), (0, 1, 1, 0, 0, 1, 1, 0))
    yield pad(PLANES, (0, 0, 1, 1, 0, 0, 1, 1), dtype=np.uint8)
    yield pad(PLANES, (0, 0, 1, 1, 0, 0, 1, 1), dtype=np.int64)
    yield pad(PLANES, (0, 0, -1, -1, 0, 0, -1, -1))
    yield pad((12, 128, 128), (0, 0, 0, 0, 0, 1))


def slices(shape: Shape, starts: Shape, ends: Shape, axes: Shape, steps: Shape, dtype=np.float32) -> Case:
    taken = ", ".join(f"axis {a} {s}:{e}:{t}" for s, e, a, t in zip(starts, ends, axes, steps, strict=True))
    constants = {"starts": ints(*starts), "ends": ints(*ends), "axes": ints(*axes), "steps": ints(*steps)}
    return Case(
        "Slice", f"{sizes(shape)} {taken} {np.dtype(dtype).name}", {"x": floats(*shape).astype(dtype)}, constants
    )


def moves() -> Iterator[Case]:
    yield from transposes()
    yield from paddings()
    for dtype in (np.float32, np.uint8, np.int64):
        yield slices(PLANES, (0, 0), (1000, 1000), (2, 3), (2, 2), dtype)
        yield slices((512, 1024), (0,), (512,), (1,), (1,), dtype)
    yield slices(PLANES, (1, 1), (1000, 1000), (2, 3), (1, 1))
    yield slices((512, 768), (-1,), (-1000,), (0,), (-1,))
    yield slices((512, 768), (-1,), (-1000,), (1,), (-1,))
    yield slices((128, 2304), (0,), (2304,), (1,), (3,))
    x = floats(*PLANES)
    for axis in (1, 2, 3):
        yield Case("Concat", f"two of {sizes(PLANES)}, axis {axis}", {"a": x, "b": x}, {}, {"axis": axis})
        yield Case("Split", f"{sizes(PLANES)} in two, axis {axis}", {"x": x}, {}, {"axis": axis, "num_outputs": 2}, outputs=2)  # fmt: skip
    yield Case("Concat", "4 of 100x100x1, axis 2", {n: floats(100, 100, 1) for n in "abcd"}, {}, {"axis": 2})
    yield Case("Concat", "4 of 8400x1 int64, axis 1", {n: integers(0, 9, 8400, 1) for n in "abcd"}, {}, {"axis": 1})
    yield Case("Split", "8400x4 in four, axis 1", {"x": floats(8400, 4)}, {}, {"axis": 1, "num_outputs": 4}, outputs=4)
    yield Case("Split", "128x2304 in three, axis 1", {"x": floats(128, 2304)}, {}, {"axis": 1, "num_outputs": 3}, outputs=3)  # fmt: skip
    yield Case("Tile", "64x256 by 4,4", {"x": floats(64, 256)}, {"repeats": ints(4, 4)})
    yield Case("Tile", "1000x1 by 1,80", {"x": floats(1000, 1)}, {"repeats": ints(1, 80)})
    yield Case("Tile", "1x80 by 1000,1", {"x": floats(1, 80)}, {"repeats": ints(1000, 1)})
    yield Case("Tile", "100x3 by 1,100 int64", {"x": integers(0, 9, 100, 3)}, {"repeats": ints(1, 100)})
    yield Case("Expand", "1x1x512 to 64x8x512", {"x": floats(1, 1, 512)}, {"shape": ints(64, 8, 512)})
    yield Case("Expand", "512x1 to 512x512", {"x": floats(512, 1)}, {"shape": ints(512, 512)})
    yield Case("Expand", "8x1x128x64 to 8x4x128x64", {"x": floats(8, 1, 128, 64)}, {"shape": ints(8, 4, 128, 64)})
    yield Case("Expand", "1x128 to 128x128 bool", {"x": bools(0.5, 1, 128)}, {"shape": ints(128, 128)})
    for op in ("DepthToSpace", "SpaceToDepth"):
        shape = (1, 64, 56, 56)
        yield Case(op, f"{sizes(shape)} by 2", {"x": floats(*shape)}, {}, {"blocksize": 2})
    yield Case("DepthToSpace", "1x9x224x224 by 3, CRD", {"x": floats(1, 9, 224, 224)}, {}, {"blocksize": 3, "mode": "CRD"})  # fmt: skip
    yield Case("Trilu", "8x128x128 upper", {"x": floats(8, 128, 128)}, {"k": np.array(1, np.int64)}, {"upper": 1})
    yield Case("Trilu", "512x512 lower", {"x": floats(512, 512)}, {}, {"upper": 0})
    yield Case("ReverseSequence", "100x16x80", {"x": floats(100, 16, 80)}, {"lengths": integers(1, 100, 16)})
    yield Case("Col2Im", "1x144x3136", {"x": floats(1, 144, 3136)}, {"size": ints(56, 56), "block": ints(3, 3)}, {"pads": [1, 1, 1, 1]})  # fmt: skip


# --- Indexing


def indexing() -> Iterator[Case]:
    table = floats(30000, 256)
    for count in (16, 512):
        yield Case(
            "Gather", f"30000x256, {count} rows", {"i": integers(0, 30000, count)}, {"x": table}, order=("x", "i")
        )
    yield Case(
        "Gather", "256x1024 at 512 columns", {"x": floats(256, 1024), "i": integers(0, 1024, 512)}, {}, {"axis": 1}
    )
    yield Case("Gather", "100000 at 65536", {"x": floats(100000), "i": integers(0, 100000, 65536)})
    yield Case("Gather", "100000 at 65536 int64", {"x": integers(0, 9, 100000), "i": integers(0, 100000, 65536)})
    yield Case("Gather", "30000x256 float16, 512 rows", {"i": integers(0, 30000, 512)}, {"x": table.astype(np.float16)}, order=("x", "i"))  # fmt: skip
    yield Case("Gather", "64x1024 at 256 int32 columns", {"x": floats(64, 1024), "i": integers(0, 1024, 256, dtype=np.int32)}, {}, {"axis": 1})  # fmt: skip
    for axis, shape in ((1, ROWS), (0, ROWS), (1, (1, 8400, 4))):
        x = floats(*shape)
        i = integers(0, shape[axis], *shape)
        yield Case("GatherElements", f"{sizes(shape)}, axis {axis}", {"x": x, "i": i}, {}, {"axis": axis})
        yield Case("ScatterElements", f"{sizes(shape)}, axis {axis}", {"x": x, "i": i, "u": x}, {}, {"axis": axis})
    i = integers(0, 1024, *ROWS)
    yield Case("ScatterElements", "64x1024, axis 1, add", {"x": floats(*ROWS), "i": i, "u": floats(*ROWS)}, {}, {"axis": 1, "reduction": "add"})  # fmt: skip
    yield Case("GatherND", "100x100x64 at 4096", {"x": floats(100, 100, 64), "i": integers(0, 100, 4096, 2)})
    yield Case("GatherND", "256x256 at 16384", {"x": floats(256, 256), "i": integers(0, 256, 16384, 2)})
    yield Case("GatherND", "8x512x64 at 8x128, a batch", {"x": floats(8, 512, 64), "i": integers(0, 512, 8, 128, 1)}, {}, {"batch_dims": 1})  # fmt: skip
    for reduction in ("none", "add", "max"):
        yield Case("ScatterND", f"1000x64 at 500 rows, {reduction}", {"x": floats(1000, 64), "i": integers(0, 1000, 500, 1), "u": floats(500, 64)}, {}, {"reduction": reduction})  # fmt: skip
        yield Case("ScatterND", f"256x256 at 16384, {reduction}", {"x": floats(256, 256), "i": integers(0, 256, 16384, 2), "u": floats(16384)}, {}, {"reduction": reduction})  # fmt: skip
    x = floats(65536)
    for share in (0.05, 0.5):
        mask = bools(share, 65536)
        yield Case("Compress", f"65536, {share:.0%} kept", {"x": x, "c": mask})
        yield Case("NonZero", f"65536 bool, {share:.0%} set", {"x": mask})
        yield Case("NonZero", f"256x256 float, {share:.0%} set", {"x": np.where(mask, x, 0).reshape(256, 256)})
    yield Case("Compress", "1024x64, half of the rows", {"x": floats(1024, 64), "c": bools(0.5, 1024)}, {}, {"axis": 0})
    yield Case("Compress", "64x1024, half of the columns", {"x": floats(*ROWS), "c": bools(0.5, 1024)}, {}, {"axis": 1})
    yield Case("Compress", "65536 int64, half kept", {"x": integers(0, 9, 65536), "c": bools(0.5, 65536)})
    for kinds in (100, 1 << 40):
        x = integers(0, kinds, 16384)
        yield Case("Unique", f"16384 int64 of {kinds}", {"x": x}, outputs=4)
        yield Case("Unique", f"16384 int64 of {kinds}, not sorted", {"x": x}, {}, {"sorted": 0}, outputs=4)
    yield Case("Unique", "16384 float", {"x": floats(16384)}, outputs=1)
    yield Case("Unique", "1024x8, rows", {"x": integers(0, 3, 1024, 8).astype(np.float32)}, {}, {"axis": 0}, outputs=4)
    yield Case("OneHot", "1024 of 256", {"i": integers(0, 256, 1024)}, {"d": ints(256), "v": np.array([0, 1], np.float32)}, {"axis": -1})  # fmt: skip
    yield Case("OneHot", "64x64 of 100, axis 1", {"i": integers(0, 100, 64, 64)}, {"d": ints(100), "v": np.array([0, 1], np.float32)}, {"axis": 1})  # fmt: skip
    yield Case("TensorScatter", "1x8x512x64, 1 row", {"x": floats(1, 8, 512, 64), "u": floats(1, 8, 1, 64)}, {"i": ints(7)}, {"axis": 2}, opset=24)  # fmt: skip


# --- Sorting


def sorting() -> Iterator[Case]:
    for shape, k in (((1, 1000), 5), ((1, 8400), 100), ((64, 1000), 10), ((1, 50257), 50), ((100, 80), 80), ((1, 16384), 16384)):  # fmt: skip
        yield Case("TopK", f"{k} of {sizes(shape)}", {"x": floats(*shape)}, {"k": ints(k)}, outputs=2)
    yield Case("TopK", "100 of 8400 int64", {"x": integers(0, 1 << 40, 8400)}, {"k": ints(100)}, outputs=2)
    yield Case("TopK", "10 of 1000x64, axis 0", {"x": floats(1000, 64)}, {"k": ints(10)}, {"axis": 0}, outputs=2)
    yield Case("TopK", "1 of 64x1000", {"x": floats(64, 1000)}, {"k": ints(1)}, outputs=2)
    boxes = np.random.default_rng(0).random((1, 1000, 4)).astype(np.float32)
    boxes[..., 2:] = boxes[..., :2] + 0.2 * boxes[..., 2:]
    scores = np.random.default_rng(1).random((1, 1, 1000)).astype(np.float32)
    constants = {"most": ints(100), "iou": np.array([0.5], np.float32), "score": np.array([0.3], np.float32)}
    yield Case("NonMaxSuppression", "1000 boxes", {"boxes": boxes, "scores": scores}, constants)
    scores = np.random.default_rng(1).random((1, 20, 1000)).astype(np.float32)
    yield Case("NonMaxSuppression", "1000 boxes, 20 classes", {"boxes": boxes, "scores": scores}, constants)


# --- Reductions

REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


def reductions() -> Iterator[Case]:
    for kind in REDUCTIONS:
        for shape, axes in (((512, 768), (1,)), ((512, 768), (0,)), ((8, 64, 28, 28), (2, 3)), ((8, 64, 28, 28), (1,)), ((512, 768), (0, 1)), ((4096, 8), (1,)), ((8, 64, 784), (0, 2)), ((128, 12, 64), (1,))):  # fmt: skip
            x = floats(*shape)
            x = np.abs(x) if kind == "LogSum" else 1 + x / 1000 if kind == "Prod" else x
            yield Case(
                "Reduce" + kind, f"{sizes(shape)}, axes {','.join(map(str, axes))}", {"x": x}, {"axes": ints(*axes)}
            )
    for kind in ("Sum", "Max", "Min", "Prod", "Mean"):
        for dtype in (np.int64, np.int32, np.float64):
            x = integers(-2, 3, 512, 768, dtype=dtype)
            for axis in (0, 1):
                yield Case(
                    "Reduce" + kind, f"512x768 {np.dtype(dtype).name}, axis {axis}", {"x": x}, {"axes": ints(axis)}
                )
    for kind in ("Max", "Min"):
        for dtype in (np.uint8, np.int8, bool):
            x = integers(0, 2 if dtype is bool else 100, 512, 768).astype(dtype)
            yield Case(
                "Reduce" + kind, f"512x768 {np.dtype(dtype).name}, axis 1", {"x": x}, {"axes": ints(1)}, opset=20
            )
    yield Case("ReduceMean", "512x768 float16, axis 1", {"x": floats(512, 768, dtype=np.float16)}, {"axes": ints(1)})
    for op in ("ArgMax", "ArgMin"):
        for shape, axis in (((64, 1000), 1), ((1000, 64), 0), ((1, 21, 128, 128), 1), ((1, 50257), 1), ((1024, 8), 1)):
            yield Case(op, f"{sizes(shape)}, axis {axis}", {"x": floats(*shape)}, {}, {"axis": axis})
    yield Case("ArgMax", "64x1000 int32, axis 1", {"x": integers(0, 999, 64, 1000, dtype=np.int32)}, {}, {"axis": 1})
    yield Case("ArgMax", "64x1000 uint8, axis 1", {"x": integers(0, 255, 64, 1000, dtype=np.uint8)}, {}, {"axis": 1})
    for shape, axis in ((ROWS, 1), (ROWS, 0), ((16, 64, 64), 1), ((1, 65536), 1)):
        yield Case("CumSum", f"{sizes(shape)}, axis {axis}", {"x": floats(*shape)}, {"axis": np.array(axis, np.int64)})
    yield Case("CumSum", "64x1024 int64, axis 1", {"x": integers(0, 9, *ROWS)}, {"axis": np.array(1, np.int64)})
    yield Case("CumSum", "64x1024 int32, reverse", {"x": integers(0, 9, *ROWS, dtype=np.int32)}, {"axis": np.array(1, np.int64)}, {"reverse": 1})  # fmt: skip


# --- Normalisation


def normalisations() -> Iterator[Case]:
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for shape, axis in (((128, 1000), -1), ((12, 128, 128), -1), ((1, 21, 64, 64), 1), ((1, 50257), -1), ((4096, 16), -1)):  # fmt: skip
            yield Case(op, f"{sizes(shape)}, axis {axis}", {"x": floats(*shape)}, {}, {"axis": axis})
    yield Case("Softmax", "128x1000 float64", {"x": floats(128, 1000, dtype=np.float64)})
    ones, zeros = np.ones(768, np.float32), np.zeros(768, np.float32)
    for shape in (TOKENS, (1, 1500, 384), (4096, 64)):
        n = shape[-1]
        yield Case(
            "LayerNormalization",
            sizes(shape),
            {"x": floats(*shape)},
            {"s": np.resize(ones, n), "b": np.resize(zeros, n)},
        )
    yield Case("RMSNormalization", sizes(TOKENS), {"x": floats(*TOKENS)}, {"s": ones}, opset=23)
    s, b = np.ones(64, np.float32), np.zeros(64, np.float32)
    yield Case("InstanceNormalization", sizes(PLANES), {"x": floats(*PLANES)}, {"s": s, "b": b})
    yield Case("GroupNormalization", sizes(PLANES), {"x": floats(*PLANES)}, {"s": s, "b": b}, {"num_groups": 32})
    yield Case("BatchNormalization", sizes(PLANES), {"x": floats(*PLANES)}, {"s": s, "b": b, "m": b, "v": s})
    yield Case("LpNormalization", "512x768", {"x": floats(512, 768)}, {}, {"axis": -1})
    yield Case("LpNormalization", "1x64x56x56, axis 1", {"x": floats(*PLANES)}, {}, {"axis": 1})
    yield Case("LRN", sizes(PLANES), {"x": floats(*PLANES)}, {}, {"size": 5})
    yield Case("MeanVarianceNormalization", sizes(PLANES), {"x": floats(*PLANES)})


# --- Types

TYPES = (np.float32, np.float16, np.float64, np.int64, np.int32, np.uint8, np.int8, bool)


def quantised(dtype, x: np.ndarray, channels: int = 0) -> Case:
    scale = np.full(channels, 0.02, np.float32) if channels else np.array(0.02, np.float32)
    zero = np.full(scale.shape, 3, dtype)
    how = f", {channels} channels" if channels else ""
    name = f"{sizes(x.shape)} {np.dtype(dtype).name}{how}"
    return Case("QuantizeLinear", name, {"x": x}, {"s": scale, "z": zero}, {"axis": 1} if channels else {})


def types() -> Iterator[Case]:
    for source in TYPES:
        for target in TYPES:
            if source is not target:
                x = np.abs(20 * floats(512, 768)).astype(source)
                name = f"{np.dtype(source).name} to {np.dtype(target).name}"
                to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
                yield Case("Cast", name, {"x": x}, {}, {"to": to})
    for dtype in (np.uint8, np.int8, np.int16):
        for channels in (0, 64):
            yield quantised(dtype, floats(*PLANES), channels)
            case = quantised(dtype, floats(*PLANES), channels)
            q = integers(0, 100, *PLANES, dtype=dtype)
            yield dataclasses.replace(case, op="DequantizeLinear", inputs={"x": q})
    yield quantised(np.int8, floats(512, 768))
    yield Case("DynamicQuantizeLinear", "128x768", {"x": floats(128, 768)}, outputs=3)
    yield Case("DequantizeLinear", "512x64 int32, 64 channels", {"x": integers(-999, 999, 512, 64, dtype=np.int32)}, {"s": np.full(64, 0.02, np.float32)})  # fmt: skip


# --- Elementwise


def elementwise() -> Iterator[Case]:
    x, y, c = floats(512, 768), floats(512, 768, seed=1), bools(0.5, 512, 768)
    for dtype in (np.float32, np.int64, np.uint8, np.float64):
        a, b = x.astype(dtype), y.astype(dtype)
        yield Case("Where", f"512x768 {np.dtype(dtype).name}", {"c": c, "a": a, "b": b})
    yield Case("Where", "12x128x128, mask of 128x128, scalar", {"c": bools(0.5, 128, 128), "a": floats(12, 128, 128)}, {"b": np.array(-1e9, np.float32)})  # fmt: skip
    yield Case("Where", "512x1, 512x768, scalar", {"c": bools(0.5, 512, 1), "a": x}, {"b": np.array(0, np.float32)})
    whole = integers(1, 99, 512, 768)
    for op in ("Add", "Mul", "Sub", "Div", "Max", "Min", "PRelu"):
        yield Case(op, "512x768", {"a": x, "b": y})
        yield Case(op, "1x64x56x56 by 64x1x1", {"a": floats(*PLANES)}, {"b": floats(64, 1, 1)})
        yield Case(op, "512x768 by 768", {"a": x}, {"b": floats(768)})
    for op in ("Add", "Mul", "Sub", "Div", "Max", "Min", "Mod"):
        yield Case(op, "512x768 int64", {"a": whole, "b": np.flip(whole).copy()})
        yield Case(op, "512x768 int32", {"a": whole.astype(np.int32), "b": np.flip(whole).astype(np.int32)})
    for op in ("Pow",):
        yield Case(op, "512x768 by 2", {"a": x}, {"b": np.array(2, np.float32)})
        yield Case(op, "512x768 by 0.5", {"a": np.abs(x)}, {"b": np.array(0.5, np.float32)})
        yield Case(op, "512x768 by 1.7", {"a": np.abs(x)}, {"b": np.array(1.7, np.float32)})
    for op in ("Equal", "Less", "GreaterOrEqual"):
        yield Case(op, "512x768", {"a": x, "b": y})
        yield Case(op, "512x768 int64", {"a": whole, "b": np.flip(whole).copy()})
        yield Case(op, "512x768 int64, a number", {"a": whole}, {"b": np.array(3, np.int64)})
        yield Case(op, "512x768 int32", {"a": whole.astype(np.int32), "b": np.flip(whole).astype(np.int32)})
    for op in ("And", "Or", "Xor"):
        yield Case(op, "512x768", {"a": c, "b": np.flip(c).copy()})
    yield Case("Not", "512x768", {"a": c})
    for op in ("Abs", "Neg", "Relu", "Floor", "Ceil", "Round", "Sign", "Reciprocal", "LeakyRelu", "HardSigmoid", "HardSwish", "Softsign", "ThresholdedRelu", "Selu", "Elu", "Celu", "Mish", "Softplus", "Exp", "Sigmoid", "Tanh", "Erf", "Gelu", "IsNaN", "IsInf"):  # fmt: skip
        yield Case(op, "512x768", {"a": x}, opset=22)
    for op in ("Sqrt", "Log"):
        yield Case(op, "512x768", {"a": np.abs(x)})
    for op in ("Abs", "Neg", "Sign"):
        yield Case(op, "512x768 int64", {"a": whole})
    yield Case("Clip", "512x768", {"a": x}, {"low": np.array(-1, np.float32), "high": np.array(1, np.float32)})
    yield Case("Clip", "512x768 int64", {"a": whole}, {"low": np.array(5, np.int64), "high": np.array(60, np.int64)})
    yield Case("Sum", "three of 512x768", {"a": x, "b": y, "c": x})
    yield Case("Mean", "three of 512x768", {"a": x, "b": y, "c": x})


# --- Sampling


def resize(shape: Shape, factors: tuple[float, ...], mode: str, dtype=np.float32, **more) -> Case:
    said = "".join(f", {v}" for v in more.values())
    name = f"{mode} {sizes(shape)} by {','.join(f'{f:g}' for f in factors)}{said} {np.dtype(dtype).name}"
    x = floats(*shape) if dtype is np.float32 else integers(0, 255, *shape, dtype=dtype)
    constants = {"scales": np.array(factors, np.float32)}
    return Case("Resize", name, {"x": x}, constants, {"mode": mode, **more}, ("x", "", "scales"))


def sampling() -> Iterator[Case]:
    for mode in ("nearest", "linear", "cubic"):
        for shape, factor in (((1, 64, 28, 28), 2.0), ((1, 3, 224, 224), 0.5), ((1, 16, 64, 64), 1.5)):
            yield resize(shape, (1, 1, factor, factor), mode)
    asymmetric = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    yield resize((1, 64, 28, 28), (1, 1, 2, 2), "nearest", **asymmetric)
    yield resize((1, 256, 13, 13), (1, 1, 2, 2), "nearest", **asymmetric)
    yield resize((1, 64, 28, 28), (1, 1, 2, 2), "linear", coordinate_transformation_mode="align_corners")
    yield resize((1, 64, 28, 28), (1, 1, 2, 2), "linear", coordinate_transformation_mode="pytorch_half_pixel")
    yield resize((1, 80, 200), (1, 1, 4), "nearest")
    yield resize((1, 80, 200), (1, 1, 4), "linear")
    yield resize((1, 3, 224, 224), (1, 1, 2, 2), "linear", np.uint8)
    yield resize((1, 8, 8, 28, 28), (1, 1, 2, 2, 2), "nearest")
    yield resize((1, 8, 8, 28, 28), (1, 1, 2, 2, 2), "linear")
    yield resize((1, 56, 56, 64), (1, 2, 2, 1), "linear")
    yield resize((1, 56, 56, 64), (1, 2, 2, 1), "nearest")
    theta = np.array([[[0.9, 0.1, 0], [-0.1, 0.9, 0]]], np.float32)
    yield Case("AffineGrid", "112x112", {"t": theta}, {"size": ints(1, 3, 112, 112)})
    grid = np.random.default_rng(0).uniform(-1, 1, (1, 56, 56, 2)).astype(np.float32)
    for mode in ("linear", "nearest", "cubic"):
        yield Case(
            "GridSample", f"{mode} {sizes(PLANES)} at 56x56", {"x": floats(*PLANES), "g": grid}, {}, {"mode": mode}
        )
    corners = np.sort(np.random.default_rng(0).uniform(0, 50, (50, 2, 2)), axis=1).reshape(50, 4).astype(np.float32)
    yield Case("RoiAlign", "50 of 64x56x56", {"x": floats(*PLANES), "r": corners}, {"b": np.zeros(50, np.int64)}, {"output_height": 7, "output_width": 7, "sampling_ratio": 2})  # fmt: skip
    yield Case("MaxRoiPool", "50 of 64x56x56", {"x": floats(*PLANES), "r": np.concatenate([np.zeros((50, 1), np.float32), corners], 1)}, {}, {"pooled_shape": [7, 7]})  # fmt: skip


# --- Others


def einsum(equation: str, *shapes: Shape) -> Case:
    inputs = {f"x{i}": floats(*shape, seed=i) for i, shape in enumerate(shapes)}
    return Case("Einsum", f"{equation} of {', '.join(map(sizes, shapes))}", inputs, {}, {"equation": equation})


def others() -> Iterator[Case]:
    yield einsum("bhid,bhjd->bhij", (1, 8, 128, 64), (1, 8, 128, 64))
    yield einsum("bhij,bhjd->bhid", (1, 8, 128, 128), (1, 8, 128, 64))
    yield einsum("bid,de->bie", (1, 128, 256), (256, 256))
    yield einsum("ij,j->i", (1024, 1024), (1024,))
    yield einsum("bij,bij->b", (16, 64, 64), (16, 64, 64))
    yield einsum("ii->i", (1024, 1024))
    yield einsum("ijk->kji", (32, 64, 64))
    yield einsum("i,j->ij", (512,), (768,))
    yield einsum("blhd,bshd->bhls", (1, 128, 8, 64), (1, 128, 8, 64))
    yield Case("Range", "65536 int64", {"n": np.array(65536, np.int64)}, {"a": np.array(0, np.int64), "d": np.array(1, np.int64)}, order=("a", "n", "d"))  # fmt: skip
    yield Case("Range", "65536 float", {"n": np.array(65536, np.float32)}, {"a": np.array(0, np.float32), "d": np.array(1, np.float32)}, order=("a", "n", "d"))  # fmt: skip
    yield Case("ConstantOfShape", "512x768", {"s": ints(512, 768)}, {}, {"value": numpy_helper.from_array(np.array([1.5], np.float32))})  # fmt: skip
    yield Case("EyeLike", "512x512", {"x": floats(512, 512)}, {}, {"dtype": 1})
    yield Case("DFT", "64x1024, real", {"x": floats(64, 1024, 1)}, opset=20)
    yield Case("STFT", "16000, frames of 400", {"x": floats(1, 16000, 1)}, {"step": np.array(160, np.int64), "w": np.hanning(400).astype(np.float32)})  # fmt: skip
    yield Case("Det", "64x16x16", {"x": floats(64, 16, 16)})
    yield Case("Shrink", "512x768", {"x": floats(512, 768)}, {}, {"lambd": 0.5})
    yield Case("BitShift", "512x768 uint8", {"a": integers(0, 255, 512, 768, dtype=np.uint8), "b": integers(0, 7, 512, 768, dtype=np.uint8)}, {}, {"direction": "RIGHT"})  # fmt: skip
    yield Case("BitwiseAnd", "512x768 int64", {"a": integers(0, 255, 512, 768), "b": integers(0, 255, 512, 768)})


def cases() -> Iterator[Case]:
    for make in (pools, moves, indexing, sorting, reductions, normalisations, types, elementwise, sampling, others):
        yield from make()


def elements(case: Case) -> int:
    return max(math.prod(x.shape) for x in case.inputs.values())
