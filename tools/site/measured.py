"""Charts and tables of pages from docs/measurements.json, which ./dev bench --page writes.

A page has a place for each: the lines between `<!-- measured: NAME -->` and `<!-- end -->` are written here, and
tests/tools/test_measured.py fails where a page or a picture says something else than the figures.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import pathlib
import re
import statistics
from collections.abc import Callable, Iterator

import charts

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FIGURES = DOCS / "measurements.json"
PICTURES = DOCS / "pictures"
PAGES = (
    ROOT / "README.md",
    *(
        DOCS / f"{name}.md"
        for name in (
            "index",
            "comparison",
            "benchmarks",
            "gallery",
            "numerics",
            "realtime",
            "howto/c",
            "howto/which-models-profit",
        )
    ),
)
PLACE = re.compile(r"^<!-- measured: ([\w-]+) -->\n(.*?)^<!-- end -->$", re.DOTALL | re.MULTILINE)
SLOWER = 0.95  # of the other engine's speed: what is below is a loss

Rows = dict[str, dict]


def load() -> dict:
    return json.loads(FIGURES.read_text(encoding="utf-8"))


def save(whole: dict) -> None:
    """A row of figures is a line, so that a difference can be read."""
    kinds = []
    for kind, rows in sorted(whole["figures"].items()):
        lines = ",\n".join(f"   {json.dumps(row)}: {json.dumps(figures)}" for row, figures in rows.items())
        kinds.append(f"  {json.dumps(kind)}: {{\n{lines}\n  }}")
    rest = "".join(f" {json.dumps(key)}: {json.dumps(whole[key])},\n" for key in ("machine", "date", "versions"))
    FIGURES.write_text("{\n" + rest + ' "figures": {\n' + ",\n".join(kinds) + "\n }\n}\n", encoding="utf-8")


# --- notation: two digits, units in the head of a column


def two_digits(value: float | None) -> str:
    """1234.5 as 1,200 and 0.01234 as 0.012; nothing where nothing was measured."""
    if value is None or not math.isfinite(value):
        return ""
    if value == 0:
        return "0"
    places = 1 - math.floor(math.log10(abs(float(f"{value:.1e}"))))
    return f"{round(value, places):,.{max(places, 0)}f}"


def speed(ratio: float) -> str:
    return f"{two_digits(ratio)}x"


def time_of(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= scale:
            return f"{two_digits(seconds / scale)} {unit}"
    return f"{two_digits(seconds * 1e9)} ns"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# --- what was measured, as pairs of times of the same work


@dataclasses.dataclass(frozen=True)
class Pair:
    name: str
    theirs: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


@dataclasses.dataclass(frozen=True)
class Kind:
    """A class of measurements, as charts and lists of losses name it."""

    title: str
    figures: str
    pairs: Callable[[Rows], Iterator[Pair]]


def plain(rows: Rows, theirs: str = "onnxruntime", ours: str = "treadle", only=lambda row: True) -> Iterator[Pair]:
    for name, row in rows.items():
        if row.get(theirs) and row.get(ours) and only(row):
            yield Pair(name, row[theirs], row[ours])


def loops(rows: Rows) -> Iterator[Pair]:
    for name, row in rows.items():
        yield Pair(name, row["iteration"]["onnxruntime"], row["iteration"]["native"])


def networks(threads: int) -> Callable[[Rows], Iterator[Pair]]:
    def pairs(rows: Rows) -> Iterator[Pair]:
        return plain({name: row[f"threads {threads}"] for name, row in rows.items()})

    return pairs


def recurrent(rows: Rows) -> Iterator[Pair]:
    return plain(rows, ours="native")


KINDS = (
    Kind("Loops", "loops", loops),
    Kind("Real models with control flow", "models", lambda rows: plain(rows, only=lambda row: row["control_flow"])),
    Kind("Real models without", "models", lambda rows: plain(rows, only=lambda row: not row["control_flow"])),
    Kind("LSTM and GRU operators", "recurrent", recurrent),
    Kind("LSTM and GRU, treadle on AVX2", "recurrent, avx2", recurrent),
    Kind("Searches for tokens", "searches", plain),
    Kind("Single operators", "operators", plain),
    Kind("CNNs and transformers, 1 thread", "networks", networks(1)),
    Kind("CNNs and transformers, 2 threads", "networks", networks(2)),
)


def pairs_of(whole: dict, kind: Kind) -> list[Pair]:
    return list(kind.pairs(whole["figures"].get(kind.figures, {})))


def mean(ratios: list[float]) -> float:
    return statistics.geometric_mean(ratios)


# --- the machine and the versions


def where(whole: dict) -> str:
    """Machine, date and versions, in one sentence: this is the only place that says them."""
    machine, versions = whole["machine"], whole["versions"]
    sets = " and ".join(machine["instruction_sets"][-2:])
    return (
        f"{machine['processor']}, {machine['cores']} cores, {sets}, {machine['system']}; {whole['date']}; "
        f"treadle {versions['treadle']}, onnxruntime {versions['onnxruntime']}, one thread where nothing else is said"
        f"{'' if machine['quiet'] else ', while other programs ran'}."
    )


def machine(whole: dict) -> str:
    facts, versions = whole["machine"], whole["versions"]
    named = ", ".join(f"{name} {text}" for name, text in versions.items())
    return f"{where(whole)} Caches of a core: {', '.join(facts['caches'])}. Memory: {facts['memory_gib']} GiB.\nVersions: {named}."


# --- the front page


@dataclasses.dataclass(frozen=True)
class Example:
    """A bar of the front page's chart: which figures it shows, and what it is called there."""

    name: str
    kind: str
    row: str
    unit: str = "a run"


