"""Streams and bound runs as a program in C holds them: by the C API of build/lib, many calls in one from Python."""

from __future__ import annotations

import ctypes
import pathlib

import numpy as np
import onnx
import yardsticks

LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "build" / "lib" / "libtreadle.so"


class CApi:
    """What streams and bound runs share. What is in `_held` lives as long."""

    def __init__(self, held: list) -> None:
        self._api = ctypes.CDLL(str(LIBRARY))
        self._held = held

    def _repeated(
        self, name: str, calls: int, function, handle, arguments: list, times: np.ndarray | None
    ) -> np.ndarray:
        repeat, counted = getattr(yardsticks.library(), name), np.zeros(3, np.int64)
        repeat.restype = ctypes.c_void_p
        places = [ctypes.c_void_p(None if times is None else times.ctypes.data), ctypes.c_void_p(counted.ctypes.data)]
        self._check(repeat(ctypes.c_int64(calls), function, handle, *arguments, *places))
        return counted

    def _new_session(self, model: bytes, jit: str) -> ctypes.c_void_p:
        options, session = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("options_create", ctypes.byref(options))
        for key, value in (("threads", "1"), ("jit", jit)):
            self._call("options_set", options, key.encode(), value.encode())
        size = ctypes.c_size_t(len(model))
        self._call("session_from_bytes", model, size, None, options, ctypes.byref(session))
        return session

    def _borrowed(self, array: np.ndarray) -> ctypes.c_void_p:
        value = ctypes.c_void_p()
        sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
        element = ctypes.c_int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
        data, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        rank, writable = ctypes.c_size_t(array.ndim), ctypes.c_bool(False)
        self._call("tensor_borrow", element, sizes, rank, data, size, writable, None, None, ctypes.byref(value))
        return value

    def _call(self, name: str, *arguments) -> None:
        function = getattr(self._api, f"treadle_{name}")
        function.restype = ctypes.c_void_p
        self._check(function(*arguments))

    def _check(self, status: int | None) -> None:
        if not status:
            return
        text = self._api.treadle_status_message
        text.restype = ctypes.c_char_p
        raise RuntimeError(text(ctypes.c_void_p(status)).decode())


class CStream(CApi):
    """Pushes `chunks` (the same ones again and again), on one thread. `times`: their time axes, of a stream over time."""

    def __init__(
        self,
        model: bytes,
        pairs: dict[str, str],
        chunks: dict[str, np.ndarray],
        times: dict[str, int] | None = None,
        jit: str = "off",
    ) -> None:
        super().__init__(list(chunks.values()))
        session, stream = self._new_session(model, jit), ctypes.c_void_p()
        options = ctypes.c_void_p()
        self._call("stream_options_create", ctypes.byref(options))
        for before, after in pairs.items():
            self._call("stream_options_pair", options, before.encode(), after.encode())
        for name, axis in (times or {}).items():
            self._call("stream_options_time", options, name.encode(), ctypes.c_int64(axis))
        self._call("stream_create", session, options, ctypes.byref(stream))
        self._stream = stream
        self._names = (ctypes.c_char_p * len(chunks))(*(name.encode() for name in chunks))
        self._values = (ctypes.c_void_p * len(chunks))(*(self._borrowed(a).value for a in self._held))
        self._api.treadle_stream_output_count.restype = ctypes.c_size_t
        self._outputs = (ctypes.c_void_p * self._api.treadle_stream_output_count(stream))()
        self._call("stream_bind", stream, None, self._names, self._values, ctypes.c_size_t(len(chunks)), self._outputs)

    def result(self) -> np.ndarray:
        """The first output of one push; its sizes are on the caller."""
        self.step(1)
        count = self._api.treadle_tensor_count
        count.restype = ctypes.c_int64
        data = self._api.treadle_tensor_data
        data.restype = ctypes.c_void_p
        value = ctypes.c_void_p(self._outputs[0])
        found = (ctypes.c_float * count(value)).from_address(data(value))
        return np.array(found, np.float32)

    def breaks_realtime(self, samples: int) -> str:
        why = ctypes.c_char_p()
        keeps = self._api.treadle_stream_is_realtime
        keeps.restype = ctypes.c_bool
        return "" if keeps(self._stream, ctypes.c_int64(samples), ctypes.byref(why)) else why.value.decode()

    def push(self, calls: int, times: np.ndarray | None = None) -> np.ndarray:
        """With `times`, of int64, the nanoseconds of each call are put there. Page faults, and context switches that the
        thread did not ask for and that it did, are returned; they are counted with `times` alone."""
        arguments = [self._names, self._values, ctypes.c_int64(len(self._held)), self._outputs]
        return self._repeated("push_repeatedly", calls, self._api.treadle_stream_push, self._stream, arguments, times)

    def step(self, calls: int, times: np.ndarray | None = None) -> np.ndarray:
        """As push(), with the arguments bound."""
        return self._repeated("step_repeatedly", calls, self._api.treadle_stream_step, self._stream, [], times)


class BoundRun(CApi):
    """Runs of a session with bound arguments, on one thread."""

    def __init__(self, model: bytes, feeds: dict[str, np.ndarray], jit: str = "off") -> None:
        super().__init__([np.asarray(a, order="C") for a in feeds.values()])
        session, self._bound = self._new_session(model, jit), ctypes.c_void_p()
        names = (ctypes.c_char_p * len(feeds))(*(name.encode() for name in feeds))
        values = (ctypes.c_void_p * len(feeds))(*(self._borrowed(a).value for a in self._held))
        outputs = [output.name.encode() for output in onnx.load_from_string(model).graph.output]
        wanted, count = (ctypes.c_char_p * len(outputs))(*outputs), ctypes.c_size_t(len(outputs))
        self._outputs = (ctypes.c_void_p * len(outputs))()
        given = [names, values, ctypes.c_size_t(len(feeds)), wanted, count, self._outputs]
        self._call("session_bind", session, None, *given, ctypes.byref(self._bound))

    def run(self, calls: int = 1) -> None:
        self._repeated("step_repeatedly", calls, self._api.treadle_bound_run, self._bound, [], None)
