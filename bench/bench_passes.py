"""The rewrites of src/opt/pipeline.cc: for each, how many models at hand (bench/corpus.py) it changes, what it gains there,
and what it costs while planning.

A rewrite changes a graph if the graph behind it differs from the graph before it; it changes a plan if the plan without
it is another one. What it gains is the time of a run without it over the time with it, of both in turns, for the models
whose plan it changes, in both tiers. The test cases are not timed: they are small. Rewrites that an option asks for are
measured with that option."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import corpus
import measure
import numpy as np
import record
import treadle

ROUNDS, SECONDS = 5, 0.02  # of one measurement of one model
AT_ONCE = 6  # sessions that take turns
TIERS = {"off": "program", "always": "native"}  # as the option jit calls them
NEEDED = 1.03  # a model needs a rewrite that makes it so many times faster
Gain = tuple[str, str, measure.Ratio]  # of a rewrite in a tier
UNTIMED = ("cases",)
NOTHING = '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (float y) { y = Identity (x) }'
# What options ask for, and the rewrites that run only then.
BY_OPTION = {
    "treadle.weights": ("f16", ("mark-recurrent", "narrow-weights")),
    "treadle.associative_math": ("1", ("solve-recurrences",)),
}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model with what is done to it."""

    group: str
    name: str
    data: bytes
    feeds: list[dict]
    time: dict | None = None  # it is pushed as a stream whose inputs have time along these axes

    def open(self, jit: str, entries: dict[str, str]) -> treadle.InferenceSession:
        options = treadle.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        for key, value in ({"treadle.jit": jit} | entries).items():
            options.add_session_config_entry(key, value)
        return treadle.InferenceSession(self.data, options)

    def plan(self, session: treadle.InferenceSession) -> str:
        """The plans of all feeds; of a stream there is none, and the graph that is planned last stands for it."""
        if self.time is not None:
            self.runner(session)()
            return session.dump_graph()
        plans = []
        for feeds in self.feeds:
            try:
                plans.append(session.dump_plan(feeds))
            except Exception as problem:  # cases expect some
                plans.append(str(problem))
        return "\n".join(plans)

    def runner(self, session: treadle.InferenceSession) -> Callable[[], object]:
        feeds = self.feeds[0]
        if self.time is None:
            return lambda: session.run(None, feeds)
        stream = session.stream(time=self.time)
        return lambda: stream.push(feeds)


def streams() -> Iterator[corpus.Model]:
    """Models over time that are pushed in blocks, with the axis of time."""
    for network in importlib.import_module("bench_pools").NETWORKS:
        yield f"{network.name}, a step", network.build(step=False), {"x": network.chunk(1)}, {"x": network.time}
    for name, data, [feeds] in [*corpus.loops(), *corpus.recurrences(), *corpus.shared()]:
        session = Subject("streams", name, data, [feeds]).open("off", {})
        for axis in range(3):
            timed = {k: axis for k, x in feeds.items() if isinstance(x, np.ndarray) and x.ndim > axis}
            timed = {k: axis for k in timed if feeds[k].shape[axis] == max(feeds[j].shape[axis] for j in timed)}
            with contextlib.suppress(Exception):
                block = {k: x.take(range(min(64, x.shape[axis])), axis) if k in timed else x for k, x in feeds.items()}
                stream = session.stream(time=timed)
                stream.push(block), stream.push(block)
                yield f"{name}, pushed", data, block, timed
                break


def subjects() -> Iterator[Subject]:
    for group, maker in corpus.GROUPS.items():
        for name, data, feeds in maker():
            yield Subject(group, name, data, feeds)
    for name, data, feeds, axes in streams():
        yield Subject("streams", name, data, [feeds], axes)


@dataclasses.dataclass
class Row:
    """What is found of a rewrite."""

    graphs: dict[str, int] = dataclasses.field(default_factory=lambda: defaultdict(int))  # changed, by group
    plans: dict[str, int] = dataclasses.field(default_factory=lambda: defaultdict(int))
    gains: dict[str, dict[str, measure.Ratio]] = dataclasses.field(default_factory=lambda: {tier: {} for tier in TIERS})
    shares: list[float] = dataclasses.field(default_factory=list)  # of the time of loading and planning

    def needed_by(self) -> list[str]:
        """Models that are faster by it in some tier, and not by chance."""
        return self._models(lambda gain: gain.mean >= NEEDED and gain.low > 1)

    def slower(self) -> list[str]:
        return self._models(lambda gain: gain.mean <= 1 / NEEDED and gain.high < 1)

    def _models(self, fits: Callable[[measure.Ratio], bool]) -> list[str]:
        return sorted({model for gains in self.gains.values() for model, gain in gains.items() if fits(gain)})

    def cells(self) -> list[str]:
        found = [counted(self.graphs), counted(self.plans)]
        for gains in self.gains.values():
            means = {model: gain.mean for model, gain in gains.items() if gain.mean > 0}
            largest = max(means, key=lambda model: means[model], default="")
            found.append(f"{statistics.geometric_mean(means.values()):.2f}" if means else "")
            found.append(f"{gains[largest]} {largest}" if largest else "")
        share = f"{statistics.fmean(self.shares):.2%}" if self.shares else ""
        return [*found, str(len(self.needed_by())), str(len(self.slower())), share]


