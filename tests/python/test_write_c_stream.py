"""Streams as C: each push gives the bits of the engine's push, and so does the end of the signal."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import test_stream_over_time as over_time
import treadle
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(pathlib.Path(__file__).parents[1] / "suites"))  # behind the module `models` of these tests
import compiled

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TREADLE_BIN_DIR", ROOT / "build" / "bin")) / "treadle"
ENDED, TOO_FEW = 101, 102


class Stream:
    """The C of a stream, compiled and loaded."""

    def __init__(self, folder: pathlib.Path, source: str, header: str, name: str):
        folder = folder / name  # a library is loaded once under one path
        folder.mkdir()
        self.header = header
        self.inputs = compiled.fields_of(header, "inputs")
        outputs = re.search(r"typedef struct model_outputs \{(.*?)\n\}", header, re.DOTALL).group(1)
        self.outputs = re.findall(r"\*(\w+); /\* \"(.*?)\": .* at most (\d+) elements", outputs)
        (folder / "model.c").write_text(source)
        (folder / "model.h").write_text(header)
        counts = [f"to[{i}] = s->written.{name};" for i, (name, _, _) in enumerate(self.outputs)]
        (folder / "probe.c").write_text(
            '#include "model.h"\n'
            "size_t size_of_stream(void) { return sizeof(model_stream); }\n"
            "void counts(const model_stream *s, size_t *to) { (void)s; (void)to; "
            + (" ".join(counts) if " written;" in header else "")
            + " }\n"
        )
        command = ["gcc", "-std=c11", "-O1", "-march=haswell", "-ffp-contract=off", "-shared", "-fPIC"]
        command += [*compiled.WARNINGS, "model.c", "probe.c", "-o", "model.so", "-lm"]
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr[:2000]
        self.code = ctypes.CDLL(str(folder / "model.so"))
        self.state = np.full(self.code.size_of_stream(), 0xA5, np.uint8)
        size = int(re.search(r"_SCRATCH_BYTES (\d+)", header).group(1))
        self.scratch = np.full(size + 64, 0xA5, np.uint8)
        self.begin()

    def begin(self):
        self.code.model_begin(self.pointer(self.state))

    def has(self, function):
        return f"int model_{function}(" in self.header

    @staticmethod
    def pointer(array):
        return ctypes.c_void_p(array.ctypes.data)

    def call(self, function, feeds, wanted):
        """The status, and the results as arrays like `wanted`."""
        arrays = [np.ascontiguousarray(feeds[n]) if n in feeds else None for n in self.inputs]
        most = [int(elements) for _, _, elements in self.outputs]
        results = [np.zeros(m + 1, w.dtype) for m, w in zip(most, wanted, strict=True)]
        inputs = (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data if a is not None else None for a in arrays])
        outputs = (ctypes.c_void_p * max(1, len(results)))(*[r.ctypes.data for r in results])
        start = (-self.scratch.ctypes.data) % 64
        status = getattr(self.code, f"model_{function}")(
            self.pointer(self.state), inputs, outputs, ctypes.c_void_p(self.scratch.ctypes.data + start)
        )
        counts = np.array(most, np.uint64)
        self.code.counts(self.pointer(self.state), self.pointer(counts))
        return status, [r[: int(n)] for r, n in zip(results, counts, strict=True)]

    def expect(self, function, feeds, wanted):
        status, got = self.call(function, feeds, wanted)
        assert status == 0, (function, status)
        for g, w in zip(got, wanted, strict=True):
            assert g.size == w.size, (function, g.size, w.shape)
            assert not compiled.difference(g.reshape(w.shape), w)


def listed(results, count):
    """Results in a list; one that there is not yet has no elements."""
    results = [results] if count == 1 else list(results)
    return [np.zeros(0, np.float32) if r is None else r for r in results]


SCRIPT = """
import sys
sys.path[:] = {path!r}
import test_write_c_stream
test_write_c_stream.{call}
"""


def in_process(call: str, isa: str = "avx2"):
    """The instruction set is chosen once for a process."""
    # Other folders have a module `models` as well.
    places = [str(pathlib.Path(__file__).parent), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(call=call, path=places)],
        env={**os.environ, "TREADLE_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]


def plain_session(model):
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("treadle.jit", "off")
    return treadle.InferenceSession(model, options)


def check_pushes(stream, made: Stream, pieces) -> None:
    """Each push gives the same as the engine's."""
    stream.reset()
    made.begin()
    for feeds in pieces:
        made.expect("push", feeds, listed(stream.push(feeds), len(stream.output_names)))


