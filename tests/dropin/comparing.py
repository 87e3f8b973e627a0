"""Results that came as JSON, compared."""

import math


def assert_alike(found, expected, tolerance: float, where: str = "result") -> None:
    """Floats are alike within the tolerance, everything else is the same."""
    if isinstance(expected, float):
        close = math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
        assert close, f"{where}: {found}, expected {expected}"
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert_alike(a, b, tolerance, f"{where}[{i}]")
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            assert_alike(found[key], expected[key], tolerance, f"{where}[{key!r}]")
    else:
        assert found == expected, where