EXAMPLES = (
    Example("Voice detector in a Loop", "models", "silero_loop_plain"),
    Example("Selective scan (Mamba)", "loops", "selective_scan", "an iteration"),
    Example("LSTM cell in a Scan", "loops", "lstm_cell H=64", "an iteration"),
    Example("Beam search, TorchScript", "models", "ts_beam_lstm"),
    Example("Attention decoder, TorchScript", "models", "ts_greedy_attention"),
    Example("Kalman filter in a Scan", "loops", "kalman", "an iteration"),
    Example("Generated text, GRU in a Loop", "models", "torch_while_greedy_gru"),
    Example("ResNet-50, no loop", "networks", "ResNet-50, 224 x 224"),
)


def front_picture(whole: dict) -> str:
    bars = []
    for example in EXAMPLES:
        theirs, ours = times_in(whole["figures"][example.kind][example.row])
        bars.append(charts.Bar(example.name, theirs, ours, f"{time_of(theirs)}, {time_of(ours)} {example.unit}"))
    theirs = f"onnxruntime {whole['versions']['onnxruntime']}"
    ours = f"treadle {whole['versions']['treadle']}"
    title = "Eight models: the time that onnxruntime takes and the time that treadle takes"
    return charts.beside(title, theirs, ours, bars, speed)


def front(whole: dict) -> str:
    flow, others = ([p.ratio for p in pairs_of(whole, kind)] for kind in KINDS[1:3])
    return (
        "![Eight models: bars for the time that onnxruntime takes and the time that treadle takes]"
        "(PICTURES/front.svg)\n\n"
        f"{len(flow)} real models with control flow run {two_digits(mean(flow))} times as fast as in onnxruntime in the "
        f"geometric mean, {len(others)} others {two_digits(mean(others))} times.\n{where(whole)}"
    )


# --- the page of benchmarks


