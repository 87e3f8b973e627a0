"""GreedySearch, Sampling, BeamSearch and WhisperBeamSearch on random small models, token by token against onnxruntime,
and in all tiers."""

import numpy as np
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper
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
    """A random search: `feeds` and `attributes` with about half of all options."""

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
        # Rows of iterations that did not run are uninitialised in onnxruntime, and zeros in treadle.
        ran = [bool(np.any(iteration)) for iteration in found[2]]
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


@pytest.mark.parametrize("custom", [0, 1])
@pytest.mark.parametrize("steps", [None, 50])
@pytest.mark.parametrize("top_p", [0.3, 0.9])
def test_sampling_of_many_tokens(top_p, steps, custom):
    """Where tokens are cut off depends on the order of the sum of all probabilities, and with `steps` of a score for
    each unit, on the order of equal scores. The logits come from a table: sums of a decoder would differ in the last
    bits, and now and then in a token."""
    vocabulary, rows = 30_000, 64
    random = np.random.default_rng(custom)
    table = 2 * random.standard_normal((rows, vocabulary))
    decoder = decoder_only(1, vocabulary, 1)
    constants = {"table": np.float32(np.round(table * steps) / steps if steps else table), "rows": np.int32(rows)}
    decoder.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    decoder.node.remove(next(node for node in decoder.node if node.output[0] == "logits"))
    decoder.node.append(helper.make_node("Mod", ["input_ids", "rows"], ["row"]))
    decoder.node.append(helper.make_node("Gather", ["table", "row"], ["logits"]))
    ids = random.integers(2, vocabulary, (2, 4), dtype=np.int32)
    feeds = {"input_ids": ids, "max_length": 24, "seed": 7}
    attributes = {"eos_token_id": 1, "pad_token_id": 0, "top_p": top_p, "custom": custom}
    model, fed = search("Sampling", {"decoder": decoder}, feeds, attributes, 1, True)
    check_rows(model, fed, 0)


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


SMALLEST = [
    (vocabulary, prompt, steps, batch, beams, returned)
    for vocabulary in (2, 3, 7)
    for prompt, steps in ((1, 1), (3, 1), (1, 2))
    for batch in (1, 2)
    for beams, returned in ((1, 1), (2, 1), (2, 2), (3, 3))
    if vocabulary > beams  # onnxruntime reads twice as many candidates as there are beams
]


