"""A fleet in simulated time: machines die, are replaced and taken for dead, and each stream ends with its own results."""

import dataclasses
import logging
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "serving" / "fleet.py"
LONG = bool(os.environ.get("TREADLE_TEST_LONG"))
sys.path.insert(0, str(SCRIPT.parent))

import fleet  # noqa: E402

MACHINES, STREAMS, BLOCKS = (1000, 2000, 30) if LONG else (20, 80, 40)


def run(**settings):
    defaults = {"machines": 20, "streams": 80, "blocks": 40, "failures_per_hour": 200.0, "false_alarms_per_hour": 100.0}
    made = fleet.Fleet(fleet.Settings(**{**defaults, **settings}))
    made.run()
    return made


@pytest.mark.parametrize("every", [1, 5])
def test_no_stream_is_lost(every):
    made = run(machines=MACHINES, streams=STREAMS, blocks=BLOCKS, snapshot_every=every, seed=every)
    counts = made.counts
    happened = (
        "died",
        "replaced",
        "false alarms",
        "late",
        "broke",
        "timed out",
        "handed out",
        "refused: UnknownSequence",
    )
    assert all(counts[name] for name in happened), counts
    assert made.lost() == 0 and made.wrong() == 0
    assert len(made.repeated) >= counts["handed out"] and max(made.repeated) <= every
    assert counts["computed"] <= STREAMS * BLOCKS + sum(made.repeated)


def test_starting_anew_under_the_same_id_gives_wrong_results():
    """A request that comes late, or a stream that a machine still has from before, is then taken for the new one."""
    level = logging.getLogger("treadle.serving").level
    logging.getLogger("treadle.serving").setLevel(logging.ERROR)
    try:
        made = run(same_id=True, late=0.02)
    finally:
        logging.getLogger("treadle.serving").setLevel(level)
    assert made.lost() == 0 and made.wrong() > 0
    assert run(late=0.02).wrong() == 0


CALM = {"failures_per_hour": 0.0, "false_alarms_per_hour": 0.0, "late": 0.0, "pauses": 0.0}


def test_updates_alone_compute_nothing_again():
    made = run(**CALM)
    assert made.counts["replaced"] and made.counts["handed out"] and made.counts["refused: UnknownSequence"]
    assert made.counts["computed"] == 80 * 40 and made.counts["timed out"] == made.counts["broke"] == 0
    assert made.lost() == 0 and made.wrong() == 0
    # A caller that comes back to a new machine has no snapshot of that moment.
    assert 80 * 40 < run(**CALM, snapshot_every=8).counts["computed"] < 80 * 40 * 1.5


def test_a_calm_fleet_moves_no_stream():
    made = run(**CALM, update=False)
    assert made.repeated == made.away == [] and made.counts["computed"] == 80 * 40


def test_callers_find_another_machine_where_there_is_no_room():
    made = run(**CALM, capacity=5, update=False)
    assert made.counts["refused: Full"] and max(machine.most for machine in made.machines) == 5
    assert made.lost() == 0 and made.wrong() == 0


def test_losses_are_counted():
    made = run(**CALM, machines=1, streams=3, capacity=2, update=False)
    assert made.lost() == 0 and made.counts["refused: Full"]  # the third one has waited until others ended
    last = made.callers[0].results.pop()
    assert made.lost() == 1
    made.callers[0].results.append(last + 1)
    assert made.lost() == 0 and made.wrong() == 1


def test_a_machine_less_moves_its_callers_alone():
    balancer = fleet.Balancer(50)
    before = [balancer.route(str(key)) for key in range(2000)]
    balancer.up[7] = False
    after = [balancer.route(str(key)) for key in range(2000)]
    assert all(a == b for a, b in zip(after, before, strict=True) if b != 7) and 7 not in after
    assert len({a for a, b in zip(after, before, strict=True) if b == 7}) > 5
    balancer.up = [False] * 50
    assert balancer.route("a") == -1


@pytest.mark.parametrize("wrong", [{"machines": 0}, {"snapshot_every": 0}, {"late": 1.5}, {"block_s": -1.0}])
def test_fleets_that_cannot_be(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} cannot be"):
        fleet.Settings(**wrong)


def test_command():
    command = [sys.executable, SCRIPT, "--machines", "5", "--streams", "10", "--blocks", "10", "--snapshot_every", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert found["streams lost"] == found["streams with wrong results"] == "0"
    assert list(fleet.OPTIONS) == [f"--{field.name}" for field in dataclasses.fields(fleet.Settings)]
    refused = subprocess.run([*command, "--late", "2"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "late cannot be 2.0" in refused.stderr