def summary_picture(whole: dict) -> str:
    rows = []
    for kind in KINDS:
        if ratios := [pair.ratio for pair in pairs_of(whole, kind)]:
            title = f"{kind.title}: {len(ratios)}"
            rows.append(charts.Span(title, min(ratios), mean(ratios), max(ratios)))
    title = "How many times as fast as onnxruntime treadle is, by classes of models"
    return charts.spans(title, rows, (0.3, 1, 10, 100, 1000, 10000), speed)


def summary(whole: dict) -> str:
    rows = []
    for kind in KINDS:
        if ratios := [pair.ratio for pair in pairs_of(whole, kind)]:
            below = sum(ratio < SLOWER for ratio in ratios)
            rows.append([kind.title, f"{len(ratios)}", *(two_digits(f(ratios)) for f in (mean, min, max)), f"{below}"])
    head = ["class", "measured", "geometric mean", "least", "most", f"below {SLOWER}"]
    return (
        "![For each class of models the least, the mean and the greatest ratio of onnxruntime's time to treadle's]"
        f"(pictures/summary.svg)\n\n{table(head, rows)}\n\n{where(whole)}"
    )


def loop_table(whole: dict) -> str:
    rows = []
    for name, row in whole["figures"]["loops"].items():
        times = [row["iteration"].get(engine) for engine in ("onnxruntime", "jax", "C++", "program", "native")]
        cells = [two_digits(t * 1e9 if t else None) or "-" for t in times]
        rows.append(
            [f"`{name}`", *cells, two_digits(row["onnxruntime_over_native"]), two_digits(row["native_over_hand"])]
        )
    head = [
        "loop",
        "onnxruntime ns",
        "jax ns",
        "C++ ns",
        "program ns",
        "native ns",
        "onnxruntime / native",
        "native / C++",
    ]
    return table(head, rows)


def model_table(whole: dict) -> str:
    rows = []
    for name, row in whole["figures"]["models"].items():
        kind = "yes" if row["control_flow"] else "no"
        if "treadle" not in row:  # one of the engines fails
            rows.append([f"`{name}`", kind, "fails", "-", "-", "-"])
            continue
        times = [two_digits(row[engine] * 1e3) for engine in ("onnxruntime", "treadle")]
        ratio = row["onnxruntime"] / row["treadle"]
        rows.append([f"`{name}`", kind, *times, two_digits(ratio), two_digits(row["load_and_first_run"])])
    head = ["model", "control flow", "onnxruntime ms", "treadle ms", "ratio", "load and first run: ratio"]
    return table(head, sorted(rows, key=lambda row: (row[1] != "yes", row[0])))


def grid(rows: Rows) -> dict[tuple[str, int], dict[int, str]]:
    """Ratios by operator and width, then by batch."""
    found: dict[tuple[str, int], dict[int, str]] = collections.defaultdict(dict)
    for row in rows.values():
        found[row["operator"], row["width"]][row["batch"]] = two_digits(row["onnxruntime"] / row["native"])
    return found


FROM_THE_CACHE = ", from the disk cache"


def limit_table(whole: dict) -> str:
    """What is found with the cache of native code stands behind what is found without."""
    limits = whole["figures"]["limits"]
    rows = []
    for name, row in limits.items():
        cached = limits.get(name.replace(", ms", f"{FROM_THE_CACHE}, ms"))
        if FROM_THE_CACHE in name:
            continue
        both = cached if cached is not row else None
        behind = [f"; from the disk cache {both[key]}" if both else "" for key in ("target", "found")]
        rows.append([name, row["target"] + behind[0], row["found"] + behind[1]])
    return table(["limit", "target", "found"], rows)


def recurrent_table(whole: dict) -> str:
    """Two ratios a cell: with all instructions of the machine, and with AVX2 alone in treadle."""
    widest, narrow = (grid(whole["figures"][kind]) for kind in ("recurrent", "recurrent, avx2"))
    batches = sorted({batch for cells in widest.values() for batch in cells})
    rows = [
        [*map(str, key), *(f"{cells[batch]}, {narrow[key][batch]}" for batch in batches)]
        for key, cells in sorted(widest.items())
    ]
    return table(["operator", "units", *(f"batch {batch}" for batch in batches)], rows)


