"""The voice detector over hours of synthetic audio: a plain loop, Ray Data with one and two workers, and onnxruntime.

    build/venv-ray/bin/python bench/tables.py [--hours 10] [--rows] [--only NAME ...]

It needs ray[data] and onnxruntime in the interpreter that runs it. Recordings are 20 to 100 seconds long and cut out of
noise and tones, so reading costs next to nothing and nothing is stored. A row of a table is a recording.
"""

import argparse
import functools
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build" / "python"))
os.environ["PYTHONPATH"] = f"{sys.path[0]}:{ROOT / 'bench'}"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.setdefault("RAY_worker_niceness", "0")  # else 15: other people's work would slow the workers alone

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import treadle  # noqa: E402
from treadle.batch import Predictor  # noqa: E402

MODEL = str(ROOT / "examples" / "vad" / "silero_vad.onnx")
RATE, HOP, CONTEXT, BATCH = 16_000, 512, 64, 32
ROLES = {"time": {"input": 1}, "hop": HOP, "context": CONTEXT, "bind": {"sr": RATE}}
MEAN_SECONDS = 60


@functools.cache
def sound():
    rng = np.random.default_rng(0)
    t = np.arange(300 * RATE, dtype=np.float32) / RATE
    tones = np.sin(700 * t * (1 + 0.2 * np.sin(t))) * (np.sin(2 * t) > 0) * 0.3
    return (tones + rng.standard_normal(len(t)) * 0.02).astype(np.float32)


def recordings(ids):
    """A signal for each number, the same one whenever it is asked for."""
    found = np.empty(len(ids), object)
    for i, number in enumerate(ids):
        own = np.random.default_rng(int(number))
        length = int(own.integers(20 * RATE, 100 * RATE))
        begin = int(own.integers(0, len(sound()) - length))
        found[i] = sound()[begin : begin + length]
    return found


class WithTreadle:
    """The predictor, over signals that are made on the spot."""

    def __init__(self):
        self.predict = Predictor(MODEL, inputs={"input": "audio"}, outputs={"output": "speech"}, keep=["id"], **ROLES)

    def __call__(self, batch):
        table = self.predict({"id": batch["id"], "audio": recordings(batch["id"])})
        return {"id": table["id"], "speech": np.array([row.mean() for row in table["speech"]])}


