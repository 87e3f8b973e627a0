"""`treadle report`, which the tool starts with its own options (cli/report.cc)."""

from __future__ import annotations

import argparse
import sys

from .._command_feeds import feeds_of
from . import report
from ._data import FAILURES


def main(arguments: list[str]) -> int:
    """The exit status: 0, and 1 where the page cannot be written."""
    taken = argparse.ArgumentParser(allow_abbrev=False)
    taken.add_argument("model")
    taken.add_argument("--feed", action="append", default=[])  # the name of an input, =, and a file
    taken.add_argument("--out", default="report.html")
    taken.add_argument("--netron", default="")
    taken.add_argument("--runs", type=int, default=5)
    taken.add_argument("--time", action="append", default=[])
    taken.add_argument("--state", action="append", default=[])
    taken.add_argument("--hop", type=int, default=0)
    taken.add_argument("--context", type=int, default=0)
    taken.add_argument("--rate", type=float, default=0)
    given = taken.parse_args(arguments)
    feeds = feeds_of(given.feed)
    stream = None
    if given.time:
        axes = {
            name: int(axis) if axis.isdigit() else axis
            for name, _, axis in (text.partition("=") for text in given.time)
        }
        states = dict(text.split("=", 1) for text in given.state) or None
        stream = {"time": axes, "hop": given.hop, "context": given.context, "state": states}
    try:
        made = report(given.model, feeds or None, stream=stream, rate=given.rate, runs=given.runs)
        made.save(given.out)
        if given.netron:
            made.save_model(given.netron)
    except FAILURES as problem:
        print(f"treadle: {problem}", file=sys.stderr)
        return 1
    print(made)
    print(f"written to {given.out}" + (f" and {given.netron}" if given.netron else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