def step_table(whole: dict) -> str:
    rows = []
    for name, row in whole["figures"]["steps"].items():
        times = [
            two_digits(row[engine] * 1e6 if row[engine] else None) for engine in ("onnxruntime", "treadle", "hand")
        ]
        rows.append([name, *times, two_digits(row["onnxruntime"] / row["treadle"])])
    return table(["LSTM, one step a call", "onnxruntime us", "treadle us", "C++ us", "onnxruntime / treadle"], rows)


def network_table(whole: dict) -> str:
    rows = []
    for name, row in whole["figures"]["networks"].items():
        cells = []
        for threads in ("threads 1", "threads 2"):
            pair = row.get(threads)
            cells += [two_digits(pair[e] * 1e3) for e in ("onnxruntime", "treadle")] if pair else ["-", "-"]
            cells += [two_digits(pair["onnxruntime"] / pair["treadle"])] if pair else ["-"]
        rows.append([name, *cells])
    columns = ("onnxruntime ms", "treadle ms", "ratio")
    heads = [f"{column}, {threads}" for threads in ("1 thread", "2 threads") for column in columns]
    return table(["network", *heads], rows)


def processor(whole: dict) -> str:
    machine = whole["machine"]
    sets = " and ".join(machine["instruction_sets"][-2:])
    return f"{machine['processor']}, {machine['cores']} cores, {sets}, {machine['system']}, one thread."


def jitter_table(whole: dict) -> str:
    """Each model twice, once an engine."""
    rows = []
    for row in whole["figures"]["jitter"].values():
        times = [two_digits(row[key] * 1e6) for key in ("median", "p9999", "most")]
        share = f"{two_digits(100 * row['most'] / row['signal'])} %"
        rows.append(
            [row["model"], f"{row['pushes']:,}", row["engine"], *times, share, str(row["faults"]), str(row["switches"])]
        )
    head = ["model", "pushes", "engine", "median us", "p99.99 us", "latest us", "latest, of the signal's time"]
    return f"{table([*head, 'page faults', 'context switches'], rows)}\n\n{processor(whole)}"


PEERS = ("RTNeural static", "RTNeural dynamic", "NAM")


def realtime_table(whole: dict) -> str:
    """A row for each model; a cell for each engine, with the blocks in it."""
    by_model: dict[str, list[dict]] = collections.defaultdict(list)
    for row in whole["figures"]["realtime"].values():
        by_model[row["model"]].append(row)
    rows = []
    for model, blocks in by_model.items():
        cells = [
            " / ".join(two_digits(row[engine] * 1e9) for row in blocks if row.get(engine)) or "-"
            for engine in ("treadle", *PEERS, "onnxruntime")
        ]
        rows.append([model, *cells])
    head = ["model", "treadle", "RTNeural, sizes known", "RTNeural, sizes of the run", "NAM's core", "onnxruntime"]
    return f"{table(head, rows)}\n\n{processor(whole)}"


def compiled_rows(whole: dict, of_row: Callable[[str, dict], list[str]]) -> list[list[str]]:
    return [[name, *of_row(name, row)] for name, row in whole["figures"]["compiled"].items()]


def by_compilers(row: dict, writer: str, cell: Callable[[str], str]) -> str:
    return " / ".join(cell(f"{writer} {c}") if f"{writer} {c}" in row else "-" for c in ("gcc", "clang-19"))


def compiled_times(whole: dict) -> str:
    """Microseconds of a run; ratios of the C by gcc and by clang to native code."""

    def cells(_: str, row: dict) -> list[str]:
        engines = [two_digits(row[e] * 1e6) if row.get(e) else "-" for e in ("treadle", "onnxruntime")]
        times = [by_compilers(row, writer, lambda key: two_digits(row[key] * 1e6)) for writer in ("C", "emx")]
        return [*engines, *times, by_compilers(row, "C", lambda key: two_digits(row[key] / row["treadle"]))]

    head = ["model", "treadle", "onnxruntime", "C, gcc / clang", "emx-onnx-cgen, gcc / clang", "C / treadle"]
    return f"{table(head, compiled_rows(whole, cells))}\n\n{processor(whole)}"


