"""Statements that make texts, and what is asked of them."""

from __future__ import annotations

import numpy as np

from random_programs.blocks import BOOL, INT64, INTS, STRING, Block, Value

PATTERNS = ("a*", "(bc|é)+", ".", "", "[^a]*", "-?[0-9]+")
SHORT = ".{0,40}"  # what a loop may make longer in every iteration


def text(block: Block) -> None:
    if x := block.tensor((STRING,)):
        if block.opset >= 19 and block.draw.chance(0.5):
            block.add("Equal", [x.name, block.constant(np.array("bc", object))], Value("", BOOL, x.shape))
        else:
            block.add("Identity", [x.name], x)


def lengthened(block: Block) -> None:
    """Two texts put together, or the first of them where both are too long."""
    if x := block.tensor((STRING,)):
        y = block.partner(x)
        operands = [x.name, y.name] if block.draw.chance(0.6) or y.shape != x.shape else [y.name, x.name]
        (longer,) = block.emit("StringConcat", operands)
        (short,) = block.emit("RegexFullMatch", [longer], pattern=SHORT)
        block.add("Where", [short, longer, x.name], x)


def matched(block: Block) -> None:
    if x := block.tensor((STRING,)):
        pattern = block.draw.pick(PATTERNS)
        block.add("RegexFullMatch", [x.name], Value("", BOOL, x.shape), pattern=pattern)


def word(block: Block) -> None:
    """Words of a table by what an integer says."""
    x = block.tensor((INT64,), lambda v: v.shape is not None)
    if x is None:
        return
    table = block.fresh(STRING, 5)
    (index,) = block.emit("Mod", [x.name, block.number(5)])
    block.add("Gather", [table.name, index], Value("", STRING, x.shape), axis=0)


def divided(block: Block) -> None:
    """As many parts as the text with the most of them has."""
    x = block.tensor((STRING,), lambda v: v.shape is not None and len(v.shape) < 3)
    if x is None:
        return
    delimiter = block.draw.pick(["a", "o", "bc", ""])
    options = {"maxsplit": 1} if block.draw.chance(0.3) else {}
    parts, number = block.emit("StringSplit", [x.name], 2, delimiter=delimiter, **options)
    block.scope.append(Value(parts, STRING, (*x.shape, None)))
    block.scope.append(Value(number, INT64, x.shape))


def normalized(block: Block) -> None:
    x = block.tensor((STRING,), lambda v: v.known and (len(v.shape) == 1 or (len(v.shape) == 2 and v.shape[0] == 1)))
    if x is None or 0 in x.shape:
        return
    options = {"case_change_action": block.draw.pick(["NONE", "LOWER", "UPPER"]), "is_case_sensitive": 1}
    if block.draw.chance(0.5):
        options["stopwords"] = ["a", "LOOP"]
    shape = x.shape if "stopwords" not in options else (*x.shape[:-1], None)
    block.add("StringNormalizer", [x.name], Value("", STRING, shape), **options)


def spelt(block: Block) -> None:
    """Integers as texts, and back."""
    x = block.tensor(INTS)
    if x is None:
        return
    made = block.add("Cast", [x.name], Value("", STRING, x.shape), to=STRING)
    if block.draw.chance(0.5):
        block.add("Cast", [made.name], Value("", x.element, x.shape), to=x.element)


WORDS = [
    (text, 13, 0.5, False),
    (lengthened, 20, 2, False),
    (matched, 20, 0.7, False),
    (word, 11, 0.7, False),
    (divided, 20, 0.5, False),
    (normalized, 10, 0.3, False),
    (spelt, 9, 0.4, False),
]
