"""InferenceSession: a loaded model, by onnxruntime's names."""

from __future__ import annotations

import inspect
import operator
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from . import _core
from ._bound import BoundRun, in_order
from ._c import written_options
from ._devices import (
    OrtDevice,
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
    OrtEpDevice,
    OrtMemoryInfo,
    check_is_cpu,
    cpu_memory,
    get_ep_devices,
)
from ._errors import Fail, InvalidArgument, NoSuchFile
from ._explanation import Explanation
from ._ignored import suggestion, warn, warn_once
from ._in_notebooks import drawn
from ._model import ModelMetadata, NodeArg, model_source
from ._options import _ASSIGNMENT, _FOLDER, _WEIGHTS_FILE, _WEIGHTS_SIZE, RunOptions, SessionOptions
from ._pool import StreamPool
from ._profile import CallTrace, Profile
from ._progress import Progress, watched
from ._stream import Origin, Stream
from ._trace import Trace
from ._values import IOBinding, OrtValue, OrtValueVector

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import (
        AnyArray,
        ElementType,
        InputValue,
        OtherKeywords,
        OutputValue,
        PathOrBytes,
        Provider,
        Serializable,
    )

_User = TypeVar("_User")
_PROVIDERS = ["CPUExecutionProvider"]
_INPUT, _OUTPUT, _OVERRIDABLE = 0, 1, 2


def get_available_providers() -> list[str]:
    """["CPUExecutionProvider"]."""
    return list(_PROVIDERS)


def get_all_providers() -> list[str]:
    """["CPUExecutionProvider"]."""
    return list(_PROVIDERS)


