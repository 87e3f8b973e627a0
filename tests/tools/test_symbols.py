"""libtreadle.so exports the functions that treadle.h declares, each in the version that introduced it. A name that is
taken away or moved to another version breaks programs that are linked already: symbols.txt changes by additions alone
until the library's number does.
"""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
LISTED = [line.split() for line in pathlib.Path(__file__).with_name("symbols.txt").read_text().splitlines()]


def test_the_library_shows_what_is_listed():
    library = ROOT / "build" / "lib" / "libtreadle.so"
    table = subprocess.check_output(["nm", "-D", "--defined-only", "--with-symbol-versions", library], text=True)
    shown = [line.split()[2].split("@@") for line in table.splitlines() if line.split()[1] != "A"]
    assert sorted(shown) == LISTED


def test_the_header_declares_what_is_listed():
    header = (ROOT / "include" / "treadle" / "treadle.h").read_text()
    declared = re.findall(r"^TREADLE_API [\w* ]*?(treadle_\w+)\(", header, re.MULTILINE)
    assert sorted(declared) == [name for name, _ in LISTED]
