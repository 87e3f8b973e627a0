"""Runs random nodes in the body of a Scan, in all tiers, which have to give the same bits.

    TREADLE_ISA=baseline python contrib_tiers.py MODULE...

since the reference interpreter has the kernels of the baseline only. MODULE: one with MAKERS (contrib.py). Prints what differs.
"""

import importlib
import sys

import numpy as np
from contrib import Node
from one_node import PROTO, treadle
from onnx import helper, numpy_helper

ITERATIONS = 3
TIERS = ({"tier": "reference"}, {"jit": "off"}, {"jit": "always"})


def scanned(node: Node) -> tuple[bytes, dict]:
    """A model that runs the node on ITERATIONS copies of its inputs, one in each iteration; inputs that are constants stay so."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(node.inputs)]
    slices = [i for i, name in enumerate(names) if name and i not in node.constants]
    results = [f"y{i}" for i, t in enumerate(node.outputs) if t is not None]
    types = [PROTO[np.dtype(t)] for t in node.outputs if t is not None]
    inner = helper.make_node(
        node.op, names, [f"y{i}" if t is not None else "" for i, t in enumerate(node.outputs)], domain=node.domain, **node.attributes
    )  # fmt: skip
    body = helper.make_graph(
        [inner],
        "body",
        [helper.make_tensor_value_info(names[i], PROTO[node.inputs[i].dtype], node.inputs[i].shape) for i in slices],
        [helper.make_tensor_value_info(name, t, None) for name, t in zip(results, types, strict=True)],
    )
    stacks = {f"all_{names[i]}": np.stack([node.inputs[i]] * ITERATIONS) for i in slices}
    stacked = [f"all_{name}" for name in results]
    scan = helper.make_node("Scan", list(stacks), stacked, body=body, num_scan_inputs=len(stacks))
    constants = [
        numpy_helper.from_array(node.inputs[i], names[i]) for i in node.constants if node.inputs[i] is not None
    ]
    graph = helper.make_graph(
        [scan],
        "loop",
        [helper.make_tensor_value_info(name, PROTO[x.dtype], x.shape) for name, x in stacks.items()],
        [helper.make_tensor_value_info(name, t, None) for name, t in zip(stacked, types, strict=True)],
        constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), stacks


def results_of(model: bytes, feeds: dict, options: dict) -> list:
    settings = treadle.SessionOptions()
    for key, value in options.items():
        settings.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(model, settings).run(None, feeds)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype == object or b.dtype == object:
        return a.shape == b.shape and a.tolist() == b.tolist()
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def differences(node: Node) -> list[str]:
    model, feeds = scanned(node)
    first, *others = ([*results_of(model, feeds, options)] for options in TIERS)
    return [
        f"{node.op} {node.attributes}: output {i} differs with {options}"
        for options, results in zip(TIERS[1:], others, strict=True)
        for i, (a, b) in enumerate(zip(first, results, strict=True))
        if not same(a, b)
    ]


def main(modules: list[str]) -> int:
    found = []
    for module in map(importlib.import_module, modules):
        for maker in module.MAKERS:
            for seed in range(3):
                node = maker(np.random.default_rng([seed, *maker.__name__.encode()]))
                if any(x is not None and i not in node.constants for i, x in enumerate(node.inputs)):
                    try:
                        found += differences(node)
                    except Exception as error:  # the message needs the node more than the error
                        found.append(f"{maker.__name__} {node.attributes}: {error}")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
