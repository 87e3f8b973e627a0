"""What a server counts about its streams, for metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SECONDS = (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 5.0)


class Histogram:
    """How many values were at most each of the bounds, as Prometheus counts them."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds`: ascending; values above the last one are counted as well."""
        self.bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Counts a value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """Values so far."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, int]]:
        """(bound as text, values at most as large), the last for "+Inf"."""
        total, rows = 0, []
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self._counts, strict=True):
            total += count
            rows.append((bound, total))
        return rows

    def __repr__(self) -> str:
        """How many values, and their mean."""
        return f"<treadle.serving Histogram: {self.count} values, mean {self.sum / max(self.count, 1):.3g}>"


class Statistics:
    """Counts since the streams were made.

    `started`, `ended`, `left`, `idled`, `replaced`, `handed_out`: streams by how they came and went; `steps`: those that
    were answered; `refused`: steps by the name of their error's class; `snapshots`: those given in answers; `batch_sizes`:
    streams of each push; `seconds`: duration of each push.
    """

    def __init__(self) -> None:
        """Nothing has happened."""
        self.started = self.ended = self.left = self.idled = self.replaced = self.handed_out = 0
        self.steps = self.snapshots = 0
        self.refused: Counter[str] = Counter()
        self.batch_sizes = Histogram(SIZES)
        self.seconds = Histogram(SECONDS)

    def count_push(self, streams: int, seconds: float) -> None:
        """A push of so many streams has taken so long."""
        self.batch_sizes.add(streams)
        self.seconds.add(seconds)

    def __repr__(self) -> str:
        """Steps, streams and refusals."""
        refused = sum(self.refused.values())
        return (
            f"<treadle.serving Statistics: {self.steps} steps, {self.started} streams started, {refused} steps refused>"
        )
