"""A fleet of machines in simulated time, whose streams are real: machines die and are replaced, and no stream is lost.

Each machine has `treadle.serving.streams.Streams`. A balancer hashes callers over the machines that it takes for alive.
A caller keeps the newest snapshot and the blocks since then; whatever goes wrong, the caller starts anew from these, under
a new id. Network, failures, updates and time are simulated; steps, snapshots and results are treadle's.
"""

from __future__ import annotations

import argparse
import bisect
import dataclasses
import functools
import hashlib
import heapq
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import treadle
from treadle.serving.streams import Answer, Step, Streams, Unavailable

# A digest of all samples so far, in whole numbers that wrap: one block lost, twice or out of place changes all that follows.
MODEL = """
<ir_version: 9, opset_import: ["" : 20]>
digest (int64[batch, samples] x) => (int64[samples, batch] y) <int64[1] none = {0}, int64 factor = {31}> {
  rows = Transpose <perm = [1, 0]> (x)
  size = Shape <start = 0, end = 1> (x)
  zero = Expand (none, size)
  last, y = Scan <num_scan_inputs = 1, body = b (int64[batch] before, int64[batch] now) => (int64[batch] after, int64[batch] out) {
    p = Mul (before, factor)
    after = Add (p, now)
    out = Identity (after)
  }> (zero, rows)
}
"""
TIME = {"x": 1}
SAMPLES = 4  # of a block
# What the settings are, as the command says it; times are seconds.
OPTIONS = {
    "--machines": "servers, each of one process",
    "--streams": "callers, each with one stream",
    "--blocks": "of each stream",
    "--block_s": "between two blocks of a caller",
    "--snapshot_every": "blocks from one snapshot to the next",
    "--failures_per_hour": "of one machine",
    "--silent": "share of failures that nobody is told of: callers wait for timeout_s",
    "--repair_s": "until a machine that has died is back, without its streams",
    "--update": "replace all machines, some after the other, while streams run",
    "--updates_at_once": "share of machines",
    "--drain_s": "that a machine waits for its streams to leave before it is replaced",
    "--false_alarms_per_hour": "of one machine: the balancer takes it for dead for a while",
    "--check_s": "until the balancer knows of a machine that has died or come back, at most",
    "--network_s": "one way, at least",
    "--late": "share of requests that come after the caller has given them up",
    "--pauses": "share of blocks that come later than idle_s",
    "--timeout_s": "that a caller waits for an answer",
    "--retry_s": "that a caller waits before the next attempt",
    "--idle_s": "that a machine keeps a stream without steps",
    "--capacity": "streams of a machine; 0: sixteen times its share, and 64 more",
    "--push_s": "that a push takes, beside its steps",
    "--step_s": "that each step in a push takes",
    "--same_id": "callers start anew under the id that they had: wrong, to be seen here",
    "--seed": "of all that is drawn at random",
}


@dataclasses.dataclass
class Settings:
    """A fleet, its callers and what happens to them, as OPTIONS says."""

    machines: int = 100
    streams: int = 400
    blocks: int = 60
    block_s: float = 0.1
    snapshot_every: int = 1
    failures_per_hour: float = 60.0
    silent: float = 0.3
    repair_s: float = 2.0
    update: bool = True
    updates_at_once: float = 0.2
    drain_s: float = 0.5
    false_alarms_per_hour: float = 20.0
    check_s: float = 0.2
    network_s: float = 0.001
    late: float = 0.002
    pauses: float = 0.002
    timeout_s: float = 0.5
    retry_s: float = 0.05
    idle_s: float = 3.0
    capacity: int = 0
    push_s: float = 50e-6
    step_s: float = 100e-6
    same_id: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        """ValueError for a fleet that cannot be."""
        wrong = [name for name in ("machines", "streams", "blocks", "snapshot_every") if getattr(self, name) < 1]
        shares = ("silent", "updates_at_once", "late", "pauses")
        wrong += [name for name in shares if not 0 <= getattr(self, name) <= 1]
        given = dataclasses.asdict(self).items()
        wrong += [name for name, value in given if name not in shares and not value >= 0]
        if wrong:
            raise ValueError(f"{wrong[0]} cannot be {getattr(self, wrong[0])}")