def compiled_bytes(whole: dict) -> str:
    """KiB by gcc."""

    def cells(_: str, row: dict) -> list[str]:
        found = []
        for writer in ("C", "emx"):
            sizes = row.get(f"{writer} gcc bytes")
            found += [two_digits(size / 1024) for size in sizes] if sizes else ["-"] * 3
        return found

    head = ["model", *(f"{kind}, {w}" for w in ("treadle", "emx") for kind in ("code", "weights", "memory"))]
    return table(head, compiled_rows(whole, cells))


MOST_OPERATORS = 10  # that have a row of their own


def spread(ratios: list[float]) -> list[str]:
    return [f"{len(ratios)}", *(two_digits(f(ratios)) for f in (mean, min, max))]


def by_operator(rows: Rows) -> dict[str, list[float]]:
    """Ratios of each operator."""
    found: dict[str, list[float]] = collections.defaultdict(list)
    for row in rows.values():
        found[row["operator"]].append(row["onnxruntime"] / row["treadle"])
    return found


def operator_table(whole: dict) -> str:
    """The operators with the slowest cases, and all others in one row."""
    worst = sorted(by_operator(whole["figures"]["operators"]).items(), key=lambda item: min(item[1]))
    rows = [[f"`{op}`", *spread(ratios)] for op, ratios in worst[:MOST_OPERATORS]]
    others = worst[MOST_OPERATORS:]
    rows.append([f"{len(others)} others", *spread([ratio for _, ratios in others for ratio in ratios])])
    return table(["operator", "cases", "geometric mean", "least", "most"], rows)


def function_table(whole: dict) -> str:
    rows = []
    for op, row in whole["figures"]["functions"].items():
        times = [two_digits(row[engine] * 1e9) for engine in ("onnxruntime", "treadle")]
        errors = [two_digits(error) for error in (row["error"][1], row["error"][0])]
        rows.append([f"`{op}`", *errors, *times])
    head = ["function", "onnxruntime: largest error", "treadle", "onnxruntime ns", "treadle ns"]
    return table(head, rows)


def search_table(whole: dict) -> str:
    rows = [[f"`{op}`", *spread(ratios)] for op, ratios in by_operator(whole["figures"]["searches"]).items()]
    return table(["search", "cases", "geometric mean", "least", "most"], rows)


def pool_table(whole: dict) -> str:
    columns = ("alone", "by hand, onnxruntime", "array", "a tenth new", "any half", "dictionary", "snapshot")
    rows = [
        [name, *(two_digits(row[column] * 1e6) for column in columns)]
        for name, row in whole["figures"]["pools"].items()
        if not name.endswith(", 512 streams")  # as 4,096, within a tenth
    ]
    return table(["network and streams", *(f"{column} us" for column in columns)], rows)


def growth_table(whole: dict) -> str:
    """A row for each kind of node: load and first run of a thousand nodes, of ten thousand, and in onnxruntime."""
    found: dict[str, dict[int, dict]] = collections.defaultdict(dict)
    for row in whole["figures"]["growth"].values():
        found[row["kind"]][row["nodes"]] = row

    def times(row: dict, engine: str) -> str:
        return ", ".join(two_digits(row[f"{engine}_{part}"] * 1e3) for part in ("load", "first_run"))

    rows = [
        [kind, times(sizes[1_000], "onnxruntime"), *(times(sizes[count], "treadle") for count in (1_000, 10_000))]
        for kind, sizes in found.items()
    ]
    return table(["nodes", "onnxruntime, 1,000", "treadle, 1,000", "treadle, 10,000"], rows)


