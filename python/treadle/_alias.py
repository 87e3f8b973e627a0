"""treadle under the name onnxruntime, for programs that cannot be changed."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import _core, _few_bits, _options
from ._capi import SessionIOBinding, is_dlpack_uint8_tensor
from ._devices import ArenaExtendStrategy, get_hardware_devices
from ._options import SessionOptions
from ._session import check_and_normalize_provider_args

# The release whose names and behaviours are offered; programs compare it.
ONNXRUNTIME_VERSION: str = _core.onnxruntime_version()

# Holds a package that installs the alias, and the metadata of a distribution, both called onnxruntime. Processes find them
# by PYTHONPATH, or by the sys.path that multiprocessing hands on.
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_onnxruntime")

# onnxruntime's modules for onnx.backend, and their names of the two classes of treadle.backend, which needs onnx.
_BACKEND = {
    "onnxruntime.backend": {},
    "onnxruntime.backend.backend": {"OnnxRuntimeBackend": "Backend"},
    "onnxruntime.backend.backend_rep": {"OnnxRuntimeBackendRep": "BackendRep"},
}

# Parts of onnxruntime that are programs over it. They come from an installed onnxruntime, and run on treadle.
_BORROWED = ("quantization", "transformers", "tools")


class _Loader(importlib.abc.Loader):
    """Makes the spec of a module that is there already a real one: reloading keeps it as it is."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return sys.modules.get(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _BackendLoader(importlib.abc.Loader):
    """Fills a module of `_BACKEND` from treadle.backend."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        backend = importlib.import_module("treadle.backend")
        module.__doc__ = backend.__doc__
        module.__dict__.update({name: getattr(backend, name) for name in backend.__all__})
        module.__dict__.update({name: getattr(backend, own) for name, own in _BACKEND[module.__name__].items()})


class _BackendFinder(importlib.abc.MetaPathFinder):
    """Finds onnxruntime.backend while the alias stands."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in _BACKEND or not getattr(sys.modules.get("onnxruntime"), "_is_treadle", False):
            return None
        is_package = name == "onnxruntime.backend"
        return importlib.machinery.ModuleSpec(name, _BackendLoader(), origin=__file__, is_package=is_package)


class _BorrowedFinder(importlib.abc.MetaPathFinder):
    """Says why onnxruntime.quantization and the like are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        package, _, part = name.partition(".")
        if package == "onnxruntime" and part in _BORROWED and not getattr(sys.modules.get(package), "__path__", None):
            raise ImportError(f"{name} is not part of treadle, and no onnxruntime is installed that has it", name=name)


def _installed_folders() -> list[str]:
    path = [folder for folder in sys.path if not folder.endswith(os.path.join("treadle", "_onnxruntime"))]
    spec = importlib.machinery.PathFinder.find_spec("onnxruntime", path)
    return list(spec.submodule_search_locations or []) if spec else []


def _module(name: str, doc: str, contents: dict[str, Any], folders: list[str] | None = None) -> ModuleType:
    module = ModuleType(name, doc)
    spec = importlib.machinery.ModuleSpec(name, _Loader(), origin=__file__, is_package=folders is not None)
    if folders is not None:
        spec.submodule_search_locations = folders
        module.__path__ = folders
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__package__ = name if folders is not None else name.rpartition(".")[0]
    module.__file__ = __file__
    module.__dict__.update(contents)
    return module


def _reach_started_processes() -> None:
    if _FOLDER not in sys.path:
        sys.path.insert(1, _FOLDER)  # after the folder of the program, before installed packages
    inherited = os.environ.get("PYTHONPATH")
    if _FOLDER not in (inherited or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([_FOLDER, inherited] if inherited else [_FOLDER])


# The constants of onnxruntime's module.
_ABOUT = {
    "__version__": ONNXRUNTIME_VERSION,
    "version": ONNXRUNTIME_VERSION,
    "package_name": "onnxruntime",
    "cuda_version": "",
    "import_capi_exception": None,
}


# Names of onnxruntime's that treadle has not, by the reason.
_REFUSED = {
    "LoRA adapters are not applied to a model that is loaded": ("AdapterFormat", "LoraAdapter"),
    "all tensors that Python sees are dense": (
        "OrtSparseFormat",
        "SparseBlockSparseView",
        "SparseCooView",
        "SparseCsrView",
        "SparseTensor",
    ),
    "models are not compiled for devices: a session plans its model when it is made": (
        "ModelCompiler",
        "OrtCompileApiFlags",
        "OrtCompiledModelCompatibility",
        "OrtEpContextData",
        "OrtEpContextDataBuffer",
        "OrtExternalInitializerInfo",
        "get_compatibility_info_from_model",
        "get_compatibility_info_from_model_bytes",
        "get_model_compatibility_for_ep_devices",
    ),
    "a package holds variants of a model for devices: make a session of the variant for the CPU": (
        "ModelPackage",
        "ModelPackageComponentContext",
        "ModelPackageContext",
        "ModelPackageOptions",
        "ModelPackageWriteMode",
    ),
    "there is no device but the CPU": (
        "OrtDeviceEpIncompatibilityReason",
        "OrtSyncStream",
        "get_hardware_device_ep_incompatibility_details",
        "pack_fp4_weights_for_cuda_moe_gemm",
    ),
    "treadle.operators() lists the operators": (
        "get_all_operator_schema",
        "get_all_opkernel_def",
        "get_registered_ep_kernel_defs",
    ),
    "sessions are objects of InferenceSession": ("SessionObjectInitializer", "get_session_initializer"),
}
_REASONS = {name: reason for reason, names in _REFUSED.items() for name in names}


def _refusing(module: str) -> Callable[[str], Any]:
    """What Python calls for names that a module lacks."""

    def refuse(name: str) -> Any:
        reason = f": {_REASONS[name]}" if name in _REASONS else ""
        raise AttributeError(f"module '{module}' of treadle has no attribute '{name}'{reason}", name=name)

    return refuse


def _inner_names() -> dict[str, Any]:
    """What onnxruntime's extension module has and its package has not, or has in another form."""
    return {
        "ArenaExtendStrategy": ArenaExtendStrategy,
        **ArenaExtendStrategy.__members__,
        "SessionIOBinding": SessionIOBinding,
        "get_default_session_options": SessionOptions,
        "get_hardware_devices": get_hardware_devices,
        "is_dlpack_uint8_tensor": is_dlpack_uint8_tensor,
        **{name: getattr(_few_bits, name) for name in _few_bits.__all__},
    }


