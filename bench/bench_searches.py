"""Searches for tokens (com.microsoft) over small decoders of random weights: milliseconds of a search in processor time,
treadle beside onnxruntime, one thread, in turns. The tokens of both are compared first."""

from __future__ import annotations

import dataclasses
import pathlib
import statistics
import sys
import time

import engines
import measure
import numpy as np
import record

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
import searches  # noqa: E402

SECONDS = 0.05  # of one measurement of one engine
BATCH, PROMPT, SOURCE, FEATURES = 2, 8, 50, 20
END, PAD, START = 1, 0, 2


@dataclasses.dataclass(frozen=True)
class Row:
    op: str
    width: int
    length: int
    vocabulary: int
    beams: int = 1
    family: str = "decoder"  # or encoder: as T5, sounds: as Whisper

    def name(self) -> str:
        beams = f", {self.beams} beams" if self.beams > 1 else ""
        kind = "" if self.family == "decoder" else ", encoder and decoder"
        return f"{self.op}{kind}, width {self.width}, {self.length} tokens of {self.vocabulary}{beams}"

    def build(self) -> tuple[bytes, dict[str, np.ndarray]]:
        random = np.random.default_rng(1)
        prompt = random.integers(3, self.vocabulary, (BATCH, PROMPT)).astype(np.int32)
        feeds = {"input_ids": prompt, "max_length": self.length, "min_length": self.length}
        attributes = {"eos_token_id": END, "pad_token_id": PAD}
        sizes = {"heads": self.width // 16, "head_size": 16}
        if self.family == "decoder":
            bodies = {"decoder": searches.decoder_only(1, self.vocabulary, longest=self.length, **sizes)}
        else:
            features = FEATURES if self.family == "sounds" else 0
            bodies = searches.encoder_and_decoder(1, self.vocabulary, features=features, **sizes)
            attributes |= {"model_type": 2 if features else 1, "decoder_start_token_id": START}
            if features:
                feeds["input_ids"] = random.standard_normal((BATCH, features, SOURCE)).astype(np.float32)
                feeds["decoder_input_ids"] = prompt
            else:
                feeds["input_ids"] = random.integers(3, self.vocabulary, (BATCH, SOURCE)).astype(np.int32)
        if self.op == "Sampling":
            attributes |= {"top_p": 0.9, "temperature": 1.0}
            feeds |= {"seed": 5, "repetition_penalty": 1.0}
        if self.beams > 1:
            feeds |= {"num_beams": self.beams, "num_return_sequences": 1, "length_penalty": 1.0}
        return searches.search(self.op, bodies, feeds, attributes, 1, True)


ROWS = [
    *(Row("GreedySearch", width, length, 1000) for width in (32, 64, 128) for length in (32, 128)),
    Row("GreedySearch", 64, 128, 8000),
    *(Row("Sampling", width, 64, vocabulary) for width in (32, 64, 128) for vocabulary in (1000, 8000)),
    *(Row("BeamSearch", width, length, 1000, 4) for width in (32, 64, 128) for length in (32, 128)),
    *(Row("BeamSearch", 64, 64, 1000, beams) for beams in (2, 8)),
    Row("BeamSearch", 64, 64, 8000, 4),
    *(Row("BeamSearch", width, 64, 1000, 4, "encoder") for width in (32, 64, 128)),
    *(Row("WhisperBeamSearch", width, 64, 1000, 4, "sounds") for width in (32, 64, 128)),
]


def bench_searches(options) -> None:
    print("\n| search | onnxruntime ms | treadle ms | ratio |\n| --- | --- | --- | --- |")
    ratios: dict[str, list[float]] = {}
    for row in ROWS:
        if options.match not in row.name():
            continue
        model, feeds = row.build()
        runs = [engines.bind(open_one(model), feeds) for open_one in (engines.open_theirs, engines.open_native)]
        theirs, ours = (run()[0] for run in runs)
        if not np.array_equal(theirs, ours):
            print(f"NOT THE SAME TOKENS: {row.name()}, {np.mean(theirs != ours):.1%} differ")
        times = measure.in_turns(runs, options.rounds, options.seconds or SECONDS, time.thread_time)
        theirs, ours = (min(taken) * 1e3 for taken in times)
        record.keep("searches", row.name(), operator=row.op, onnxruntime=theirs / 1e3, treadle=ours / 1e3)
        ratios.setdefault(row.op, []).append(theirs / ours)
        print(f"| {row.name()} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.2f} |", flush=True)
    for op, found in ratios.items():
        print(f"{op}: geometric mean {statistics.geometric_mean(found):.2f}, least {min(found):.2f}")
