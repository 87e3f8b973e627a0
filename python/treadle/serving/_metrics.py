"""What Prometheus reads at /metrics about streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from ._sdk import prometheus_client
from .streams import Streams

COUNTERS = {
    "treadle_steps": ("steps", "Steps answered"),
    "treadle_streams_started": ("started", "Streams that started, from snapshots as well"),
    "treadle_streams_ended": ("ended", "Streams that ended with sequence_end"),
    "treadle_streams_left": ("left", "Streams whose connection was closed"),
    "treadle_streams_idled": ("idled", "Streams that left since they were idle for too long"),
    "treadle_streams_replaced": ("replaced", "Streams that were dropped by a start of the same id"),
    "treadle_streams_handed_out": ("handed_out", "Streams that left with a snapshot as the server was about to end"),
    "treadle_snapshots": ("snapshots", "Snapshots given"),
}
HISTOGRAMS = {
    "treadle_batch_size": ("batch_sizes", "Streams in each push"),
    "treadle_push_seconds": ("seconds", "Duration of each push"),
}


class Metrics:
    """A collector of all models of the process."""

    _one: ClassVar[Metrics | None] = None

    def __init__(self) -> None:
        """Without models."""
        self._models: dict[str, Streams] = {}

    @classmethod
    def of_process(cls) -> Metrics:
        """The one that the registry of the process has."""
        if cls._one is None:
            cls._one = cls()
            prometheus_client.REGISTRY.register(cls._one)
        return cls._one

    def add(self, streams: Streams) -> Self:
        """Counts of a model from now on."""
        self._models[streams.name] = streams
        return self

    def remove(self, streams: Streams) -> None:
        """No longer counts of a model."""
        self._models.pop(streams.name, None)

    def collect(self) -> Iterator[Any]:
        """The registry's question."""
        core = prometheus_client.core
        gauges = {
            "treadle_streams": ("Streams that live", len),
            "treadle_capacity": ("Streams that there is room for", lambda streams: streams.capacity),
        }
        for name, (text, value) in gauges.items():
            family = core.GaugeMetricFamily(name, text, labels=["model"])
            for model, streams in self._models.items():
                family.add_metric([model], value(streams))
            yield family
        for name, (key, text) in COUNTERS.items():
            family = core.CounterMetricFamily(name, text, labels=["model"])
            for model, streams in self._models.items():
                family.add_metric([model], getattr(streams.statistics, key))
            yield family
        refused = core.CounterMetricFamily("treadle_refused", "Steps refused", labels=["model", "reason"])
        for model, streams in self._models.items():
            for reason, count in streams.statistics.refused.items():
                refused.add_metric([model, reason], count)
        yield refused
        for name, (key, text) in HISTOGRAMS.items():
            family = core.HistogramMetricFamily(name, text, labels=["model"])
            for model, streams in self._models.items():
                histogram = getattr(streams.statistics, key)
                family.add_metric([model], histogram.cumulative(), histogram.sum)
            yield family
