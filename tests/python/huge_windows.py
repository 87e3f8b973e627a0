"""Nodes whose windows, steps, pads or sizes are as large as attributes and inputs can say, run one after the other in
this process: `huge_windows.py TIER` reads nodes as JSON, a line each, and answers each with its outcome and the
processor's seconds that it took.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import treadle

OPSETS = ", ".join(f'"{d}" : {v}' for d, v in {"": 22, "com.microsoft": 1}.items())
TIME_S, MEMORY = 0.1, 300 << 20


def element(value: np.ndarray) -> str:
    return {"float32": "float", "float64": "double"}.get(str(value.dtype), str(value.dtype))


def run(case: dict, tier: str) -> str:
    feeds = {name: np.array(data, dtype).reshape(shape) for name, (dtype, shape, data) in case["feeds"].items()}
    inputs = ", ".join(f"{element(v)}[{','.join(map(str, v.shape))}] {n}" for n, v in feeds.items())
    opsets = OPSETS if "opset" not in case else f'"" : {case["opset"]}'
    options = treadle.SessionOptions()
    options.load_time_limit, options.load_memory_limit = TIME_S, MEMORY
    for key, value in json.loads(tier).items():
        options.add_session_config_entry(f"treadle.{key}", value)
    run_options = treadle.RunOptions()
    run_options.time_limit, run_options.memory_limit = TIME_S, MEMORY
    text = f"<ir_version: 10, opset_import: [{opsets}]>\ng ({inputs}) => (y) {{ {case['node']} }}"
    try:
        session = treadle.InferenceSession(text.encode(), options)
        session.run(None, feeds, run_options)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return "ran"


def main() -> None:
    tier = sys.argv[1]
    for line in sys.stdin:
        start = time.process_time()
        said = run(json.loads(line), tier)
        print(json.dumps([said, time.process_time() - start]), flush=True)


if __name__ == "__main__":
    main()
