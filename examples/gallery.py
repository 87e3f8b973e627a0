"""The models of docs/gallery.md, each with a signal for it: loops as people write them, with weights that are computed here."""

from __future__ import annotations

import numpy as np
import onnx
import treadle
from onnx import numpy_helper

LETTERS = "- abcdefghijklmnopqrstuvwxyz"  # the first one is silence


def model(text: str, **weights: np.ndarray) -> bytes:
    """The text as a model, with the weights that its header only declares."""
    parsed = onnx.ModelProto.FromString(treadle.parse_model(text))
    parsed.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    del parsed.graph.value_info[:]  # they are declared by their values now
    return parsed.SerializeToString()


# A greedy decoder of a transducer (RNN-T): for each frame it emits letters until it prefers silence, three at most. What it
# has emitted goes through an LSTM, whose state is added to the next frame.
TRANSDUCER = """
<ir_version: 9, opset_import: ["" : 20]>
transducer (float[frames, 32] sound) => (int64[letters] letter, int64[letters] at)
<float[28, 32] embedding, float[1, 128, 32] w, float[1, 128, 32] r, float[1, 256] b, float[32, 28] joint, float[28] prior,
 float[1, 1, 32] zero, bool yes = {1}, int64 most = {3}, int64 silence = {0}, int64[1] first = {0}, int64[2] row = {1, 32}>
{
  shape = Shape (sound)
  frames = Gather (shape, silence)
  none = Slice (first, first, first)
  h, c, letter, at = Loop <body = over_frames (int64 i, bool go, float[1, 1, 32] h0, float[1, 1, 32] c0, int64[k] l0, int64[k] a0)
      => (bool go2, float[1, 1, 32] h3, float[1, 1, 32] c3, int64[k2] l3, int64[k2] a3) {
    go2 = Identity (go)
    heard = Gather (sound, i)
    now = Unsqueeze (i, first)
    h3, c3, l3, a3 = Loop <body = within_a_frame (int64 j, bool more, float[1, 1, 32] h1, float[1, 1, 32] c1, int64[m] l1, int64[m] a1)
        => (bool again, float[1, 1, 32] h2, float[1, 1, 32] c2, int64[m2] l2, int64[m2] a2) {
      history = Reshape (h1, row)
      both = Add (history, heard)
      bent = Tanh (both)
      product = MatMul (bent, joint)
      scores = Add (product, prior)
      best = ArgMax <axis = 1, keepdims = 0> (scores)
      silent = Equal (best, silence)
      quiet = Squeeze (silent)
      again = Not (quiet)
      h2, c2, l2, a2 = If (again) <then_branch = emits () => (float[1, 1, 32] hn, float[1, 1, 32] cn, int64[n] ln, int64[n] an) {
        meaning = Gather (embedding, best)
        step = Unsqueeze (meaning, first)
        all, hn, cn = LSTM <hidden_size = 32> (step, w, r, b, , h1, c1)
        ln = Concat <axis = 0> (l1, best)
        an = Concat <axis = 0> (a1, now)
      }, else_branch = waits () => (float[1, 1, 32] hs, float[1, 1, 32] cs, int64[n] ls, int64[n] as) {
        hs = Identity (h1)
        cs = Identity (c1)
        ls = Identity (l1)
        as = Identity (a1)
      }>
    }> (most, yes, h0, c0, l0, a0)
  }> (frames, yes, zero, zero, none, none)
}
"""


def transducer(sentence: str) -> tuple[bytes, np.ndarray]:
    """The decoder, and frames that say the sentence: its letters one after the other, of drawn lengths, with noise.

    A letter is a code of 32 numbers. The LSTM's state becomes the code of the last letter with its sign turned, so that a
    frame that goes on saying this letter adds up to nothing, which is silence.
    """
    rng = np.random.default_rng(4)
    codes = np.ones((1, 1), np.float32)
    for _ in range(5):  # rows that are orthogonal to each other
        codes = np.kron(np.float32([[1, 1], [1, -1]]), codes)
    codes = codes[: len(LETTERS)]
    codes[0] = 0
    w, b = np.zeros((1, 128, 32), np.float32), np.zeros((1, 256), np.float32)
    w[0, 96:] = -4 * np.eye(32)  # gates in the order input, output, forget, cell: the cell takes the code's opposite
    b[0, :64], b[0, 64:96] = 8, -8  # input and output open, nothing of the past is kept
    joint, prior = codes.T.copy(), np.zeros(len(LETTERS), np.float32)
    prior[0] = 5.5
    zero, r = np.zeros((1, 1, 32), np.float32), np.zeros((1, 128, 32), np.float32)
    data = model(TRANSDUCER, embedding=codes, w=w, r=r, b=b, joint=joint, prior=prior, zero=zero)
    lengths = rng.integers(4, 9, len(sentence))
    said = np.repeat([LETTERS.index(letter) for letter in sentence], lengths)
    return data, (0.76 * codes[said] + 0.12 * rng.standard_normal((len(said), 32))).astype(np.float32)


