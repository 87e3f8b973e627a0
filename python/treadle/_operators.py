"""Operators of a program's own, written in Python."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from . import _core

_Function = TypeVar("_Function", bound=Callable[..., Any])
Sizes: TypeAlias = Sequence[int | str | None]

_SINGLE, _OPTIONAL, _VARIADIC = 0, 1, 2
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Signature:
    """What the parameters of an operator's function say: inputs by position, attributes by keyword."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.inputs: list[tuple[str, int]] = []
        self.attributes: list[tuple[str, bool]] = []  # with whether a node has to have it
        self.any_attributes = False
        for name, parameter in inspect.signature(function).parameters.items():
            has_default = parameter.default is not inspect.Parameter.empty
            if parameter.kind in _POSITIONAL:
                if has_default and parameter.default is not None:
                    raise TypeError(
                        f"{name} is an input, and a model cannot leave it out for {parameter.default!r}: its default is None"
                    )
                self.inputs.append((name, _OPTIONAL if has_default else _SINGLE))
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self.inputs.append((name, _VARIADIC))
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                self.attributes.append((name, not has_default))
            else:
                self.any_attributes = True


def _types(what: str, given: Sequence[str] | Mapping[str, str] | None, names: Sequence[str]) -> list[str]:
    """A type for each name; "" is any."""
    if given is None:
        return [""] * len(names)
    if isinstance(given, str):
        raise TypeError(f"{what} is a list of types, not the text {given!r}")
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(
                f"{what} names {unknown[0]!r}, which the function does not have (it has: {', '.join(names)})"
            )
        return [given.get(name, "") for name in names]
    if len(given) != len(names):
        raise ValueError(f"{what} has {len(given)} types for {len(names)} parameters ({', '.join(names)})")
    return list(given)


def _dtype(type_name: str) -> np.dtype[Any] | None:
    """That numbers and lists are read as which an operator gives as an output of this type."""
    inner = type_name.removeprefix("tensor(").removesuffix(")")
    names = {"float": "float32", "double": "float64", "string": "object"}
    try:
        return np.dtype(names.get(inner, inner))
    except TypeError:
        return None


_KINDS = "biufc"  # numpy's kinds of numbers; each kind can hold the kinds before it


def _array(value: Any, type_name: str, dtype: np.dtype[Any] | None) -> Any:
    """What an operator returned, as an array of its declared type. TypeError where it is no array, number or list."""
    texts = dtype is not None and dtype.kind == "O"
    is_any = dtype is None and value is not None
    if is_any or (isinstance(value, np.ndarray) and not (texts and value.dtype.kind == "O")):
        return value
    if value is None and type_name.startswith("optional("):
        return None
    try:
        found = np.asarray(value)
        fits = _are_texts(found) if texts else found.size == 0 or _holds(dtype, found.dtype)
        if fits and value is not None:
            return np.asarray(value, dtype)
        what = "None" if value is None else f"{type(value).__name__} of {found.dtype}"
    except (TypeError, ValueError, OverflowError) as error:
        what = f"{type(value).__name__} ({error})"
    raise TypeError(what)


def _are_texts(found: np.ndarray[Any, Any]) -> bool:
    return found.dtype.kind in "UT" or all(isinstance(text, str | bytes) for text in found.reshape(-1))


def _holds(dtype: np.dtype[Any] | None, found: np.dtype[Any]) -> bool:
    """Whether numbers of `found` may become elements of `dtype`: no fraction is dropped, and no text is read."""
    if dtype is None or dtype.kind not in _KINDS:  # a type that numpy itself does not have
        return found.kind in _KINDS
    return found.kind in _KINDS[: _KINDS.index(dtype.kind) + 1]


def _results(name: str, returned: Any, count: int, types: Sequence[str], dtypes: Sequence[Any]) -> list[Any]:
    """An array for each output that the node has. TypeError and ValueError where the operator did not return them."""
    results = list(returned) if isinstance(returned, tuple) else [returned]
    if not count <= len(results) <= len(types):
        as_list = " (a list is one output, a tuple is several)" if isinstance(returned, list) else ""
        raise ValueError(f"operator {name} returned {len(results)} outputs, expected {count}{as_list}")
    arrays = []
    for i, (value, type_name, dtype) in enumerate(zip(results[:count], types, dtypes, strict=False)):
        try:
            arrays.append(_array(value, type_name, dtype))
        except TypeError as error:
            expected = f" of {type_name}" if type_name else ""
            raise TypeError(
                f"operator {name} returned {error} as output {i}, expected an array, a number or a list{expected}"
            ) from None
    return arrays


