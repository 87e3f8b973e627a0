"""Small models, and repositories of them as Triton reads them."""

import pathlib

import numpy as np
import onnx
from onnx import parser

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


def save(repository: pathlib.Path, name: str, model: str, config: str) -> None:
    """A model, as ONNX text, and its config.pbtxt."""
    folder = repository / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(parser.parse_model(HEADER + model), folder / "model.onnx")
    (folder.parent / "config.pbtxt").write_text(f'name: "{name}"\nbackend: "treadle"\n{config}')


def numbers(seed: int, *shape: int) -> str:
    drawn = np.random.default_rng(seed).standard_normal(shape).astype(np.float32).ravel()
    return ",".join(repr(float(value)) for value in drawn)


# One step: the state is a leaky sum of the inputs, and the output a mix of both.
STEP = f"""
step (float[B,4] x, float[B,3] h) => (float[B,2] y, float[B,3] hn)
<float[4,3] W = {{{numbers(1, 4, 3)}}}, float[3,2] V = {{{numbers(2, 3, 2)}}}, float half = {{0.5}}>
{{
   kept = Mul(h, half)
   came = MatMul(x, W)
   sum = Add(kept, came)
   hn = Tanh(sum)
   y = MatMul(hn, V)
}}
"""

# A window of [context 2 + hop 4] samples and a state, as voice activity models have them.
WINDOWS = f"""
windows (float[B,6] input, float[B,3] state, int64 sr) => (float[B,1] output, float[B,3] stateN)
<float[6,3] W = {{{numbers(3, 6, 3)}}}, float[3,1] V = {{{numbers(4, 3, 1)}}}, float rate = {{16000.0}}>
{{
   came = MatMul(input, W)
   given = Cast<to = 1>(sr)
   scale = Div(given, rate)
   scaled = Mul(came, scale)
   sum = Add(state, scaled)
   stateN = Tanh(sum)
   y = MatMul(stateN, V)
   output = Sigmoid(y)
}}
"""

# For a whole signal: it looks one sample ahead and sums up the samples.
SIGNAL = f"""
signal (float[B,2,T] x) => (float[B,3,T] y)
<float[3,2,3] W = {{{numbers(5, 3, 2, 3)}}}, int64 axis = {{2}}>
{{
   filtered = Conv<kernel_shape = [3], pads = [1, 1]>(x, W)
   y = CumSum(filtered, axis)
}}
"""

# The same without a batch.
FLAT = """
flat (float[2,T] x) => (float[2,T] y) <int64 axis = {1}>
{
   y = CumSum(x, axis)
}
"""

# The calls of tritonclient's example programs: sums and differences, of numbers and of texts.
SIMPLE = """
simple (int32[B,16] INPUT0, int32[B,16] INPUT1) => (int32[B,16] OUTPUT0, int32[B,16] OUTPUT1)
{
   OUTPUT0 = Add(INPUT0, INPUT1)
   OUTPUT1 = Sub(INPUT0, INPUT1)
}
"""
TEXTS = """
texts (string[B,16] INPUT0, string[B,16] INPUT1) => (string[B,16] OUTPUT0, string[B,16] OUTPUT1)
{
   a = Cast<to = 6>(INPUT0)
   b = Cast<to = 6>(INPUT1)
   sum = Add(a, b)
   difference = Sub(a, b)
   OUTPUT0 = Cast<to = 8>(sum)
   OUTPUT1 = Cast<to = 8>(difference)
}
"""
# Takes the inputs that Triton's batcher gives a model; keeps nothing.
CONTROLLED = """
controlled (int32[B,1] INPUT, int32[B,1] START, int32[B,1] READY) => (int32[B,1] OUTPUT)
{
   sum = Add(INPUT, START)
   OUTPUT = Mul(sum, READY)
}
"""
# The correlation id itself.
NAMED = """
named (int32[B,1] INPUT, string[B,1] CORRID) => (string[B,1] OUTPUT)
{
   OUTPUT = Identity(CORRID)
}
"""
# A sum whose state is the server's.
IMPLICIT = """
implicit (int32[B,1] INPUT, int32[B,1] sum) => (int32[B,1] OUTPUT, int32[B,1] next)
{
   next = Add(INPUT, sum)
   OUTPUT = Identity(next)
}
"""


def tensor(field: str, name: str, kind: str, dims: str, more: str = "") -> str:
    return f'{field} [ {{ name: "{name}" data_type: TYPE_{kind} dims: [ {dims} ] {more} }} ]\n'


def parameters(**values: object) -> str:
    return "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in values.items()
    )