def counted(by_group: dict[str, int]) -> str:
    return ", ".join(f"{group} {count}" for group, count in by_group.items()) or "none"


def entries_for(rewrite: str) -> dict[str, str]:
    return {key: value for key, (value, rewrites) in BY_OPTION.items() if rewrite in rewrites}


def changes(subject: Subject, cache: dict[str, str]) -> tuple[set[str], dict[str, float]]:
    """The rewrites that change the graph in some tier, and the seconds that each takes."""
    changed: set[str] = set()
    seconds: dict[str, float] = {}
    settings = [{}, *({key: value} for key, (value, _) in BY_OPTION.items())]
    for jit in TIERS:
        for setting in settings:
            asked = BY_OPTION[next(iter(setting))][1] if setting else ()
            session = subject.open(jit, cache | setting | {"treadle.dump": "changes"})
            subject.plan(session)
            for line in session.dump_graph().splitlines():
                name, verdict, microseconds, _ = line.split()
                if setting and name not in asked:
                    continue
                seconds[name] = float(microseconds) / 1e6
                if verdict == "changed":
                    changed.add(name)
    return changed, seconds


def planning_seconds(subject: Subject) -> float:
    start = time.perf_counter()
    subject.plan(subject.open("off", {"treadle.dump": "drop-decided-nodes"}))
    return time.perf_counter() - start


def replans(subject: Subject, rewrite: str, cache: dict[str, str]) -> bool:
    """Whether the plan of some tier is another one without the rewrite."""
    entries = cache | entries_for(rewrite) | ({} if subject.time is None else {"treadle.dump": "remove-dead-nodes"})
    without = entries | {"treadle.passes_off": rewrite}
    if rewrite == "remove-dead-nodes":  # nothing to look at behind it
        return subject.time is not None or any(
            subject.plan(subject.open(jit, cache)) != subject.plan(subject.open(jit, without)) for jit in TIERS
        )
    return any(subject.plan(subject.open(jit, entries)) != subject.plan(subject.open(jit, without)) for jit in TIERS)


def time_without(subject: Subject, rewrites: list[str], cache: dict[str, str], options) -> Iterator[Gain]:
    """The time without each rewrite over that with it; those of one setting take turns."""
    by_setting: dict[tuple, list[str]] = defaultdict(list)
    for rewrite in rewrites:
        by_setting[tuple(entries_for(rewrite).items())].append(rewrite)
    for (setting, members), tier in itertools.product(by_setting.items(), TIERS):
        for at in range(0, len(members), AT_ONCE):
            some = members[at : at + AT_ONCE]
            offs = [{}, *({"treadle.passes_off": rewrite} for rewrite in some)]
            runs = [subject.runner(subject.open(tier, cache | dict(setting) | off)) for off in offs]
            whole, *without = measure.in_turns(runs, ROUNDS, options.seconds or SECONDS)
            for rewrite, times in zip(some, without, strict=True):
                yield rewrite, tier, measure.ratio(times, whole)


def bench_passes(options) -> None:
    rows: dict[str, Row] = defaultdict(Row)
    counts: dict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory() as folder:
        cache = {"treadle.jit_cache": folder}
        for subject in subjects():
            try:
                changed, seconds = changes(subject, cache)
            except Exception as problem:  # some cases do not load
                print(f"not measured: {subject.group}, {subject.name}: {problem}".splitlines()[0], flush=True)
                continue
            counts[subject.group] += 1
            whole = planning_seconds(subject)
            for name, taken in seconds.items():
                rows[name].shares.append(taken / whole)
            changed = {name for name in changed if options.match in name}
            other_plans = sorted(name for name in changed if replans(subject, name, cache))
            for name in changed:
                rows[name].graphs[subject.group] += 1
            for name in other_plans:
                rows[name].plans[subject.group] += 1
            if subject.group in UNTIMED or not other_plans:
                continue
            for name, tier, gain in time_without(subject, other_plans, cache, options):
                rows[name].gains[tier][f"{subject.group}: {subject.name}"] = gain
    show(rows, counts, options)


def show(rows: dict[str, Row], counts: dict[str, int], options) -> None:
    titles = ["rewrite", "graphs", "plans"]
    titles += [f"{tier}: {what}" for tier in TIERS.values() for what in ("gain, geometric mean", "largest")]
    titles += ["models it makes 3 % faster", "slower", "part of planning"]
    print("Models:", counted(counts))
    print(f"\n| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    for name in all_names():
        if options.match not in name:
            continue
        row = rows[name]
        print(f"| {' | '.join([name, *row.cells()])} |", flush=True)
        gains = {TIERS[tier]: {m: gain.mean for m, gain in found.items()} for tier, found in row.gains.items()}
        record.keep("passes", name, graphs=dict(row.graphs), plans=dict(row.plans), needed_by=row.needed_by(),
                    slower=row.slower(), part_of_planning=statistics.fmean(row.shares or [0]), **gains)  # fmt: skip


def all_names() -> list[str]:
    """In their order, as the error lists them that an unknown name gets."""
    subject = Subject("", "", treadle.parse_model(NOTHING), [])
    try:
        subject.open("off", {"treadle.passes_off": "?"})
    except Exception as problem:
        return str(problem).split("(passes: ", 1)[1].split(")", 1)[0].split(", ")
    raise AssertionError("a name that there is not was taken")
