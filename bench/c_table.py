"""A session as a program in C holds it, by the function table of a libonnxruntime.so: treadle's or onnxruntime's own."""

from __future__ import annotations

import ctypes
import functools
import pathlib
import re

import numpy as np
import onnx
import onnxruntime
import yardsticks

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = ROOT / "build" / "lib" / "onnxruntime" / "libonnxruntime.so"
THEIRS = next(iter((pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.1*")), None)
API_VERSION = 23  # that programs of today are built with
ERRORS_ONLY = 4  # of the log


@functools.cache
def positions() -> dict[str, int]:
    """Of the table's entries, by name."""
    names = re.findall(r"^X\(\w+, (\w+)", (ROOT / "dropin" / "entries.inc").read_text(), re.MULTILINE)
    return {name: index for index, name in enumerate(names)}


class Base(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)), ("version", ctypes.c_void_p)]


class TableSession:
    """Runs a model on the same inputs again and again, on one thread; results are the library's."""

    def __init__(self, library: pathlib.Path, model: bytes, feeds: dict[str, np.ndarray]) -> None:
        get_base = ctypes.CDLL(str(library)).OrtGetApiBase
        get_base.restype = ctypes.POINTER(Base)
        self._table = ctypes.cast(get_base().contents.get_api(API_VERSION), ctypes.POINTER(ctypes.c_void_p))
        self._held = [model, *(np.asarray(a, order="C") for a in feeds.values())]
        self._memory = self._make("CreateCpuMemoryInfo", ctypes.c_int(0), ctypes.c_int(0))
        self._session = self._open(model)
        self._input_names = self._names(list(feeds))
        self._output_names = self._names([output.name for output in onnx.load_from_string(model).graph.output])
        self._inputs = (ctypes.c_void_p * len(feeds))(*(self._tensor(a).value for a in self._held[1:]))
        self._outputs = (ctypes.c_void_p * len(self._output_names))()

    def run(self, calls: int = 1) -> None:
        repeat = yardsticks.library().run_repeatedly
        repeat.restype = ctypes.c_void_p
        self._check(
            repeat(
                ctypes.c_int64(calls),
                self._entry("Run"),
                self._entry("ReleaseValue"),
                self._session,
                self._input_names,
                self._inputs,
                ctypes.c_int64(len(self._inputs)),
                self._output_names,
                ctypes.c_int64(len(self._outputs)),
                self._outputs,
            )
        )

    def _open(self, model: bytes) -> ctypes.c_void_p:
        environment = self._make("CreateEnv", ctypes.c_int(ERRORS_ONLY), b"bench")
        options = self._make("CreateSessionOptions")
        self._call("SetIntraOpNumThreads", options, ctypes.c_int(1))
        return self._make("CreateSessionFromArray", environment, model, ctypes.c_size_t(len(model)), options)

    @staticmethod
    def _names(names: list[str]) -> ctypes.Array:
        return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))

    def _tensor(self, array: np.ndarray) -> ctypes.c_void_p:
        if array.dtype == object or array.dtype.kind in "US":
            raise TypeError("texts are not measured")
        sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
        element = ctypes.c_int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
        data, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        rank = ctypes.c_size_t(array.ndim)
        return self._make("CreateTensorWithDataAsOrtValue", self._memory, data, size, sizes, rank, element)

    def _entry(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._table[positions()[name]])

    def _make(self, name: str, *arguments) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call(name, *arguments, ctypes.byref(made))
        return made

    def _call(self, name: str, *arguments) -> None:
        self._check(ctypes.CFUNCTYPE(ctypes.c_void_p)(self._entry(name).value)(*arguments))

    def _check(self, status: int | None) -> None:
        if not status:
            return
        text = ctypes.CFUNCTYPE(ctypes.c_char_p)(self._entry("GetErrorMessage").value)
        raise RuntimeError(text(ctypes.c_void_p(status)).decode())


class SteppingSession(TableSession):
    """Runs a model on the same inputs again and again; `states`, sizes by the names of inputs, go from run to run, to
    which the model gives them back under the same names with `_out` behind them. The results stay in place."""

    def __init__(
        self, library: pathlib.Path, model: bytes, feeds: dict[str, np.ndarray], states: dict[str, tuple[int, ...]]
    ) -> None:
        zeros = {name: np.zeros(sizes, np.float32) for name, sizes in states.items()}
        super().__init__(library, model, {**feeds, **zeros})
        outputs = onnx.load_from_string(model).graph.output
        sizes = [[d.dim_value for d in output.type.tensor_type.shape.dim] for output in outputs]
        fed = self._inputs[: len(feeds)]
        own = [name for name in (output.name for output in outputs) if name.removesuffix("_out") not in states]
        self.results = {name: np.zeros(sizes[k], np.float32) for k, name in enumerate(o.name for o in outputs)}
        others = {name: np.zeros(dims, np.float32) for name, dims in states.items()}
        self._held += [*self.results.values(), *others.values()]
        first = dict(zip(states, self._inputs[len(feeds) :], strict=True))
        second = {name: self._tensor(others[name]).value for name in states}
        given = {name: self._tensor(self.results[name]).value for name in own}

        def outputs_of(after: dict[str, int]) -> list[int]:
            return [given[o.name] if o.name in given else after[o.name.removesuffix("_out")] for o in outputs]

        inputs = [*fed, *first.values(), *fed, *second.values()]
        self._both_inputs = (ctypes.c_void_p * len(inputs))(*inputs)
        places = [*outputs_of(second), *outputs_of(first)]
        self._both_outputs = (ctypes.c_void_p * len(places))(*places)

    def step(self, calls: int = 1, times: np.ndarray | None = None) -> np.ndarray:
        """As CStream.push."""
        repeat, counted = yardsticks.library().run_in_turns, np.zeros(3, np.int64)
        repeat.restype = ctypes.c_void_p
        self._check(
            repeat(
                ctypes.c_int64(calls),
                self._entry("Run"),
                self._session,
                self._input_names,
                self._both_inputs,
                ctypes.c_int64(len(self._input_names)),
                self._output_names,
                self._both_outputs,
                ctypes.c_int64(len(self._output_names)),
                ctypes.c_void_p(None if times is None else times.ctypes.data),
                ctypes.c_void_p(counted.ctypes.data),
            )
        )
        return counted
