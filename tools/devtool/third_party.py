"""The software inside of what is shipped, as THIRD_PARTY.md lists it: licence texts and versions."""

import dataclasses
import importlib.metadata
import json
import pathlib
import re
import subprocess

from console import BUILD, ROOT, Failure
from environment import VENV

COLUMNS = ("name", "licence", "headers", "parts", "origin", "how", "purpose")


@dataclasses.dataclass(frozen=True)
class Component:
    name: str
    licence: str  # an SPDX expression
    parts: frozenset[str]  # of what is shipped that have it inside
    origin: str  # "libfmt-dev", "PyPI nanobind [FILE]", "source re2"

    def version(self) -> str:
        kind, _, name = self.origin.rpartition(" ") if self.origin.startswith("source ") else ("", "", self.origin)
        if kind == "source":
            [archive] = (BUILD / "third_party").glob(f"{name}_*.orig.tar.*")
            return archive.name.removeprefix(f"{name}_").split("+")[0].split(".orig")[0]
        if self.origin.startswith("PyPI "):
            return self._distribution().version
        command = ["dpkg-query", "-W", "-f=${Version}", self.origin]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def licence_text(self) -> str:
        if self.origin.startswith("source "):
            return (BUILD / "third_party" / self.origin.split()[1] / "include" / "LICENSE").read_text()
        if not self.origin.startswith("PyPI "):
            return pathlib.Path("/usr/share/doc", self.origin, "copyright").read_text()
        distribution = self._distribution()
        inside = self.origin.split()[2:]
        if inside:
            path = distribution.locate_file(pathlib.Path(distribution.name, *inside))
            return comment_at_the_head(pathlib.Path(path).read_text())
        files = [f for f in distribution.files or [] if "/licenses/" in str(f) and f.name.upper().startswith("LICENSE")]
        text = pathlib.Path(distribution.locate_file(sorted(files)[0])).read_text()
        return re.split(r"^-{4,}$", text, maxsplit=1, flags=re.MULTILINE)[0]  # behind it: what the wheel bundles

    def _distribution(self) -> importlib.metadata.Distribution:
        [folder] = VENV.glob("lib/python3*/site-packages")
        [found] = importlib.metadata.distributions(name=self.origin.split()[1], path=[str(folder)])
        return found


def comment_at_the_head(source: str) -> str:
    comment = re.match(r"\s*/\*(.*?)\*/", source, re.DOTALL)[1]
    return re.sub(r"^ ?\*? ?", "", comment.strip("*"), flags=re.MULTILINE).strip() + "\n"


def components(*parts: str) -> list[Component]:
    """Those that are inside of any of these parts."""
    text = (ROOT / "THIRD_PARTY.md").read_text().split("## Linked into")[1].split("\n## ")[0]
    rows = [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    found = []
    for row in rows[2:]:
        if len(row) != len(COLUMNS):
            raise Failure(f"THIRD_PARTY.md: {len(COLUMNS)} columns were expected, found {len(row)}: {' | '.join(row)}")
        cells = dict(zip(COLUMNS, row, strict=True))
        inside = frozenset(part.strip() for part in cells["parts"].split(","))
        if inside & set(parts):
            found.append(Component(cells["name"], cells["licence"], inside, cells["origin"]))
    return found


def bill_of_materials(name: str, version: str, inside: list[Component]) -> str:
    """CycloneDX 1.6."""
    own = {
        "type": "library",
        "name": name,
        "version": version,
        "bom-ref": name,
        "licenses": [{"expression": "Apache-2.0"}],
    }
    others = [
        {
            "type": "library",
            "name": one.name,
            "version": one.version(),
            "bom-ref": one.name,
            "licenses": [{"expression": one.licence}],
            "properties": [{"name": "treadle:from", "value": one.origin}],
        }
        for one in inside
    ]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": others,
        "dependencies": [{"ref": name, "dependsOn": [one.name for one in inside]}],
    }
    return json.dumps(bill, indent=2) + "\n"