class WithOnnxruntime:
    """A batch made by hand: windows of all signals that have not ended, the longest first, in lockstep."""

    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(MODEL, options)

    def __call__(self, batch):
        signals = recordings(batch["id"])
        order = sorted(range(len(signals)), key=lambda i: -len(signals[i]))
        windows = [-(-len(signals[i]) // HOP) for i in order]
        padded = np.zeros((len(order), CONTEXT + windows[0] * HOP), np.float32)
        for row, i in zip(padded, order, strict=True):
            row[CONTEXT : CONTEXT + len(signals[i])] = signals[i]
        state, sums, live = np.zeros((2, len(order), 128), np.float32), np.zeros(len(order)), len(order)
        for k in range(windows[0]):
            while windows[live - 1] <= k:
                live -= 1
            feed = {
                "input": padded[:live, k * HOP : (k + 1) * HOP + CONTEXT],
                "state": state[:, :live],
                "sr": np.array(RATE),
            }
            out, state = self.session.run(["output", "stateN"], feed)
            sums[:live] += out[:, 0]
        means = np.empty(len(order))
        means[order] = sums / windows
        return {"id": batch["id"], "speech": means}


def row_by_row(rows):
    """A stream for each recording."""
    session = WithTreadle().predict.session
    for signal in (recordings([i])[0] for i in range(rows)):
        stream = session.stream(**ROLES)
        stream.push(signal[None]), stream.flush()


def in_a_loop(kind, rows):
    run = kind()
    for at in range(0, rows, BATCH):
        run({"id": np.arange(at, min(at + BATCH, rows))})


def with_ray(kind, workers, rows):
    import ray

    table = ray.data.range(rows, override_num_blocks=max(4 * workers, rows // (4 * BATCH))).map_batches(
        kind, batch_size=BATCH, num_cpus=1, compute=ray.data.ActorPoolStrategy(size=workers)
    )
    assert table.materialize().count() == rows


def start_ray():
    import ray

    ray.init(
        num_cpus=3, include_dashboard=False, logging_level="error", log_to_driver=False, object_store_memory=400 << 20
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # range() names its column id, as the classes here do.
    for workers in (1, 2):
        with_ray(WithTreadle, workers, 8)  # the first pipeline starts processes


JOBS = {
    "treadle, a stream for each row": lambda rows: row_by_row(rows),
    "treadle, a loop over batches": lambda rows: in_a_loop(WithTreadle, rows),
    "onnxruntime, a loop over batches": lambda rows: in_a_loop(WithOnnxruntime, rows),
    "treadle, Ray, 1 worker": lambda rows: with_ray(WithTreadle, 1, rows),
    "treadle, Ray, 2 workers": lambda rows: with_ray(WithTreadle, 2, rows),
    "onnxruntime, Ray, 2 workers": lambda rows: with_ray(WithOnnxruntime, 2, rows),
}


def cost_of_a_row():
    """Microseconds a row of 10 frames at 256 rows a batch, LSTM of 16, of a predictor and of a loop written by hand, in turns."""
    rng = np.random.default_rng(0)

    def numbers(*sizes):
        values = ", ".join(f"{x:.3f}" for x in rng.standard_normal(int(np.prod(sizes))))
        return f"float[{','.join(map(str, sizes))}] {{}} = {{{{{values}}}}}"

    weights = ", ".join((numbers(1, 64, 8).format("w"), numbers(1, 64, 16).format("r")))
    model = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (float[N,T,8] x) => (float[N,T,16] y, float[N,16] last) <{weights}, int64[1] one = {{1}}, int64[1] zero = {{0}}> {{
      xt = Transpose <perm = [1, 0, 2]> (x)
      yt, h = LSTM <hidden_size = 16> (xt, w, r)
      ys = Squeeze (yt, one)
      y = Transpose <perm = [1, 0, 2]> (ys)
      last = Squeeze (h, zero)
    }}"""
    session = Predictor(treadle.parse_model(model)).session
    predict = Predictor(session)
    dense = rng.standard_normal((256, 10, 8)).astype(np.float32)
    ragged = np.empty(256, object)
    for i, row in enumerate(dense):
        ragged[i] = row.ravel()

    def by_hand_dense():
        y, last = session.run(None, {"x": dense})
        return {"y": list(y), "last": last}

    def by_hand_ragged():
        y, last = session.run(None, {"x": np.stack([row.reshape(-1, 8) for row in ragged])})
        return {"y": list(y), "last": last}

    runs = (by_hand_dense, lambda: predict({"x": dense}), by_hand_ragged, lambda: predict({"x": ragged}))
    best = [1e9] * 4
    for _ in range(300):
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    us = [1e6 * seconds / 256 for seconds in best]
    print(f"us a row, dense column: by hand {us[0]:.2f}, predictor {us[1]:.2f}, ratio {us[1] / us[0]:.2f}")
    print(f"us a row, ragged column: by hand {us[2]:.2f}, predictor {us[3]:.2f}, ratio {us[3] / us[2]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--rows", action="store_true", help="only what a row costs at 256 rows a batch")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="names of jobs, or parts of them")
    options = parser.parse_args()
    cost_of_a_row()
    if options.rows:
        return
    wanted = [name for name in JOBS if any(part in name for part in options.only)]
    rows = max(int(options.hours * 3600 / MEAN_SECONDS), 1)
    one, other = WithTreadle()({"id": np.arange(4)}), WithOnnxruntime()({"id": np.arange(4)})
    np.testing.assert_allclose(one["speech"], other["speech"], atol=1e-4)
    if any("Ray" in name for name in wanted):
        start_ray()
    for name in wanted:
        start = time.perf_counter()
        JOBS[name](rows)
        took = time.perf_counter() - start
        load = os.getloadavg()[0]
        print(
            f"{name}: {rows} rows, {took:.1f} s, {rows / took:.2f} rows/s, {rows * MEAN_SECONDS / took:.0f} x real time, load {load:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    import tables  # under a name that workers can import

    tables.main()
