"""The models of docs/gallery.md beside onnxruntime, one thread, in turns: a run over the whole signal."""

from __future__ import annotations

import pathlib
import statistics
import sys

import engines
import measure
import numpy as np
import record

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
sys.path += [str(EXAMPLES), str(EXAMPLES / "vad")]

import gallery  # noqa: E402
import vad  # noqa: E402

SECONDS = 0.02  # of one measurement of one engine
STEPS = 1000  # of the plate


def whole_signal() -> dict[str, tuple[bytes, dict[str, np.ndarray], int]]:
    """By the page's name: a model, inputs, and how many steps a run makes."""
    decoder, sound = gallery.transducer("time flows in pieces")
    plate, start = gallery.plate()
    low_pass, x = gallery.low_pass()
    tracker, _, seen = gallery.tracker()
    return {
        "transducer": (decoder, {"sound": sound}, len(sound)),
        "plate": (plate, {"steps": np.array(STEPS), "start": start}, STEPS),
        "filter": (low_pass, {"x": x}, len(x)),
        "tracker": (tracker, {"seen": seen}, len(seen)),
    }


def speech_runs() -> tuple[list[engines.Run], int]:
    """The voice detector step by step: onnxruntime's caller carries state and context, treadle's stream does so itself."""
    audio = vad.read_wav(vad.RECORDING)
    steps = len(audio) // vad.HOP
    session = engines.open_theirs(vad.MODEL.read_bytes())

    def by_hand() -> None:
        state, context = np.zeros((2, 1, 128), np.float32), np.zeros(vad.CONTEXT, np.float32)
        for i in range(steps):
            window = np.concatenate([context, audio[i * vad.HOP : (i + 1) * vad.HOP]])
            feeds = {"input": window[None], "state": state, "sr": np.array(vad.RATE)}
            _, state = session.run(None, feeds)
            context = window[-vad.CONTEXT :]

    def streamed() -> None:
        vad.speech_probability(vad.open_stream(), audio, chunk=1600)

    return [by_hand, streamed], steps


def bench_gallery(options) -> None:
    print("\n| model | steps | onnxruntime ms | treadle ms | ratio |\n| --- | --- | --- | --- | --- |")
    found = {}
    for name, (model, feeds, steps) in whole_signal().items():
        runs = [engines.bind(open_one(model), feeds) for open_one in (engines.open_theirs, engines.open_native)]
        for ours, theirs in zip(runs[1](), runs[0](), strict=True):
            if not np.allclose(ours, theirs, rtol=1e-4, atol=1e-5):
                print(f"NOT THE SAME RESULTS: {name}")
        found[name] = runs, steps
    found["speech"] = speech_runs()
    for name, (runs, steps) in found.items():
        if options.match not in name:
            continue
        times = measure.in_turns(runs, max(3, options.rounds // 2), options.seconds or SECONDS)
        theirs, ours = (statistics.median(taken) for taken in times)
        record.keep("gallery", name, steps=steps, onnxruntime=theirs, treadle=ours)
        print(f"| {name} | {steps} | {theirs * 1e3:.3f} | {ours * 1e3:.3f} | {theirs / ours:.1f} |", flush=True)
