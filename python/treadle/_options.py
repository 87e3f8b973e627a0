"""Options of sessions and runs, by onnxruntime's names.

All of onnxruntime's are kept and can be read back. One that asks for what treadle does not do says so once, as a
UserWarning. One that asks for what treadle does anyway says nothing, and neither does one on which nothing depends that a
program can see: no result, no file and no message.
"""

from __future__ import annotations

import enum
import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._devices import OrtEpDevice, OrtExecutionProviderDevicePolicy
from ._errors import Fail
from ._ignored import suggestion, warn_once

if TYPE_CHECKING:
    from ._types import InputValue


class GraphOptimizationLevel(enum.IntEnum):
    """How much of a model may be rewritten: nothing (`ORT_DISABLE_ALL`) or all of it (the others)."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Has no effect: treadle itself decides which nodes run at the same time."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Has no effect: treadle orders nodes itself."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _truth(value: Any) -> bool:
    if isinstance(value, str):
        raise TypeError(f"expected True or False, found {value!r}")
    return bool(value)


def _path(value: Any) -> str:
    return os.fsdecode(value)


_ALL_ARE_WARNINGS = "all of treadle's messages are warnings"

# By option: the function that converts its value, the values that need no warning (None: any), and the behaviour that
# the warning names for the other values.
_Option = tuple[Callable[[Any], Any], tuple[Any, ...] | None, str]
_LOGGING: dict[str, _Option] = {
    "log_severity_level": (operator.index, (-1, 2, 3, 4), _ALL_ARE_WARNINGS),
    "log_verbosity_level": (operator.index, (0,), _ALL_ARE_WARNINGS),
    "logid": (str, None, ""),
}
_SESSION: dict[str, _Option] = {
    **_LOGGING,
    "enable_cpu_mem_arena": (_truth, None, ""),
    "enable_mem_pattern": (_truth, None, ""),
    "enable_mem_reuse": (_truth, None, ""),
    "enable_profiling": (_truth, None, ""),
    "execution_mode": (ExecutionMode, None, ""),
    "execution_order": (ExecutionOrder, None, ""),
    "graph_optimization_level": (GraphOptimizationLevel, None, ""),
    "inter_op_num_threads": (operator.index, None, ""),
    "intra_op_num_threads": (operator.index, None, ""),
    "optimized_model_filepath": (_path, None, ""),
    "profile_file_prefix": (_path, None, ""),
    "use_deterministic_compute": (_truth, None, ""),
    "use_per_session_threads": (_truth, None, ""),
}
_RUN: dict[str, _Option] = {
    **_LOGGING,
    "only_execute_path_to_fetches": (_truth, None, ""),
}

_FOLDER = "session.model_external_initializers_file_folder_path"
# The file beside optimized_model_filepath that gets the weights, and the least size of a weight that goes there.
_WEIGHTS_FILE = "session.optimized_model_external_initializers_file_name"
_WEIGHTS_SIZE = "session.optimized_model_external_initializers_min_size_in_bytes"
_DENORMALS = "session.set_denormal_as_zero"
_ASSIGNMENT = "session.record_ep_graph_assignment_info"
# onnxruntime's entries that have an effect in Python. The extension knows which of the others need no warning.
_ENTRIES = (_DENORMALS, _FOLDER, _ASSIGNMENT, _WEIGHTS_FILE, _WEIGHTS_SIZE)


def _checked(options: Any, table: dict[str, _Option], name: str, value: Any, hint: str) -> Any:
    """The value that is stored for an option; raises or warns for a setting that would have no effect."""
    kind = type(options).__name__
    if name not in table:
        if options.__dict__.get("_is_made") and not hasattr(options, name):
            near = suggestion(name, table) or hint
            raise AttributeError(f"{kind} has no attribute '{name}'{near}", name=name, obj=options)
        return value
    make, kept, instead = table[name]
    try:
        value = make(value)
    except TypeError as e:
        raise TypeError(f"{kind}.{name}: {e}") from None
    except ValueError as e:
        raise ValueError(f"{kind}.{name}: {e}") from None
    if kept is not None and value not in kept:
        warn_once(f"{kind}.{name} = {value!r} has no effect: {instead}")
    return value


# Whether the body of a Loop without cond ends the Loop, where the options do not say it: _alias.install sets "obeyed".
default_loop_condition = "ignored"

# The argument of set_global_thread_pool_sizes; None before the call.
_global_threads: int | None = None


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Threads of all sessions that are made from here on (0: the CPUs that the process may use); Fail when called again.

    As in onnxruntime, these sessions are made with `SessionOptions.use_per_session_threads` off.
    """
    global _global_threads
    if _global_threads is not None:
        raise Fail("Global thread pools have already been created, cannot replace them")
    _global_threads = max(0, operator.index(intra_op_num_threads))