def _named_providers(
    providers: Sequence[Provider], provider_options: Sequence[Mapping[Any, Any]] | None
) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """The providers' names and options as given; ValueError for an entry that is neither a name nor a pair."""
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence of names or (name, options) tuples.")
    if provider_options is not None and not isinstance(provider_options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if provider_options is not None and len(provider_options) != len(providers):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    for i, provider in enumerate(providers):
        if isinstance(provider, str):
            name, options = provider, provider_options[i] if provider_options is not None else {}
        elif isinstance(provider, (tuple, list)) and len(provider) == 2 and provider_options is None:
            name, options = provider
        else:
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        if not isinstance(name, str) or not isinstance(options, Mapping):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        yield name, options


def check_and_normalize_provider_args(
    providers: Sequence[Provider] | None,
    provider_options: Sequence[Mapping[Any, Any]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Names of providers, and the options of each as texts. Warns of names that are not available, and of names that come again.

    ValueError for what is no list of names or (name, options) pairs.
    """
    found: dict[str, dict[str, str]] = {}
    for name, options in _named_providers(providers or (), provider_options if providers is not None else None):
        if name not in available_provider_names:
            warn(
                f"Specified provider '{name}' is not in available provider names. Available providers: "
                f"'{', '.join(available_provider_names)}'"
            )
        if name in found:
            warn(f"Duplicate provider '{name}' encountered, ignoring.")
        else:
            found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def _normalize_providers(
    providers: Sequence[Provider] | None, provider_options: Sequence[Mapping[str, Any]] | None
) -> tuple[list[str], dict[str, dict[str, str]]]:
    """Names in order and options by name. Whatever is asked for, the CPU runs the model."""
    if providers is None and provider_options:
        warn_once("provider_options without providers have no effect")
    names, options = check_and_normalize_provider_args(providers, provider_options, _PROVIDERS)
    found = {name: given for name, given in zip(names, options, strict=True) if name in _PROVIDERS}
    found.setdefault(_PROVIDERS[0], {})
    return list(found), found


# Keywords of onnxruntime's that its documentation does not name.
_OTHER_KEYWORDS = ("disabled_optimizers", "enable_fallback", "read_config_from_model")


def _check_keywords(kwargs: Mapping[str, Any]) -> None:
    for name in kwargs:
        if name in _OTHER_KEYWORDS:
            continue
        known = [*inspect.signature(InferenceSession).parameters][:-1]
        hint = suggestion(name, known) or f" (it has: {', '.join(known)})"
        raise TypeError(f"InferenceSession() has no argument '{name}'{hint}")
    if kwargs.get("disabled_optimizers"):
        warn_once(
            "disabled_optimizers has no effect: treadle's rewrites are all on, or off by graph_optimization_level"
        )
    if kwargs.get("read_config_from_model"):
        warn_once("read_config_from_model has no effect: no options are read from models")


_MODEL_OPTIONS, _READ_MODEL_OPTIONS = "ort_config", "ORT_LOAD_CONFIG_FROM_MODEL"


def _warn_of_model_options(meta: ModelMetadata) -> None:
    if os.environ.get(_READ_MODEL_OPTIONS) == "1" and _MODEL_OPTIONS in meta.custom_metadata_map:
        warn_once(
            f"{_READ_MODEL_OPTIONS} has no effect: the options that the model says ('{_MODEL_OPTIONS}') are not read"
        )


def _briefly(values: list[NodeArg], most: int = 4) -> str:
    """ "x tensor(float)[n, 3], h tensor(float)[3]"; of many values the first ones."""
    texts = []
    for value in values[:most]:
        sizes = ", ".join("?" if size is None else str(size) for size in value.shape)
        texts.append(f"{value.name} {value.type}" + (f"[{sizes}]" if value.type.startswith("tensor") else ""))
    more = [f"{len(values) - most} more"] if len(values) > most else []
    return ", ".join(texts + more) or "nothing"


def _least_size(entries: Mapping[str, str]) -> int:
    """The least size in bytes of an initialiser that goes to the file of weights; InvalidArgument for no number."""
    text = entries.get(_WEIGHTS_SIZE, "1024")
    if not text.isdecimal():
        raise InvalidArgument(f"the configuration entry '{_WEIGHTS_SIZE}' is a number of bytes, found '{text}'")
    return int(text)


def _mapping(name: str, value: Any, what: str) -> dict[str, Any]:
    if value is None or isinstance(value, Mapping):
        return dict(value or {})
    raise TypeError(f"{name} is a dict from {what}, not a {type(value).__name__}")


def check_is_here(model: Any, host: str) -> None:
    """NoSuchFile where `model`, pickled on `host`, is a path and there is no such file on this machine."""
    if isinstance(model, str) and not os.path.exists(model):
        raise NoSuchFile(
            f"{model} is not on {os.uname().nodename}: a session was made from it on {host} and pickled, which "
            "takes along the path alone; put the model where both can read it, or make the session from its bytes"
        )


class InferenceSession(_core.SessionBase):
    """A loaded model. May be run by many threads at once. What it holds is freed when nothing refers to it.

    `path_or_bytes`: a path, the bytes of a model, or a ModelProto. `weights="f16"` keeps the weights of recurrences in
    float16, as the configuration entry "treadle.weights" does; `explain()` says how far off they are.

    Raises NoSuchFile, InvalidProtobuf for what is no model, InvalidGraph for a model that breaks a rule, NotImplemented for an
    operator or type that treadle does not run, InvalidArgument for options, LimitExceeded past a limit of loading,
    ModelLoadCanceled.
    """

    def __init__(
        self,
        path_or_bytes: PathOrBytes | Serializable,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        weights: Literal["f32", "f16"] | None = None,
        **kwargs: Unpack[OtherKeywords],
    ) -> None:
        _check_keywords(kwargs)
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options are SessionOptions, not a {type(sess_options).__name__}")
        self._model_path, self._model_bytes = model_source(path_or_bytes)
        self._sess_options = sess_options if sess_options is not None else SessionOptions()
        self._enable_fallback = bool(kwargs.get("enable_fallback", True))
        self._providers, self._provider_options = _normalize_providers(providers, provider_options)
        options = self._sess_options
        options._check_threads()
        folder = options._entries.get(_FOLDER)
        if folder is not None and self._model_path is not None:
            warn_once(f"the configuration entry '{_FOLDER}' has no effect on a model that is given by its path")
        core_options = options._to_core()
        if weights is not None:
            core_options["weights"] = weights
        self._profile = CallTrace(options.profile_file_prefix) if options.enable_profiling else None
        # Where the files are, wherever the process goes.
        self._model_place = None if self._model_path is None else os.path.abspath(self._model_path)
        self._weights = weights
        self._engine = _core.Session(
            self._model_path,
            self._model_bytes,
            folder,
            core_options,
            dict(options._dimensions),
            dict(options._dimensions_by_denotation),
            {name: v._value if isinstance(v, OrtValue) else v for name, v in options._initializers.items()},
            dict(options._files),
            list(options._operator_libraries),
            options._load_flag,
        )
        if self._profile is not None:
            self._engine.record(self._profile.add_nodes, self._profile.origin_ns)
            self._profile.add(
                f"model_loading_{'array' if self._model_path is None else 'uri'}", self._profile.origin_ns
            )
        for remark in self._engine.remarks():
            warn_once(remark)
        if options.optimized_model_filepath:
            self._write_optimized(options.optimized_model_filepath)
        self._inputs_meta = self._node_args(_INPUT)
        self._outputs_meta = self._node_args(_OUTPUT)
        self._overridable_meta = self._node_args(_OVERRIDABLE)
        self._model_meta = ModelMetadata(self._engine.metadata())
        _warn_of_model_options(self._model_meta)
        # The profile is written at the end of the session when end_profiling was not called.
        self._unwritten = weakref.finalize(self, self._profile.write) if self._profile else None
        self._run = self._engine.run
        if self._profile is None:
            self._set_core(self._engine)
        else:
            self._profile.add("session_initialization", self._profile.origin_ns)
        self._own = frozenset(vars(self))

    def __getstate__(self) -> dict[str, Any]:
        """What the session was made of, for pickle: its model, by the path or in bytes, and its options.

        Where a session is made again from a path, the path has to be there; NoSuchFile says from where the session came.
        """
        return {
            "model": self._model_bytes if self._model_place is None else self._model_place,
            "options": self._sess_options,
            "providers": [(name, self._provider_options.get(name, {})) for name in self._providers],
            "weights": self._weights,
            "host": os.uname().nodename,
            "others": {name: value for name, value in vars(self).items() if name not in (*self._own, "_own")},
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        model = state["model"]
        check_is_here(model, state["host"])
        InferenceSession.__init__(self, model, state["options"], state["providers"], weights=state["weights"])
        vars(self).update(state["others"])

    def _write_optimized(self, path: str) -> None:
        model = self._engine.optimized_model()
        entries = self._sess_options._entries
        weights_name = entries.get(_WEIGHTS_FILE, "")
        files = {path: model}
        if weights_name:
            from ._proto import with_weights_apart  # rare

            model, weights = with_weights_apart(model, weights_name, _least_size(entries))
            files = {path: model, os.path.join(os.path.dirname(path), weights_name): weights}
        try:
            for name, contents in files.items():
                with open(name, "wb") as file:
                    file.write(contents)
        except OSError as e:
            raise InvalidArgument(f"optimized_model_filepath: {e}") from e

    def _node_args(self, role: int) -> list[NodeArg]:
        return [NodeArg(name, type_name, shape or []) for name, type_name, shape in self._engine.infos(role)]

    def _all_inputs(self) -> list[NodeArg]:
        return self._inputs_meta + self._overridable_meta

    def __repr__(self) -> str:
        """Where the model is from, and its inputs and outputs."""
        source = repr(self._model_path) if self._model_path is not None else f"of graph {self._model_meta.graph_name!r}"
        return f"<treadle.InferenceSession {source}: {_briefly(self._inputs_meta)} -> {_briefly(self._outputs_meta)}>"

    def _repr_html_(self) -> str:
        return drawn("session_html", self, self._model_bytes if self._model_place is None else self._model_place)

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        """Name, type and sizes of each input that runs need, in the model's order."""
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """Name, type and sizes of each output, in the model's order."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Name, type and sizes of each input that has a default, which feeds and `add_initializer` replace."""
        return self._overridable_meta

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        return self._model_meta

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where each input is read: in the CPU's memory."""
        return [cpu_memory() for _ in self._inputs_meta]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where each output is written: in the CPU's memory."""
        return [cpu_memory() for _ in self._outputs_meta]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """The device that reads each input: the CPU."""
        return get_ep_devices() * len(self._inputs_meta)

    def get_providers(self) -> list[str]:
        """["CPUExecutionProvider"]."""
        return self._providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options by the name of the provider."""
        return self._provider_options

    def set_providers(
        self,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Records the providers; the CPU runs the model. RuntimeError for a name that is no provider's."""
        for provider in providers or ():
            name = provider if isinstance(provider, str) else provider[0]
            if not name.endswith("ExecutionProvider"):
                raise RuntimeError(f"Unknown Provider Type: {name}")
        self._providers, self._provider_options = _normalize_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """Has no effect: there is nothing to fall back from."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """Has no effect: there is nothing to fall back from."""
        self._enable_fallback = True

    @_core.run_method
    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, InputValue],
        run_options: RunOptions | None = None,
        *,
        progress: Progress = None,
    ) -> list[OutputValue]:
        """New arrays for the outputs named, or for all (None, or an empty list).

        Feeds may be numpy arrays, lists, numbers, anything with `__dlpack__` (torch, jax), OrtValues; lists of these for
        sequences, None for optionals, dicts for maps. Raises InvalidArgument for what does not fit, ValueError for missing
        inputs. `progress(done, total)` is told of the iterations of the outermost loops about every 50 ms and at the end,
        with None for a total that nobody knows; what it raises stops the run. True shows tqdm's bar.
        """
        if progress is not None:
            with watched(progress):
                return self.run(output_names, input_feed, run_options)
        run = self._recorded("model_run", self._run)
        results: list[OutputValue] = run(output_names, input_feed, run_options)
        return results

    def _recorded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, or where runs are recorded, one that records it as well."""
        if self._profile is None:
            return call

        def recorded(*args: Any) -> Any:
            begin = time.monotonic_ns()
            result = call(*args)
            if self._profile:
                self._profile.add_run(name, begin)
            return result

        return recorded

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, InputValue],
        callback: Callable[[list[OutputValue], _User, str], object],
        user_data: _User,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs in a thread of its own, which calls `callback(results, user_data, error)`."""

        if not callable(callback):
            raise TypeError(f"callback is called with (results, user_data, error), and is a {type(callback).__name__}")

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as e:
                results, error = [], str(e)
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """`run` from values to values, which stay in the engine's hands; errors are those of `run`."""
        feed = {name: value._value for name, value in input_dict_ort_values.items()}
        run = self._recorded("model_run", self._engine.run_values)
        values = run(output_names, feed, [], run_options)
        return [OrtValue(value) for value in values]

    @property
    def _sess(self) -> InnerSession:
        """The session as onnxruntime's extension has it."""
        return InnerSession(self)

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice],
    ) -> None:
        """`run` from values to values, which are appended to `fetches`. Errors are those of `run`.

        ValueError where there are not as many names as values; InvalidArgument for devices other than the CPU.
        """
        for device in fetch_devices:
            check_is_cpu(device)
        feed = dict(zip(feed_names, feeds, strict=True))
        for value in self.run_with_ort_values(fetch_names, feed, run_options):
            fetches.push_back(value)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: ElementType,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """`OrtValue.ortvalue_from_shape_and_type`: values are not bound to sessions."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Warns once of each option: providers have none that could be changed."""
        for name, value in options.items():
            warn_once(f"the dynamic option '{name}' = '{value}' has no effect")

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """The nodes of the graph after the rewrites of loading, each by itself: the CPU runs them all.

        Fail unless the configuration entry "session.record_ep_graph_assignment_info" is "1".
        """
        if self._sess_options._entries.get(_ASSIGNMENT) != "1":
            raise Fail(
                f"Session configuration entry '{_ASSIGNMENT}' must be set to \"1\" to retrieve EP graph assignment information."
            )
        from ._proto import nodes  # rare

        found = [OrtEpAssignedNode(*node) for node in nodes(self._engine.optimized_model())]
        return [OrtEpAssignedSubgraph(_PROVIDERS[0], (node,)) for node in found]

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """An empty list: nothing is tuned that could be kept."""
        return []

    def set_tuning_results(self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False) -> None:
        """Warns once that results have no effect, or with `error_on_invalid` refuses them with RuntimeError."""
        for result in results:
            text = f"Cannot find execution provider {result.get('ep')} that takes tuning results"
            if error_on_invalid:
                raise RuntimeError(text)
            warn_once(f"{text}: they have no effect")

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Has nothing to do: no graphs of a GPU are captured."""

    def io_binding(self) -> IOBinding:
        """Fixes inputs and outputs in place, for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with the bound values. Raises as `run`, and RuntimeError when an output does not fit its buffer."""
        iobinding._run(self._recorded("model_run", self._engine.run_values), run_options)

    def end_profiling(self) -> str:
        """Writes the profile and returns its path; empty when profiling was not enabled."""
        if self._profile is None:
            return ""
        profile, self._profile = self._profile, None
        self._engine.record(None, 0)
        self._set_core(self._engine)
        if self._unwritten is not None:
            self._unwritten.detach()
        return profile.write()

    def get_profiling_start_time_ns(self) -> int:
        """When recording began, in nanoseconds since 1970; 0 when profiling was not enabled."""
        return self._profile.start_ns if self._profile else 0

    def _roles(
        self,
        state: Mapping[str, str] | None,
        find_state: bool,
        initial: Mapping[str, InputValue] | None,
        bind: Mapping[str, InputValue] | None,
        time: Mapping[str, int | str] | None,
    ) -> tuple[dict[str, str], bool, dict[str, Any], dict[str, Any], dict[str, Any]]:
        """What the extension's streams take."""
        states = _mapping("state", state, "inputs to outputs")
        axes = _mapping("time", time, "inputs to axes")
        bound = _mapping("bind", bind, "inputs to values")
        return states, find_state, _mapping("initial", initial, "states to values"), bound, axes

    def bind(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, AnyArray],
        *,
        outputs: Mapping[str, AnyArray] | None = None,
        run_options: RunOptions | None = None,
    ) -> BoundRun:
        """Binds the arguments of `run`, so that `BoundRun.run` takes hardly longer than the arithmetic of the model.

        Each run reads the arrays of `input_feed` as they are then: they must be contiguous and of the input's type.
        `outputs`: arrays for results, by name; there are new ones for the others. What the inputs hold is run meanwhile.
        Raises what `run` raises, and InvalidArgument for arrays that cannot be used in place.
        """
        names = None if output_names is None else list(output_names)
        wanted = names if names is not None else [output.name for output in self.get_outputs()]
        core = _core.BoundRun(self._engine, names, dict(input_feed), in_order(wanted, outputs), run_options)
        return BoundRun(core)

    def stream(
        self,
        state: Mapping[str, str] | None = None,
        bind: Mapping[str, InputValue] | None = None,
        time: Mapping[str, int | str] | None = None,
        hop: int = 0,
        context: int = 0,
        *,
        initial: Mapping[str, InputValue] | None = None,
        find_state: bool = True,
        warm: bool | int | Iterable[int] = False,
    ) -> Stream:
        """A stream over this model.

        `state`: input -> output pairs that are carried from run to run (those not given are found by names, types and the
        graph, unless `find_state` is off; `str` of the stream says how); `initial`: what they begin with, else zeros. `bind`: inputs that stay the same.
        `time`: the axis along which an input is cut into chunks, or an output put together, as a number or as the name
        that the model gives its size. `hop`: samples per run;
        `context`: samples of the window before that a run sees again. Without a hop every push is one run; with `time`,
        what the model itself carries along time is found (recurrent state, what convolutions look back at), and the
        pushes with a `flush` at the end give what one run over the whole signal gives. A model that needs all of the
        signal at once is refused with the node that does. `warm`: plan and compile now for pushes of one hop, or of
        these numbers of samples, so that no push has to.
        """
        roles = self._roles(state, find_state, initial, bind, time)
        core = _core.Stream(self._engine, *roles, operator.index(hop), operator.index(context))
        if warm is not False:
            core.warm([] if warm is True else [warm] if isinstance(warm, int) else list(warm))
        return Stream(Origin(self, *roles, hop, context), self._open_inputs(bind), core)

    def streams(
        self,
        capacity: int,
        state: Mapping[str, str] | None = None,
        bind: Mapping[str, InputValue] | None = None,
        time: Mapping[str, int | str] | None = None,
        hop: int = 0,
        context: int = 0,
        *,
        initial: Mapping[str, InputValue] | None = None,
        find_state: bool = True,
    ) -> StreamPool:
        """Room for many streams over this model, whose chunks run together. Arguments as for `stream`."""
        roles = self._roles(state, find_state, initial, bind, time)
        core = _core.StreamPool(self._engine, capacity, *roles, operator.index(hop), operator.index(context))
        inputs = self._open_inputs(bind)
        origin = Origin(self, *roles, hop, context)
        return StreamPool(origin, capacity, inputs, [name for name in time or {} if name in inputs], core)

    def _open_inputs(self, bind: Mapping[str, InputValue] | None) -> list[str]:
        """Inputs that are not bound: pushes or states give them."""
        return [info.name for info in self._inputs_meta if info.name not in (bind or {})]

    def counters(self) -> dict[str, int]:
        """What tests assert: plans made, runs, allocations of the last run, loops that have become native code."""
        return self._engine.counters()

    def wait_compiled(self) -> None:
        """Returns once no loop is being compiled in the background, nor waits for it; for tests and measurements."""
        self._engine.wait_compiled()

    def compile(self) -> None:
        """Makes native code of all loops that are planned so far, now; nothing where "treadle.jit" is "off"."""
        self._engine.compile()

    @overload
    def explain(
        self,
        input_feed: Mapping[str, InputValue] | None = None,
        *,
        json: Literal[False] = False,
        rewritten: bool = False,
        width: int | None = None,
    ) -> Explanation: ...
    @overload
    def explain(self, input_feed: Mapping[str, InputValue] | None = None, *, json: Literal[True]) -> dict[str, Any]: ...
    def explain(
        self,
        input_feed: Mapping[str, InputValue] | None = None,
        *,
        json: bool = False,
        rewritten: bool = False,
        width: int | None = None,
    ) -> Explanation | dict[str, Any]:
        """What a run takes, which loops and nodes take it, what would help, and how each loop runs.

        With `input_feed`: the plan for these inputs. A model that has loops is run a few times with them, to measure
        its loops. Without: the newest plan, or, before the first run, a plan for the sizes that the model declares.
        Returns a text, or with `json` a dict. The text has lines of at most `width` columns, by default those of the
        terminal, or 100; `rewritten` lists all that was rewritten, and every list in full.
        """
        if width is None:
            import shutil  # rare, and takes a while to import

            width = shutil.get_terminal_size((100, 24)).columns
        text = self._engine.explain(input_feed, json, rewritten, width)
        if not json:
            return Explanation(text)
        from json import loads  # rare, and takes a while to import

        parts: dict[str, Any] = loads(text)
        return parts

    def profile(
        self,
        input_feed: Mapping[str, InputValue],
        path: str | os.PathLike[str] | None = None,
        *,
        runs: int = 10,
        run_options: RunOptions | None = None,
    ) -> Profile:
        """Times every node, in loops every iteration; `path`: where to write the trace. `print` shows a table.

        The table has each node's median over `runs` runs, without those in which it was interrupted; the trace is that of
        one run. The runs go instruction by instruction, so they are slower than others and their results the same; one
        more, to warm up, comes first.
        """
        if operator.index(runs) < 1:
            raise ValueError(f"a profile is made of at least one run, not of {runs}")
        profile = Profile(*self._engine.profile(input_feed, runs, run_options))
        if path is not None:
            profile.save(path)
        return profile

    def trace(
        self,
        input_feed: Mapping[str, InputValue],
        *,
        watch: str | Iterable[str] | None = None,
        every: int = 1,
        statistics: bool = True,
        values: bool = False,
        find: str | None = None,
        memory: int = 64 << 20,
        save: str | os.PathLike[str] | None = None,
        run_options: RunOptions | None = None,
    ) -> Trace:
        """Runs the model and looks inside: its inner values in each iteration, and where NaN comes from. `print` shows it.

        The model runs as it is written, interpreted, so the run is slower than others, and its results may differ in
        the last digits. `watch`: values by path ("/Scan_1:body/q"), by name in any body ("q") or by a pattern of paths
        with "*", each alone or with iterations behind "@" ("q@7", "q@0-9,20", "q@::10", "q@2/0-9" with the outer loop
        first); by default all. `every`: of how many iterations to look at one. `statistics`: ranges, means, norms and
        counts of NaN, infinities and zeros; `values`: contents too. `find`: "nan", "inf", "over=LIMIT", "denormal",
        "zero", or several with commas between them. `memory`: bytes of statistics, and of contents. `save`: a folder that
        gets the node that made the first of what was found, as a model with its inputs and outputs (256 MB at most), for
        `treadle test`; `Trace.found` says what was saved. None in the feed is taken as `run` takes it. ValueError or
        InvalidArgument for names that there are not, and for statistics that are known not to fit; LimitExceeded for
        contents that turn out not to.
        """
        names = [watch] if isinstance(watch, str) else None if watch is None else list(watch)
        every = operator.index(every)
        outputs, seen = self._engine.trace(
            input_feed,
            names,
            every,
            statistics,
            values,
            find,
            operator.index(memory),
            None if save is None else os.fspath(save),
            run_options,
        )
        return Trace(dict(zip((info.name for info in self._outputs_meta), outputs, strict=True)), seen)

    def dump_graph(self) -> str:
        """The graph after import and rewriting."""
        return self._engine.dump_graph()

    def dump_plan(self, input_feed: Mapping[str, InputValue]) -> str:
        """The program that these inputs are run by."""
        return self._engine.dump_plan(input_feed)

    def write_c(
        self,
        prefix: str = "model",
        *,
        dims: Mapping[str, int] | None = None,
        fixed: Mapping[str, InputValue] | None = None,
        fma: bool = True,
        libm: bool = False,
        weights: str | os.PathLike[str] | None = None,
    ) -> tuple[str, str]:
        """The model as C: the texts of one source and of its header `<prefix>.h`, which need no runtime.

        `dims`: open sizes, by the model's names for them or as "input:axis". `fixed`: inputs that always have these values.
        Without `fma` the code never fuses a product and a sum. `libm`: operations for which the engine has no formula may
        call <math.h>. `weights`: a file for constants of 64 bytes and more, whose contents the C takes as an argument. Raises
        NotImplemented with every node that cannot be written.
        """
        return self._engine.write_c(written_options(prefix, dims, fma, libm, weights), dict(fixed or {}))


