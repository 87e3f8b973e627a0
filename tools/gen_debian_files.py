"""copyright and changelog.Debian.gz of the Debian packages (cmake/Packages.cmake).

The changelog's date is SOURCE_DATE_EPOCH, where the environment has it, so that the same sources give the same packages.
"""

import argparse
import email.utils
import gzip
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "devtool"))

from third_party import components  # noqa: E402

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: treadle

Files: *
Copyright: treadle's authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
"""
CHANGELOG = """\
treadle ({version}) unstable; urgency=medium

  * Release {upstream}.

 -- {maintainer}  {date}
"""


def indented(text: str) -> str:
    return "".join(f" {line.rstrip()}\n" if line.strip() else " .\n" for line in text.splitlines())


def text_of(component) -> str:
    """Its copyright file; of what is under the GPL a reference, as Debian has that text on every system."""
    if not component.licence.startswith("GPL-3"):
        return component.licence_text()
    return (
        "On Debian systems, the full text of the GNU General Public License 3 is in\n"
        f"/usr/share/common-licenses/GPL-3, and the exception in /usr/share/doc/{component.package}/copyright.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--maintainer", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    inside = components("engine", "jit", "tool", "python")
    texts = "".join(f"\nComment: {one.name} ({one.licence}) is inside:\n{indented(text_of(one))}" for one in inside)
    (options.out / "copyright").write_text(COPYRIGHT + texts)
    date = email.utils.formatdate(float(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    changelog = CHANGELOG.format(upstream=options.version.partition("-")[0], date=date, **vars(options))
    (options.out / "changelog.Debian.gz").write_bytes(gzip.compress(changelog.encode(), 9, mtime=0))


main()