SNAPSHOTS = tensor("input", "treadle_state", "UINT8", "-1", "optional: true allow_ragged_batch: true") + tensor(
    "output", "treadle_state", "UINT8", "-1"
)
OLDEST = "sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { max_candidate_sequences: 1024 } }\n"
DIRECT = "sequence_batching { max_sequence_idle_microseconds: 60000000 direct { } }\n"

STEP_TENSORS = tensor("input", "x", "FP32", "4") + tensor("output", "y", "FP32", "2")
STEP_CONFIG = "max_batch_size: 64\n" + OLDEST + STEP_TENSORS + SNAPSHOTS
WINDOWS_CONFIG = (
    "max_batch_size: 64\n"
    + OLDEST
    + tensor("input", "input", "FP32", "-1", "allow_ragged_batch: true")
    + tensor("output", "output", "FP32", "-1, 1")
    + SNAPSHOTS
    + parameters(time="input=1", hop=4, context=2, bind="sr=16000", state="state=stateN")
)
SIGNAL_TENSORS = tensor("input", "x", "FP32", "2, -1", "allow_ragged_batch: true") + tensor(
    "output", "y", "FP32", "3, -1"
)
SIGNAL_CONFIG = "max_batch_size: 64\n" + OLDEST + SIGNAL_TENSORS + SNAPSHOTS + parameters(time="x=T")
FLAT_CONFIG = (
    "max_batch_size: 0\n"
    + OLDEST
    + tensor("input", "x", "FP32", "2, -1")
    + tensor("output", "y", "FP32", "2, -1")
    + SNAPSHOTS.replace("allow_ragged_batch: true", "")
    + parameters(time="x=-1")
)
SIMPLE_CONFIG = "max_batch_size: 8\n" + "".join(
    tensor(field, f"{field.upper()}{i}", "INT32", "16") for field in ("input", "output") for i in range(2)
)
TEXTS_CONFIG = SIMPLE_CONFIG.replace("TYPE_INT32", "TYPE_STRING")
CONTROLS = """sequence_batching { control_input [
  { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
  { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] } ] }
"""
CONTROLLED_CONFIG = (
    "max_batch_size: 8\n" + CONTROLS + tensor("input", "INPUT", "INT32", "1") + tensor("output", "OUTPUT", "INT32", "1")
)
NAMED_CONFIG = (
    """max_batch_size: 8
sequence_batching { oldest { max_candidate_sequences: 8 } control_input [
  { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } ] } ] }
"""
    + tensor("input", "INPUT", "INT32", "1")
    + tensor("output", "OUTPUT", "STRING", "1")
)
STATES = """sequence_batching { STRATEGY { } state [
  { input_name: "sum" output_name: "next" data_type: TYPE_INT32 dims: [ 1 ]
    initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ] }
"""
IMPLICIT_CONFIG = (
    "max_batch_size: 8\n" + STATES + tensor("input", "INPUT", "INT32", "1") + tensor("output", "OUTPUT", "INT32", "1")
)
WARMUP = """model_warmup [ { name: "first" batch_size: 1 inputs {
  key: "x" value: { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } } ]
"""


def repository(folder: pathlib.Path) -> pathlib.Path:
    save(folder, "step", STEP, STEP_CONFIG)
    save(folder, "step_direct", STEP, STEP_CONFIG.replace(OLDEST, DIRECT))
    save(folder, "step_instances", STEP, STEP_CONFIG + "instance_group [ { count: 3 kind: KIND_CPU } ]\n")
    save(folder, "step_few", STEP, STEP_CONFIG.replace("60000000", "1000000") + parameters(capacity=2, idle_s=1))
    save(folder, "step_warm", STEP, STEP_CONFIG + WARMUP)
    save(folder, "windows", WINDOWS, WINDOWS_CONFIG)
    save(folder, "signal", SIGNAL, SIGNAL_CONFIG)
    save(folder, "flat", FLAT, FLAT_CONFIG)
    save(folder, "signal_whole", SIGNAL, SIGNAL_CONFIG.replace(OLDEST, "").replace(SNAPSHOTS, ""))
    save(folder, "simple", SIMPLE, SIMPLE_CONFIG + "dynamic_batching { max_queue_delay_microseconds: 2000 }\n")
    save(folder, "texts", TEXTS, TEXTS_CONFIG)
    save(folder, "controlled", CONTROLLED, CONTROLLED_CONFIG)
    save(folder, "named", NAMED, NAMED_CONFIG)
    for strategy in ("direct", "oldest"):
        save(folder, f"implicit_{strategy}", IMPLICIT, IMPLICIT_CONFIG.replace("STRATEGY", strategy))
    return folder
