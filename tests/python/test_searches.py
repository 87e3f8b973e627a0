"""GreedySearch, Sampling, BeamSearch and WhisperBeamSearch on random small models, token by token against onnxruntime,
and in all tiers."""

import numpy as np
import onnxruntime
import pytest
import treadle
from searches import decoder_only, encoder_and_decoder, search

CASES = 24  # random ones of each search


def reference(model: bytes, feeds: dict) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def own(model: bytes, feeds: dict, **entries) -> list[np.ndarray]:
    options = treadle.SessionOptions()
    for name, value in ({"jit": "off"} | entries).items():
        options.add_session_config_entry(f"treadle.{name}", value)
    return treadle.InferenceSession(model, options).run(None, feeds)


class Draw:
    """A random search: `feeds` and `attributes` with about half of what there is to choose."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.vocabulary = int(self.random.integers(20, 40))
        self.batch, prompt = (int(n) for n in self.random.integers(1, 5, 2))
        end, pad = (int(n) for n in self.random.integers(0, self.vocabulary, 2))
        self.attributes: dict = {"eos_token_id": end, "pad_token_id": pad}
        ids = self.tokens(self.batch, prompt)
        ids[0, : self.random.integers(0, prompt)] = pad
        self.feeds: dict = {"input_ids": ids, "max_length": prompt + int(self.random.integers(2, 14))}
        if self.often():
            self.feeds["min_length"] = int(self.random.integers(0, self.feeds["max_length"]))
        if self.often():
            self.feeds["repetition_penalty"] = float(self.random.choice([0.7, 1.3]))
        if self.often():
            self.feeds["vocab_mask"] = self.flags(self.vocabulary)
        if self.often():
            self.feeds["prefix_vocab_mask"] = self.flags(self.batch, self.vocabulary)
        if self.often():
            self.attributes["no_repeat_ngram_size"] = int(self.random.integers(1, 4))

    def often(self) -> bool:
        return bool(self.random.random() < 0.5)

    def tokens(self, *shape: int) -> np.ndarray:
        return self.random.integers(0, self.vocabulary, shape, dtype=np.int32)

    def flags(self, *shape: int) -> np.ndarray:
        return (self.random.random(shape) < 0.8).astype(np.int32)

    def mask_some(self) -> None:
        if self.often():
            self.feeds["attention_mask"] = self.flags(*self.feeds["input_ids"].shape)

    def add_beams(self) -> None:
        beams = int(self.random.integers(1, 5))
        self.feeds |= {
            "num_beams": beams,
            "num_return_sequences": int(self.random.integers(1, beams + 1)),
            "length_penalty": float(self.random.choice([-1.0, 0.5, 1.0, 2.0])),
        }
        # onnxruntime takes no model that leaves these out.
        self.feeds = {"min_length": 1, "repetition_penalty": 1.0} | self.feeds
        self.attributes["early_stopping"] = int(self.often())


def check_rows(model: bytes, feeds: dict, pad: int) -> None:
    [expected], [found] = reference(model, feeds), own(model, feeds)
    assert found.shape == expected.shape
    # Where all rows have ended, onnxruntime leaves memory as it was.
    live = max(feeds["input_ids"].shape[1], 1 + int(np.max(np.nonzero((found != pad).any(axis=0))[0], initial=-1)))
    np.testing.assert_array_equal(found[:, :live], expected[:, :live])
    assert (found[:, live:] == pad).all()


def check_beams(model: bytes, feeds: dict, compare_scores: bool) -> None:
    expected, found = reference(model, feeds), own(model, feeds)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-4)
    assert found[2].shape == expected[2].shape
    if compare_scores:
        # Of trips that did not run onnxruntime leaves memory as it was; treadle makes zeros.
        ran = [bool(np.any(trip)) for trip in found[2]]
        np.testing.assert_allclose(found[2][ran], expected[2][ran], rtol=1e-3, atol=1e-2)
        assert ran == sorted(ran, reverse=True)


@pytest.mark.parametrize("seed", range(CASES))
def test_greedy(seed):
    draw = Draw(seed)
    draw.mask_some()
    bodies = {"decoder": decoder_only(seed, draw.vocabulary)}
    model, feeds = search("GreedySearch", bodies, draw.feeds, draw.attributes, 1, bool(seed % 2))
    check_rows(model, feeds, draw.attributes["pad_token_id"])


@pytest.mark.parametrize("seed", range(CASES))
def test_sampling(seed):
    draw = Draw(seed)
    draw.mask_some()
    draw.feeds["seed"] = int(draw.random.integers(0, 2**31))
    draw.attributes |= {
        "top_p": float(draw.random.choice([0.2, 0.5, 0.9])),
        "temperature": float(draw.random.choice([0.5, 1.0, 2.0])),
        "custom": int(draw.often()),
    }
    if draw.often():
        draw.attributes["min_tokens_to_keep"] = int(draw.random.integers(0, 3))
    if draw.often():
        draw.attributes["filter_value"] = -50.0
    bodies = {"decoder": decoder_only(seed, draw.vocabulary)}
    model, feeds = search("Sampling", bodies, draw.feeds, draw.attributes, 1, bool(seed % 2))
    check_rows(model, feeds, draw.attributes["pad_token_id"])


@pytest.mark.parametrize("seed", range(CASES))
def test_beams_of_a_decoder(seed):
    draw = Draw(seed)
    draw.mask_some()
    draw.add_beams()
    bodies = {"decoder": decoder_only(seed, draw.vocabulary, 1 + seed % 2)}
    if draw.often():
        bodies["init_decoder"] = bodies["decoder"]
    model, feeds = search("BeamSearch", bodies, draw.feeds, draw.attributes, 3, bool(seed % 2))
    check_beams(model, feeds, draw.feeds["num_beams"] > 1)


@pytest.mark.parametrize("seed", range(CASES))
def test_beams_with_an_encoder(seed):
    draw = Draw(seed)
    draw.mask_some()
    draw.add_beams()
    draw.attributes |= {"model_type": 1, "decoder_start_token_id": int(draw.tokens(1)[0])}
    decodes = draw.often()
    bodies = encoder_and_decoder(
        seed,
        draw.vocabulary,
        1 + seed % 2,
        encoder_decodes=decodes,
        takes_hidden=decodes and draw.often(),
        whole_sequence=draw.often(),
    )
    model, feeds = search("BeamSearch", bodies, draw.feeds, draw.attributes, 3, bool(seed % 2))
    check_beams(model, feeds, draw.feeds["num_beams"] > 1)


def whisper(seed: int) -> tuple[bytes, dict, Draw]:
    draw = Draw(seed)
    draw.add_beams()
    draw.feeds |= {
        "decoder_input_ids": draw.feeds["input_ids"],
        "input_ids": draw.random.standard_normal((draw.batch, 6, 7), np.float32),
    }
    if draw.often():
        draw.feeds["temperature"] = float(draw.random.choice([0.5, 2.0]))
    if draw.often():
        first = draw.vocabulary - 6
        names = ["translate", "transcribe", "start_of_lm", "eos", "no_timestamps", "beginning_timestamp"]
        draw.attributes |= {f"{name}_token_id": first - 5 + i for i, name in enumerate(names)}
        draw.feeds["logits_processor"] = 1
    draw.attributes["decoder_start_token_id"] = 2
    bodies = encoder_and_decoder(seed, draw.vocabulary, features=6)
    return *search("WhisperBeamSearch", bodies, draw.feeds, draw.attributes, 3, bool(seed % 2)), draw


@pytest.mark.parametrize("seed", range(CASES))
def test_beams_of_whisper(seed):
    model, feeds, draw = whisper(seed)
    check_beams(model, feeds, draw.feeds["num_beams"] > 1)


@pytest.mark.parametrize("entries", [{"jit": "always"}, {"optimize": "0"}, {"tier": "reference"}])
def test_tiers_agree(entries):
    beams = {"num_beams": 3, "num_return_sequences": 2, "min_length": 4}
    ids = np.int32([[3, 4, 5], [1, 6, 7]])
    attributes = {"eos_token_id": 9, "pad_token_id": 1}
    feeds = {"input_ids": ids, "max_length": 12}
    one = {"decoder": decoder_only(1, 30)}
    two = encoder_and_decoder(1, 30)
    for op, bodies, more, named in (
        ("GreedySearch", one, {}, {}),
        ("Sampling", one, {"seed": 5}, {"top_p": 0.9}),
        ("BeamSearch", one, beams, {}),
        ("BeamSearch", two, beams, {"model_type": 1, "decoder_start_token_id": 2}),
    ):
        model, fed = search(op, bodies, feeds | more, attributes | named, 3 if more is beams else 1, True)
        for expected, found in zip(own(model, fed), own(model, fed, **entries), strict=True):
            # Programs take a few sums in another order than the reference interpreter.
            units = 8 if "tier" in entries and found.dtype == np.float32 else 0
            np.testing.assert_allclose(found, expected, rtol=units * 2.0**-23)


def test_presence_is_punished_everywhere():
    """onnxruntime's kernel takes the penalties of all tokens from the score of the first."""
    ids = np.int32([[3, 4, 5]])
    present = np.ones((1, 30), np.int32)
    present[0, 17] = 0
    model, feeds = search(
        "Sampling",
        {"decoder": decoder_only(1, 30)},
        {"input_ids": ids, "max_length": 8, "presence_mask": present, "seed": 1},
        {"eos_token_id": 9, "pad_token_id": 1, "presence_penalty": 1000.0, "top_p": 0.9},
        1,
        True,
    )
    [found] = own(model, feeds)
    assert found[0, 3:].tolist() == [17] * 5


def test_errors_say_what_was_expected():
    ids = np.int32([[3, 4, 5]])
    attributes = {"eos_token_id": 9, "pad_token_id": 1}
    bodies = {"decoder": decoder_only(1, 30)}
    model, feeds = search("GreedySearch", bodies, {"input_ids": ids, "max_length": 3}, attributes, 1, True)
    with pytest.raises(Exception, match="max_length is 3, expected more than the 3 tokens"):
        own(model, feeds)
    beams = {"input_ids": ids, "max_length": 9, "num_beams": 2, "num_return_sequences": 3}
    model, feeds = search("BeamSearch", bodies, beams, attributes, 1, True)
    with pytest.raises(Exception, match="num_return_sequences is 3, expected at most num_beams, 2"):
        own(model, feeds)
    model, feeds = search("BeamSearch", bodies, beams, attributes | {"model_type": 1}, 1, True)
    with pytest.raises(Exception, match="attribute encoder is missing"):
        own(model, feeds)