@pytest.mark.parametrize("op", ["BeamSearch", "T5", "WhisperBeamSearch"])
@pytest.mark.parametrize(("vocabulary", "prompt", "steps", "batch", "beams", "returned"), SMALLEST)
def test_smallest_searches_for_beams(op, vocabulary, prompt, steps, batch, beams, returned):
    """One token, one beam, one entry, as many sequences as beams, few tokens to choose from; every output."""
    random = np.random.default_rng(vocabulary)
    tokens = random.integers(0, vocabulary, (batch, prompt), dtype=np.int32)
    feeds = {"input_ids": tokens, "max_length": prompt + steps, "min_length": 0, "num_beams": beams}
    feeds |= {"num_return_sequences": returned, "length_penalty": 1.0, "repetition_penalty": 1.0}
    attributes = {"eos_token_id": vocabulary - 1, "pad_token_id": 0}
    if op == "BeamSearch":
        bodies = {"decoder": decoder_only(1, vocabulary, 1)}
    else:
        features = {} if op == "T5" else {"features": 6}
        bodies = encoder_and_decoder(1, vocabulary, 1, **features)
        attributes |= {"decoder_start_token_id": 1} | ({"model_type": 1} if op == "T5" else {})
        if features:
            feeds |= {"input_ids": random.standard_normal((batch, 6, 7), np.float32), "decoder_input_ids": tokens}
        else:
            feeds["max_length"] = 1 + steps  # sequences begin with one token
    named = "BeamSearch" if op == "T5" else op
    whole = (steps, batch, beams, vocabulary)
    for outputs, constant in ((1, True), (2, False), (3, False), (3, True)):
        model, fed = search(named, bodies, feeds, attributes, outputs, constant)
        found = own(model, fed)
        assert outputs < 3 or found[2].shape == whole
        for entries in ({"optimize": "0"}, {"tier": "reference"}, {"jit": "always"}) if outputs == 3 else ():
            for mine, other in zip(found, own(model, fed, **entries), strict=True):
                np.testing.assert_allclose(other, mine, rtol=8 * 2.0**-23, atol=1e-6)
        if op != "BeamSearch" and steps == 1:
            continue  # onnxruntime fails, or reads uninitialised tokens
        expected = reference(model, fed)
        np.testing.assert_array_equal(found[0], expected[0])
        if outputs > 1:
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-4)
        if outputs == 3 and beams > 1:
            np.testing.assert_allclose(found[2][0], expected[2][0], rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("op", ["GreedySearch", "Sampling"])
@pytest.mark.parametrize("vocabulary", [1, 2, 7])
@pytest.mark.parametrize(("prompt", "steps", "batch"), [(1, 1, 1), (3, 1, 2), (1, 2, 1), (2, 3, 2)])
def test_smallest_searches_for_one_sequence(op, vocabulary, prompt, steps, batch):
    tokens = np.random.default_rng(vocabulary).integers(0, vocabulary, (batch, prompt), dtype=np.int32)
    feeds = {"input_ids": tokens, "max_length": prompt + steps} | ({"seed": 3} if op == "Sampling" else {})
    attributes = {"eos_token_id": vocabulary - 1, "pad_token_id": 0} | ({"top_p": 0.9} if op == "Sampling" else {})
    for constant in (False, True):
        model, fed = search(op, {"decoder": decoder_only(1, vocabulary, 1)}, feeds, attributes, 1, constant)
        check_rows(model, fed, 0)


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


ATTRIBUTES = {"eos_token_id": 9, "pad_token_id": 1}
IDS = np.int32([[3, 4, 5], [1, 6, 7]])
BEAMS = {"input_ids": IDS, "max_length": 9, "num_beams": 2, "num_return_sequences": 1}


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("op", "feeds", "message"),
    [
        ("GreedySearch", {"max_length": 3}, "max_length is 3, expected more than the 3 tokens"),
        ("GreedySearch", {"max_length": -7}, "max_length is -7, expected more than the 3 tokens"),
        ("Sampling", {"max_length": 0}, "max_length is 0, expected more than the 3 tokens"),
        ("BeamSearch", {"num_return_sequences": 3}, "num_return_sequences is 3, expected at most num_beams, 2"),
        ("BeamSearch", {"num_return_sequences": 0}, "num_return_sequences is 0, expected 1 or more"),
        ("BeamSearch", {"num_beams": 0}, "num_beams is 0, expected 1 or more"),
        ("BeamSearch", {"num_beams": -1}, "num_beams is -1, expected 1 or more"),
    ],
)
def test_numbers_that_do_not_fit(op, feeds, message, constant):
    given = (BEAMS if op == "BeamSearch" else {"input_ids": IDS}) | feeds
    model, fed = search(op, {"decoder": decoder_only(1, 30)}, given, ATTRIBUTES, 1, constant)
    with pytest.raises(Exception, match=message):
        own(model, fed)


def flags(*shape):
    return np.ones(shape, np.int32)


