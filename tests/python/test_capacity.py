"""treadle.serving.capacity: its arithmetic, against simulated queues and against known results for simple ones."""

import math

import numpy as np
import pytest
from treadle.serving import capacity
from treadle.serving.capacity import Callers, Cost, death, latency, plan

SERVER = Cost(push_s=50e-6, step_s=4e-6, transport_s=100e-6, save_s=10e-6, load_s=50e-6, state_bytes=1000)


def simulated(rate, push_s, step_s, count=300_000):
    """Mean, median and 99th percentile of seconds, the mean size of a push and the share of time that is busy."""
    came = np.cumsum(np.random.default_rng(1).exponential(1 / rate, count))
    took, now, first, sizes, busy = np.empty(count), 0.0, 0, [], 0.0
    while first < count:
        now = max(now, came[first])
        last = int(np.searchsorted(came, now, side="right"))
        length = push_s + (last - first) * step_s
        now, busy = now + length, busy + length
        took[first:last] = now - came[first:last]
        sizes.append(last - first)
        first = last
    return took.mean(), *np.quantile(took, [0.5, 0.99]), np.mean(sizes), busy / now


@pytest.mark.parametrize(
    "rate, push_s, step_s",
    [(100, 1e-3, 1e-3), (1000, 50e-6, 100e-6), (7000, 50e-6, 110e-6), (5000, 0.0, 150e-6), (200_000, 60e-6, 2e-6)],
)
def test_latency_is_that_of_the_queue(rate, push_s, step_s):
    found = latency(rate, push_s, step_s)
    wanted = simulated(rate, push_s, step_s)
    np.testing.assert_allclose([found.mean_s, found.p50_s, found.p99_s], wanted[:3], rtol=0.05)
    np.testing.assert_allclose([found.batch, found.busy], wanted[3:], rtol=0.02)


def test_latency_beside_queues_that_are_known():
    """Steps of one push wait for the last of it: longer than one by one (M/D/1), and the core is as busy."""
    busy, step_s = 0.6, 1e-3
    found = latency(busy / step_s, 0.0, step_s)
    one_by_one = step_s * (1 + busy / (2 * (1 - busy)))
    assert one_by_one < found.mean_s < 2 * one_by_one
    assert math.isclose(found.busy, busy, rel_tol=1e-3)
    hardly = latency(1e-3, 50e-6, 100e-6)
    assert hardly.batch == pytest.approx(1, abs=1e-6) and hardly.p99_s == pytest.approx(150e-6, rel=1e-3)
    assert latency(0, 50e-6, 100e-6).busy == 0
    fluid = latency(400_000, 1e-3, 2e-6)  # many steps in each push: it takes as long as they took to come
    assert fluid.batch == pytest.approx(400_000 * 1e-3 / (1 - 0.8), rel=1e-2)


def test_latency_grows_with_the_rate():
    found = [latency(rate, 50e-6, 100e-6) for rate in (10, 1000, 5000, 9000)]
    for figure in ("mean_s", "p50_s", "p99_s", "batch", "busy"):
        values = [getattr(one, figure) for one in found]
        assert values == sorted(values) and values[0] < values[-1]


def test_plan():
    callers = Callers(100_000, 0.1)
    found = plan(SERVER, callers, p99_s=0.01, cores=8, spare=2)
    # 100 + 4 + 10 us a step: a core could make 8,771 steps a second, 80 % of that are 701 streams of ten.
    assert found.streams_per_core == pytest.approx(701, rel=0.01)
    assert found.machines == math.ceil(100_000 / (8 * found.streams_per_core)) + 2
    assert found.latency.p99_s < found.spare_lost.p99_s <= 0.01
    assert found.together_s == pytest.approx(50e-6 + 114e-6 * math.ceil(100_000 / (8 * found.machines)))
    assert found.snapshot_bytes_per_s == 1e9
    rarer = plan(SERVER, Callers(100_000, 0.1, 10), p99_s=0.01, cores=8, spare=2)
    assert rarer.snapshot_bytes_per_s == 1e8 and rarer.streams_per_core > found.streams_per_core
    tight = plan(SERVER, callers, p99_s=0.5e-3, cores=8)
    assert tight.streams_per_core < found.streams_per_core and tight.spare_lost.p99_s <= 0.5e-3


def test_death():
    callers = Callers(10_000, 0.1, 5)
    found = death(SERVER, callers, machines=11, cores=4, notice_s=1.0)
    assert found.streams == 910 and found.each == 91
    assert found.repeated == 3 and found.repeated_most == 5
    start = 50e-6 + 100e-6 + 10e-6 / 5 + 3 * 4e-6
    assert found.first_s == pytest.approx(1 + 50e-6 + start)
    assert found.first_s < found.last_s < found.level_s
    # What each core has to make up for: a second of 23 streams, beside its own 250 that go on.
    waits = 91 / 4 * (start + 10 * 106e-6)
    assert found.level_s == pytest.approx(1 + waits / (1 - 250 * 10 * 106e-6))
    sooner = death(SERVER, Callers(10_000, 0.1, 1), machines=11, cores=4, notice_s=1.0)
    assert sooner.repeated == sooner.repeated_most == 1


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: Cost(-1.0, 1.0), "push_s is a number"),
        (lambda: Cost(1.0, 0.0), "a step takes some time"),
        (lambda: Cost(math.nan, 1.0), "push_s is a number"),
        (lambda: Callers(0, 0.1), "streams and snapshot_every are at least 1"),
        (lambda: Callers(1, 0.0), "block_s is above 0"),
        (lambda: Callers(1, 0.1, 0), "snapshot_every"),
        (lambda: latency(10_000, 50e-6, 100e-6), "10,000 steps a second of 100 us each are more than 95% of a core's"),
        (lambda: latency(-1, 0, 1e-6), "rate is a number"),
        (lambda: plan(SERVER, Callers(1, 0.1), p99_s=1e-6), "one stream on a core takes more than 1e-06 s"),
        (lambda: plan(SERVER, Callers(1, 1e-5), p99_s=1.0), "the share 0.8 of its time"),
        (lambda: plan(SERVER, Callers(1, 0.1), p99_s=1.0, cores=0), "cores is at least 1"),
        (lambda: plan(SERVER, Callers(1, 0.1), p99_s=1.0, busiest=1.0), "busiest above 0"),
        (lambda: death(SERVER, Callers(1, 0.1), machines=1), "machines is at least 2"),
        (lambda: death(SERVER, Callers(10_000, 0.1), machines=9), "8 machines are left for 10,000 streams: 1.43 of"),
    ],
)
def test_invalid_numbers_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()


def test_every_public_name_has_a_docstring():
    assert all(getattr(capacity, name).__doc__ for name in capacity.__all__)
    assert repr(Callers(5, 0.1)) == "Callers(streams=5, block_s=0.1, snapshot_every=1)"
