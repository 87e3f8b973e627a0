"""Random forests, their walk one comparison at a time, and how each operator version writes them down."""

import dataclasses
import math
import statistics

import numpy as np

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER"]


@dataclasses.dataclass
class Leaf:
    weights: list  # (target, value)


@dataclasses.dataclass
class Split:
    mode: str
    feature: int
    value: float
    members: list
    missing_is_true: bool
    true: object = None
    false: object = None

    def holds(self, x):
        if math.isnan(x):
            return self.missing_is_true
        return {
            "BRANCH_LEQ": x <= self.value, "BRANCH_LT": x < self.value, "BRANCH_GTE": x >= self.value,
            "BRANCH_GT": x > self.value, "BRANCH_EQ": x == self.value, "BRANCH_NEQ": x != self.value,
            "BRANCH_MEMBER": x in self.members,
        }[self.mode]  # fmt: skip


def draw_tree(rng, depth, features, targets, modes, weights, negative=True):
    """`weights`: 1, or None for any number per leaf. Thresholds are few, so that features often equal them."""
    if depth == 0 or rng.random() < 0.15:
        count = weights or int(rng.integers(0, 4))
        low = -4 if negative else 0
        return Leaf([(int(rng.integers(targets)), float(rng.integers(low, 5)) / 4) for _ in range(count)])
    mode = modes[int(rng.integers(len(modes)))]
    members = sorted({float(v) for v in rng.integers(-3, 4, int(rng.integers(1, 5)))}) if mode == MODES[6] else []
    split = Split(mode, int(rng.integers(features)), float(rng.integers(-3, 4)), members, bool(rng.random() < 0.4))
    split.true = draw_tree(rng, depth - 1, features, targets, modes, weights, negative)
    split.false = draw_tree(rng, depth - 1, features, targets, modes, weights, negative)
    return split


def draw_rows(rng, rows, features):
    x = rng.integers(-4, 5, (rows, features)) / rng.choice([1.0, 1.0, 2.0], (rows, features))
    x[rng.random((rows, features)) < 0.1] = np.nan
    return x


def leaf_of(tree, row):
    while isinstance(tree, Split):
        tree = tree.true if tree.holds(float(row[tree.feature])) else tree.false
    return tree


def scores(trees, x, targets, aggregate="SUM", base=None):
    result = np.zeros((len(x), targets))
    for i, row in enumerate(x):
        found = [w for tree in trees for w in leaf_of(tree, row).weights]
        for t in range(targets):
            values = [v for target, v in found if target == t]
            if aggregate in ("SUM", "AVERAGE"):
                result[i, t] = sum(values) / (len(trees) if aggregate == "AVERAGE" else 1)
            elif values:
                result[i, t] = min(values) if aggregate == "MIN" else max(values)
    return result + (0 if base is None else np.asarray(base))


def transform(name, rows):
    if name == "NONE":
        return rows
    if name == "LOGISTIC":
        return 1 / (1 + np.exp(-rows))
    if name == "PROBIT":
        return np.vectorize(statistics.NormalDist().inv_cdf)(rows)
    kept = np.ones_like(rows, bool) if name == "SOFTMAX" else np.abs(rows) > 1e-7
    e = np.where(kept, np.exp(rows - rows.max(axis=1, keepdims=True)), 0)
    total = e.sum(axis=1, keepdims=True)
    return np.where(total > 0, e / np.where(total > 0, total, 1), rows)


def as_old(trees, prefix, tensors=None):
    """Attributes of TreeEnsembleRegressor ("target") and TreeEnsembleClassifier ("class")."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                             "missing_value_tracks_true")}  # fmt: skip
    weights = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}

    def write(tree_id, node):
        at = len(nodes["treeids"])
        number = at - first
        for key, value in zip(nodes, (tree_id, number, 0, "LEAF", 0.0, 0, 0, 0), strict=True):
            nodes[key].append(value)
        if isinstance(node, Leaf):
            for target, value in node.weights:
                for key, entry in zip(weights, (tree_id, number, target, value), strict=True):
                    weights[key].append(entry)
            return number
        nodes["featureids"][at], nodes["modes"][at], nodes["values"][at] = node.feature, node.mode, node.value
        nodes["missing_value_tracks_true"][at] = int(node.missing_is_true)
        nodes["truenodeids"][at] = write(tree_id, node.true)
        nodes["falsenodeids"][at] = write(tree_id, node.false)
        return number

    for i, tree in enumerate(trees):
        first = len(nodes["treeids"])
        write(i, tree)
    attributes = {f"nodes_{k}": v for k, v in nodes.items()} | {f"{prefix}_{k}": v for k, v in weights.items()}
    if not tensors:
        attributes = {k: v for k, v in attributes.items() if v}  # no leaf has a weight: an empty list has no type
    else:
        for name in ("nodes_values", f"{prefix}_weights"):
            attributes[f"{name}_as_tensor"] = tensors(attributes.pop(name))
    return attributes


def as_new(trees, tensor):
    """Attributes of TreeEnsemble-5. `tensor(values)` makes one of X's type."""
    keys = ("featureids", "modes", "splits", "missing_value_tracks_true", "truenodeids", "trueleafs", "falsenodeids",
            "falseleafs")  # fmt: skip
    nodes = {k: [] for k in keys}
    leaves, members, roots = [], [], []

    def branch(node):
        if isinstance(node, Leaf):
            leaves.append(node.weights[0])
            return len(leaves) - 1, 1
        return write(node), 0

    def write(node):
        at = len(nodes["modes"])
        row = (node.feature, MODES.index(node.mode), node.value, int(node.missing_is_true), 0, 0, 0, 0)
        for key, value in zip(keys, row, strict=True):
            nodes[key].append(value)
        if node.mode == MODES[6]:
            members.extend([*node.members, math.nan])
        nodes["truenodeids"][at], nodes["trueleafs"][at] = branch(node.true)
        nodes["falsenodeids"][at], nodes["falseleafs"][at] = branch(node.false)
        return at

    for tree in trees:
        if isinstance(tree, Leaf):  # a comparison whose branches are one leaf
            leaf, _ = branch(tree)
            roots.append(len(nodes["modes"]))
            for key, value in zip(keys, (0, 0, 0.0, 0, leaf, 1, leaf, 1), strict=True):
                nodes[key].append(value)
        else:
            roots.append(write(tree))
    attributes = {f"nodes_{k}": v for k, v in nodes.items()}
    attributes["nodes_splits"] = tensor(attributes["nodes_splits"])
    attributes["tree_roots"] = roots
    attributes["leaf_targetids"] = [t for t, _ in leaves]
    attributes["leaf_weights"] = tensor([v for _, v in leaves])
    if members:
        attributes["membership_values"] = tensor(members)
    return attributes