@pytest.mark.parametrize(
    ("op", "feeds", "attributes", "message"),
    [
        ("GreedySearch", {"input_ids": np.int32([[3, 30, 5]])}, {}, "index 30 is out of range"),
        ("GreedySearch", {"input_ids": np.int32([[3, -1, 5]]), "repetition_penalty": 1.5}, {}, "index -1 is out of range"),
        ("GreedySearch", {"vocab_mask": flags(29)}, {}, r"vocab_mask has shape \[29\], expected one row of 30 tokens"),
        ("GreedySearch", {"vocab_mask": flags(60)}, {}, r"vocab_mask has shape \[60\], expected one row of 30"),
        ("GreedySearch", {"prefix_vocab_mask": flags(2, 31)}, {}, r"has shape \[2,31\], expected a row for each batch entry"),
        ("GreedySearch", {"prefix_vocab_mask": flags(3, 30)}, {}, r"has shape \[3,30\], expected a row for each batch entry"),
        ("GreedySearch", {"prefix_vocab_mask": flags(0, 30)}, {}, r"has shape \[0,30\], expected a row for each batch entry"),
        ("GreedySearch", {"repetition_penalty": np.ones(2, np.float32)}, {}, r"repetition_penalty has shape \[2\]"),
        ("GreedySearch", {"min_length": np.ones(0, np.int32)}, {}, r"min_length has shape \[0\]"),
        ("GreedySearch", {"attention_mask": flags(2, 4)}, {}, "4"),
        ("GreedySearch", {}, {"vocab_size": 31}, "attribute vocab_size is 31, expected at most the 30 tokens"),
        ("GreedySearch", {}, {"model_type": 7}, "attribute model_type is 7, expected 0"),
        ("Sampling", {"presence_mask": flags(3, 30)}, {"presence_penalty": 1.0}, r"presence_mask has shape \[3,30\]"),
        ("Sampling", {"seed": np.int32([1, 2])}, {}, r"seed has shape \[2\], expected a scalar or one element"),
        ("BeamSearch", {}, {"model_type": 1}, "attribute encoder is missing"),
        ("BeamSearch", {"length_penalty": np.ones(3, np.float32)}, {}, r"length_penalty has shape \[3\]"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit(op, feeds, attributes, message):
    given = BEAMS if op == "BeamSearch" else {"input_ids": IDS, "max_length": 9}
    model, fed = search(op, {"decoder": decoder_only(1, 30)}, given | feeds, ATTRIBUTES | attributes, 1, False)
    with pytest.raises(Exception, match=message):
        own(model, fed)


@pytest.mark.parametrize("op", ["GreedySearch", "Sampling", "BeamSearch"])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (["b", "s", 3, 10], "expected .rows,tokens"),
        (["b", 30], "expected .rows,tokens|no known number of tokens"),
        (
            ["b", "s", 0],
            "no tokens|no known number of tokens|of .2,0.: it is empty|only 0 elements|shape .4,0. has 0 elements",
        ),
        ([1, "s", 30], r"\[1,30\]|\[1\]"),
        ([5, "s", 30], r"\[5,30\]|\[5\]"),
    ],
)
def test_decoders_that_make_other_logits(op, shape, message):
    """Sizes that are only known in the run; for any of them, no kernel may read beyond its operands."""
    ids = np.int32([[3, 4, 5], [1, 6, 7]])
    decoder = decoder_only(1, 30)
    beams = 2 if op == "BeamSearch" else 1
    sizes = np.int64([{"b": 2 * beams, "s": 1}.get(size, size) for size in shape])
    decoder.initializer.extend([numpy_helper.from_array(sizes, "sizes"), numpy_helper.from_array(np.int64(0), "none")])
    decoder.node.remove(next(node for node in decoder.node if node.output[0] == "logits"))
    decoder.node.extend(
        [
            helper.make_node("ReduceMin", ["input_ids"], ["least"], keepdims=0),
            helper.make_node("Cast", ["least"], ["number"], to=TensorProto.INT64),
            helper.make_node("Mul", ["number", "none"], ["nothing"]),
            helper.make_node("Add", ["sizes", "nothing"], ["own_sizes"]),
            helper.make_node("ConstantOfShape", ["own_sizes"], ["logits"]),
        ]
    )
    declared = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", "s", 30] if len(shape) == 3 else shape)
    decoder.output[0].CopyFrom(declared)
    feeds = {"input_ids": ids, "max_length": 6}
    if op == "BeamSearch":
        feeds |= {"num_beams": beams, "num_return_sequences": 1}
    model, fed = search(op, {"decoder": decoder}, feeds, ATTRIBUTES, 1, True)
    with pytest.raises(Exception, match=message):
        own(model, fed)


def test_scores_of_a_node_that_lacks_optional_inputs_are_its_inputs():
    text = b"""<ir_version: 10, opset_import: ["" : 21, "treadle" : 1]>
      g (float[2,5] x, int32[2,3] t, int64 n) => (y) { y = treadle.TokenScores(x, t, n) }"""
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    [y] = treadle.InferenceSession(text).run(None, {"x": x, "t": np.zeros((2, 3), np.int32), "n": np.array(2)})
    np.testing.assert_array_equal(y, x)
