"""The models that the benchmarks measure. Importing this fills LOOPS; what the makers share is in registry.py."""

from . import algorithms, cells, elementwise, programming, scalars  # noqa: F401
from .operators import GATES, THREADS, Operator, operators
from .registry import LOOPS, Built, Class, Loop

__all__ = ["GATES", "LOOPS", "THREADS", "Built", "Class", "Loop", "Operator", "operators"]
