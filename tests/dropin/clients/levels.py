"""The tolerance between results of a model in two engines."""

import numpy as np

QUANTISE = {"QuantizeLinear", "DynamicQuantizeLinear"}


def rounds_to_levels(model) -> bool:
    """Whether the model rounds what it computes to bytes: a last bit more or less then becomes a whole level here and there.

    Of 61,440 numbers that a network of the tests quantises at one place, three differ by one level in two engines whose
    numbers before differ by 1e-5.
    """
    return any(node.op_type in QUANTISE for node in model.graph.node)


def assert_close(ours: np.ndarray, theirs: np.ndarray, levels: bool) -> None:
    tolerance = 1e-2 if levels else 1e-4
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    if levels and theirs.size:  # only a few numbers may be off by much
        wide = theirs.astype(np.float64)
        np.testing.assert_array_less(np.mean(np.abs(ours - wide) / (1 + np.abs(wide))), 5e-4)
