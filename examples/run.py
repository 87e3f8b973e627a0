"""The main job of treadle on real input: find the speech in a recording, then run three loops beside onnxruntime."""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "vad"), str(HERE / "loops")]

import models  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import treadle  # noqa: E402
import vad  # noqa: E402


def median_ms(run, seconds: float = 1.0) -> float:
    run()
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < stop:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise SystemExit(f"results differ in type: {a.dtype}{a.shape} and {b.dtype}{b.shape}")
        if a.size:
            worst = max(worst, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()))
    return worst


def compare(case: models.Case) -> str:
    """A row of the table; one thread each."""
    data = case.model.SerializeToString()
    ours_options, theirs_options = treadle.SessionOptions(), onnxruntime.SessionOptions()
    ours_options.intra_op_num_threads = theirs_options.intra_op_num_threads = 1
    theirs_options.log_severity_level = 4
    ours = treadle.InferenceSession(data, ours_options)
    theirs = onnxruntime.InferenceSession(data, theirs_options, providers=["CPUExecutionProvider"])
    worst = difference(ours.run(None, case.inputs), theirs.run(None, case.inputs))
    their_ms = median_ms(lambda: theirs.run(None, case.inputs))
    our_ms = median_ms(lambda: ours.run(None, case.inputs))
    return (
        f"| {case.name} | {case.iterations} | {their_ms:.2f} | {our_ms:.3f} | {their_ms / our_ms:.1f} | {worst:.1e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "build", help="folder for the picture")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print("== speech in a recording\n")
    vad.main(arguments.out / "speech.svg")
    print(f"\n== loops beside onnxruntime {onnxruntime.__version__}, one thread, medians, {os.cpu_count()} cores\n")
    print("| model | iterations | onnxruntime ms | treadle ms | ratio | largest difference |")
    print("| --- | --- | --- | --- | --- | --- |")
    audio = vad.read_wav(vad.RECORDING)
    print(compare(models.vad_loop(onnx.load(vad.MODEL), audio, vad.HOP, vad.CONTEXT, vad.RATE)), flush=True)
    print(compare(models.selective_scan()), flush=True)
    print(compare(models.greedy_decoder()), flush=True)


if __name__ == "__main__":
    main()
