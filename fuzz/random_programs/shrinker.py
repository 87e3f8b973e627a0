"""Makes a program that shows a difference smaller, as long as it shows one."""

from __future__ import annotations

from collections.abc import Callable

import onnx


def bodies(graph: onnx.GraphProto):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from bodies(attribute.g)


def names_used(graph: onnx.GraphProto) -> set[str]:
    used = {info.name for body in bodies(graph) for info in body.output}
    return used | {name for body in bodies(graph) for node in body.node for name in node.input}


def drop_unused(model: onnx.ModelProto) -> None:
    before = None
    while before != (before := model.ByteSize()):
        used = names_used(model.graph)
        for body in bodies(model.graph):
            for k in reversed(range(len(body.node))):
                if not used.intersection(body.node[k].output):
                    del body.node[k]
            for k in reversed(range(len(body.initializer))):
                if body.initializer[k].name not in used:
                    del body.initializer[k]
        called = {node.op_type for body in bodies(model.graph) for node in body.node}
        called |= {node.op_type for function in model.functions for node in function.node}
        for k in reversed(range(len(model.functions))):
            if model.functions[k].name not in called:
                del model.functions[k]


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    for body in bodies(graph):
        for node in body.node:
            for k, name in enumerate(node.input):
                if name == old:
                    node.input[k] = new
        for info in body.output:
            if info.name == old:
                info.name = new


def candidates(model: onnx.ModelProto):
    """Smaller models, one change each: fewer outputs, then nodes that give way to one of their inputs, then loops with
    fewer states and scan outputs."""
    for k in range(len(model.graph.output)):
        if len(model.graph.output) > 1:
            smaller = onnx.ModelProto.FromString(model.SerializeToString())
            del smaller.graph.output[k]
            yield smaller
    count = len(list(bodies(model.graph)))
    for b in range(count):
        body = list(bodies(model.graph))[b]
        for k in range(len(body.node)):
            for replacement in dict.fromkeys(name for name in body.node[k].input if name):
                smaller = onnx.ModelProto.FromString(model.SerializeToString())
                node = list(bodies(smaller.graph))[b].node[k]
                for output in list(node.output):
                    rename(smaller.graph, output, replacement)
                del list(bodies(smaller.graph))[b].node[k]
                yield smaller
        for k, node in enumerate(body.node):
            if node.op_type in ("If", "Loop", "Scan"):
                for j in range(len(node.output)):
                    if (smaller := without_output(model, b, k, j)) is not None:
                        yield smaller


def without_output(model: onnx.ModelProto, b: int, k: int, j: int) -> onnx.ModelProto | None:
    """Takes output j from a control-flow node and what belongs to it from its bodies."""
    smaller = onnx.ModelProto.FromString(model.SerializeToString())
    node = list(bodies(smaller.graph))[b].node[k]
    if len(node.output) < 2 or node.output[j] in names_used(smaller.graph):
        return None
    inner = [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    extra = {"If": 0, "Loop": 1, "Scan": 0}[node.op_type]
    if node.op_type != "If":
        first = 2 if node.op_type == "Loop" else 0
        scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
        states = len(node.input) - first - scanned
        if j < states:
            body_input = (2 if node.op_type == "Loop" else 0) + j
            if inner[0].input[body_input].name in names_used(inner[0]):
                return None
            del inner[0].input[body_input]
            del node.input[first + j]
        elif node.op_type == "Scan":
            for attribute in node.attribute:
                if attribute.name.startswith("scan_output"):
                    del attribute.ints[j - states]
    for body in inner:
        del body.output[extra + j]
    del node.output[j]
    return smaller


def shrink(model: onnx.ModelProto, feeds: list[dict], wrong: Callable[[onnx.ModelProto], bool], limit: int = 400):
    """The smallest model found with at most `limit` attempts that is still `wrong`."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    attempts = 0
    progress = True
    while progress and attempts < limit:
        progress = False
        for smaller in candidates(model):
            drop_unused(smaller)
            if smaller.ByteSize() >= model.ByteSize():
                continue
            attempts += 1
            if wrong(smaller):
                model, progress = smaller, True
                break
            if attempts >= limit:
                break
    return model
