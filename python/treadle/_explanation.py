"""What `InferenceSession.explain` says."""

from __future__ import annotations

from ._in_notebooks import drawn


class Explanation(str):
    """A text about how a model runs and what would help; made by `InferenceSession.explain`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return drawn("text_html", "explanation", self)