class InnerSession:
    """A session as onnxruntime's extension has it: `InferenceSession._sess`."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    @property
    def inputs_meta(self) -> list[NodeArg]:
        """`InferenceSession.get_inputs`."""
        return self._session.get_inputs()

    @property
    def outputs_meta(self) -> list[NodeArg]:
        """`InferenceSession.get_outputs`."""
        return self._session.get_outputs()

    @property
    def overridable_initializers(self) -> list[NodeArg]:
        """`InferenceSession.get_overridable_initializers`."""
        return self._session.get_overridable_initializers()

    @property
    def model_meta(self) -> ModelMetadata:
        """`InferenceSession.get_modelmeta`."""
        return self._session.get_modelmeta()

    @property
    def session_options(self) -> SessionOptions:
        """`InferenceSession.get_session_options`."""
        return self._session.get_session_options()

    @property
    def input_meminfos(self) -> list[OrtMemoryInfo]:
        """`InferenceSession.get_input_memory_infos`."""
        return self._session.get_input_memory_infos()

    @property
    def output_meminfos(self) -> list[OrtMemoryInfo]:
        """`InferenceSession.get_output_memory_infos`."""
        return self._session.get_output_memory_infos()

    @property
    def input_epdevices(self) -> list[OrtEpDevice]:
        """`InferenceSession.get_input_epdevices`."""
        return self._session.get_input_epdevices()

    def get_providers(self) -> list[str]:
        """`InferenceSession.get_providers`."""
        return self._session.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """`InferenceSession.get_provider_options`."""
        return self._session.get_provider_options()

    def end_profiling(self) -> str:
        """`InferenceSession.end_profiling`."""
        return self._session.end_profiling()

    @property
    def get_profiling_start_time_ns(self) -> int:
        """`InferenceSession.get_profiling_start_time_ns`, which is a number here, as in onnxruntime."""
        return self._session.get_profiling_start_time_ns()

    def run(
        self,
        output_names: Sequence[str],
        input_feed: Mapping[str, InputValue],
        run_options: RunOptions | None = None,
    ) -> list[OutputValue]:
        """`InferenceSession.run`."""
        return self._session.run(output_names, input_feed, run_options)

    def run_with_ort_values(
        self, input_feed: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None
    ) -> OrtValueVector:
        """`InferenceSession.run_with_ort_values`, with the feed first; InvalidArgument where no output is named."""
        if not output_names:
            raise InvalidArgument("At least one output should be requested.")
        return OrtValueVector(self._session.run_with_ort_values(output_names, input_feed, run_options))

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice],
    ) -> None:
        """`InferenceSession.run_with_ortvaluevector`."""
        self._session.run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)

    def run_with_iobinding(self, binding: IOBinding, run_options: RunOptions | None = None) -> None:
        """`InferenceSession.run_with_iobinding`."""
        self._session.run_with_iobinding(binding, run_options)