def _changed(options: Any) -> list[str]:
    """What differs from the defaults, as texts "name=value"."""
    defaults = vars(type(options)())
    now = {name: value for name, value in vars(options).items() if value != defaults[name]}
    return [f"{name}={value!r}" for name, value in now.items() if not name.startswith("_")]


class SessionOptions:
    """What a session is made with.

    Of use here: `intra_op_num_threads` (0: the CPUs that the process may use), `graph_optimization_level` (none or all),
    `add_free_dimension_override_by_name` and `_by_denotation`, `add_initializer`, `enable_profiling` with
    `profile_file_prefix`, `optimized_model_filepath` (gets the model as it is after the rewrites of loading), what bounds
    loading (`load_time_limit`, `load_memory_limit`, `bounded_load`, `set_load_cancellation_flag`), and
    configuration entries that begin with "treadle.", as in `add_session_config_entry("treadle.jit", "always")`:
    docs/options.md lists them with their values.
    """

    def __init__(self) -> None:
        self.enable_cpu_mem_arena: bool = True
        self.enable_mem_pattern: bool = True
        self.enable_mem_reuse: bool = True
        self.enable_profiling: bool = False
        self.execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
        self.graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads: int = 0
        self.intra_op_num_threads: int = 0
        self.log_severity_level: int = -1
        self.log_verbosity_level: int = 0
        self.logid: str = ""
        self.optimized_model_filepath: str = ""
        self.profile_file_prefix: str = "treadle_profile_"
        self.use_deterministic_compute: bool = False
        self.use_per_session_threads: bool = True
        self._entries: dict[str, str] = {}
        self._dimensions: dict[str, int] = {}
        self._dimensions_by_denotation: dict[str, int] = {}
        self._initializers: dict[str, Any] = {}
        self._files: dict[str, bytes] = {}
        self._operator_libraries: list[str] = []
        self._load_limits: dict[str, Any] = {}
        self._load_flag = _core.LoadFlag()
        self._has_providers = False
        self._is_made = True

    # Hidden from type checkers, which would take any name for an attribute that can be set.
    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            hint = f"; treadle's own settings are entries: add_session_config_entry('treadle.{name}', ...)"
            super().__setattr__(name, _checked(self, _SESSION, name, value, hint))

    def __repr__(self) -> str:
        """What differs from the defaults, configuration entries, limits and sizes that are fixed."""
        others = {
            "entries": self._entries,
            "dimensions": self._dimensions,
            "denoted_dimensions": self._dimensions_by_denotation,
            "initializers": sorted(self._initializers),
            "operator_libraries": self._operator_libraries,
        }
        limits = [f"{name}={value!r}" for name, value in self._load_limits.items() if value is not None]
        more = [f"{name}={value!r}" for name, value in others.items() if value]
        return f"SessionOptions({', '.join(_changed(self) + limits + more)})"

    @property
    def load_time_limit(self) -> float | None:
        """Seconds that loading may take, and each planning for new sizes later on; None: no limit.

        Past it, LimitExceeded is raised.
        """
        return self._load_limits.get("load_time_limit")

    @load_time_limit.setter
    def load_time_limit(self, seconds: float | None) -> None:
        self._load_limits["load_time_limit"] = seconds

    @property
    def load_memory_limit(self) -> int | None:
        """Bytes that loading may use, and each planning for new sizes later on; weights that stay in their file aside.

        None: no limit. Past it, LimitExceeded is raised.
        """
        return self._load_limits.get("load_memory_limit")

    @load_memory_limit.setter
    def load_memory_limit(self, size: int | None) -> None:
        self._load_limits["load_memory_limit"] = size

    @property
    def bounded_load(self) -> bool:
        """Whether the results that loading computes from constants are limited by the model's size (docs/limits.md)."""
        return bool(self._load_limits.get("bounded_load", True))

    @bounded_load.setter
    def bounded_load(self, on: bool) -> None:
        self._load_limits["bounded_load"] = int(bool(on))

    def set_load_cancellation_flag(self, on: bool) -> None:
        """Stops sessions that are being made with these options, from any thread; later ones are refused while it is on."""
        self._load_flag.set(bool(on))

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets a configuration entry: treadle's own begin with "treadle."; others are kept, and may warn that they have no effect.

        A wrong name or value of treadle's own is InvalidArgument when a session is made.
        """
        key, value = str(key), str(value)
        if key not in _ENTRIES and not _core.is_quiet_entry(False, key, value):
            hint = suggestion(key, _ENTRIES) or "; treadle's own begin with 'treadle.'"
            warn_once(f"the configuration entry '{key}' = '{value}' has no effect{hint}")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value that an entry was set to; RuntimeError where it was not set."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes the size that the model calls `name`; TypeError where the size is no whole number."""
        self._dimensions[str(name)] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fixes the sizes of inputs that have this denotation, such as "DATA_BATCH"."""
        self._dimensions_by_denotation[str(denotation)] = operator.index(size)

    def add_initializer(self, name: str, value: InputValue) -> None:
        """Replaces an initialiser of the model by an array or OrtValue of its type and shape, whose elements are copied.

        A session whose model has no such initialiser warns when it is made; one of another type or shape is InvalidArgument.
        """
        self._initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[InputValue]) -> None:
        """`add_initializer` for several; ValueError where there are not as many names as values."""
        self._initializers.update(zip(names, values, strict=True))

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[bytes], sizes: Sequence[int]
    ) -> None:
        """The bytes of files of external data, by the names that the model uses; `sizes`: how many bytes of each count.

        ValueError where there are not as many names as buffers and sizes.
        """
        self._files.update(
            {name: bytes(memoryview(buffer)[:size]) for name, buffer, size in zip(names, buffers, sizes, strict=True)}
        )

    def register_custom_ops_library(self, path: str) -> None:
        """Opens a library of operators that was made for onnxruntime, for sessions that are made with these options.

        The library stays open as long as the process. RuntimeException says why a library cannot be opened or refuses.
        """
        path = os.fspath(path)
        _core.open_operator_library(path)
        self._operator_libraries.append(os.path.abspath(path) if os.path.exists(path) else path)

    def add_provider(self, name: str, options: Mapping[str, str], /) -> None:
        """Names the provider that runs the model; RuntimeError for any but "CPUExecutionProvider".

        No result depends on the options of that provider, as in onnxruntime.
        """
        if name != "CPUExecutionProvider":
            raise RuntimeError(f"Unknown Provider Type: {name}")
        self._has_providers = True

    def add_provider_for_devices(self, devices: Sequence[OrtEpDevice], options: Mapping[str, str], /) -> None:
        """`add_provider` for devices that `get_ep_devices` gave."""
        for device in devices:
            self.add_provider(device.ep_name, options)

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy, /) -> None:
        """Has nothing to choose from: the CPU is the one device, which every policy gives."""
        OrtExecutionProviderDevicePolicy(policy)
        self._has_providers = True

    def has_providers(self) -> bool:
        """Whether a provider or a policy was named here."""
        return self._has_providers

    def _check_threads(self) -> None:
        if _global_threads is not None and self.use_per_session_threads:
            raise RuntimeError(
                "use_per_session_threads must be false when using a global thread pool: set_global_thread_pool_sizes was called"
            )

    def _to_core(self) -> dict[str, str]:
        threads = int(self.intra_op_num_threads) if _global_threads is None else _global_threads
        options = {"threads": str(max(0, threads)), "loop_condition": default_loop_condition}
        if int(self.graph_optimization_level) == GraphOptimizationLevel.ORT_DISABLE_ALL:
            options["optimize"] = "0"
        if tier := os.environ.get("TREADLE_TIER"):
            options["tier"] = tier
        if self._entries.get(_DENORMALS) == "1":
            options["denormals"] = "flush"
        for key, value in self._entries.items():
            if key.startswith("treadle."):
                options[key[len("treadle.") :]] = value
        options.update({key: str(value) for key, value in self._load_limits.items() if value is not None})
        return options


def _limit(name: str, value: Any) -> Any:
    """A number, or None where there is none: 0 says so as well, as in treadle's C interface."""
    if value is None or value == 0:
        return None
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"RunOptions.{name} is a positive number, or None or 0 for no limit; found {value!r}")
    return value


