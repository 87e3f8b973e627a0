"""Operators of a program's own, written in Python."""

from __future__ import annotations

import inspect
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
            result = function(*values, **attributes)
            results = list(result) if isinstance(result, tuple) else [result]
            if not count <= len(results) <= len(output_types):
                raise ValueError(f"{name} returned {len(results)} outputs, expected {count}")
            return [
                value if isinstance(value, np.ndarray) or dtype is None else np.asarray(value, dtype)
                for value, dtype in zip(results[:count], dtypes, strict=False)
            ]

        def infer_types(types: list[Any], attributes: dict[str, Any]) -> list[Any]:
            shapes = [None if found is None else found[1] for found in types]
            if infer is None or any(found is not None and found[1] is None for found in types):
                return []
            sizes = infer(*shapes, **attributes)
            return [
                None if own is None else (0, list(own)) for own in (sizes if isinstance(sizes, tuple) else (sizes,))
            ]

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
