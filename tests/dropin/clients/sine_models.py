"""Models for packages that come without one. Their weights are sines, which every engine computes in the same way."""

import pathlib
import tempfile

from treadle import parse_model

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def weights(name: str, *shape: int) -> str:
    """Nodes that make a constant of this name."""
    count = 1
    for size in shape:
        count *= size
    return f"""
      {name}_zero = Constant <value_float = 0.0> ()
      {name}_one = Constant <value_float = 1.0> ()
      {name}_count = Constant <value_float = {float(count)}> ()
      {name}_small = Constant <value_float = 0.3> ()
      {name}_shape = Constant <value_ints = {list(shape)}> ()
      {name}_places = Range ({name}_zero, {name}_count, {name}_one)
      {name}_sines = Sin ({name}_places)
      {name}_all = Mul ({name}_sines, {name}_small)
      {name} = Reshape ({name}_all, {name}_shape)"""


def write(name: str, graph: str) -> pathlib.Path:
    """The file of the model, in a folder of its own."""
    path = pathlib.Path(tempfile.mkdtemp()) / name
    path.write_bytes(parse_model(HEAD + graph))
    return path
