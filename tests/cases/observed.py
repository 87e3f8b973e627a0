"""The contents of a case's `expect` section, as a session shows them: plans, allocations, streams and loops."""

import collections
import contextlib

import treadle

# The ways to run a case; "threads" is the number of threads, other entries are treadle's own options.
TIERS = {
    "program": {"jit": "off"},
    "reference": {"tier": "reference"},
    "native": {"jit": "always"},
    "native from iteration 2": {"jit": "always", "jit_iteration": "2"},
    "native on threads": {"jit": "always", "threads": "4"},
}


def open_session(case, tier):
    options = treadle.SessionOptions()
    for key, value in TIERS[tier].items():
        options.add_session_config_entry(f"treadle.{key}", value)
    return treadle.InferenceSession(case.model.encode(), options)


def run_all(session, case):
    """The allocations of each run, in order; "error" for runs that fail."""
    counts = []
    for run in case.runs:
        if run.error is None:
            session.run(None, run.feeds)
            counts.append(str(session.counters()["allocations_last_run"]))
        else:
            with contextlib.suppress(Exception):
                session.run(None, run.feeds)
            counts.append("error")
    return counts


def warm_session(case, tier):
    """A session that has made every run of the case twice, and the allocations of the second time."""
    session = open_session(case, tier)
    run_all(session, case)
    return session, run_all(session, case)


def stream_symbols(session):
    """The names of input sizes along which the model can be streamed."""
    return [
        symbol for symbol in dict.fromkeys(s for info in session.get_inputs() for s in info.shape if isinstance(s, str))
        if can_stream(session, symbol)
    ]  # fmt: skip


def timed_inputs(session, symbol):
    return {info.name: symbol for info in session.get_inputs() if symbol in info.shape}


def can_stream(session, symbol):
    try:
        session.stream(time=timed_inputs(session, symbol), find_state=False)
    except treadle.InvalidArgument as e:
        assert "cannot be streamed because" in str(e), e  # noqa: PT017
        return False
    return True


def counted(words):
    """ "2 Add, Mul" of Add, Mul, Add; in order of first appearance."""
    return ", ".join(word if n == 1 else f"{n} {word}" for word, n in collections.Counter(words).items())


def loops(session, case):
    """The report of `explain` about the loops in the plan of the last run that succeeds, by operator and place; lines
    on loops that rewrites took apart.
    """
    run = ([run for run in case.runs if run.error is None] or case.runs)[-1]
    explanation = session.explain(run.feeds, json=True)
    seen, found = collections.Counter(), {}
    for loop in explanation["loops"]:
        key = f"{loop['op']} {loop['node']}"
        seen[key] += 1
        found[key if seen[key] == 1 else f"{key} ({seen[key]})"] = loop
    return found, [f"no loop any more: {m['change']} {m['op']} {m['node']}" for m in explanation["maps"]]


def loop_line(key, interpreted, native):
    parts = {
        "interpreted as": interpreted["tier"],
        "with jit": native["tier"],
        "rewrites": counted(f"{r['change']} {r['op']}" for r in native["rewrites"]),
        "calls": counted(call["op"] for call in native["calls"]),
        "by the engine": counted(obstacle["op"] for obstacle in native["obstacles"]),
    }
    return f"{key}: " + "; ".join(f"{name} {text}" for name, text in parts.items() if text)


def expect_section(case):
    """The section's text. Asserts that all tiers agree in the properties that they share."""
    sessions = {tier: warm_session(case, tier) for tier in TIERS if tier != "reference"}
    allocations = {tier: counts for tier, (_, counts) in sessions.items()}
    plans = {tier: session.counters()["plans"] for tier, (session, _) in sessions.items()}
    assert all(count == plans["program"] for count in plans.values()), plans
    interpreted, _ = loops(sessions["program"][0], case)
    native, gone = loops(sessions["native"][0], case)
    lines = [f"plans: {plans['program']}", f"allocations of warm runs: {' '.join(allocations['program'])}"]
    # Native code may leave out results for which the program allocates.
    others = {tier: counts for tier, counts in allocations.items() if counts != allocations["program"]}
    lines += [f"allocations of warm runs, {tier}: {' '.join(counts)}" for tier, counts in others.items()]
    symbols = stream_symbols(sessions["program"][0])
    if symbols:
        lines.append(f"streams over: {' '.join(symbols)}")
    assert list(interpreted) == list(native), (list(interpreted), list(native))
    lines += [loop_line(key, interpreted[key], native[key]) for key in native] + gone
    return "\n".join(lines) + "\n"