def written(stream, samples: int, **options):
    """(source, header, samples) for pushes of `samples` hops."""
    try:
        return *stream.write_c(samples=samples, libm=True, **options), samples
    except treadle.InvalidArgument as refused:
        samples *= int(re.search(r"multiple of (\d+)", str(refused)).group(1))
        return *stream.write_c(samples=samples, libm=True, **options), samples


def check_over_time(name: str, folder: str, fma: bool) -> None:
    """Pushes of several sizes, and the flush, of a case of test_stream_over_time."""
    case = over_time.CASES[name]
    stream = plain_session(case.model).stream(time={"x": case.axis})
    for hops in (1, 3, 12):
        source, header, samples = written(stream, hops, fma=fma)
        made = Stream(pathlib.Path(folder), source, header, f"of_{hops}_hops")
        for pushes in (1, 2, 40):
            x = case.signal(pushes * samples)
            pieces = [{"x": case.part(x, i * samples, (i + 1) * samples)} for i in range(pushes)]
            check_pushes(stream, made, pieces)
            if not made.has("flush"):
                continue
            wanted = listed(stream.flush(), len(stream.output_names))
            if made.call("flush", {}, wanted)[0] == TOO_FEW:
                assert pushes < 40
                continue
            check_pushes(stream, made, pieces)
            made.expect("flush", {}, listed(stream.flush(), len(stream.output_names)))
            assert made.call("push", pieces[0], wanted)[0] == ENDED
            assert made.call("flush", {}, wanted)[0] == ENDED


# Cases that C has not, with a part of the reason.
REFUSED = {
    "positions": "the sizes of its result are known only when it runs",
    "a loop that keeps all frames so far": "C needs a tensor of numbers whose sizes are known",
}


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("name", list(over_time.CASES))
def test_over_time(name, fma, tmp_path):
    if name in REFUSED:
        case = over_time.CASES[name]
        with pytest.raises(treadle.NotImplemented, match=REFUSED[name]):
            written(plain_session(case.model).stream(time={"x": case.axis}), 1)
        return
    in_process(f"check_over_time({name!r}, {str(tmp_path)!r}, {fma})", "avx2" if fma else "baseline")


