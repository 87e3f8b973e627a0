"""Operators with windows, given windows, steps, pads and sizes up to the ends of int64: each node is refused, runs, or is
stopped by its limits. None takes the process with it, and none goes on for ever.
"""

import json
import math
import os
import pathlib
import random
import select
import subprocess
import sys

import pytest

WORKER = pathlib.Path(__file__).with_name("huge_windows.py")
VALUES = [
    0,
    1,
    2,
    3,
    7,
    1000,
    10**6,
    10**9,
    2**31 - 2,
    2**31 - 1,
    2**31,
    2**32,
    10**12,
    2**62,
    2**63 - 1,
    -1,
    -7,
    -(2**31),
    -(2**63),
]
TIERS = [{}, {"tier": "reference"}, {"optimize": "0"}]
CASES = 6000 if os.environ.get("TREADLE_TEST_LONG") else 400  # of each tier
SEED = int(os.environ.get("TREADLE_TEST_SEED", "7"))
PATIENCE_S = 120  # for a node whose limits are less than a second: the machine may be busy


def floats(*shape):
    return "float32", shape, [0.5] * math.prod(shape)


def of(dtype, *shape, value=1):
    return dtype, shape, [value] * math.prod(shape)


def integers(*values):
    return "int64", [len(values)], list(values)


