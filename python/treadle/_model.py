"""What a model says about itself, without running it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _core

if TYPE_CHECKING:
    from ._types import Message, PathOrBytes, Serializable


def model_source(model: PathOrBytes | Serializable) -> tuple[str | None, bytes | None]:
    """(path, None) or (None, bytes) of a path, bytes, or a ModelProto."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return None, bytes(model)
    if hasattr(model, "SerializeToString"):
        return None, model.SerializeToString()
    raise TypeError(f"Unable to load from type '{type(model)}'")


class NodeArg:
    """Name, type and sizes of an input or output; a size is a number, a name, or None where it is unknown."""

    __slots__ = ("name", "shape", "type")

    def __init__(self, name: str, type: str, shape: list[int | str | None]) -> None:
        self.name: str = name
        self.type: str = type
        self.shape: list[int | str | None] = shape

    def __repr__(self) -> str:
        """As it is made."""
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """What a model says about itself."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.producer_name: str = fields["producer_name"]
        self.producer_version: str = fields["producer_version"]
        self.graph_name: str = fields["graph_name"]
        self.domain: str = fields["domain"]
        self.description: str = fields["description"]
        self.graph_description: str = fields["graph_description"]
        self.version: int = int(fields["model_version"])
        self.ir_version: int = int(fields["ir_version"])
        self.opset_imports: dict[str, int] = dict(fields["opsets"])
        self.custom_metadata_map: dict[str, str] = dict(fields["properties"])

    def __repr__(self) -> str:
        """The fields that say something."""
        return f"ModelMetadata({', '.join(f'{name}={value!r}' for name, value in vars(self).items() if value)})"


@dataclasses.dataclass(frozen=True, repr=False)
class Problem:
    """One thing that is wrong or surprising about a model."""

    code: str  # a stable name, as in docs/diagnostics.md
    severity: str  # "error" or "warning"
    message: str
    path: str = ""  # through functions and bodies to the node; "" is the model
    operator: str = ""  # of the node, with its version
    expected: str = ""
    found: str = ""
    origin: str = ""  # where the offending name or type comes from
    hint: str = ""
    byte: int | None = None  # of the file
    line: int | None = None  # of a model that is text
    column: int | None = None
    excerpt: str = ""  # that line, and under it a mark
    origin_byte: int | None = None
    origin_line: int | None = None
    origin_column: int | None = None

    def __repr__(self) -> str:
        """The fields that say something; `print` shows the problem as a text of a few lines."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        said = [f"{name}={value!r}" for name, value in fields.items() if value not in ("", None)]
        return f"Problem({', '.join(said)})"

    def __str__(self) -> str:
        """The problem as `treadle check` prints it."""
        text = f"line {self.line}, column {self.column}: " if self.line else ""
        text += f"{self.path} ({self.operator}): " if self.operator else f"{self.path}: " if self.path else ""
        text += self.message
        parts = [f"{what} {value}" for what, value in (("expected", self.expected), ("found", self.found)) if value]
        if parts:
            text += ": " + ", ".join(parts)
        text += f" [{self.code}]"
        origin = self.origin + (f" (line {self.origin_line}, column {self.origin_column})" if self.origin_line else "")
        for lines in (self.excerpt, origin, self.hint and f"hint: {self.hint}"):
            text += "".join(f"\n    {line}" for line in lines.splitlines())
        return text


def check(
    model: PathOrBytes | Serializable,
    full: bool = False,
    *,
    custom_domains: bool = False,
    skip_opset_compatibility: bool = False,
) -> list[Problem]:
    """Everything that is wrong or surprising about a model (a path, bytes or a ModelProto), in the model's order.

    full: types are inferred as well and held against what is declared. custom_domains: operators of domains that
    treadle knows nothing of are errors. skip_opset_compatibility: functions may import other versions of operators
    than their model. Raises only for files that cannot be read.
    """
    import json  # rare, and takes a while to import

    flags = 1 * full | 2 * custom_domains | 4 * skip_opset_compatibility
    report = json.loads(_core.check_model(*model_source(model), flags))
    return [Problem(operator=p.pop("operator", ""), **p) for p in report["problems"]]


_CHECK_TYPES, _LENIENT, _NO_CONTENTS, _AS_ONNX = 1, 2, 4, 8


@overload
def infer_shapes(
    model: PathOrBytes,
    check_type: bool = True,
    strict_mode: bool = True,
    data_prop: bool = True,
    *,
    rules: Literal["treadle", "onnx"] = "treadle",
) -> bytes: ...
@overload
def infer_shapes(
    model: Message,
    check_type: bool = True,
    strict_mode: bool = True,
    data_prop: bool = True,
    *,
    rules: Literal["treadle", "onnx"] = "treadle",
) -> Message: ...
def infer_shapes(
    model: Any,
    check_type: bool = True,
    strict_mode: bool = True,
    data_prop: bool = True,
    *,
    rules: Literal["treadle", "onnx"] = "treadle",
) -> Any:
    """The model with the types of all its values, in bodies too: a ModelProto for a ModelProto, else bytes.

    Sizes may be expressions (`2*N+1`). An unknown size gets a name (`unk__0`): equal names are equal sizes.

    model:       a path, bytes or a ModelProto
    check_type:  argument types must be ones that the operators allow
    strict_mode: a node that breaks a rule, and a declared type that contradicts the inferred one, raise; otherwise the
                 outputs of such a node stay as they are declared
    data_prop:   contents of small integer tensors are carried from node to node
    rules:       "onnx" concludes what `onnx.shape_inference` concludes and not more
    """
    if rules not in ("treadle", "onnx"):
        raise ValueError(f"rules are 'treadle' or 'onnx', found {rules!r}")
    flags = _CHECK_TYPES * check_type | _LENIENT * (not strict_mode) | _NO_CONTENTS * (not data_prop)
    typed = _core.infer_model(*model_source(model), flags | _AS_ONNX * (rules == "onnx"))
    return type(model).FromString(typed) if hasattr(model, "SerializeToString") else typed
