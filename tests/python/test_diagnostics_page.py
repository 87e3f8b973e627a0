"""docs/diagnostics.md shows the messages of treadle and the onnx package for ten mistakes. This writes the page and
compares it.

python tests/python/test_diagnostics_page.py    # writes the page
"""

import pathlib
import re

import onnx
import pytest
import treadle

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "diagnostics.md"

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'

# Title, mistake, model, whether types have to be inferred to find it.
MISTAKES = [
    (
        "A value of the body is used behind the loop",
        "`step` exists once per iteration, inside the body. A value that is used outside has to be one of the body's outputs.",
        """
        sums (int64 n, bool on, float[2] x) => (float[2] y) {
          last = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
            go_out = Identity (go)
            step = Mul (h, x)
            h_out = Add (h, step)
          }>
          y = Add (last, step)
        }
        """,
        False,
    ),
    (
        "A misspelt state",
        "Names are looked up in the body, then in the graphs around it; `hiden` is in none of them.",
        """
        sums (int64 n, bool on, float[2] x) => (float[2] y) {
          y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] hidden) => (bool go_out, float[2] hidden_out) {
            go_out = Identity (go)
            hidden_out = Add (hiden, x)
          }>
        }
        """,
        False,
    ),
    (
        "The body gives no condition",
        "The first output of a Loop's body is the condition of the next iteration, also when the trip count alone decides.",
        """
        sums (int64 n, bool on, float[2] x) => (float[2] y) {
          y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (float[2] h_out) {
            h_out = Add (h, x)
          }>
        }
        """,
        False,
    ),
    (
        "A body that returns an outer value",
        "An output of a body has to be made in the body.",
        """
        choice (bool on, float[2] x) => (float[2] y) {
          y = If (on) <
            then_branch = yes () => (float[2] twice) { twice = Add (x, x) },
            else_branch = no () => (float[2] x) { }
          >
        }
        """,
        False,
    ),
    (
        "A name of the graph around is made again in the body",
        "A node's output may not have the name of an outer value: readers disagree about which of the two is meant.",
        """
        sums (int64 n, bool on, float[2] x) => (float[2] y) {
          scaled = Mul (x, x)
          y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
            go_out = Identity (go)
            scaled = Mul (h, h)
            h_out = Add (scaled, x)
          }>
        }
        """,
        False,
    ),
    (
        "Nodes of the body in the wrong order",
        "A node has to stand behind the nodes that make its inputs.",
        """
        sums (int64 n, bool on, float[2] x) => (float[2] y) {
          y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
            h_out = Add (h, step)
            step = Mul (h, x)
            go_out = Identity (go)
          }>
        }
        """,
        False,
    ),
    (
        "An attribute that has become an input",
        "Exporters written for old operator sets give `axes` as an attribute.",
        """
        sums (int64 n, bool on, float[2] x) => (float[2] y) {
          y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
            go_out = Identity (go)
            total = ReduceSum <axes = [0]> (h)
            h_out = Add (h, total)
          }>
        }
        """,
        False,
    ),
    (
        "The iteration's number is no float",
        "The first input of the body is an int64; arithmetic with floats needs a Cast. Seen by a full check.",
        """
        sums (int64 n, bool on, float[2] x) => (float[2] y) {
          y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
            go_out = Identity (go)
            h_out = Mul (h, i)
          }>
        }
        """,
        True,
    ),
    (
        "A loop whose condition is ignored",
        "Without `cond`, by the specification all iterations run, whatever condition the body returns. Some engines follow the body.",
        """
        until (int64 n, float[2] x, float limit) => (float[2] y) {
          y = Loop (n, , x) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
            h_out = Add (h, x)
            size = ReduceMax <keepdims = 0> (h_out)
            go_out = Less (size, limit)
          }>
        }
        """,
        False,
    ),
    (
        "A state that grows, declared as one that does not",
        "`all` goes in with two elements and comes out with four; an engine that trusts the declaration allocates too little.",
        """
        doubling (int64 n, bool on, float[2] x) => (float[k] y) {
          y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] all) => (bool go_out, float[4] all_out) {
            go_out = Identity (go)
            all_out = Concat <axis = 0> (all, x)
          }>
        }
        """,
        False,
    ),
]