class Draw:
    """Texts of attributes and values of inputs: most of them small, some at the ends of the range."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def size(self):
        return self.random.choice(VALUES if self.random.random() < 0.5 else [1, 2, 3])

    def sizes(self, count):
        return [self.size() for _ in range(count)]

    def attributes(self, lists=(), numbers=(), auto_pad=True, fixed=()):
        """Lists with how many values each has; some are left out."""
        texts = [f"{name} = [{', '.join(map(str, self.sizes(count)))}]" for name, count in lists if self.some()]
        texts += [f"{name} = {self.size()}" for name in numbers if self.some()]
        texts += list(fixed)
        if auto_pad and self.random.random() < 0.5:
            texts = [text for text in texts if not text.startswith("pads")]
            texts.append(f'auto_pad = "{self.random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])}"')
        return f"<{', '.join(texts)}>" if texts else ""

    def some(self):
        return self.random.random() < 0.7


WINDOW = (("strides", 2), ("dilations", 2), ("pads", 4))
POOL = (("strides", 2), ("pads", 4))
X = {"x": floats(1, 2, 5, 4)}


def kernel(draw):
    return f"kernel_shape = [{draw.size()}, {draw.size()}]"


def pool(name, lists=WINDOW, more=()):
    def make(draw):
        return f"y = {name} {draw.attributes(lists, fixed=[kernel(draw), *more])} (x)", X

    return make


def max_pool_with_indices(draw):
    return f"y, i = MaxPool {draw.attributes(WINDOW, fixed=[kernel(draw)])} (x)", X


def global_lp(draw):
    return f"y = GlobalLpPool {draw.attributes(numbers=['p'], auto_pad=False)} (x)", X


def lp_power(draw):
    return f"y = LpPool {draw.attributes(WINDOW, ['p'], fixed=[kernel(draw)])} (x)", X


def conv(name="Conv", more=(), weights=("w",)):
    def make(draw):
        feeds = X | {"w": floats(2, 2, 3, 2)}
        return f"y = {name} {draw.attributes(WINDOW, ['group'], fixed=more)} (x, w)", feeds

    return make


def one_axis(name):
    def make(draw):
        lists = (("strides", 1), ("dilations", 1), ("pads", 2))
        if name == "Conv":
            return f"y = Conv {draw.attributes(lists)} (x, w)", {"x": floats(1, 2, 9), "w": floats(2, 2, 3)}
        return f"y = {name} {draw.attributes(lists, fixed=[f'kernel_shape = [{draw.size()}]'])} (x)", {
            "x": floats(1, 2, 9)
        }

    return make


def three_axes(name):
    def make(draw):
        lists = (("strides", 3), ("dilations", 3), ("pads", 6))
        window = f"kernel_shape = [{', '.join(map(str, draw.sizes(3)))}]"
        return f"y = {name} {draw.attributes(lists, fixed=[window])} (x)", {"x": floats(1, 1, 3, 4, 5)}

    return make


def conv_bytes(draw):
    feeds = {"x": of("uint8", 1, 2, 5, 4), "w": of("uint8", 2, 2, 3, 2)}
    return f"y = ConvInteger {draw.attributes(WINDOW, ['group'])} (x, w)", feeds


def qlinear_conv(draw):
    feeds = {"x": of("uint8", 1, 2, 5, 4), "w": of("uint8", 2, 2, 3, 2), "s": floats(), "z": of("uint8")}
    return f"y = QLinearConv {draw.attributes(WINDOW, ['group'])} (x, s, z, w, s, z, s, z)", feeds


def qlinear_pool(draw):
    feeds = {"x": of("uint8", 1, 2, 5, 4), "s": floats(), "z": of("uint8")}
    attributes = draw.attributes(POOL, ["count_include_pad", "ceil_mode"], fixed=[kernel(draw)])
    return f"y = com.microsoft.QLinearAveragePool {attributes} (x, s, z, s, z)", feeds


def conv_transpose(draw):
    lists = (*WINDOW, ("output_padding", 2), ("output_shape", 2))
    return f"y = ConvTranspose {draw.attributes(lists, ['group'])} (x, w)", X | {"w": floats(2, 3, 3, 2)}


def dynamic_pads(draw):
    lists = (("strides", 2), ("dilations", 2), ("output_padding", 2))
    feeds = X | {"w": floats(2, 3, 3, 2), "p": integers(*draw.sizes(4))}
    return f"y = com.microsoft.ConvTransposeWithDynamicPads {draw.attributes(lists)} (x, w, p)", feeds


def deform_conv(draw):
    feeds = X | {"w": floats(2, 2, 3, 2), "o": floats(1, 12, 3, 3)}
    return f"y = DeformConv {draw.attributes(WINDOW, ['group', 'offset_group'], auto_pad=False)} (x, w, o)", feeds


def col2im(draw):
    lists = (("strides", 2), ("dilations", 2), ("pads", 4))
    feeds = {"x": floats(1, 8, 6), "i": integers(*draw.sizes(2)), "b": integers(*draw.sizes(2))}
    return f"y = Col2Im {draw.attributes(lists, auto_pad=False)} (x, i, b)", feeds


def max_unpool(draw):
    feeds = X | {"i": of("int64", 1, 2, 5, 4)}
    third = ""
    if draw.some():
        feeds["o"], third = integers(1, 2, *draw.sizes(2)), ", o"
    attributes = draw.attributes((("strides", 2), ("pads", 4)), auto_pad=False, fixed=[kernel(draw)])
    return f"y = MaxUnpool {attributes} (x, i{third})", feeds


def max_roi_pool(draw):
    shape = f"pooled_shape = [{draw.size()}, {draw.size()}]"
    scale = draw.random.choice(["0.5", "1e30", "-1e30", "1e-30"])
    return f"y = MaxRoiPool <{shape}, spatial_scale = {scale}> (x, r)", X | {"r": ("float32", [1, 5], [0, 0, 0, 3, 3])}


def roi_align(draw):
    attributes = draw.attributes(numbers=["output_height", "output_width", "sampling_ratio"], auto_pad=False)
    corner = draw.random.choice([3, 1e9, 3e38])
    feeds = X | {"r": ("float32", [1, 4], [0, 0, corner, corner]), "i": of("int64", 1, value=0)}
    return f"y = RoiAlign {attributes} (x, r, i)", feeds


def resize(draw):
    mode = f'mode = "{draw.random.choice(["nearest", "linear", "cubic"])}", antialias = {draw.random.choice([0, 1])}'
    if draw.some():
        return f"y = Resize <{mode}> (x, , , s)", X | {"s": integers(1, 2, *draw.sizes(2))}
    scales = [1, 1, *(draw.random.choice([0.5, 3.0, 1e-9, 1e9, 1e30]) for _ in range(2))]
    return f"y = Resize <{mode}> (x, , s)", X | {"s": ("float32", [4], scales)}


def affine_grid(draw):
    return "y = AffineGrid (t, s)", {"t": floats(1, 2, 3), "s": integers(1, 2, *draw.sizes(2))}


def stft(draw):
    feeds = {"x": floats(1, 64, 1), "s": of("int64", value=draw.size()), "l": of("int64", value=draw.size())}
    return "y = STFT (x, s, , l)", feeds


def dft(draw):
    return "y = DFT (x, l)", {"x": floats(1, 16, 1), "l": of("int64", value=draw.size())}


def blocks(name):
    def make(draw):
        return f"y = {name} <blocksize = {draw.size()}> (x)", {"x": floats(1, 4, 4, 4)}

    return make


def local_norm(draw):
    return f"y = LRN <size = {draw.size()}> (x)", X


def unfold(draw):
    attributes = draw.attributes(numbers=["size", "step", "dim"], auto_pad=False, fixed=())
    return f"y = com.microsoft.UnfoldTensor {attributes} (x)", {"x": floats(12, 3)}


def crop_and_resize(draw):
    sizes = [min(max(size, -(2**31)), 2**31 - 1) for size in draw.sizes(2)]
    feeds = X | {"r": ("float32", [1, 4], [0, 0, 1, 1]), "b": of("int32", 1, value=0), "s": ("int32", [2], sizes)}
    return "y = com.microsoft.CropAndResize (x, r, b, s)", feeds


def masked_pool(draw):
    feeds = X | {"m": of("int32", 1, 2, 5, 4)}
    return f"y = com.microsoft.MaxpoolWithMask {draw.attributes(POOL, fixed=[kernel(draw)])} (x, m)", feeds


def words_conv(draw):
    feeds = {"s": of("int32", 2, 3, 5), "w": floats(8, 1, 3, 4), "b": floats(8), "c": floats(10, 4)}
    attributes = draw.attributes(numbers=["conv_window_size", "embedding_size", "char_embedding_size"], auto_pad=False)
    return f"y = com.microsoft.WordConvEmbedding {attributes} (s, w, b, c)", feeds


def window_function(draw):
    name = draw.random.choice(["HannWindow", "HammingWindow", "BlackmanWindow"])
    return f"y = {name} (n)", {"n": of("int64", value=draw.size())}


def mel(draw):
    feeds = {name: of("int64", value=draw.size()) for name in "bfr"}
    return "y = MelWeightMatrix (b, f, r, l, u)", feeds | {"l": floats(), "u": of("float32", value=4)}


def center_crop(draw):
    return "y = CenterCropPad <axes = [2, 3]> (x, s)", X | {"s": integers(*draw.sizes(2))}


def pad(draw):
    mode = draw.random.choice(["constant", "reflect", "edge", "wrap"])
    return f'y = Pad <mode = "{mode}"> (x, p)', X | {"p": integers(*draw.sizes(8))}


def tile(draw):
    return "y = Tile (x, r)", X | {"r": integers(*draw.sizes(4))}


NODES = {
    "AveragePool": pool("AveragePool", more=["count_include_pad = 1"]),
    "AveragePool without pads": pool("AveragePool"),
    "AveragePool of one axis": one_axis("AveragePool"),
    "AveragePool of three axes": three_axes("AveragePool"),
    "AffineGrid": affine_grid,
    "CenterCropPad": center_crop,
    "Col2Im": col2im,
    "Conv": conv(),
    "Conv of one axis": one_axis("Conv"),
    "ConvInteger": conv_bytes,
    "ConvTranspose": conv_transpose,
    "ConvTransposeWithDynamicPads": dynamic_pads,
    "CropAndResize": crop_and_resize,
    "DFT": dft,
    "DeformConv": deform_conv,
    "DepthToSpace": blocks("DepthToSpace"),
    "FusedConv": conv("com.microsoft.FusedConv", ['activation = "Relu"']),
    "GlobalLpPool": global_lp,
    "LRN": local_norm,
    "LpPool": lp_power,
    "MaxPool": pool("MaxPool"),
    "MaxPool of one axis": one_axis("MaxPool"),
    "MaxPool of three axes": three_axes("MaxPool"),
    "MaxPool with indices": max_pool_with_indices,
    "MaxRoiPool": max_roi_pool,
    "MaxUnpool": max_unpool,
    "MaxpoolWithMask": masked_pool,
    "MelWeightMatrix": mel,
    "NhwcMaxPool": lambda draw: (
        f"y = com.microsoft.NhwcMaxPool {draw.attributes(WINDOW, fixed=[kernel(draw)])} (x)",
        {"x": of("uint8", 1, 5, 4, 2)},
    ),
    "Pad": pad,
    "QLinearAveragePool": qlinear_pool,
    "QLinearConv": qlinear_conv,
    "Resize": resize,
    "RoiAlign": roi_align,
    "STFT": stft,
    "SpaceToDepth": blocks("SpaceToDepth"),
    "Tile": tile,
    "UnfoldTensor": unfold,
    "WordConvEmbedding": words_conv,
    "windows": window_function,
}


class Worker:
    """A process that runs nodes. One that crashes or goes on for ever takes a process with it, and a new one begins."""

    def __init__(self, tier):
        self.tier, self.process = json.dumps(tier), None

    def run(self, case) -> tuple[str, float]:
        if self.process is None:
            command = [sys.executable, WORKER, self.tier]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        self.process.stdin.write(json.dumps(case) + "\n")
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.close()
        return (f"ended with {self.ended}" if ready else f"not within {PATIENCE_S} s"), 0.0

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.kill()
            self.ended = self.process.wait()
            self.process = None


@pytest.mark.parametrize("tier", TIERS, ids=str)
def test_each_is_refused_runs_or_stops(tier):
    draw, worker = Draw(SEED), Worker(tier)
    wrong, became, longest = [], {}, (0.0, "")
    for i in range(CASES):
        name = list(NODES)[i % len(NODES)]
        node, feeds = NODES[name](draw)
        said, seconds = worker.run({"node": node, "feeds": feeds})
        longest = max(longest, (seconds, f"{name}: {said}: {node} {feeds}"))
        kind = said.split(":")[0]
        became[kind] = became.get(kind, 0) + 1
        if kind.startswith(("ended", "not within", "EngineError", "SystemError", "MemoryError")):
            wrong.append(f"{name}: {said}: {node} {feeds}")
    worker.close()
    print(f"{CASES} nodes: {became}, longest {longest[0]:.2f} s of {longest[1]}")
    assert became["ran"] > CASES / 20
    assert not wrong, "\n".join(wrong)
