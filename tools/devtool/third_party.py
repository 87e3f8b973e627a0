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
    kind: str  # where it is from: "Debian", "PyPI" or "source", a folder of build/third_party
    package: str  # its name there

    def version(self) -> str:
        if self.kind == "source":
            [archive] = (BUILD / "third_party").glob(f"{self.package}_*.orig.tar.*")
            return archive.name.removeprefix(f"{self.package}_").split("+")[0].split(".orig")[0]
        if self.kind == "PyPI":
            return self._distribution().version
        command = ["dpkg-query", "-W", "-f=${Version}", self.package]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def licence_text(self) -> str:
        if self.kind == "source":
            return (BUILD / "third_party" / self.package / "include" / "LICENSE").read_text()
        if self.kind == "Debian":
            return pathlib.Path("/usr/share/doc", self.package, "copyright").read_text()
        found = self._distribution()
        files = [f for f in found.files or [] if "/licenses/" in str(f) and f.name.upper().startswith("LICENSE")]
        text = pathlib.Path(found.locate_file(sorted(files)[0])).read_text()
        return re.split(r"^-{4,}$", text, maxsplit=1, flags=re.MULTILINE)[0]  # behind it: what the wheel bundles

    def _distribution(self) -> importlib.metadata.Distribution:
        [folder] = VENV.glob("lib/python3*/site-packages")
        [found] = importlib.metadata.distributions(name=self.package, path=[str(folder)])
        return found


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
            kind, _, package = cells["origin"].rpartition(" ")
            found.append(Component(cells["name"], cells["licence"], inside, kind or "Debian", package))
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
            "properties": [{"name": "treadle:from", "value": f"{one.kind} {one.package}"}],
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