def provider_table(whole: dict) -> str:
    rows = []
    settings: list[str] = []
    for kind in ("models", "loops"):
        found = list(whole["figures"][f"provider: {kind}"].values())
        settings = list(found[0])
        ratios = [[row[setting] for row in found] for setting in settings]
        rows.append([kind, f"{len(found)}", *(f"{two_digits(mean(r))}, {two_digits(min(r))}" for r in ratios)])
    return table(["", "measured", *(f"{setting}: mean, least" for setting in settings)], rows)


def call_sentence(whole: dict) -> str:
    figures = whole["figures"]
    python, c = figures["calls"]["Identity"], figures["table"]["Identity"]
    models_ = [pair.ratio for pair in plain(figures["table"]) if pair.name != "Identity"]
    return (
        f"A call of a model that is one `Identity` takes {time_of(python['treadle'])} from Python (onnxruntime "
        f"{time_of(python['onnxruntime'])}) and {time_of(c['treadle'])} by the function table from C "
        f"({time_of(c['onnxruntime'])}). By the function table the {len(models_)} real models run "
        f"{two_digits(mean(models_))} times as fast as in onnxruntime in the geometric mean."
    )


# --- losses, and why


@dataclasses.dataclass(frozen=True)
class Cause:
    """Why treadle is slower on the rows of `kind` whose names match."""

    kind: str
    rows: str
    why: str


def causes() -> list[Cause]:
    return [Cause(**entry) for entry in json.loads((DOCS / "losses.json").read_text(encoding="utf-8"))]


def lost(whole: dict) -> list[tuple[float, str, str, str]]:
    """Ratio, class, name and cause of all that is slower than onnxruntime, the worst first."""
    known = causes()
    found = []
    for kind in KINDS:
        for pair in pairs_of(whole, kind):
            if pair.ratio < SLOWER:
                why = next(
                    (c.why for c in known if c.kind == kind.figures and re.search(c.rows, pair.name)), "not known yet"
                )
                found.append((pair.ratio, kind.title, pair.name, why))
    return sorted(found)


def loss_table(whole: dict) -> str:
    """Losses to onnxruntime with one cause and of one class share a row."""
    groups: dict[tuple[str, str], list[tuple[float, str]]] = collections.defaultdict(list)
    for ratio, title, name, why in lost(whole):
        groups[title, why].append((ratio, name))
    rows = []
    for (title, why), members in sorted(groups.items(), key=lambda item: item[1][0]):
        ratios = [ratio for ratio, _ in members]
        shown = two_digits(min(ratios)) + (f" to {two_digits(max(ratios))}" if len(ratios) > 1 else "")
        names = "; ".join(f"`{name}`" for _, name in members[:3])
        more = f"; {len(members) - 3} more" if len(members) > 3 else ""
        rows.append([shown, title, names + more, why])
    return table(["onnxruntime / treadle", "class", "where", "why"], rows)


BEHIND = 1.25  # times the hand-written loop's time: from here on a loop is listed


def hand_table(whole: dict) -> str:
    """Loops that are far behind hand-written C++, the worst first."""
    known = [c for c in causes() if c.kind == "C++"]
    rows = []
    for name, row in sorted(whole["figures"]["loops"].items(), key=lambda item: -item[1]["native_over_hand"]):
        if row["native_over_hand"] >= BEHIND:
            why = next((c.why for c in known if re.search(c.rows, name)), "not known yet")
            rows.append([two_digits(row["native_over_hand"]), f"`{name}`", why])
    return table(["treadle / C++", "loop", "why"], rows)


# --- the page of the comparison


COMPARED = ("counter", "branches", "edit_distance", "moving_average N=8", "selective_scan", "lstm_cell H=64",
            "lstm_cell H=256", "rnn_cell B=16 H=256")  # fmt: skip


