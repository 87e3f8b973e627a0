"""Every operator with sizes of 0 and 1, with all of its outputs named, with scalars for vectors: the same in all tiers.

odd_sizes.py runs the nodes, in processes of their own: a process that dies is a failure of the node that it ran. Results
that depend on what fresh memory holds differ between two processes that fill it with two bytes.
"""

import collections
import itertools
import os
import pathlib
import pickle
import subprocess
import sys

import pytest
from every_operator import samples, without_a_sample

SCRIPT = pathlib.Path(__file__).with_name("odd_sizes.py")
LONG = bool(os.environ.get("TREADLE_TEST_LONG"))
FILLS = (0x5A, 0xC3)
MOST = {"nothing": 1, "one": 1, "outputs": 4, "scalars": 2}  # nodes of an operator in the short run
PROCESSORS = len(os.sched_getaffinity(0))


def environment(fill: int, isa: str) -> dict:
    """glibc fills memory also where it keeps no small pieces ready."""
    return os.environ | {
        "TREADLE_FILL_MEMORY": str(fill),
        "MALLOC_PERTURB_": str(fill),
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
        "TREADLE_ISA": isa,
        "OMP_NUM_THREADS": "1",
    }


def lines_of(arguments: list, env: dict) -> list[str]:
    """The script's lines."""
    command = [sys.executable, "-W", "ignore", SCRIPT, *map(str, arguments)]
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    failed = [f"wrong the script ended with {run.returncode}: {run.stderr[-1500:]}"] if run.returncode else []
    return [*run.stdout.splitlines(), *failed]


def of_kind(lines: list[str], kind: str) -> list[str]:
    return [line.split(" ", 1)[1] for line in lines if line.split(" ", 1)[0] == kind]


def counts(lines: list[str]) -> str:
    total = collections.Counter()
    for text in of_kind(lines, "done"):
        for part in text.split(", "):
            total[part.split(" ", 1)[1]] += int(part.split(" ", 1)[0])
    return ", ".join(f"{n} {what}" for what, n in total.items())


def different(one: list[str], other: list[str]) -> list[str]:
    first, second = (dict(line.rsplit(": ", 1) for line in of_kind(lines, "made")) for lines in (one, other))
    return [f"{name}: changes with what fresh memory holds" for name in first if second.get(name, "") != first[name]]


def in_parallel(commands: list) -> list[list[str]]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(PROCESSORS) as pool:
        return list(pool.map(lambda command: lines_of(*command), commands))


def outcomes(arguments: list, isa: str, fills) -> list[list[str]]:
    """The script's lines with each fill; the processors share the nodes."""
    parts = max(PROCESSORS // len(fills), 1)
    pairs = list(itertools.product(fills, range(parts)))
    said = in_parallel([([*arguments, "--part", i, parts], environment(fill, isa)) for fill, i in pairs])
    return [[line for (f, _), lines in zip(pairs, said, strict=True) if f == fill for line in lines] for fill in fills]


@pytest.fixture(scope="session")
def nodes(tmp_path_factory):
    """The file of the nodes that a kind of sizes is tried on: to find them takes each process longer than to read them."""
    folder = tmp_path_factory.mktemp("nodes")

    def file_of(kind: str) -> pathlib.Path:
        most = None if LONG else MOST[kind]
        path = folder / f"{most}.pickle"
        if not path.exists():
            found = samples(most) if most else samples()
            path.write_bytes(pickle.dumps(found))
        return path

    return file_of


def check(nodes, kind: str, isa: str, fills=FILLS, *more) -> None:
    arguments = [kind, "--samples", nodes(kind), *(("--long",) if LONG else ()), *more]
    runs = outcomes(arguments, isa, fills)
    print(kind, isa, counts(runs[0]))
    wrong = sorted({text for lines in runs for text in of_kind(lines, "wrong")})
    if len(runs) == 2:
        wrong += different(*runs)
    assert not wrong, f"{len(wrong)} of {counts(runs[0])}:\n" + "\n".join(wrong[:60])


def test_every_operator_has_a_node():
    assert without_a_sample(samples(1)) == []


@pytest.mark.parametrize("kind", ["nothing", "one", "outputs", "scalars"])
def test_tiers_agree(kind, nodes):
    check(nodes, kind, "baseline", FILLS if LONG or kind == "nothing" else FILLS[:1])


def test_sizes_of_nothing_in_wider_kernels(nodes):
    check(nodes, "nothing", "avx512", FILLS if LONG else FILLS[:1], "--near")


if __name__ == "__main__":
    kind, isa, *rest = sys.argv[1:]
    results = outcomes([kind, *rest], isa, FILLS)
    wrong = [text for lines in results for text in of_kind(lines, "wrong")] + different(*results)
    print("\n".join(dict.fromkeys(wrong)))
    print(kind, isa, counts(results[0]), len(set(wrong)), "wrong")
