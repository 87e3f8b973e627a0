"""Steps that come one by one, from any number of connections, brought together into batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ._steps import Answer, Step
from .streams import Streams

INLINE_S = 1e-3  # work that is expected to take longer is done beside the event loop
Job = Step | Callable[[], Any]


class Batcher:
    """One queue of steps, and of calls that use the streams: one thread at a time, in order.

    Steps that wait together go together. What takes less than a millisecond runs in the event loop, where it costs
    nothing more; the rest runs in a thread, so that the server keeps answering.
    """

    def __init__(self, streams: Streams, max_delay_s: float = 0.0) -> None:
        """`max_delay_s`: how long a step may wait for others; 0: those of the same turn of the event loop."""
        self.streams = streams
        self._delay = max_delay_s
        self._jobs: list[tuple[Job, asyncio.Future[Any]]] = []
        self._scheduled = self._running = False
        self._cost = 1e-5  # seconds for a job, as of late

    def submit(self, job: Job) -> asyncio.Future[Any]:
        """A future of the answer to a step, or of a call's result; awaiting it raises the job's error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.append((job, future))
        if not self._scheduled and not self._running:
            self._schedule(loop)
        return future

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = True
        if self._delay:
            loop.call_later(self._delay, self._flush)
        else:
            loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        jobs, self._jobs = self._jobs, []
        if self._cost * len(jobs) < INLINE_S:
            self._settle(jobs, self._make(jobs))
            return
        self._running = True
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(None, self._make, jobs)
        done.add_done_callback(lambda made: self._made(jobs, made, loop))

    def _made(
        self,
        jobs: list[tuple[Job, asyncio.Future[Any]]],
        made: asyncio.Future[list[Any]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._running = False
        self._settle(jobs, made.result())
        if self._jobs and not self._scheduled:
            self._schedule(loop)

    def _make(self, jobs: list[tuple[Job, asyncio.Future[Any]]]) -> list[Any]:
        """Results or errors, in the order of the jobs."""
        begun = time.perf_counter()
        results: list[Any] = []
        steps: list[Step] = []
        for job, _ in jobs:
            if isinstance(job, Step):
                steps.append(job)
                continue
            results += self._steps(steps)
            steps = []
            try:
                results.append(job())
            except Exception as e:
                results.append(e)
        results += self._steps(steps)
        self._cost += 0.2 * ((time.perf_counter() - begun) / max(len(jobs), 1) - self._cost)
        return results

    def _steps(self, steps: list[Step]) -> list[Answer | Exception]:
        if not steps:
            return []
        try:
            return self.streams.step(steps)
        except Exception as e:
            return [e] * len(steps)

    @staticmethod
    def _settle(jobs: list[tuple[Job, asyncio.Future[Any]]], results: list[Any]) -> None:
        for (_, future), result in zip(jobs, results, strict=True):
            if future.done():  # the caller has gone
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
