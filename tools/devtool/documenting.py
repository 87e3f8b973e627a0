"""./dev docs: the site, from docs/ and from what programs, headers and docstrings say of themselves."""

import os

from building import build
from console import BUILD, ROOT, run, say
from environment import STAGED_PACKAGE, VENV, make_venv

DOCS = BUILD / "docs"
PYTHON = BUILD / "venv-docs" / "bin" / "python"
TOOLS = ROOT / "tools" / "site"


def docs(options) -> int:
    build("dev_build")
    make_venv(BUILD / "venv-docs", ROOT / "tools" / "requirements-docs.txt")
    [packages] = VENV.glob("lib/python3*/site-packages")  # numpy, which treadle needs
    env = {"PYTHONPATH": os.pathsep.join([str(STAGED_PACKAGE), str(packages)])}
    source, html = DOCS / "source", DOCS / "html"
    run("writing pages", [PYTHON, TOOLS / "generate.py", source], log="docs-generate", env=env)
    run("adding words that people search for", [PYTHON, TOOLS / "searched.py", source], log="docs-searched")
    sphinx = [PYTHON, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-b", "html", "-d", DOCS / "doctrees"]
    run("making the site", [*sphinx, source, html], log="docs-sphinx", env=env)
    run("following links", [PYTHON, TOOLS / "check_site.py", html], log="docs-links")
    say(f"the site: {(html / 'index.html').relative_to(ROOT)}")
    return 0