def window_model(hop: int, context: int, channels: int):
    """A cell over windows of samples: the shape of a voice detector."""
    random = np.random.default_rng(3)
    width = hop + context
    weights = {
        "w": random.standard_normal((channels, 1, 4)).astype(np.float32) * 0.3,
        "u": random.standard_normal((channels, channels)).astype(np.float32) * 0.3,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["f"], kernel_shape=[4], strides=[2], pads=[1, 1]),
        helper.make_node("ReduceMean", ["f"], ["m"], axes=[2], keepdims=0),
        helper.make_node("MatMul", ["h", "u"], ["r"]),
        helper.make_node("Add", ["m", "r"], ["a"]),
        helper.make_node("Tanh", ["a"], ["next"]),
        helper.make_node("Identity", ["next"], ["y"]),
        helper.make_node("Mul", ["x", "gain"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "windows",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, width]),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, ["N", channels]),
            helper.make_tensor_value_info("gain", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", channels]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 1, width]),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, ["N", channels]),
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def check_windows(folder: str) -> None:
    for hop, context, batch in [(16, 0, 1), (16, 8, 1), (16, 8, 3), (8, 24, 2)]:
        session = plain_session(window_model(hop, context, 5))
        first = np.linspace(-1, 1, batch * 5, dtype=np.float32).reshape(batch, 5)
        stream = session.stream(
            state={"h": "next"}, time={"x": 2, "z": 2}, hop=hop, context=context, initial={"h": first}
        )
        source, header = stream.write_c(dims={"N": batch})
        made = Stream(pathlib.Path(folder), source, header, f"windows_{hop}_{context}_{batch}")
        random = np.random.default_rng(0)
        pieces = [
            {
                "x": random.standard_normal((batch, 1, hop)).astype(np.float32),
                "gain": random.standard_normal(1).astype(np.float32),
            }
            for _ in range(9)
        ]
        check_pushes(stream, made, pieces)


def test_windows_with_a_context_and_a_first_state(tmp_path):
    in_process(f"check_windows({str(tmp_path)!r})")


def check_steps(folder: str) -> None:
    twice = {"gain": np.full(1, 2, np.float32)}
    stream = plain_session(window_model(16, 0, 4)).stream(state={"h": "next"}, bind=twice)
    source, header = stream.write_c(dims={"N": 2}, prefix="model")
    assert "gain" not in re.search(r"model_inputs \{.*?\}", header, re.DOTALL).group(0)
    made = Stream(pathlib.Path(folder), source, header, "steps")
    random = np.random.default_rng(0)
    pieces = [{"x": random.standard_normal((2, 1, 16)).astype(np.float32)} for _ in range(5)]
    check_pushes(stream, made, pieces)
    # A copy goes on from where its original is.
    kept = made.state.copy()
    wanted = listed(stream.fork().push(pieces[0]), 2)
    made.expect("push", pieces[1], listed(stream.fork().push(pieces[1]), 2))
    made.state[:] = kept
    made.expect("push", pieces[0], wanted)


def test_states_without_time(tmp_path):
    in_process(f"check_steps({str(tmp_path)!r})")


def test_a_failed_push_changes_nothing(tmp_path):
    nodes = [
        helper.make_node("Div", ["x", "d"], ["q"]),
        helper.make_node("Add", ["q", "s"], ["next"]),
        helper.make_node("Identity", ["next"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "division",
        [helper.make_tensor_value_info(name, TensorProto.INT32, [2]) for name in ("x", "d", "s")],
        [helper.make_tensor_value_info(name, TensorProto.INT32, [2]) for name in ("next", "y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    stream = plain_session(model.SerializeToString()).stream(state={"s": "next"})
    made = Stream(tmp_path, *stream.write_c(), "division")
    x, ones = np.array([6, 8], np.int32), np.ones(2, np.int32)
    made.expect("push", {"x": x, "d": ones}, [x])
    kept = made.state.copy()
    assert made.call("push", {"x": x, "d": 0 * ones}, [x])[0] == 1
    assert (made.state == kept).all()
    made.expect("push", {"x": x, "d": 2 * ones}, [x + x // 2])


def test_errors():
    conv = plain_session(over_time.CASES["pools"].model).stream(time={"x": 2})
    with pytest.raises(treadle.InvalidArgument, match=r"samples=3: expected a multiple of 2"):
        conv.write_c(samples=3)
    with pytest.raises(treadle.InvalidArgument, match=r"expected a number above 0, found '-4'"):
        conv.write_c(samples=-4)
    windows = plain_session(window_model(16, 0, 4)).stream(state={"h": "next"}, time={"x": 2, "z": 2}, hop=16)
    with pytest.raises(treadle.InvalidArgument, match="say its size 'N'"):
        windows.write_c()
    with pytest.raises(treadle.InvalidArgument, match="samples=32: expected the hop, 16"):
        windows.write_c(samples=32)
    with pytest.raises(treadle.InvalidArgument, match="no input has an open size 'M'"):
        windows.write_c(dims={"N": 1, "M": 2})
    session = plain_session(over_time.CASES["pools"].model)
    with pytest.raises(treadle.InvalidArgument, match="expected prefix, dim, fma, weights or libm, found 'samples=3'"):
        session._engine.write_c(["samples=3"], {})


def test_without_an_end():
    case = over_time.CASES["pools"]
    stream = plain_session(case.model).stream(time={"x": case.axis})
    assert "model_flush" in stream.write_c(samples=2)[1]
    source, header = stream.write_c(samples=2, end=False)
    assert "flush" not in header
    assert "flush" not in source


@pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
def test_from_the_command_line(tmp_path):
    case = over_time.CASES["pools"]
    (tmp_path / "pools.onnx").write_bytes(case.model)
    command = [TOOL, "compile", "pools.onnx", "-o", "pools.c", "--time", "x=2", "--push", "6", "--libm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stream = plain_session(case.model).stream(time={"x": case.axis})
    found = (tmp_path / "pools.c").read_text(), (tmp_path / "pools.h").read_text()
    assert found == stream.write_c("pools", samples=6, libm=True)
