"""./dev train: counts branches while models are read, checked, inferred and run, for cmake/Profile.cmake."""

import re

from building import build
from console import BUILD, ROOT, Failure, run, say
from environment import PYTHON, shared_folder

LEAST = 1000  # of a function's largest count; others run too rarely to matter
RAW = BUILD / "train" / "raw"
KEPT = ROOT / "profile" / "models.proftext"
HEAD = """# How often branches are taken while models are read, checked, inferred and run, as `./dev train` counted.
# cmake/Profile.cmake says what it is for.
:ir
"""


def train(options) -> int:
    build("treadle_python", "train")
    for old in RAW.glob("*.profraw"):
        old.unlink()
    environment = {"PYTHONPATH": str(BUILD / "train" / "python"), "LLVM_PROFILE_FILE": f"{RAW}/%p.profraw"}
    if shared := shared_folder():
        environment["TREADLE_SHARED"] = str(shared)
    run("bench/train_models.py", [PYTHON, ROOT / "bench" / "train_models.py"], log="train", env=environment)
    merged = BUILD / "train" / "all.proftext"
    raw = sorted(RAW.glob("*.profraw"))
    if not raw:
        raise Failure("nothing was counted")
    run("merging", ["llvm-profdata-19", "merge", "-text", "-o", merged, *raw], log="train-merge")
    functions = [text for text in read_functions(merged.read_text()) if largest_count(text) >= LEAST]
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(HEAD + "\n" + "\n\n".join(sorted(functions)) + "\n")
    say(f"{KEPT.relative_to(ROOT)}: {len(functions)} functions")
    return 0


def read_functions(text: str) -> list[str]:
    """A name, a hash, a number of counters and the counters, a line each, without comments."""
    blocks = re.split(r"\n\n+", re.sub(r"^(#.*|:.*)\n", "", text, flags=re.MULTILINE))
    return [block.strip() for block in blocks if block.strip()]


def largest_count(function: str) -> int:
    lines = function.split("\n")
    return max((int(line) for line in lines[3 : 3 + int(lines[2])]), default=0)