# Heat in a plate: each iteration takes the mean of the four neighbours; the border stays as it is.
PLATE = """
<ir_version: 9, opset_import: ["" : 20]>
plate (int64 steps, float[rows, columns] start) => (float[rows, columns] end)
<bool yes = {1}, float quarter = {0.25}, int64[4] border = {1, 1, 1, 1},
 int64[2] one = {1, 1}, int64[2] back = {-1, -1},
 int64[2] axes = {0, 1}, int64[2] up = {0, 1}, int64[2] up_end = {-2, -1},
 int64[2] left = {1, 0}, int64[2] left_end = {-1, -2}, int64[2] down = {2, 1}, int64[2] down_end = {9223372036854775807, -1},
 int64[2] right = {1, 2}, int64[2] right_end = {-1, 9223372036854775807}>
{
  end = Loop <body = step (int64 i, bool go, float[rows, columns] p) => (bool go2, float[rows, columns] q) {
    go2 = Identity (go)
    above = Slice (p, up, up_end, axes)
    below = Slice (p, down, down_end, axes)
    before = Slice (p, left, left_end, axes)
    behind = Slice (p, right, right_end, axes)
    vertical = Add (above, below)
    horizontal = Add (before, behind)
    sum = Add (vertical, horizontal)
    mean = Mul (sum, quarter)
    middle = Slice (p, one, back, axes)
    change = Sub (mean, middle)
    padded = Pad (change, border)
    q = Add (p, padded)
  }> (steps, yes, start)
}
"""


def plate(side: int = 96) -> tuple[bytes, np.ndarray]:
    """The model, and a cold plate whose upper border and a spot inside are hot."""
    start = np.zeros((side, side), np.float32)
    start[0], start[side // 2 : side // 2 + 12, side // 4 : side // 4 + 12] = 1, 1
    return model(PLATE), start


# A filter of second order, sample by sample.
FILTER = """
<ir_version: 9, opset_import: ["" : 20]>
low_pass (float[samples] x) => (float[samples] y)
<float b0, float b1, float b2, float a1, float a2, float nothing = {0}>
{
  s, t, y = Scan <num_scan_inputs = 1, body = sample (float s0, float t0, float now) => (float s1, float t1, float out) {
    direct = Mul (now, b0)
    out = Add (direct, s0)
    forward1 = Mul (now, b1)
    feedback1 = Mul (out, a1)
    difference1 = Sub (forward1, feedback1)
    s1 = Add (difference1, t0)
    forward2 = Mul (now, b2)
    feedback2 = Mul (out, a2)
    t1 = Sub (forward2, feedback2)
  }> (nothing, nothing, x)
}
"""


def low_pass(rate: int = 16_000, cutoff: float = 220) -> tuple[bytes, np.ndarray]:
    """A Butterworth filter, and a quarter of a second of a tone with another one and noise on top."""
    k = np.tan(np.pi * cutoff / rate)
    norm = 1 / (1 + np.sqrt(2) * k + k * k)
    values = {"b0": k * k * norm, "b1": 2 * k * k * norm, "b2": k * k * norm}
    values |= {"a1": 2 * (k * k - 1) * norm, "a2": (1 - np.sqrt(2) * k + k * k) * norm}
    t = np.arange(rate // 8) / rate
    rng = np.random.default_rng(0)
    signal = 0.6 * np.sin(2 * np.pi * 40 * t) + 0.25 * np.sin(2 * np.pi * 1900 * t) + 0.1 * rng.standard_normal(len(t))
    return model(FILTER, **{name: np.float32(v).reshape(()) for name, v in values.items()}), signal.astype(np.float32)


# A Kalman filter: place and speed of something that is seen with noise.
TRACKER = """
<ir_version: 9, opset_import: ["" : 20]>
tracker (float[steps, 1, 1] seen) => (float[steps, 2, 1] state)
<float[2, 2] move, float[2, 2] back, float[2, 2] jolt, float[1, 2] look, float[2, 1] looked, float[1, 1] noise,
 float[2, 1] begin, float[2, 2] unsure, float[2, 2] same>
{
  last, cover, state = Scan <num_scan_inputs = 1, body = step (float[2, 1] x, float[2, 2] p, float[1, 1] z)
      => (float[2, 1] x2, float[2, 2] p2, float[2, 1] out) {
    ahead = MatMul (move, x)
    moved = MatMul (move, p)
    spread = MatMul (moved, back)
    wide = Add (spread, jolt)
    expected = MatMul (look, ahead)
    surprise = Sub (z, expected)
    across = MatMul (wide, looked)
    certainty = MatMul (look, across)
    total = Add (certainty, noise)
    gain = Div (across, total)
    correction = MatMul (gain, surprise)
    x2 = Add (ahead, correction)
    known = MatMul (gain, look)
    rest = Sub (same, known)
    p2 = MatMul (rest, wide)
    out = Identity (x2)
  }> (begin, unsure, seen)
}
"""


def tracker(steps: int = 240) -> tuple[bytes, np.ndarray, np.ndarray]:
    """The filter, a course, and the course with noise."""
    step, jolt = 0.1, 0.6
    move = np.float32([[1, step], [0, 1]])
    push = np.float32([[step * step / 2], [step]])
    look = np.float32([[1, 0]])
    data = model(TRACKER, move=move, back=move.T.copy(), jolt=jolt * push @ push.T, look=look, looked=look.T.copy(),
                 noise=np.float32([[0.04]]), begin=np.zeros((2, 1), np.float32), unsure=np.eye(2, dtype=np.float32),
                 same=np.eye(2, dtype=np.float32))  # fmt: skip
    t = np.arange(steps) * step
    course = (0.5 + 0.35 * np.sin(0.5 * t) + 0.1 * np.sin(1.7 * t)).astype(np.float32)
    seen = course + 0.2 * np.random.default_rng(1).standard_normal(steps).astype(np.float32)
    return data, course, seen.reshape(-1, 1, 1)
