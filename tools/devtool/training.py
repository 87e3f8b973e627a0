"""./dev train: counts branches while models are read and checked, and planned and run, for cmake/Profile.cmake."""

import re

from building import build
from console import BUILD, ROOT, Failure, run, say
from environment import PYTHON, shared_folder

LEAST = 1000  # of a function's largest count; others run too rarely to matter
RAW = BUILD / "train" / "raw"
TRAININGS = {"models": "are read, checked and inferred", "runs": "are planned and run"}


def head(name: str) -> str:
    return f"""# How often branches are taken while models {TRAININGS[name]}, as `./dev train` counted.
# cmake/Profile.cmake says what it is for.
:ir
"""


def train(options) -> int:
    for name in options.names or TRAININGS:
        if name not in TRAININGS:
            raise Failure(f"nothing is called '{name}' (there are {', '.join(TRAININGS)})")
        count(name)
    return 0


def count(name: str) -> None:
    build("treadle_python", "train", [f"-DTREADLE_TRAIN={name}"])
    for old in RAW.glob("*.profraw"):
        old.unlink()
    environment = {"PYTHONPATH": str(BUILD / "train" / "python"), "LLVM_PROFILE_FILE": f"{RAW}/%p.profraw"}
    if shared := shared_folder():
        environment["TREADLE_SHARED"] = str(shared)
    run(f"training {name}", [PYTHON, ROOT / "bench" / "train_models.py", name], log="train", env=environment)
    merged = BUILD / "train" / "all.proftext"
    raw = sorted(RAW.glob("*.profraw"))
    if not raw:
        raise Failure("nothing was counted")
    run("merging", ["llvm-profdata-19", "merge", "-text", "-o", merged, *raw], log="train-merge")
    functions = [text for text in read_functions(merged.read_text()) if largest_count(text) >= LEAST]
    kept = ROOT / "profile" / f"{name}.proftext"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(head(name) + "\n" + "\n\n".join(sorted(functions)) + "\n")
    say(f"{kept.relative_to(ROOT)}: {len(functions)} functions")


def read_functions(text: str) -> list[str]:
    """A name, a hash, a number of counters and the counters, a line each, without comments."""
    blocks = re.split(r"\n\n+", re.sub(r"^(#.*|:.*)\n", "", text, flags=re.MULTILINE))
    return [block.strip() for block in blocks if block.strip()]


def largest_count(function: str) -> int:
    lines = function.split("\n")
    return max((int(line) for line in lines[3 : 3 + int(lines[2])]), default=0)
