"""Small models with random weights for programs of speech, with the inputs, outputs and metadata that the programs ask for."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, FEATURES, WIDTH, CONTEXT = 40, 80, 32, 2


class Graph:
    """Collects nodes and random weights; every method that adds a node returns the name of its first output."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def constant(self, value) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape) -> str:
        scale = 1.5 / np.sqrt(np.prod(shape[1:]))
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def add(self, operator: str, *inputs: str, outputs=None, **attributes) -> str:
        outputs = outputs or [f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs[0]

    def linear(self, x: str, width: int, wanted: int, **named) -> str:
        product = self.add("MatMul", x, self.add("Transpose", self.weight(wanted, width), perm=[1, 0]))
        return self.add("Add", product, self.constant(np.zeros(wanted, np.float32)), **named)

    def subsample(self, x: str, pads=(1, 1)) -> str:
        """Features [N, channels, T] to [N, WIDTH, about T / 4]."""
        for channels in (FEATURES, WIDTH):
            kernel = self.weight(WIDTH, channels, 3)
            x = self.add("Tanh", self.add("Conv", x, kernel, strides=[2], pads=pads))
        return x

    def lstm(self, x: str, states=(), outputs=None, directions: int = 1) -> str:
        """From [T, N, WIDTH] to [T, directions, N, WIDTH]."""
        weights = [self.weight(directions, 4 * WIDTH, WIDTH) for _ in range(2)]
        direction = "bidirectional" if directions == 2 else "forward"
        middle = ["", "", *states] if states else []
        return self.add("LSTM", x, *weights, *middle, outputs=outputs, hidden_size=WIDTH, direction=direction)

    def encode(self, x: str, **named) -> str:
        """Features [N, T, FEATURES] to [N, about T / 4, WIDTH]."""
        x = self.subsample(self.add("Transpose", x, perm=[0, 2, 1]))
        y = self.lstm(self.add("Transpose", x, perm=[2, 0, 1]), directions=2)
        y = self.add("Transpose", y, perm=[2, 0, 1, 3])
        y = self.add("Reshape", y, self.constant(np.array([0, 0, 2 * WIDTH])))
        return self.linear(y, 2 * WIDTH, WIDTH, **named)

    def quarter(self, lengths: str, name: str) -> str:
        return self.add("Div", lengths, self.constant(np.array([4], np.int64)), outputs=[name])

    def save(self, path: pathlib.Path, inputs, outputs, **metadata) -> None:
        def values(types):
            return [helper.make_tensor_value_info(name, *value) for name, value in types.items()]

        graph = helper.make_graph(self.nodes, path.stem, values(inputs), values(outputs), self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        helper.set_model_props(model, {key: str(value) for key, value in metadata.items()})
        onnx.checker.check_model(model)
        onnx.save(model, path)


FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
UTTERANCES = {"x": (FLOAT, ["N", "T", FEATURES]), "x_lens": (INT64, ["N"])}
LOG_PROBS = {"log_probs": (FLOAT, ["N", "S", VOCABULARY]), "log_probs_len": (INT64, ["N"])}


def zipformer_ctc(path: pathlib.Path) -> None:
    g = Graph(1)
    g.add("LogSoftmax", g.linear(g.encode("x"), WIDTH, VOCABULARY), axis=-1, outputs=["log_probs"])
    g.quarter("x_lens", "log_probs_len")
    g.save(path, UTTERANCES, LOG_PROBS, model_type="zipformer2_ctc")


def nemo_ctc(path: pathlib.Path) -> None:
    g = Graph(2)
    x = g.add("Transpose", "audio_signal", perm=[0, 2, 1])
    g.add("LogSoftmax", g.linear(g.encode(x), WIDTH, VOCABULARY), axis=-1, outputs=["logprobs"])
    g.add("Identity", "length", outputs=["lengths"])
    g.save(
        path,
        {"audio_signal": (FLOAT, ["N", FEATURES, "T"]), "length": (INT64, ["N"])},
        {"logprobs": (FLOAT, ["N", "S", VOCABULARY]), "lengths": (INT64, ["N"])},
        model_type="EncDecCTCModel",
        vocab_size=VOCABULARY - 1,
        subsampling_factor=4,
        normalize_type="per_feature",
    )


def sense_voice(path: pathlib.Path) -> None:
    """Takes seven frames at a time, and four numbers of language and style that come before them."""
    g = Graph(3)
    x = g.add("MatMul", "x", g.weight(7 * FEATURES, WIDTH))
    table, picked = g.weight(20, WIDTH), []
    for name in ("language", "text_norm"):
        row = g.add("Gather", table, name)
        picked.append(g.add("Unsqueeze", row, g.constant(np.array([1], np.int64))))
    four = g.add("Concat", picked[0], picked[1], picked[1], picked[0], axis=1)
    y = g.add("Concat", four, x, axis=1)
    y = g.lstm(g.add("Transpose", g.add("Tanh", y), perm=[1, 0, 2]))
    y = g.add("Transpose", g.add("Squeeze", y, g.constant(np.array([1], np.int64))), perm=[1, 0, 2])
    g.linear(y, WIDTH, VOCABULARY, outputs=["logits"])
    languages = {f"lang_{name}": i for i, name in enumerate(("auto", "zh", "en", "ja", "ko", "yue"))}
    g.save(
        path,
        {
            "x": (FLOAT, ["N", "T", 7 * FEATURES]),
            **dict.fromkeys(("x_length", "language", "text_norm"), (INT32, ["N"])),
        },
        {"logits": (FLOAT, ["N", "S", VOCABULARY])},
        model_type="sense_voice_ctc",
        comment="random weights",
        vocab_size=VOCABULARY,
        lfr_window_size=7,
        lfr_window_shift=6,
        normalize_samples=0,
        with_itn=14,
        without_itn=15,
        neg_mean=",".join(["-12.0"] * 7 * FEATURES),
        inv_stddev=",".join(["0.1"] * 7 * FEATURES),
        **languages,
    )


def decoder(path: pathlib.Path, seed: int) -> None:
    g = Graph(seed)
    words = g.add("Gather", g.weight(VOCABULARY, WIDTH), "y")
    joined = g.add("Reshape", words, g.constant(np.array([0, CONTEXT * WIDTH])))
    g.linear(g.add("Tanh", joined), CONTEXT * WIDTH, WIDTH, outputs=["decoder_out"])
    outputs = {"decoder_out": (FLOAT, ["N", WIDTH])}
    g.save(path, {"y": (INT64, ["N", CONTEXT])}, outputs, vocab_size=VOCABULARY, context_size=CONTEXT)


def joiner(path: pathlib.Path, seed: int) -> None:
    g = Graph(seed)
    g.linear(g.add("Tanh", g.add("Add", "encoder_out", "decoder_out")), WIDTH, VOCABULARY, outputs=["logit"])
    inputs = dict.fromkeys(("encoder_out", "decoder_out"), (FLOAT, ["N", WIDTH]))
    g.save(path, inputs, {"logit": (FLOAT, ["N", VOCABULARY])}, joiner_dim=WIDTH)


def transducer(path: pathlib.Path) -> None:
    g = Graph(4)
    g.encode("x", outputs=["encoder_out"])
    g.quarter("x_lens", "encoder_out_lens")
    outputs = {"encoder_out": (FLOAT, ["N", "S", WIDTH]), "encoder_out_lens": (INT64, ["N"])}
    g.save(path.with_suffix(".encoder.onnx"), UTTERANCES, outputs, model_type="zipformer2")
    decoder(path.with_suffix(".decoder.onnx"), 5)
    joiner(path.with_suffix(".joiner.onnx"), 6)


def streaming_transducer(path: pathlib.Path) -> None:
    """Takes nine frames at a time, four of which are new, and carries the states of an LSTM."""
    g = Graph(7)
    x = g.subsample(g.add("Transpose", "x", perm=[0, 2, 1]), pads=(0, 0))
    y = g.lstm(g.add("Transpose", x, perm=[2, 0, 1]), ("h", "c"), ["y", "next_h", "next_c"])
    y = g.add("Transpose", g.add("Squeeze", y, g.constant(np.array([1], np.int64))), perm=[1, 0, 2])
    g.linear(y, WIDTH, WIDTH, outputs=["encoder_out"])
    state = (FLOAT, [1, "N", WIDTH])
    g.save(
        path.with_suffix(".encoder.onnx"),
        {"x": (FLOAT, ["N", 9, FEATURES]), "h": state, "c": state},
        {"encoder_out": (FLOAT, ["N", 1, WIDTH]), "next_h": state, "next_c": state},
        model_type="lstm",
        num_encoder_layers=1,
        T=9,
        decode_chunk_len=4,
        rnn_hidden_size=WIDTH,
        d_model=WIDTH,
    )
    decoder(path.with_suffix(".decoder.onnx"), 8)
    joiner(path.with_suffix(".joiner.onnx"), 9)


def speaker_embedding(path: pathlib.Path) -> None:
    g = Graph(10)
    y = g.encode("x")
    g.add("ReduceMean", y, axes=[1], keepdims=0, outputs=["embedding"])
    g.save(
        path,
        {"x": (FLOAT, ["N", "T", FEATURES])},
        {"embedding": (FLOAT, ["N", WIDTH])},
        output_dim=WIDTH,
        sample_rate=16000,
        normalize_samples=1,
        language="English",
        framework="wespeaker",
        feature_normalize_type="global-mean",
    )


def audio_tagging(path: pathlib.Path) -> None:
    g = Graph(11)
    y = g.add("ReduceMean", g.encode("x"), axes=[1], keepdims=0)
    g.add("Sigmoid", g.linear(y, WIDTH, 10), outputs=["probs"])
    g.save(path, UTTERANCES, {"probs": (FLOAT, ["N", 10])})


def denoiser(path: pathlib.Path) -> None:
    """A mask for the 257 bins of a frame, from three states that a program carries for the model."""
    g = Graph(12)
    power = g.add("ReduceSum", g.add("Mul", "mix", "mix"), g.constant(np.array([3], np.int64)), keepdims=0)
    x = g.add("Transpose", power, perm=[0, 2, 1])
    x = g.add("Tanh", g.add("MatMul", x, g.weight(257, WIDTH)))
    x = g.add("Add", x, "conv_cache")
    h = g.add("Tanh", g.add("Add", g.add("MatMul", x, g.weight(WIDTH, WIDTH)), "tra_cache"))
    for name in ("conv", "tra", "inter"):
        kept = g.add("Add", h, f"{name}_cache")
        g.add("Mul", kept, g.constant(np.float32(0.4)), outputs=[f"{name}_cache_out"])
    mask = g.add("Sigmoid", g.linear(g.add("Add", h, "inter_cache"), WIDTH, 257))
    mask = g.add("Unsqueeze", g.add("Transpose", mask, perm=[0, 2, 1]), g.constant(np.array([3], np.int64)))
    g.add("Mul", "mix", mask, outputs=["enh"])
    frame, cache = (FLOAT, [1, 257, 1, 2]), (FLOAT, [1, 1, WIDTH])
    caches = [f"{name}_cache" for name in ("conv", "tra", "inter")]
    g.save(
        path,
        {"mix": frame, **dict.fromkeys(caches, cache)},
        {"enh": frame, **{f"{name}_out": cache for name in caches}},
        model_type="gtcrn",
        sample_rate=16000,
        n_fft=512,
        hop_length=256,
        window_length=512,
        window_type="hann_sqrt",
        version=1,
        **{f"{name}_shape": f"1,1,{WIDTH}" for name in caches},
    )


WORDS = ["<unk>", *"abcdefghijklmnopqrstuvwxyz"]


def punctuation(path: pathlib.Path) -> None:
    g = Graph(13)
    words = g.add("Gather", g.weight(len(WORDS), WIDTH), "inputs")
    y = g.lstm(g.add("Transpose", words, perm=[1, 0, 2]), directions=1)
    y = g.add("Transpose", g.add("Squeeze", y, g.constant(np.array([1], np.int64))), perm=[1, 0, 2])
    g.linear(y, WIDTH, 6, outputs=["logits"])
    g.save(
        path,
        {"inputs": (INT32, ["N", "T"]), "text_lengths": (INT32, ["N"])},
        {"logits": (FLOAT, ["N", "T", 6])},
        tokens="|".join(WORDS),
        vocab_size=len(WORDS),
        punctuations="<unk>|_|，|。|？|、",
        unk_symbol="<unk>",
    )


def speech(path: pathlib.Path) -> None:
    """From characters to samples, 64 for each, longer for a larger scale of lengths."""
    g = Graph(14)
    x = g.add("Gather", g.weight(VOCABULARY, WIDTH), "x")
    y = g.lstm(g.add("Transpose", x, perm=[1, 0, 2]))
    y = g.add("Squeeze", y, g.constant(np.array([1], np.int64)))
    y = g.add("Tanh", g.linear(y, WIDTH, 64))
    noise, length = (g.add("Gather", "scales", g.constant(np.int64(i))) for i in (0, 1))
    y = g.add("Mul", g.add("Mul", y, noise), length)
    g.add("Reshape", y, g.constant(np.array([1, 1, -1])), outputs=["y"])
    g.save(
        path,
        {"x": (INT64, [1, "T"]), "x_length": (INT64, [1]), "scales": (FLOAT, [3])},
        {"y": (FLOAT, [1, 1, "samples"])},
        model_type="vits",
        comment="coqui, random weights",
        language="English",
        frontend="characters",
        sample_rate=16000,
        n_speakers=0,
        add_blank=1,
        blank_id=1,
        bos_id=2,
        eos_id=3,
        use_eos_bos=1,
        pad_id=0,
    )


MODELS = [
    zipformer_ctc,
    nemo_ctc,
    sense_voice,
    transducer,
    streaming_transducer,
    speaker_embedding,
    audio_tagging,
    denoiser,
    punctuation,
    speech,
]


def write_all(folder: pathlib.Path) -> None:
    """A file NAME.onnx, or several NAME.PART.onnx, for each of MODELS, and the lists of words that go with them."""
    for make in MODELS:
        make(folder / f"{make.__name__}.onnx")
    tokens = [("<blk>" if i == 0 else f"▁t{i}") + f" {i}" for i in range(VOCABULARY)]
    (folder / "tokens.txt").write_text("\n".join(tokens) + "\n")
    nemo = [f"▁n{i} {i}" for i in range(VOCABULARY - 1)] + [f"<blk> {VOCABULARY - 1}"]
    (folder / "nemo_tokens.txt").write_text("\n".join(nemo) + "\n")
    labels = [f'{i},/m/{i},"sound {i}"' for i in range(10)]
    (folder / "labels.csv").write_text("index,mid,display_name\n" + "\n".join(labels) + "\n")
    letters = ["_", "|", "^", "$", " ", *"abcdefghijklmnopqrstuvwxyz.,!?"]
    (folder / "letters.txt").write_text("\n".join(f"{letter} {i}" for i, letter in enumerate(letters)) + "\n")
