"""`treadle compare`, which the tool starts with its own options (cli/compare_command.cc)."""

from __future__ import annotations

import argparse
import sys

from ._command_feeds import feeds_of
from ._compare import compare
from ._errors import FAILURES

_AGREES, _DIFFERS, _INTERRUPTED = 0, 1, 130


def main(arguments: list[str]) -> int:
    """The exit status: 0 where all agrees, 1 where something differs or an engine gives no result."""
    taken = argparse.ArgumentParser(allow_abbrev=False)
    taken.add_argument("model")
    taken.add_argument("--feed", action="append", default=[])  # the name of an input, =, and a file
    taken.add_argument("--other", default="onnxruntime")
    taken.add_argument("--rtol", type=float)
    taken.add_argument("--atol", type=float)
    taken.add_argument("--inner", choices=["always", "never"])
    taken.add_argument("--watch", action="append", default=[])
    taken.add_argument("--memory", type=int, default=1 << 28)
    taken.add_argument("--runs", type=int, default=5)
    taken.add_argument("--threads", type=int, default=0)
    taken.add_argument("--save")
    taken.add_argument("--option", action="append", default=[])  # a name, =, and a value
    taken.add_argument("--json", action="store_true")
    given = taken.parse_args(arguments)
    feeds = feeds_of(given.feed)
    try:
        found = compare(
            given.model,
            feeds,
            given.other,
            rtol=given.rtol,
            atol=given.atol,
            inner=None if given.inner is None else given.inner == "always",
            watch=given.watch,
            memory=given.memory,
            runs=given.runs,
            threads=given.threads,
            save=given.save,
            options=dict(text.split("=", 1) for text in given.option),
        )
    except FAILURES as problem:
        print(f"treadle: {problem}", file=sys.stderr)
        return _DIFFERS
    except KeyboardInterrupt:
        print("treadle: interrupted", file=sys.stderr)
        return _INTERRUPTED
    print(found.to_json() if given.json else found, end="\n" if given.json else "")
    return _AGREES if found.agrees else _DIFFERS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