def dedent(text: str) -> str:
    lines = text.strip("\n").splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines).rstrip()


def what_onnx_says(model: onnx.ModelProto, full: bool) -> str:
    try:
        onnx.checker.check_model(model, full_check=full)
    except Exception as error:
        return str(error).strip()
    return "(nothing)"


def what_treadle_says(text: str, full: bool) -> str:
    return "\n".join(f"{problem.severity}: {problem}" for problem in treadle.check(text.encode(), full)) or "(nothing)"


def problems() -> list[tuple[str, str, str]]:
    """(name, severity, meaning) of the table in the source."""
    header = (ROOT / "src" / "check" / "diagnostic.h").read_text()
    rows = re.findall(r'X\(k\w+, "([a-z0-9-]+)", k(Error|Warning),\s*"([^"]+)"\)', header)
    return [(name, severity.lower(), meaning) for name, severity, meaning in rows]


def sections() -> list[str]:
    result = []
    for number, (title, explanation, text, full) in enumerate(MISTAKES, 1):
        source = HEADER + dedent(text)
        result.append(
            f"### {number}. {title}\n\n{explanation}\n\n```\n{source}\n```\n\n"
            f"treadle:\n\n```\n{what_treadle_says(source, full)}\n```\n\n"
            f"onnx:\n\n```\n{what_onnx_says(onnx.parser.parse_model(source), full)}\n```\n"
        )
    return result


def page() -> str:
    table = "\n".join(f"| `{name}` | {severity} | {meaning} |" for name, severity, meaning in problems())
    return f"""# Diagnostics

`treadle check model.onnx` reports everything that is wrong or surprising about a model, in the model's order and in one go.
`--full` also infers all types, even behind nodes that fail; errors that merely follow from another error are not reported.
The last line says whether treadle runs the model: the command makes a session, without a run, and prints the reason if the
session refuses the model. The exit status is 0 without errors, 1 with errors, 2 for wrong usage. `--strict` makes warnings
errors, and `--json` prints one document (`runs` and `refusal` are that last line). In Python, `treadle.check(model,
full=True)` returns the problems as a list.

`docs/strictness.md` lists the rules that treadle enforces and the `onnx` package does not, and those that treadle lets pass.
`treadle infer` names the nodes of unknown operators on standard error, and then ends with status 1 (0 with `--lenient`); it
writes the types that it could infer in any case.

Each problem has a stable name in square brackets, the path through functions and bodies to its node, and the node's
operator with the version in force. If known, it also has the place where the offending name or type was defined, and a hint.
An error violates the specification. A warning is about a model that runs, but perhaps not as its author expects, or not in
every engine. For a model that is text, both places have line and column, and the line is shown. So it is in all other errors
about a node of such a model: when it is loaded, inferred, planned or run.

## Ten mistakes in models that loop

The messages of treadle are followed by those of the `onnx` package's checker for the same model. This page is written by
`tests/python/test_diagnostics_page.py`, which fails when it is no longer true.

{chr(10).join(sections())}
## All problems

| name | severity | meaning |
| --- | --- | --- |
{table}
"""


def test_the_page_is_true():
    if not onnx.__version__.startswith("1.23."):
        pytest.skip(f"the page quotes onnx 1.23, here is {onnx.__version__}")
    assert PAGE.read_text() == page(), f"run python {pathlib.Path(__file__).name} to write it anew"


def test_every_mistake_is_seen():
    for section in sections():
        assert "treadle:\n\n```\n(nothing)" not in section


if __name__ == "__main__":
    PAGE.write_text(page())