def _inferred(name: str, returned: Any, most: int) -> list[Any]:
    """For each output None, or element type 0 (as declared) and the sizes that `infer` returned."""
    outputs = returned if isinstance(returned, tuple) else (returned,)
    if len(outputs) > most:
        raise ValueError(f"infer of operator {name} returned sizes of {len(outputs)} outputs, expected at most {most}")
    return [None if own is None else (0, _sizes(name, i, own)) for i, own in enumerate(outputs)]


def _sizes(name: str, output: int, returned: Any) -> list[int | str | None]:
    try:
        if isinstance(returned, str | Mapping):
            raise TypeError
        return [size if size is None or isinstance(size, str) else operator.index(size) for size in returned]
    except TypeError:
        raise TypeError(
            f"infer of operator {name} returned {returned!r} as the sizes of output {output}, expected a list of numbers, "
            "names and None"
        ) from None


def op(
    name: str,
    *,
    inputs: Sequence[str] | Mapping[str, str] | None = None,
    outputs: Sequence[str] = ("",),
    infer: Callable[..., Any] | None = None,
    pure: bool = False,
    version: int = 1,
) -> Callable[[_Function], _Function]:
    """Makes a function an operator, for all sessions that are made from then on: `@treadle.op("my.domain::Clip")`.

    Positional parameters are inputs (with the default None: optional ones; `*rest`: any number), keyword-only parameters are
    attributes. Inputs come as arrays, which the function may keep and write to, and as None where a node leaves them out.
    It returns an array, or a tuple of one for each output; numbers and lists become arrays of the declared type.

    `inputs`, `outputs`: types as "tensor(float)", in order (inputs also by name); "" is any type, and an output of any type has
    that of the first input of any type. `infer`: gets the sizes of the inputs (lists of numbers, names, or None for what is not known)
    and the attributes as the function does, and returns the sizes of the output, or a tuple with those of each; it is called
    where the ranks of all inputs are known. Without it sizes are known once a node has run. `pure`: the same inputs give the
    same outputs, and nothing else happens: what never changes is computed once, what nobody uses not at all. `version`: the
    operator is there for models that import version `version` of the domain, or a later one.

    The function is called with the GIL, and by several threads where several run the session. What it raises comes out of
    `run`, with a note that says which node raised it. Raises InvalidArgument where treadle has the operator itself.
    """
    domain, colons, short = name.rpartition("::")
    if not colons or not domain or not short:
        raise ValueError(f'{name!r} is no name of an operator, which is like "my.domain::Clip"')

    def decorate(function: _Function) -> _Function:
        signature = _Signature(function)
        input_types = _types("inputs", inputs, [parameter for parameter, _ in signature.inputs])
        if isinstance(outputs, str):
            raise TypeError(f"outputs is a list of types, not the text {outputs!r}")
        output_types = list(outputs)
        dtypes = [_dtype(type_name) for type_name in output_types]

        def compute(values: list[Any], attributes: dict[str, Any], count: int) -> list[Any]:
            return _results(name, function(*values, **attributes), count, output_types, dtypes)

        def infer_types(types: list[Any], attributes: dict[str, Any]) -> list[Any]:
            shapes = [None if found is None else found[1] for found in types]
            if infer is None or any(found is not None and found[1] is None for found in types):
                return []
            return _inferred(name, infer(*shapes, **attributes), len(output_types))

        _core.register_operator(
            domain,
            short,
            version,
            [
                (parameter, type_name, arity)
                for (parameter, arity), type_name in zip(signature.inputs, input_types, strict=True)
            ],
            [(f"output{i}", type_name, _SINGLE if i == 0 else _OPTIONAL) for i, type_name in enumerate(output_types)],
            signature.attributes,
            signature.any_attributes,
            pure,
            compute,
            None if infer is None else infer_types,
        )
        return function

    return decorate