# The limits of a run, by the names of their attributes.
_LIMITS = {"time": "time_limit", "iterations": "iteration_limit", "memory": "memory_limit"}


class RunOptions(_core.RunOptions):
    """What a run may use. Setting `terminate` stops the runs that use these options, from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level: int = -1
        self.log_verbosity_level: int = 0
        self.logid: str = ""
        self.only_execute_path_to_fetches: bool = False
        self._entries: dict[str, str] = {}
        self._limits: dict[str, Any] = {}
        self._is_made = True

    # Hidden from type checkers, as in SessionOptions.
    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            hint = "; limits are time_limit, iteration_limit and memory_limit"
            super().__setattr__(name, _checked(self, _RUN, name, value, hint))

    def __repr__(self) -> str:
        """What differs from the defaults: limits, `terminate`, configuration entries."""
        limits: dict[str, Any] = {
            "time_limit": self.time_limit,
            "iteration_limit": self.iteration_limit,
            "memory_limit": self.memory_limit,
            "terminate": self.terminate or None,
            "entries": self._entries or None,
        }
        more = [f"{name}={value!r}" for name, value in limits.items() if value is not None]
        return f"RunOptions({', '.join(_changed(self) + more)})"

    def __getstate__(self) -> dict[str, Any]:
        """Attributes, entries, limits and `terminate`, for pickle and copy."""
        hidden = ("_is_made", "_limits")
        attributes = {name: value for name, value in vars(self).items() if name not in hidden}
        return {"attributes": attributes, "limits": dict(self._limits), "terminate": self.terminate}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        RunOptions.__init__(self)
        vars(self).update(state["attributes"])
        for name, limit in state["limits"].items():
            setattr(self, _LIMITS[name], limit)
        self.terminate = state["terminate"]

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps the entry, and may warn once that it has no effect."""
        key, value = str(key), str(value)
        if not _core.is_quiet_entry(True, key, value):
            warn_once(f"the configuration entry '{key}' = '{value}' of a run has no effect")
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The value that an entry was set to; RuntimeError where it was not set."""
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]

    @property
    def time_limit(self) -> float | None:
        """Seconds that a run may take, a positive number; None: no limit. Past it, LimitExceeded is raised."""
        return self._limits.get("time")

    @time_limit.setter
    def time_limit(self, seconds: float | None) -> None:
        limit = _limit("time_limit", seconds)
        self._limit_time(limit or 0.0)
        self._limits["time"] = limit

    @property
    def iteration_limit(self) -> int | None:
        """Iterations that all loops of a run may make together; None: no limit. Past it, LimitExceeded is raised."""
        return self._limits.get("iterations")

    @iteration_limit.setter
    def iteration_limit(self, iterations: int | None) -> None:
        limit = _limit("iteration_limit", iterations)
        self._limit_iterations(operator.index(limit or 0))
        self._limits["iterations"] = limit

    @property
    def memory_limit(self) -> int | None:
        """Bytes that a run may use; None: no limit. Past it, LimitExceeded is raised."""
        return self._limits.get("memory")

    @memory_limit.setter
    def memory_limit(self, size: int | None) -> None:
        limit = _limit("memory_limit", size)
        self._limit_memory(operator.index(limit or 0))
        self._limits["memory"] = limit
