"""The table of docs/drop-in.md: which names of onnxruntime's Python package the alias has.

python tests/python/drop_in_table.py writes it into the page; test_drop_in_page.py holds the page against it. The names
are those of the installed onnxruntime; which of them are there is asked of the alias in a process of its own.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys

import models
import treadle

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "drop-in.md"
BEGIN, END = "<!-- the table is written by tests/python/drop_in_table.py -->", "<!-- end of the table -->"

# Prints, for each object that programs hold, the names that it has of those asked for on standard input, or all.
NAMES = """
import inspect
import json
import sys

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import _pybind_state

session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
objects = {
    "onnxruntime": ort,
    "InferenceSession": session,
    "SessionOptions": ort.SessionOptions(),
    "RunOptions": ort.RunOptions(),
    "IOBinding": session.io_binding(),
    "OrtValue": ort.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32)),
    "OrtDevice": ort.OrtDevice.make("cpu", 0),
    "NodeArg": session.get_inputs()[0],
    "ModelMetadata": session.get_modelmeta(),
    "GraphOptimizationLevel": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "ExecutionMode": ort.ExecutionMode.ORT_PARALLEL,
    "ExecutionOrder": ort.ExecutionOrder.DEFAULT,
    "capi.onnxruntime_pybind11_state": _pybind_state,
}
asked = json.load(sys.stdin)
def public(o):
    return [n for n in dir(o) if not n.startswith("_") and not inspect.ismodule(getattr(o, n))]
print(json.dumps({
    what: [n for n in asked[what] if hasattr(o, n)] if asked else public(o) for what, o in objects.items()
}))
"""


def names(alias: bool, model: pathlib.Path, asked: dict[str, list[str]]) -> dict[str, list[str]]:
    command = [sys.executable, *(["-m", "treadle.as_onnxruntime"] if alias else []), "-c", NAMES, str(model)]
    folders = [str(pathlib.Path(treadle.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        command, input=json.dumps(asked), env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(done.stdout)


@functools.cache
def table(folder: pathlib.Path) -> str:
    model = folder / "model.onnx"
    model.write_bytes(models.add())
    wanted = names(False, model, {})
    found = names(True, model, wanted)
    lines = ["| of onnxruntime | covered | names | not covered |", "| --- | --- | --- | --- |"]
    for what, all_names in wanted.items():
        if what.startswith("capi."):  # has the names of the module as well
            all_names = [name for name in all_names if name not in wanted["onnxruntime"]]
        have = [name for name in all_names if name in found[what]]
        missing = [name for name in all_names if name not in found[what]]
        cells = [", ".join(f"`{name}`" for name in some) or "-" for some in (have, missing)]
        lines.append(f"| `{what}` | {len(have)} of {len(all_names)} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def in_page() -> str:
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def main() -> None:
    import tempfile

    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(f"{before}{BEGIN}\n\n{table(pathlib.Path(folder))}\n\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
