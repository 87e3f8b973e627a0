"""Says whether a model still fails: judges.py WORD MODEL. Status 1: it does; 0: it does not, or fails in another way.

The judges of bench/failures.py, in a file of their own since `treadle reduce` starts them for each candidate.
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import treadle


def drawn(session: treadle.InferenceSession) -> dict[str, np.ndarray]:
    """The same inputs each time, of the sizes that the model states or 3; a single integer is a count, 6."""
    rng = np.random.default_rng(1)
    feeds = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 3 for size in value.shape]
        kind = value.type.removeprefix("tensor(").removesuffix(")")
        if kind in ("float", "double", "float16"):
            feeds[value.name] = rng.standard_normal(shape).astype(kind.replace("float16", "f2").replace("float", "f4"))
        elif kind == "string":
            feeds[value.name] = np.full(shape, "a", object)
        elif shape or kind == "bool":
            feeds[value.name] = rng.integers(0, 2, shape).astype({"bool": "?"}.get(kind, kind))
        else:
            feeds[value.name] = np.array(6, kind)
    return feeds


def quiet_session(data: bytes, **entries: str) -> treadle.InferenceSession:
    options = treadle.SessionOptions()
    options.log_severity_level = 4
    for name, value in entries.items():
        options.add_session_config_entry(f"treadle.{name}", value)
    return treadle.InferenceSession(data, options)


def onnxruntime_session(data: bytes):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def gives_nan(data: bytes) -> bool:
    session = quiet_session(data)
    results = session.run(None, drawn(session))
    return any(np.isnan(r).any() for r in results if isinstance(r, np.ndarray) and r.dtype.kind == "f")


def differs_by_weights(data: bytes) -> bool:
    """Whether half the weights' digits show in the results."""
    exact, rounded = quiet_session(data), quiet_session(data, weights="f16")
    feeds = drawn(exact)
    pairs = zip(exact.run(None, feeds), rounded.run(None, feeds), strict=True)
    return any(not np.allclose(a, b, 1e-4, 1e-5) for a, b in pairs)


def differs_from_onnxruntime(data: bytes) -> bool:
    """Whether onnxruntime, which obeys the conditions of Loops without `cond`, gives other results."""
    ours, theirs = quiet_session(data), onnxruntime_session(data)
    feeds = drawn(ours)
    for a, b in zip(ours.run(None, feeds), theirs.run(None, feeds), strict=True):
        is_number = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype.kind in "fiub"
        if is_number and (a.shape != b.shape or not np.allclose(a, b, 1e-3, 1e-3, equal_nan=True)):
            return True
    return False


def onnxruntime_refusal(data: bytes) -> str:
    """What onnxruntime says against a model that runs; empty if it runs there, too."""
    session = quiet_session(data)
    feeds = drawn(session)
    session.run(None, feeds)
    try:
        onnxruntime_session(data).run(None, feeds)
    except Exception as problem:
        return str(problem)
    return ""


def onnxruntime_refuses(data: bytes) -> bool:
    refusal = onnxruntime_refusal(data)
    print(refusal)
    return refusal != ""


JUDGES = {
    "nan": gives_nan,
    "f16": differs_by_weights,
    "onnxruntime": differs_from_onnxruntime,
    "refusal": onnxruntime_refuses,
}


def main() -> int:
    word, path = sys.argv[1:]
    try:
        return int(JUDGES[word](pathlib.Path(path).read_bytes()))
    except Exception as problem:  # a model that fails in another way
        print(problem)
        return 0


if __name__ == "__main__":
    sys.exit(main())
