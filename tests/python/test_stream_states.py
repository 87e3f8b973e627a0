"""States by the names and shapes that exporters give them, as small random models: streams find the pairs and what
states begin with, and give what onnxruntime gives that is stepped by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime
import pytest
import treadle
from onnx import TensorProto, helper, numpy_helper

F = np.float32
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TYPES = {FLOAT: F, INT64: np.int64, BOOL: np.bool_}


@dataclasses.dataclass
class State:
    """`kind`: "window" drops along `axis` as much as comes, "append" drops nothing, "mix" is a recurrence of plain
    operators, "gru" and "lstm" are operators (the state that follows an "lstm" is its cell), "count" counts, "kept" is
    handed on.
    """

    before: str
    after: str
    shape: list
    kind: str
    axis: int = 0


class Model:
    """All states depend on the signal, and the output depends on all states."""

    def __init__(self, signal: tuple[str, list], states: list[State], others: dict | None = None, output: str = "y"):
        self.random = np.random.default_rng(len(states))
        self.states, self.others, self.signal = states, others or {}, signal[0]
        self.nodes: list = []
        self.constants: list = []
        self.mean = self.node("ReduceMean", signal[0], keepdims=0)
        total = self.mean
        after = iter(states)
        for state in after:
            made = [state] if state.kind != "lstm" else [state, next(after)]
            self.build(made, len(signal[1]))
            for one in made:
                as_float = self.node("Cast", one.after, to=FLOAT)
                total = self.node("Add", total, self.node("ReduceMean", as_float, keepdims=0))
        self.node("Identity", total, result=output)
        inputs = [helper.make_tensor_value_info(signal[0], FLOAT, signal[1])]
        inputs += [helper.make_tensor_value_info(n, e, shape) for n, (e, shape, _) in self.others.items()]
        inputs += [helper.make_tensor_value_info(s.before, self.element(s), s.shape) for s in states]
        outputs = [helper.make_tensor_value_info(output, FLOAT, [])]
        outputs += [helper.make_tensor_value_info(s.after, self.element(s), self.shape_after(s)) for s in states]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        self.bytes = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()

    @staticmethod
    def element(state: State) -> int:
        return INT64 if state.kind == "count" else FLOAT

    @staticmethod
    def shape_after(state: State) -> list:
        return [f"{d}_next" if state.kind == "append" and i == state.axis else d for i, d in enumerate(state.shape)]

    def constant(self, array) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"constant{len(self.constants)}"))
        return self.constants[-1].name

    def numbers(self, *shape: int) -> str:
        return self.constant(self.random.standard_normal(shape).astype(F))

    def node(self, op: str, *inputs: str, result: str | None = None, **attributes) -> str:
        made = result or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [made], **attributes))
        return made

    def build(self, states: list[State], rank: int) -> None:
        state = states[0]
        sizes = [d if isinstance(d, int) else 1 for d in state.shape]
        if state.kind in ("window", "append"):
            sizes[state.axis] = 2
            fresh = self.node("Add", self.numbers(*sizes), self.mean)
            if state.kind == "append":
                self.node("Concat", state.before, fresh, axis=state.axis, result=state.after)
                return
            both = self.node("Concat", state.before, fresh, axis=state.axis)
            begin, end, axis = (self.constant(np.int64([n])) for n in (2, 2**31, state.axis))
            self.node("Slice", both, begin, end, axis, result=state.after)
        elif state.kind == "mix":
            half = self.node("Mul", state.before, self.constant(F(0.5)))
            self.node("Tanh", self.node("Add", half, self.mean), result=state.after)
        elif state.kind == "count":
            self.node("Add", state.before, self.constant(np.int64([3])), result=state.after)
        elif state.kind == "kept":
            self.node("Identity", state.before, result=state.after)
        else:
            width, gates = sizes[-1], 4 if state.kind == "lstm" else 3
            x = self.node("Reshape", self.mean, self.constant(np.int64([1, 1, 1])))
            weights = [self.numbers(1, gates * width, 1), self.numbers(1, gates * width, width)]
            inputs = [x, *weights, "", "", *(s.before for s in states)]
            outputs = ["", *(s.after for s in states)]
            op = state.kind.upper()
            self.nodes.append(helper.make_node(op, inputs, outputs, hidden_size=width))


def layers(count: int, *states: State) -> list[State]:
    return [
        dataclasses.replace(s, before=s.before.format(i), after=s.after.format(i)) for i in range(count) for s in states
    ]


ZIPFORMER = layers(
    2,
    State("cached_key_{}", "new_cached_key_{}", [4, "N", 6], "window", 0),
    State("cached_nonlin_attn_{}", "new_cached_nonlin_attn_{}", [1, "N", 4, 5], "window", 2),
    State("cached_val1_{}", "new_cached_val1_{}", [4, "N", 3], "window", 0),
    State("cached_val2_{}", "new_cached_val2_{}", [4, "N", 3], "window", 0),
    State("cached_conv1_{}", "new_cached_conv1_{}", ["N", 6, 7], "window", 2),
    State("cached_conv2_{}", "new_cached_conv2_{}", ["N", 6, 7], "window", 2),
)
CACHE = ["B", 2, "past_sequence_length", 4]

FAMILIES = {
    "WeNet": (
        ("chunk", [1, "T", 5]),
        [
            State("att_cache", "r_att_cache", [2, 2, "T_CACHE", 4], "append", 2),
            State("cnn_cache", "r_cnn_cache", [2, 1, 5, 4], "window", 3),
        ],
        {"offset": (INT64, [], 0), "required_cache_size": (INT64, [], 8), "att_mask": (BOOL, [1, 1, "M"], None)},
    ),
    "icefall, zipformer": (
        ("x", ["N", 9, 8]),
        [
            *ZIPFORMER,
            State("embed_states", "new_embed_states", ["N", 8, 3, 5], "window", 2),
            State("processed_lens", "new_processed_lens", ["N"], "count"),
        ],
        {},
    ),
    "icefall, first zipformer": (
        ("x", ["N", 9, 8]),
        layers(
            2,
            State("cached_len_{}", "new_cached_len_{}", [2, "N"], "count"),
            State("cached_avg_{}", "new_cached_avg_{}", [2, "N", 4], "mix"),
            State("cached_key_{}", "new_cached_key_{}", [2, 6, "N", 4], "window", 1),
            State("cached_val_{}", "new_cached_val_{}", [2, 6, "N", 4], "window", 1),
            State("cached_val2_{}", "new_cached_val2_{}", [2, 6, "N", 4], "window", 1),
        ),
        {},
    ),
    "icefall, LSTM": (
        ("x", ["N", 9, 8]),
        [State("h0", "next_h0", [1, "N", 4], "lstm"), State("c0", "next_c0", [1, "N", 4], "lstm")],
        {},
    ),
    "NeMo, encoder": (
        ("audio_signal", ["B", 8, "T"]),
        [
            State("cache_last_channel", "cache_last_channel_next", ["B", 2, 6, 4], "window", 2),
            State("cache_last_time", "cache_last_time_next", ["B", 2, 4, 5], "window", 3),
            State("cache_last_channel_len", "cache_last_channel_next_len", ["B"], "count"),
        ],
        {"length": (INT64, ["B"], [9])},
    ),
    "NeMo, predictor": (
        ("targets", ["B", "T"]),
        [State("states.1", "states", [1, "B", 4], "lstm"), State("onnx::Slice_3", "162", [1, "B", 4], "lstm")],
        {"target_length": (INT64, ["B"], [1])},
    ),
    "NeMo, predictor of states by number": (
        ("targets", ["B", "T"]),
        [
            State("input_states_1", "output_states_1", [1, "B", 4], "lstm"),
            State("input_states_2", "output_states_2", [1, "B", 4], "lstm"),
        ],
        {"target_length": (INT64, ["B"], [1])},
    ),
    "GigaAM, predictor": (
        ("x", [1, 1]),
        [State("h.1", "h", [1, 1, 4], "lstm"), State("c.1", "c", [1, 1, 4], "lstm")],
        {},
    ),
    "moonshine": (
        ("inputs_embeds", ["B", "S", 4]),
        layers(
            2,
            State("past_key_values.{}.decoder.key", "present.{}.decoder.key", CACHE, "append", 2),
            State("past_key_values.{}.decoder.value", "present.{}.decoder.value", CACHE, "append", 2),
            State("past_key_values.{}.encoder.key", "present.{}.encoder.key", ["B", 2, 3, 4], "kept"),
            State("past_key_values.{}.encoder.value", "present.{}.encoder.value", ["B", 2, 3, 4], "kept"),
        ),
        {"use_cache_branch": (BOOL, [1], [True])},
    ),
    "moonshine of Keras": (
        ("args_0", ["B", "S", 4]),
        [State("args_3", "functional_22", CACHE, "append", 2), State("args_4", "functional_22_1", ["B", 3, "past", 5], "append", 2)],
        {"args_1": (INT64, ["B"], [1])},
    ),
    "Hugging Face": (
        ("inputs_embeds", ["B", "S", 4]),
        layers(
            3,
            State("past_key_values.{}.key", "present.{}.key", CACHE, "append", 2),
            State("past_key_values.{}.value", "present.{}.value", CACHE, "append", 2),
            State("past_conv.{}", "present_conv.{}", ["B", 4, 3], "window", 2),
        ),
        {},
    ),
    "darts": (
        ("x_past", ["B", 6, 3]),
        layers(2, State("state_in_{}", "state_out_{}", [2, "B", 4], "mix")),
        {"x_static": (FLOAT, ["B", 2], np.ones((1, 2)))},
    ),
    "robots, LSTM": (
        ("obs", [1, 8]),
        [State("h_in", "h_out", [1, 1, 4], "lstm"), State("c_in", "c_out", [1, 1, 4], "lstm")],
        {},
    ),
    "robots, one state": (("obs", ["B", 8]), [State("hidden_state", "hidden_state_out", [1, "B", 4], "gru")], {}),
    "robots, states in a row": (
        ("obs", ["B", 8]),
        [State("hidden_states", "next_hidden_states", [1, "B", 4], "mix"), State("prev_action", "action", ["B", 4], "mix")],
        {},
    ),
    "RLlib": (("obs", ["B", 8]), layers(2, State("state_in_{}", "state_out_{}", ["B", 4], "mix")), {"seq_lens": (INT64, ["B"], [1])}),
    "silero 4": (
        ("input", ["batch", "sequence"]),
        [State("h", "hn", [1, "batch", 4], "lstm"), State("c", "cn", [1, "batch", 4], "lstm")],
        {"sr": (INT64, [], 16000)},
    ),
    "silero 5": (
        ("input", ["batch", "sequence"]), [State("state", "stateN", [2, "batch", 4], "mix")], {"sr": (INT64, [], 16000)}
    ),
    "GTCRN": (
        ("mix", [1, 9, 1, 2]),
        [
            State("conv_cache", "conv_cache_out", [2, 1, 3, 6, 5], "window", 3),
            State("tra_cache", "tra_cache_out", [2, 3, 1, 1, 4], "mix"),
            State("inter_cache", "inter_cache_out", [2, 1, 5, 4], "mix"),
        ],
        {},
    ),
    "paraformer": (
        ("enc", ["B", "T", 5]), layers(3, State("in_cache_{}", "out_cache_{}", ["B", 4, 6], "window", 2)), {}
    ),
    "fsmn": (("speech", [1, "T", 5]), layers(3, State("in_cache{}", "out_cache{}", [1, 4, 6, 1], "window", 2)), {}),
    "DeepFilterNet": (
        ("input_frame", [6]), [State("states", "new_states", [9], "mix")], {"atten_lim_db": (FLOAT, [1], [0.0])}
    ),
    "TEN VAD": (("input_1", ["B", 3, 5]), layers(3, State("input_1{}", "output_1{}", ["B", 4], "mix")), {}),
    "Whisper of sherpa-onnx": (
        ("tokens", ["B", "S"]),
        [
            State("in_n_layer_self_k_cache", "out_n_layer_self_k_cache", [2, "B", 6, 4], "window", 2),
            State("in_n_layer_self_v_cache", "out_n_layer_self_v_cache", [2, "B", 6, 4], "window", 2),
        ],
        {"offset": (INT64, [1], [0])},
    ),
    "T-one": (("signal", ["B", 9, 1]), [State("state", "state_next", ["B", 12], "mix")], {}),
}  # fmt: skip


def values_of(others: dict) -> dict[str, np.ndarray]:
    return {
        n: np.ones([1] * len(shape), TYPES[e]) if v is None else np.array(v, TYPES[e])
        for n, (e, shape, v) in others.items()
    }


def stepped(model: Model, chunks: list[np.ndarray]) -> tuple[list, dict]:
    engine = onnxruntime.InferenceSession(model.bytes, providers=["CPUExecutionProvider"])
    zero = {
        s.before: [d if isinstance(d, int) else int(s.kind != "append" or i != s.axis) for i, d in enumerate(s.shape)]
        for s in model.states
    }
    states = {s.before: np.zeros(zero[s.before], TYPES[model.element(s)]) for s in model.states}
    results = []
    for chunk in chunks:
        found = engine.run(
            ["y", *(s.after for s in model.states)], {model.signal: chunk} | values_of(model.others) | states
        )
        results.append(found[0])
        states = {s.before: value for s, value in zip(model.states, found[1:], strict=True)}
    return results, states


@pytest.mark.parametrize("how", ["bound", "given"])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_streams_equal_stepping_by_hand(family, how):
    signal, states, others = FAMILIES[family]
    model = Model(signal, states, others)
    random = np.random.default_rng(1)
    shape = [d if isinstance(d, int) else 1 for d in signal[1]]
    chunks = [random.standard_normal(shape).astype(F) for _ in range(5)]
    expected, last = stepped(model, chunks)
    session = treadle.InferenceSession(model.bytes)
    known = values_of(others)
    stream = session.stream(bind=known) if how == "bound" else session.stream()
    text = str(stream)
    for s in states:
        assert f"state  {s.before} <- {s.after}  " in text, text
        found = next(line for line in text.splitlines() if f"state  {s.before} <- " in line)
        assert "(found by name" in found or "(found in the graph" in found or "(found by a name" in found
    assert "a guess" not in text, text
    for chunk, result in zip(chunks, expected, strict=True):
        found = stream.push({signal[0]: chunk} | ({} if how == "bound" else known))
        np.testing.assert_allclose(found, result, rtol=1e-5, atol=1e-6)
    for name, value in last.items():
        np.testing.assert_allclose(stream.state[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", ["silence", "sequence", "time", "cache", "total", "anything", None])
def test_sizes_follow_from_the_graph_and_not_from_their_names(size):
    """An axis along which runs append begins with 0, whatever it is called; one that other inputs have, with their size."""
    appends = Model(("x", ["b", 3]), [State("s", "s_next", ["b", size, 2], "append", 1)])
    stream = treadle.InferenceSession(appends.bytes).stream()
    assert "s begins with 0 along axis 1: each run appends" in str(stream)
    stream.push(x=np.ones((1, 3), F))
    assert stream.state["s"].shape == (1, 2, 2)
    if size is None:
        return
    mixes = Model(("x", ["b", size]), [State("s", "s_next", ["b", size], "mix")])
    stream = treadle.InferenceSession(mixes.bytes).stream()
    assert "begins with" not in str(stream)
    stream.push(x=np.ones((2, 5), F))
    assert stream.state["s"].shape == (2, 5)
    keeps = Model(("x", ["b", 3]), [State("s", "s_next", ["b", size], "mix")])
    stream = treadle.InferenceSession(keeps.bytes).stream()
    assert "s begins with 1 along axis 1: a guess, since a run keeps the size that it is given" in str(stream)
    stream.push(x=np.ones((1, 3), F))
    assert stream.state["s"].shape == (1, 1)
    stream = treadle.InferenceSession(keeps.bytes).stream(initial={"s": np.zeros((1, 4), F)})
    assert "a guess" not in str(stream)


def parsed(text: str) -> treadle.InferenceSession:
    head = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> '
    return treadle.InferenceSession(treadle.parse_model(head + text))


@pytest.mark.parametrize(
    "text",
    [  # in the branch of an If, by a Slice of unknown ends, through a Transpose, by an operator that appends itself
        """g (float[1,2] x, bool first, float[1,P,2] past) => (float[1,2] y, float[1,Q,2] present) { y = Tanh (x)
          one = Constant <value_ints = [1]> ()  row = Unsqueeze (x, one)
          present = If (first) <then_branch = t () => (a) { a = Concat <axis = 1> (row, row) },
                                else_branch = e () => (b) { b = Concat <axis = 1> (past, row) }> }""",
        """g (float[1,2] x, int64[1] begin, float[1,P,2] past) => (float[1,2] y, float[1,Q,2] present) { y = Tanh (x)
          one = Constant <value_ints = [1]> ()  row = Unsqueeze (x, one)  most = Constant <value_ints = [9999]> ()
          whole = Concat <axis = 1> (past, row)  present = Slice (whole, begin, most, one) }""",
        """g (float[1,2] x, float[P,1,2] past) => (float[1,2] y, float[Q,1,2] present) { y = Tanh (x)
          one = Constant <value_ints = [1]> ()  row = Unsqueeze (x, one)  turned = Transpose <perm = [1, 0, 2]> (past)
          whole = Concat <axis = 1> (turned, row)  present = Transpose <perm = [1, 0, 2]> (whole) }""",
        """g (float[1,1,4] x, float[1,1,P,4] past_key, float[1,1,P,4] past_value) =>
             (float[1,1,4] y, float[1,1,Q,4] present_key, float[1,1,Q,4] present_value) {
          y, present_key, present_value = com.microsoft.MultiHeadAttention <num_heads = 1> (x, x, x, , , , past_key, past_value) }""",
    ],
)
def test_inputs_that_outputs_extend_are_found(text):
    session = parsed(text)
    stream = session.stream(bind={"first": np.array(False)} if "first" in text else {})
    past = [i.name for i in session.get_inputs() if i.name.startswith("past")]
    axis = session.get_inputs()[[i.name for i in session.get_inputs()].index(past[0])].shape.index("P")
    for name in past:
        assert f"{name} begins with 0 along axis {axis}: each run appends" in str(stream), str(stream)
    feeds = {"x": np.ones(session.get_inputs()[0].shape, F)}
    if "begin" in text:
        feeds["begin"] = np.array([0])
    for n in range(3):
        stream.push(feeds)
        assert stream.state[past[0]].shape[axis] == n + 1


def test_an_appended_input_is_no_state():
    text = """g (float[b,1,2] x, float[b,P,2] past) => (float[b,1,2] y, float[q,r,2] present) {
      present = Concat <axis = 1> (past, x)  y = Tanh (x) }"""
    stream = parsed(text).stream()
    assert "past <- present" in str(stream) and "given  x" in str(stream)
    for n in range(3):
        stream.push(x=np.full((2, 1, 2), n, F))
    np.testing.assert_array_equal(stream.state["past"], np.broadcast_to(np.arange(3, dtype=F)[:, None], (2, 3, 2)))


def test_a_list_to_which_runs_append():
    text = "g (float[2] x, seq(float[2]) past) => (float[2] y, seq(float[2]) present) { y = Tanh (x)  present = SequenceInsert (past, y) }"
    stream = parsed(text).stream()
    assert "past <- present  seq(tensor(float)[2])  (found in the graph" in str(stream)
    for n in range(3):
        stream.push(x=np.full(2, n, F))
    np.testing.assert_allclose(stream.state["past"], [np.tanh(np.full(2, n, F)) for n in range(3)], rtol=1e-6)


def test_pairs_that_are_no_states():
    """Signals and results that are alike, and parts of inputs that are handed out, are none."""
    for text in (
        "g (float[N] x) => (float[N] y) { y = Tanh (x) }",
        "g (float[N] x, float[N] w) => (float[N] y) { y = Mul (x, w) }",
        "g (float[N] x, float[N] w) => (float[N] y, float[N] echo) { y = Mul (x, w)  echo = Identity (w) }",
        "g (float[N] left, float[N] right) => (float[M] y) { y = Concat <axis = 0> (left, right) }",
        "g (float[N] mix) => (float[M] enhanced) { enhanced = Concat <axis = 0> (mix, mix) }",
    ):
        assert "  state  " not in str(parsed(text).stream()), text


def test_the_graph_decides_where_names_fit_twice():
    text = """g (float[1,1,2] x, float[1,1,2] h1, float[1,1,2] h2) => (float[1,1,2] y, float[1,1,2] hn, float[1,1,2] ht)
      <float[1,6,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[1,6,2] r = {1,1,1,1,1,1,2,2,2,2,2,2}> {
        all, ht = GRU <hidden_size = 2> (x, w, r, , , h1)  above, hn = GRU <hidden_size = 2> (x, w, r, , , h2)
        y = Add (ht, hn) }"""
    stream = parsed(text).stream()
    assert "h1 <- ht" in str(stream) and "h2 <- hn" in str(stream)


# --- Where blocks show their edges

STFT = "<float[2,1,8] w = {" + ", ".join(str(i % 5) for i in range(16)) + "}>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"g (float[1,1,T] x) => (float[1,2,U] y) {STFT} {{ y = Conv <strides = [4]> (x, w) }}", "Conv '/Conv_0' puts 8 positions together, 4 apart"),
        (f"g (float[1,1,T] x) => (float[1,2,U] y) {STFT} {{ y = Conv <strides = [8]> (x, w) }}", None),
        (f"g (float[1,1,16] x) => (float[1,2,U] y) {STFT} {{ y = Conv <strides = [4]> (x, w) }}", None),
        (
            f"g (float[1,1,T] x, float[1,1,4] s) => (float[1,2,U] y, float[1,1,4] sN) {STFT} {{ both = Concat <axis = 2> (s, x)"
            "  y = Conv <strides = [4]> (both, w)  m = Constant <value_ints = [-4]> ()  e = Constant <value_ints = [9999]> ()"
            "  a = Constant <value_ints = [2]> ()  sN = Slice (both, m, e, a) }",
            None,
        ),
        (
            "g (float[1,1,T] x) => (float[1,1,U] y) { p = Constant <value_ints = [0, 0, 2, 0, 0, 0]> ()"
            "  y = Pad <mode = \"reflect\"> (x, p) }",
            "Pad '/Pad_1' pads each block",
        ),
        (
            "g (float[T,1,2] x) => (float[T,1,1,2] y) <float[1,2,2] w = {1,2,3,4}, float[1,2,2] r = {1,2,3,4}>"
            " { y = RNN <hidden_size = 2> (x, w, r) }",
            "RNN '/RNN_0' begins anew with each block",
        ),
        (
            "g (float[T,1,2] x, float[1,1,2] h) => (float[T,1,1,2] y, float[1,1,2] hn) <float[1,2,2] w = {1,2,3,4}, float[1,2,2] r = {1,2,3,4}>"
            " { y, hn = RNN <hidden_size = 2> (x, w, r, , , h) }",
            None,
        ),
        (
            "g (float[T,2] x, float[2] h) => (float[T,2] y) { last, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e)"
            " => (float[2] sN, float[2] o) { sN = Add (s, e)  o = Identity (sN) }> (h, x) }",
            "Scan '/Scan_0' begins anew with each block",
        ),
    ],
)  # fmt: skip
def test_models_that_see_the_edges_of_blocks_say_so(text, message):
    session = parsed(text)
    axis = session.get_inputs()[0].shape.index("T") if "[1,1,16]" not in text else 2
    told = "and sees nothing of the block before: give `context`"
    alone = str(session.stream(time={"x": axis}, hop=16))
    assert (told in alone) == (message is not None), alone
    assert message is None or message in alone
    if "[1,1,16]" not in text:
        assert told not in str(session.stream(time={"x": axis}, hop=16, context=8))
