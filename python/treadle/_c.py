"""Options of models as C."""

from __future__ import annotations

import os
from collections.abc import Mapping


def written_options(
    prefix: str, dims: Mapping[str, int] | None, fma: bool, libm: bool, weights: str | os.PathLike[str] | None
) -> list[str]:
    """What the engine is told, as texts."""
    options = [f"prefix={prefix}", f"fma={int(fma)}", f"libm={int(libm)}"]
    if weights is not None:
        options.append(f"weights={os.fspath(weights)}")
    return options + [f"dim={name}={size}" for name, size in (dims or {}).items()]
