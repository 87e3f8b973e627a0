"""What `InferenceSession.explain` says."""

from __future__ import annotations


class Explanation(str):
    """A text about how a model runs and what would help; made by `InferenceSession.explain`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from .report._notebook import text_html  # rare, and takes a while to import

        return text_html("explanation", self)
