"""./dev debs: Debian packages in build/debs, by CPack (cmake/Packages.cmake)."""

import os
import shutil
import subprocess

from building import build
from console import BUILD, ROOT, run, say

DEBS = BUILD / "debs"


def command_debs(options) -> int:
    commit = ["git", "log", "-1", "--format=%ct"]
    os.environ.setdefault("SOURCE_DATE_EPOCH", subprocess.check_output(commit, cwd=ROOT, text=True).strip())
    build("all", "deb")
    made = BUILD / "deb" / "packages"
    for old in made.glob("*.deb"):
        old.unlink()
    run("packing", ["cpack", "-G", "DEB"], log="cpack", cwd=BUILD / "deb")
    shutil.rmtree(DEBS, ignore_errors=True)
    DEBS.mkdir()
    for path in sorted(made.glob("*.deb")):
        say(
            f"   {shutil.move(path, DEBS / path.name).relative_to(ROOT)}: {(DEBS / path.name).stat().st_size / 1e6:.1f} MB"
        )
    say("   to install: apt install ./build/debs/*.deb")
    return 0