def install(public: dict[str, Any]) -> ModuleType:
    """Puts a module `onnxruntime` that has the names of `public` into `sys.modules`, and returns it.

    Processes of Python that are started from here on find it as well, unless they are kept from reading PYTHONPATH (-E, -I,
    an environment of their own).
    """
    current = sys.modules.get("onnxruntime")
    if current is not None and getattr(current, "_is_treadle", False):
        return current
    _options.default_loop_condition = "obeyed"  # as in onnxruntime
    _reach_started_processes()
    folders = _installed_folders()
    public = {**public, **_ABOUT, "get_version_string": lambda: ONNXRUNTIME_VERSION}
    values = {name: public[name] for name in ("InferenceSession", "IOBinding", "OrtValue")}
    core = {**public, **_inner_names()}
    for name in ("InferenceSession", "IOBinding"):
        del core[name]
    modules = {
        "onnxruntime": _module(
            "onnxruntime",
            "treadle by onnxruntime's names.",
            {**public, "SessionIOBinding": SessionIOBinding, "_is_treadle": True},
            folders,
        ),
        "onnxruntime.capi": _module("onnxruntime.capi", "", {}, []),
    }
    for name, contents in {
        "onnxruntime_pybind11_state": core,
        "_pybind_state": core,
        "onnxruntime_inference_collection": {
            **values,
            **{name: public[name] for name in ("OrtDevice", "OrtDeviceVendorId", "copy_tensors")},
            "check_and_normalize_provider_args": check_and_normalize_provider_args,
        },
        "onnxruntime_validation": {
            "check_distro_info": lambda: None,
            "get_package_name_and_version_info": lambda: ("onnxruntime", ONNXRUNTIME_VERSION, ""),
        },
        "build_and_package_info": {"package_name": "onnxruntime", "__version__": ONNXRUNTIME_VERSION},
    }.items():
        modules[f"onnxruntime.capi.{name}"] = _module(f"onnxruntime.capi.{name}", "", contents)
    for name, module in modules.items():
        module.__dict__["__getattr__"] = _refusing(name)
    for name in [n for n in sys.modules if n == "onnxruntime" or n.startswith("onnxruntime.")]:
        del sys.modules[name]
    sys.modules.update(modules)
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    for finder in (_BorrowedFinder, _BackendFinder):
        if not any(isinstance(known, finder) for known in sys.meta_path):
            sys.meta_path.insert(0, finder())
    return modules["onnxruntime"]
