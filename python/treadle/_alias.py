"""treadle under the name onnxruntime, for programs that cannot be changed."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any

# The release whose names and behaviours are offered; programs compare it.
ONNXRUNTIME_VERSION = "1.31.1"

# Holds a package that installs the alias, and the metadata of a distribution, both called onnxruntime. Processes find them
# by PYTHONPATH, or by the sys.path that multiprocessing hands on.
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_onnxruntime")

# Parts of onnxruntime that are programs over it. They come from an installed onnxruntime, and run on treadle.
_BORROWED = ("quantization", "transformers", "tools")


class _Loader(importlib.abc.Loader):
    """Makes the spec of a module that is there already a real one: reloading keeps it as it is."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return sys.modules.get(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


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
        sys.path.insert(1, _FOLDER)  # after the folder of the program, before what is installed
    inherited = os.environ.get("PYTHONPATH")
    if _FOLDER not in (inherited or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([_FOLDER, inherited] if inherited else [_FOLDER])


def install(public: dict[str, Any]) -> ModuleType:
    """Puts a module `onnxruntime` that has the names of `public` into `sys.modules`, and returns it.

    Processes of Python that are started from here on find it as well, unless they are kept from reading PYTHONPATH (-E, -I,
    an environment of their own).
    """
    current = sys.modules.get("onnxruntime")
    if current is not None and getattr(current, "_is_treadle", False):
        return current
    _reach_started_processes()
    folders = _installed_folders()
    public = {
        **public,
        "__version__": ONNXRUNTIME_VERSION,
        "get_version_string": lambda: ONNXRUNTIME_VERSION,
    }
    core = {name: value for name, value in public.items() if name not in ("InferenceSession", "IOBinding", "OrtValue")}
    modules = {
        "onnxruntime": _module(
            "onnxruntime", "treadle by onnxruntime's names.", {**public, "_is_treadle": True}, folders
        ),
        "onnxruntime.capi": _module("onnxruntime.capi", "", {}, []),
    }
    for name, contents in {
        "onnxruntime_pybind11_state": {**core, "SessionIOBinding": public["IOBinding"], "OrtValue": public["OrtValue"]},
        "_pybind_state": {**core, "SessionIOBinding": public["IOBinding"], "OrtValue": public["OrtValue"]},
        "onnxruntime_inference_collection": {
            name: public[name] for name in ("InferenceSession", "IOBinding", "OrtValue", "OrtDevice")
        },
        "onnxruntime_validation": {"check_distro_info": lambda: None},
    }.items():
        modules[f"onnxruntime.capi.{name}"] = _module(f"onnxruntime.capi.{name}", "", contents)
    for name in [n for n in sys.modules if n == "onnxruntime" or n.startswith("onnxruntime.")]:
        del sys.modules[name]
    sys.modules.update(modules)
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    if not any(isinstance(finder, _BorrowedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BorrowedFinder())
    return modules["onnxruntime"]
