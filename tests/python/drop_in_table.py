"""The table of docs/drop-in.md: which names of onnxruntime's Python package the alias has.

python tests/python/drop_in_table.py writes it into the page; test_drop_in_page.py holds the page against it. The names
are those of the installed onnxruntime; which of them are there is asked of the alias in a process of its own.

python tests/python/drop_in_table.py --newer [VERSION] fetches another onnxruntime with pip, the newest one unless a version
is given, into a folder that is removed again. It prints the names, members, operators and versions of the function table
that this onnxruntime has and treadle lacks, each with the reason why, or "no reason is stated".
"""

import argparse
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import models
import treadle
from treadle import _alias

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "drop-in.md"
BEGIN, END = "<!-- the table is written by tests/python/drop_in_table.py -->", "<!-- end of the table -->"

# The reasons why treadle lacks names of onnxruntime. The alias has the reasons of its names, and the page on
# com.microsoft the reasons of its operators; here are the reasons of members, and of the domains that no page names.
OPERATORS_PAGE = PAGE.with_name("contrib-operators.md")
OF_MEMBERS = {
    "InferenceSession": "it is onnxruntime.InferenceSession",
    "ep_context_data_read_func": "treadle runs no binaries that a provider has compiled",
    "set_provider_selection_policy_delegate": "there is one device to select",
    "add_active_adapter": "treadle has no LoRA adapters",
    "sparse_tensor": "treadle has no sparse tensors as values",
}
OF_DOMAINS = dict.fromkeys(
    ("com.microsoft.nchwc", "com.ms.internal.nhwc"),
    "onnxruntime's rewrites make it of other operators while they load a model; no model is written with it",
)
OF_OPERATORS = {
    r"\w+_TRT": "runs in TensorRT alone",
    r"GRUUnit|GivenTensorFill": "an experiment of early operator sets that onnxruntime has no kernel for",
    r"Memcpy(From|To)Host": "onnxruntime writes it between devices while it loads a model",
}

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


# Prints the other parts of a release: its version, methods of its classes, operators, and the newest function table.
CONTENTS = """
import ctypes
import inspect
import json
import pathlib

import onnxruntime as ort
from onnxruntime.capi import _pybind_state as state

members = {}
for module in (state, ort):  # the package has some classes in another form
    for name, o in vars(module).items():
        if inspect.isclass(o) and not name.startswith("_"):
            members[name] = [m for m in dir(o) if not m.startswith("_") and callable(getattr(o, m))]
operators = []
if hasattr(state, "get_all_operator_schema"):
    operators = sorted({f"{s.domain or 'ai.onnx'} {s.name}" for s in state.get_all_operator_schema()})
tables = 0
for library in (pathlib.Path(ort.__file__).parent / "capi").glob("libonnxruntime.so.1*"):
    get_base = ctypes.CDLL(str(library)).OrtGetApiBase
    get_base.restype = ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32))
    while get_base()[0](tables + 1):
        tables += 1
print(json.dumps({"version": ort.__version__, "members": members, "operators": operators, "tables": tables}))
"""


def asked_of(program: str, alias: bool, *arguments: str, first: str = "", given: object = None):
    """The JSON that a program prints, where onnxruntime is the alias or a package (in the folder `first`, if given)."""
    command = [sys.executable, *(["-m", "treadle.as_onnxruntime"] if alias else []), "-c", program, *arguments]
    folders = [first] * bool(first)
    folders += [str(pathlib.Path(treadle.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        command, input=json.dumps(given), env=environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    return json.loads(done.stdout)


def names(alias: bool, model: pathlib.Path, asked: dict[str, list[str]], first: str = "") -> dict[str, list[str]]:
    return asked_of(NAMES, alias, str(model), first=first, given=asked)


def missing(folder: pathlib.Path, packages: str) -> list[str]:
    """A line for each name that the onnxruntime in the folder `packages` has and treadle lacks."""
    model = folder / "model.onnx"
    model.write_bytes(models.add())
    wanted = names(False, model, {}, packages)
    found = names(True, model, wanted)
    lines = [f"{what}: {name}" for what, each in wanted.items() for name in each if name not in found[what]]
    theirs, ours = asked_of(CONTENTS, False, first=packages), asked_of(CONTENTS, True)
    for name, each in sorted(theirs["members"].items()):
        if name in ours["members"]:
            lines += [f"{name}: {member}" for member in each if member not in ours["members"][name]]
    own = {f"{o['domain'] or 'ai.onnx'} {o['name']}" for o in treadle.operators()}
    lines += [f"operator: {name}" for name in theirs["operators"] if name not in own]
    served = int(ours["version"].split(".")[1])
    lines += [f"function table: version {version}" for version in range(served + 1, theirs["tables"] + 1)]
    return [f"onnxruntime {theirs['version']} beside the names of {ours['version']}", *dict.fromkeys(lines)]


def reasons_of_operators() -> dict[str, str]:
    """By name, as the page on com.microsoft says them."""
    _, _, text = OPERATORS_PAGE.read_text(encoding="utf-8").partition("## What treadle has not")
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", text, re.MULTILINE)
    return {name: reason for names, reason in rows for name in re.findall(r"`(\w+)`", names)}


def reason(line: str) -> str:
    """The reason why treadle lacks the name in a line of `missing`; empty if none is stated."""
    what, _, name = line.partition(": ")
    if what == "operator":
        domain, _, operator = name.partition(" ")
        if domain == "com.microsoft":
            return reasons_of_operators().get(operator, "")
        found = (reason for pattern, reason in OF_OPERATORS.items() if re.fullmatch(pattern, operator))
        return next(found, OF_DOMAINS.get(domain, ""))
    if name in _alias._REASONS:
        return _alias._REASONS[name]
    return next((reason for part, reason in OF_MEMBERS.items() if part in name), "")


def print_newer(version: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        packages = os.path.join(folder, "packages")
        wanted = f"onnxruntime=={version}" if version else "onnxruntime"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--upgrade",
            "--no-deps",
            "--target",
            packages,
            wanted,
        ]
        subprocess.run(pip, check=True)
        title, *lines = missing(pathlib.Path(folder), packages)
        print(title, *(f"{line}  ({reason(line) or 'no reason is stated'})" for line in lines), sep="\n")


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


def write_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(f"{before}{BEGIN}\n\n{table(pathlib.Path(folder))}\n\n{END}{rest.partition(END)[2]}", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--newer", nargs="?", const="", metavar="VERSION", help="print what another release has more")
    version = parser.parse_args().newer
    if version is None:
        write_page()
    else:
        print_newer(version)


if __name__ == "__main__":
    main()