def compared_loops(whole: dict) -> str:
    rows = []
    for name in COMPARED:
        times = whole["figures"]["loops"][name]["iteration"]
        cells = [two_digits(times[engine] * 1e9) for engine in ("onnxruntime", "C++", "native")]
        rows.append([f"`{name}`", *cells, two_digits(times["onnxruntime"] / times["native"])])
    return table(["loop", "onnxruntime ns", "C++ by hand ns", "treadle ns", "onnxruntime / treadle"], rows)


def compared_operators(whole: dict) -> str:
    rows = []
    for name, row in whole["figures"]["rnn"].items():
        cells = [two_digits(row[engine] * 1e3) for engine in ("onnxruntime", "native")]
        rows.append([f"`{name}`", *cells, two_digits(row["onnxruntime"] / row["native"])])
    return table(["operator", "onnxruntime ms", "treadle ms", "onnxruntime / treadle"], rows)


def compared_engines(whole: dict) -> str:
    rows = []
    heads: list[str] = []
    for name, row in whole["figures"]["engines"].items():
        heads = [f"{title}, of {total:,}" for title, (_, total) in row["counts"].items()]
        rows.append(
            [f"{name} {row['version'].partition('+')[0]}", *(f"{passed:,}" for passed, _ in row["counts"].values())]
        )
    return table(["engine", *heads], rows)


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A kind of model, a measured model of this kind, and what decides its ratio."""

    name: str
    kind: str
    row: str
    why: str
    look: str


PATTERNS = (
    Pattern(
        "filter, envelope, control loop: sample by sample",
        "gallery",
        "filter",
        "onnxruntime takes microseconds for each node of each sample",
        "`session.stream`",
    ),
    Pattern(
        "Kalman filter, tracking",
        "gallery",
        "tracker",
        "matrices of 2 x 2 stay in registers",
        "the batch: many tracks at once",
    ),
    Pattern(
        "hidden Markov model, Viterbi, alignment",
        "loops",
        "viterbi",
        "an iteration is one pass over the states",
        "states in the last axis",
    ),
    Pattern(
        "Mamba and other state-space models",
        "loops",
        "selective_scan",
        "the recurrence is one pass, in place",
        "export the scan as `Scan` or `Loop`, not unrolled",
    ),
    Pattern(
        "transducer (RNN-T) decoder, greedy",
        "gallery",
        "transducer",
        "loops inside of loops, small products, a list that grows",
        "`session.stream(time=...)` makes it live",
    ),
    Pattern(
        "beam search, exported as a loop",
        "models",
        "ts_beam_lstm",
        "TopK, gathers and a cell on small tensors",
        "`treadle explain`",
    ),
    Pattern(
        "voice activity detector, one window a call",
        "models",
        "silero_vad",
        "`If` and small convolutions in short calls",
        "a stream with `hop` and `context`",
    ),
    Pattern(
        "stencils, simulation on a grid",
        "gallery",
        "plate",
        "neighbours are read where they lie",
        "`Slice`, not `Gather`",
    ),
    Pattern(
        "small LSTM, one step a call",
        "steps",
        "H=64, push",
        "no state goes through Python",
        "streams; `treadle_stream_push` from C",
    ),
    Pattern(
        "LSTM or GRU of 256 units, as an operator",
        "recurrent",
        "LSTM T=40 B=1 H=256",
        "weights come from the cache in both engines",
        "weights in float16",
    ),
    Pattern(
        "cached decoder, encoder by GRU",
        "models",
        "arname_decoder_step",
        "products of one row, and attention",
        "`explain`: what the cache costs",
    ),
    Pattern("tree ensembles", "models", "skl_rf_cls", "trees are walked many rows at a time", "the batch"),
    Pattern(
        "nearest neighbours, Gaussian processes",
        "models",
        "skl_knn_cls",
        "a `Scan` over the training rows becomes products",
        "`treadle explain`",
    ),
    Pattern(
        "OCR: convolutions and an LSTM",
        "models",
        "torch_crnn_ocr",
        "most of the time goes into convolutions",
        "both engines are near the processor's peak",
    ),
    Pattern("BERT, 64 tokens", "networks", "BERT-base, 6 layers, 64 tokens", "attention is one node", "threads"),
    Pattern("ResNet-50", "networks", "ResNet-50, 224 x 224", "no loop, large convolutions", "another engine"),
)


def times_in(row: dict) -> tuple[float, float]:
    """onnxruntime's time and treadle's, whatever kind of figures the row is of."""
    row = row.get("iteration") or row.get("threads 1") or row
    return row["onnxruntime"], row.get("treadle") or row["native"]


def pattern_table(whole: dict) -> str:
    rows = []
    for pattern in PATTERNS:
        theirs, ours = times_in(whole["figures"][pattern.kind][pattern.row])
        rows.append((theirs / ours, [pattern.name, two_digits(theirs / ours), pattern.why, pattern.look]))
    rows.sort(key=lambda row: -row[0])
    return table(["your model", "ratio", "why", "look at"], [cells for _, cells in rows])


def of_the_gallery(name: str, step: str) -> Callable[[dict], str]:
    def sentence(whole: dict) -> str:
        row = whole["figures"]["gallery"][name]
        each = row["treadle"] / row["steps"]
        return (
            f"{row['steps']:,} {step}s: onnxruntime {time_of(row['onnxruntime'])}, treadle {time_of(row['treadle'])}, "
            f"{speed(row['onnxruntime'] / row['treadle'])} as fast; {time_of(each)} a {step}."
        )

    return sentence


GALLERY = {"speech": "window", "transducer": "frame", "plate": "iteration", "filter": "sample", "tracker": "step"}
PLACES: dict[str, Callable[[dict], str]] = {
    "front": front,
    "where": where,
    "machine": machine,
    "summary": summary,
    "losses": loss_table,
    "behind-hand": hand_table,
    "loops": loop_table,
    "limits": limit_table,
    "models": model_table,
    "recurrent": recurrent_table,
    "steps": step_table,
    "networks": network_table,
    "operators": operator_table,
    "functions": function_table,
    "searches": search_table,
    "pools": pool_table,
    "growth": growth_table,
    "jitter": jitter_table,
    "realtime": realtime_table,
    "compiled-times": compiled_times,
    "compiled-bytes": compiled_bytes,
    "provider": provider_table,
    "calls": call_sentence,
    "patterns": pattern_table,
    "compared-loops": compared_loops,
    "compared-operators": compared_operators,
    "compared-engines": compared_engines,
    **{f"gallery-{name}": of_the_gallery(name, step) for name, step in GALLERY.items()},
}
DRAWN: dict[str, Callable[[dict], str]] = {"front": front_picture, "summary": summary_picture}


def page_from(page: pathlib.Path, whole: dict) -> str:
    """The page with its places filled; pictures lie in docs/pictures, wherever the page is."""
    pictures = "docs/pictures" if page.parent == ROOT else "pictures"

    def filled(match: re.Match[str]) -> str:
        content = PLACES[match[1]](whole).replace("PICTURES/", f"{pictures}/")
        return f"<!-- measured: {match[1]} -->\n\n{content}\n\n<!-- end -->"

    return PLACE.sub(filled, page.read_text(encoding="utf-8"))


def files_from(whole: dict) -> Iterator[tuple[pathlib.Path, str]]:
    """Every file that the figures decide, with its content."""
    for page in PAGES:
        yield page, page_from(page, whole)
    for name, draw in DRAWN.items():
        yield PICTURES / f"{name}.svg", draw(whole)


def write_pages() -> list[pathlib.Path]:
    """The files that have changed."""
    changed = []
    PICTURES.mkdir(exist_ok=True)
    for path, content in files_from(load()):
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
            changed.append(path)
    return changed
