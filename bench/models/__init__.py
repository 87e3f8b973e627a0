"""The models that the benchmarks measure. Importing this fills LOOPS; what the makers share is in registry.py."""

from . import algorithms, cells, elementwise, narrow, pairs, programming, scalars, sizes, stencils  # noqa: F401
from .operators import GATES, HALF, THREADS, Operator, operators
from .registry import LOOPS, Built, Class, Loop

__all__ = ["GATES", "HALF", "LOOPS", "THREADS", "Built", "Class", "Loop", "Operator", "operators"]
