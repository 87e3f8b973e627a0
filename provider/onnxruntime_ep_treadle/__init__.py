"""treadle inside onnxruntime: an execution provider that takes over what it runs no slower, loops first of all.

import onnxruntime, onnxruntime_ep_treadle as treadle_ep

onnxruntime.register_execution_provider_library(treadle_ep.get_ep_name(), treadle_ep.get_library_path())
session = onnxruntime.InferenceSession("model.onnx", providers=[treadle_ep.get_ep_name(), "CPUExecutionProvider"])
"""

import pathlib

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_library_path() -> str:
    """The library that onnxruntime registers."""
    return str(pathlib.Path(__file__).with_name("libonnxruntime_ep_treadle.so"))


def get_ep_names() -> list[str]:
    """The execution providers in the library, as onnxruntime lists them."""
    return ["TreadleExecutionProvider"]


def get_ep_name() -> str:
    """The one execution provider in the library."""
    [name] = get_ep_names()
    return name
