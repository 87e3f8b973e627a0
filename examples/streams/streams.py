"""A model for whole signals, fed in blocks: alone, then eight signals at once."""

from __future__ import annotations

import numpy as np
import treadle

RATE = 100  # samples per second

# The level of a signal: a filter that looks back over 15 samples, then a follower that rises fast and falls slowly.
MODEL = """
<ir_version: 9, opset_import: ["" : 20]>
level (float[batch, 1, samples] x) => (float[samples, batch] y) <float[1] silent = {0}> {
   filter = Constant <value: tensor = float[1,1,16] {
      -0.02, -0.03, -0.04, -0.04, -0.03, 0.0, 0.06, 0.1, 0.1, 0.06, 0.0, -0.03, -0.04, -0.04, -0.03, -0.02}> ()
   filtered = Conv <pads = [15, 0]> (x, filter)
   size = Abs (filtered)
   by_time = Transpose <perm = [2, 0, 1]> (size)
   last = Constant <value: tensor = int64[1] {2}> ()
   rows = Squeeze (by_time, last)
   first = Shape <start = 1, end = 2> (rows)
   silence = Expand (silent, first)
   end, y = Scan <num_scan_inputs = 1, body = follow (float[batch] before, float[batch] now) => (float[batch] after, float[batch] out) {
      fall = Constant <value: tensor = float {0.95}> ()
      less = Mul (before, fall)
      after = Max (less, now)
      out = Identity (after)
   }> (silence, rows)
}
"""


def signal(seed: int, seconds: float = 10) -> np.ndarray:
    """Bursts of a tone in noise, [1, 1, samples]."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    bursts = np.sin(2 * np.pi * 7 * t) * (np.sin(2 * np.pi * 0.3 * t + seed) > 0.5)
    return (bursts + 0.05 * rng.standard_normal(t.size)).astype(np.float32)[None, None]


def in_blocks(session: treadle.InferenceSession, x: np.ndarray, size: int) -> np.ndarray:
    stream = session.stream(time={"x": 2}, warm=size)
    levels = [stream.push(x=x[:, :, a : a + size]) for a in range(0, x.shape[2], size)]
    return np.concatenate([*levels, stream.flush()])


def together(session: treadle.InferenceSession, signals: list[np.ndarray], size: int) -> tuple[list[np.ndarray], int]:
    """The levels of all signals, whose blocks come at the same times, and how many runs that took."""
    pool = session.streams(len(signals), time={"x": 2})
    levels: list[list[np.ndarray]] = [[] for _ in signals]
    for a in range(0, signals[0].shape[2], size):
        blocks = pool.push({i: x[:, :, a : a + size] for i, x in enumerate(signals)})
        for i, level in blocks.items():
            levels[i].append(level)
    for i, parts in enumerate(levels):
        parts.append(pool.flush(i))
    return [np.concatenate(parts) for parts in levels], pool.runs


def main() -> None:
    session = treadle.InferenceSession(treadle.parse_model(MODEL))
    signals = [signal(seed) for seed in range(8)]
    whole = [session.run(None, {"x": x})[0] for x in signals]
    print(session.stream(time={"x": 2}))
    for size in (1, 7, 160):
        worst = np.abs(in_blocks(session, signals[0], size) - whole[0]).max()
        print(f"blocks of {size:3} samples: differ from one run by {worst:.1g}")
    levels, runs = together(session, signals, 160)
    worst = max(np.abs(a - b).max() for a, b in zip(levels, whole, strict=True))
    print(f"8 streams at once: differ from one run each by {worst:.1g}, in {runs} runs")


if __name__ == "__main__":
    main()