class Time:
    """What happens next, in its order."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._count), do))

    def run(self, done: Callable[[], bool]) -> None:
        """Until `done`, or nothing is left to happen."""
        while self._events and not done():
            self.now, _, do = heapq.heappop(self._events)
            do()


class Balancer:
    """Consistent hashing: each machine has places on a ring, and a key belongs to the next place of a machine that is up."""

    PLACES = 60

    def __init__(self, machines: int) -> None:
        self.up = [True] * machines
        places = sorted((self.hash(f"{m}/{p}"), m) for m in range(machines) for p in range(self.PLACES))
        self._hashes, self._machines = [h for h, _ in places], [m for _, m in places]

    @staticmethod
    def hash(text: str) -> int:
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())

    def route(self, key: str) -> int:
        """The machine, or -1 where none is up."""
        first = bisect.bisect(self._hashes, self.hash(key))
        for k in itertools.chain(range(first, len(self._machines)), range(first)):
            if self.up[self._machines[k]]:
                return self._machines[k]
        return -1


@dataclasses.dataclass
class Request:
    """A step on its way; `answer` is called with what came of it, None for a connection that broke."""

    step: Step
    answer: Callable[[Answer | Exception | None], None]


class Machine:
    """A server: what waits for it becomes one call of `Streams.step`."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self.fleet, self.number = fleet, number
        self.alive = True
        self.silent = False  # it has died, and packets to it get lost
        self.life = 0
        self.most = 0  # streams at once
        self.begin()

    def begin(self) -> None:
        """A new process, without streams."""
        fleet = self.fleet
        self.life += 1
        self.alive, self.silent = True, False
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        settings = fleet.settings
        room = settings.capacity or 64 + 16 * settings.streams // settings.machines
        self.streams = Streams(
            fleet.session, capacity=room, idle_s=settings.idle_s, clock=lambda: fleet.time.now, time=TIME
        )

    def die(self, silent: bool) -> None:
        """The process ends: what waits for it learns so at once, or not at all."""
        self.alive, self.silent = False, silent
        self.fleet.counts["died"] += 1
        for request in [] if silent else self.running + self.waiting:
            request.answer(None)
        self.waiting, self.running = [], []

    def take(self, request: Request) -> None:
        if self.alive:
            self.waiting.append(request)
            if not self.running:
                self.work()
        elif not self.silent:
            request.answer(None)

    def work(self) -> None:
        """Makes the steps that wait; the answers go out when that is done."""
        settings = self.fleet.settings
        self.running, self.waiting = self.waiting, []
        if self.running:
            answers = self.streams.step([request.step for request in self.running])
            self.most = max(self.most, len(self.streams))
            self.fleet.counts["pushes"] += 1
            good = [answer for answer in answers if isinstance(answer, Answer)]
            self.fleet.counts["computed"] += sum(answer.outputs[0].size // SAMPLES for answer in good)
            life, took = self.life, settings.push_s + settings.step_s * len(answers)
            self.fleet.time.after(took, lambda: self.done(life, answers))

    def done(self, life: int, answers: list[Answer | Exception]) -> None:
        if life == self.life and self.alive:
            for request, answer in zip(self.running, answers, strict=True):
                request.answer(answer)
            self.running = []
            self.work()


class Caller:
    """Sends a signal block by block, and goes on from its newest snapshot whatever happens to machines."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self.fleet, self.number = fleet, number
        rng = np.random.default_rng([fleet.settings.seed, number])
        self.signal = rng.integers(1, 1 << 40, (fleet.settings.blocks, SAMPLES))
        self.results: list[np.ndarray] = []  # of blocks, as they were first answered
        self.sent = 0  # blocks that were sent at least once
        self.state, self.kept = b"", 0  # the newest snapshot, and how many blocks it is behind
        self.starts = 0  # how often the stream was started: the next one has an id of its own
        self.fresh = True  # the next step starts a stream
        self.attempt = 0  # of the request that is on its way: answers to earlier ones come too late
        self.salt = 0  # another key for the balancer, where a machine has refused
        self.trouble = ""  # why the stream is away
        self.since = 0.0  # when the block was sent that has no answer yet

    @property
    def done(self) -> bool:
        return len(self.results) == self.fleet.settings.blocks

    def send(self) -> None:
        """The next block; where a stream starts anew, all blocks since the snapshot."""
        settings, block = self.fleet.settings, len(self.results)
        first = self.kept if self.fresh else block
        if self.fresh:
            self.starts += 1
        sequence = f"{self.number}" if settings.same_id else f"{self.number}/{self.starts}"
        last = block + 1 == settings.blocks
        step = Step(
            sequence,
            self.signal[first : block + 1].reshape(1, -1),
            start=self.fresh,
            end=last,
            snapshot=(block + 1) % settings.snapshot_every == 0 and not last,
            state=self.state if self.fresh else b"",
        )
        self.attempt += 1
        attempt, fleet = self.attempt, self.fleet
        if not self.trouble:
            self.since = fleet.time.now
        if self.fresh and self.starts > 1:
            fleet.repeated.append(max(0, self.sent - first))
        self.sent = max(self.sent, block + 1)
        fleet.transmit(f"{self.number}+{self.salt}", step, lambda answer: self.answered(attempt, first, answer))
        fleet.time.after(settings.timeout_s, lambda: self.answered(attempt, first, None, "timed out"))

    def answered(self, attempt: int, first: int, answer: Answer | Exception | None, why: str = "broke") -> None:
        """An answer, an error, or None: nothing came."""
        if attempt != self.attempt:
            return
        self.attempt += 1
        if isinstance(answer, Answer):
            self.take(answer, first)
            return
        self.trouble = type(answer).__name__ if answer else why
        self.fleet.counts[f"refused: {self.trouble}" if answer else self.trouble] += 1
        if isinstance(answer, Unavailable):
            self.salt += 1
        self.fresh = True
        at_once = answer is not None and not isinstance(answer, Unavailable)
        self.fleet.time.after(0 if at_once else self.fleet.settings.retry_s, self.send)

    def take(self, answer: Answer, first: int) -> None:
        """Results of the blocks from `first` on, and a snapshot where there is one."""
        settings, fleet = self.fleet.settings, self.fleet
        known = len(self.results)
        for block, rows in enumerate(answer.outputs[0].reshape(-1, SAMPLES), first):
            if block < known:
                fleet.counts["wrong"] += not np.array_equal(rows, self.results[block])
            else:
                self.results.append(rows)
        if self.trouble:
            fleet.away.append(fleet.time.now - self.since)
            self.trouble = ""
        if answer.state:
            self.state, self.kept = answer.state, len(self.results)
            fleet.counts["snapshots"] += 1
            fleet.counts["snapshot bytes"] += len(answer.state)
        fleet.counts["handed out"] += answer.moved
        self.fresh = answer.moved
        if not self.done:
            paused = fleet.rng.random() < settings.pauses
            fleet.time.after(2 * settings.idle_s if paused else settings.block_s, self.send)
        else:
            fleet.left -= 1


class Fleet:
    """All of it; `run` it once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.time, self.rng = Time(), np.random.default_rng(settings.seed)
        options = treadle.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = treadle.InferenceSession(MODEL.encode(), options)
        self.counts: Counter[str] = Counter()
        self.repeated: list[int] = []  # blocks that were sent again, by move
        self.away: list[float] = []  # seconds from sending a block that failed to its answer
        self.balancer = Balancer(settings.machines)
        self.machines = [Machine(self, number) for number in range(settings.machines)]
        self.callers = [Caller(self, number) for number in range(settings.streams)]
        self.left = settings.streams

    def run(self) -> None:
        settings = self.settings
        for caller in self.callers:
            self.time.after(self.rng.random() * settings.block_s * 10, caller.send)
        for machine in self.machines:
            self.repeat(settings.failures_per_hour, machine, self.fail)
            self.repeat(settings.false_alarms_per_hour, machine, self.false_alarm)
        if settings.update:
            self.time.after(settings.block_s * 5, lambda: self.update(iter(self.machines)))
        longest = 3600.0
        self.time.run(lambda: not self.left or self.time.now > longest)

    def transmit(self, key: str, step: Step, answer: Callable[[Answer | Exception | None], None]) -> None:
        """By the balancer to a machine and back; some requests are late, with their callers gone."""
        number, settings = self.balancer.route(key), self.settings
        if number < 0:
            self.time.after(settings.network_s, lambda: answer(None))
            return
        late = self.rng.random() < settings.late
        there = self.delay() + (settings.timeout_s * (1 + self.rng.random()) if late else 0)
        back = self.delay()
        self.counts["late"] += late
        request = Request(step, lambda found: self.time.after(back, lambda: answer(found)))
        self.time.after(there, lambda: self.machines[number].take(request))

    def delay(self) -> float:
        return self.settings.network_s * (1 + self.rng.exponential())

    def repeat(self, per_hour: float, machine: Machine, do: Callable[[Machine], None]) -> None:
        """Calls `do` again and again, at random times."""
        if per_hour:

            def happen() -> None:
                do(machine)
                self.repeat(per_hour, machine, do)

            self.time.after(self.rng.exponential(3600 / per_hour), happen)

    def see(self, machine: Machine, up: bool) -> None:
        """The balancer learns it by its next check."""
        self.time.after(self.settings.check_s * self.rng.random(), lambda: self.mark(machine, up))

    def mark(self, machine: Machine, up: bool) -> None:
        self.balancer.up[machine.number] = up

    def fail(self, machine: Machine) -> None:
        if machine.alive:
            machine.die(silent=bool(self.rng.random() < self.settings.silent))
            self.see(machine, False)
            life = machine.life
            self.time.after(self.settings.check_s + self.settings.repair_s, lambda: self.back(machine, life))

    def back(self, machine: Machine, life: int) -> None:
        """Another process, where there has been none since that `life`."""
        if machine.life == life:
            machine.begin()
            self.see(machine, True)

    def false_alarm(self, machine: Machine) -> None:
        """The balancer takes a machine for dead that is not; its streams stay there, while callers go elsewhere."""
        if machine.alive and not machine.streams.retiring:
            self.counts["false alarms"] += 1
            self.mark(machine, False)
            life = machine.life

            def well() -> None:
                if machine.life == life and machine.alive and not machine.streams.retiring:
                    self.mark(machine, True)

            self.time.after(self.settings.check_s * (1 + self.rng.random()), well)

    def update(self, rest: Iterator[Machine]) -> None:
        """Replaces some machines, then the next ones."""
        settings = self.settings
        some = list(itertools.islice(rest, max(1, round(settings.machines * settings.updates_at_once))))
        for machine in (machine for machine in some if machine.alive):
            machine.streams.retire()
            self.see(machine, False)
            self.time.after(settings.check_s + settings.drain_s, functools.partial(self.replace, machine, machine.life))
        if some:
            self.time.after(settings.check_s * 3 + settings.drain_s, lambda: self.update(rest))

    def replace(self, machine: Machine, life: int) -> None:
        """Ends a machine that has handed out its streams, or has waited for them; a new one takes its place."""
        if machine.life != life:
            return
        self.counts["replaced"] += 1
        self.counts["left behind"] += len(machine.streams)
        for request in machine.running + machine.waiting:
            request.answer(None)
        self.back(machine, life)

    def lost(self) -> int:
        """Streams that have not come to their end."""
        return sum(not caller.done for caller in self.callers)

    def wrong(self) -> int:
        """Streams whose results are not those of the stream run alone, repeated blocks included."""
        differ = 0
        first = self.session.stream(time=TIME)
        for caller in self.callers:
            whole = first.fork().push(x=caller.signal.reshape(1, -1))
            differ += caller.done and not np.array_equal(np.concatenate(caller.results), whole[:, 0])
        return differ + self.counts["wrong"]

    def table(self) -> list[tuple[str, str]]:
        """What happened, line by line."""
        counts, blocks = self.counts, self.settings.streams * self.settings.blocks
        away = np.array(self.away or [0.0])
        some = {name: counts[name] for name in ("died", "replaced", "false alarms", "late", "broke", "timed out")}
        refused = {name: n for name, n in sorted(counts.items()) if name.startswith("refused")}
        snapshots = counts["snapshots"]
        return [
            ("machines, streams", f"{self.settings.machines:,}, {self.settings.streams:,}"),
            ("simulated seconds", f"{self.time.now:.1f}"),
            *((name, f"{n:,}") for name, n in {**some, **refused}.items()),
            ("handed out", f"{counts['handed out']:,}"),
            ("moves", f"{len(self.repeated):,}"),
            ("blocks again, at most in a move", f"{max(self.repeated, default=0)}"),
            ("blocks computed, for each block", f"{counts['computed'] / blocks:.4f}"),
            ("snapshots, bytes of one", f"{snapshots:,}, {counts['snapshot bytes'] // max(snapshots, 1)}"),
            ("ms away: p50, p99, longest", ", ".join(f"{1e3 * v:.0f}" for v in np.quantile(away, [0.5, 0.99, 1]))),
            ("streams of a machine, at most", f"{max(machine.most for machine in self.machines)}"),
            ("streams lost", f"{self.lost()}"),
            ("streams with wrong results", f"{self.wrong()}"),
        ]


def arguments() -> Settings:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    defaults = dataclasses.asdict(Settings())
    for flag, text in OPTIONS.items():
        default = defaults[flag.removeprefix("--")]
        if isinstance(default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text)
        else:
            parser.add_argument(flag, type=type(default), default=default, help=text)
    try:
        return Settings(**vars(parser.parse_args()))
    except ValueError as e:
        parser.error(str(e))


def main() -> int:
    settings, begun = arguments(), time.perf_counter()
    if settings.same_id:
        logging.getLogger("treadle.serving").setLevel(logging.ERROR)  # each start of a live id is warned of
    fleet = Fleet(settings)
    fleet.run()
    rows = fleet.table()
    for name, value in rows:
        print(f"{name:34}{value:>20}")
    print(f"{'seconds that this took':34}{time.perf_counter() - begun:>20.1f}")
    return 1 if fleet.lost() or fleet.wrong() else 0


if __name__ == "__main__":
    raise SystemExit(main())
