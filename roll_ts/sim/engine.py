"""One rollout engine on virtual time: a processor-sharing decoder, a serial prefill lane, KV limits and a
prefix cache.

All running sequences gain tokens at one common rate, so the engine keeps one "virtual service" counter of
tokens per sequence; a sequence is done when the counter reaches its mark. Invariants, as every engine promises
them:

- exactly one terminal event per attempt, the last event of that attempt;
- the tokens of an attempt's events add up to what it generated; the last token comes with `Finished` only;
- running KV never exceeds the capacity: the youngest sequence goes back to the queue and is prefilled again
  later.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from roll_ts.core.alphabet import Aborted, AttemptId, Event, Failed, Finished, Progress
from roll_ts.sim.clock import Clock
from roll_ts.sim.cost import CostModel

_NEARLY = 1e-4  # tokens; far above the rounding of the counters, far below one token


@dataclass
class Job:
    """One attempt in the engine. `made` tokens were generated before `mark`, the counter at which it last began
    to run; `target` tokens end it. `prefill` tokens are still to be computed before it runs;
    `cached` were found when it last began."""

    attempt: AttemptId
    prompt: int
    target: int
    reason: str
    order: int
    made: float = 0.0
    mark: float = 0.0
    reported: int = 0
    prefill: float = 0.0
    cached: int = 0


class Engine:
    """The engine of `rank`. `emit` receives its data events at the time they happen."""

    def __init__(self, rank: int, cost: CostModel, clock: Clock, emit: Callable[[Event], None]) -> None:
        self.rank, self.cost, self.clock, self.emit = rank, cost, clock, emit
        self.alive = False
        self.weights: int | None = None
        self.kv_awake = False
        self.paused = False
        self.prefilled_tokens = 0
        self._waiting: deque[Job] = deque()
        self._prefilling: Job | None = None
        self._running: dict[AttemptId, Job] = {}
        self._cached: OrderedDict[int, int] = OrderedDict()
        self._cached_tokens = 0
        self._order = itertools.count()
        self._served = 0.0
        self._kv_base = 0.0
        self._moved_at = 0.0
        self._rate = 0.0
        self._next_report = float("inf")
        self._ticket: int | None = None

    @property
    def holds_memory(self) -> bool:
        """Whether weights or KV lie on the devices."""
        return self.alive and (self.weights is not None or self.kv_awake)

    @property
    def servable(self) -> bool:
        """Whether a request can be taken."""
        return self.alive and self.weights is not None and self.kv_awake

    @property
    def running(self) -> int:
        """Requests being prefilled or decoded."""
        return len(self._running) + (self._prefilling is not None)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    @property
    def kv_tokens(self) -> int:
        """KV tokens of requests in flight."""
        self._move()
        return int(self._kv_used())

    def unreported(self) -> int:
        """Tokens generated that no event has carried yet: what a crash loses."""
        self._move()
        return sum(self._tokens(job) - job.reported for job in self._jobs())

    def submit(self, attempt: AttemptId, prompt: int, target: int, reason: str) -> None:
        """Take a request that generates `target` tokens after `prompt` tokens and ends for `reason`."""
        self._move()
        self._waiting.append(Job(attempt, prompt, target, reason, next(self._order)))
        self._settle()

    def abort(self, attempt: AttemptId) -> bool:
        """Stop one request, saving its partial; False when the engine holds no such request."""
        self._move()
        job = self._take_out(attempt)
        if job is None:
            return False
        tokens = self._tokens(job)
        self._remember(job, tokens)
        self.emit(Aborted(attempt=attempt, total=tokens))
        self._settle()
        return True

    def abort_all(self) -> None:
        """Stop every request, saving the partials."""
        for job in self._jobs():
            self.abort(job.attempt)

    def pause(self) -> None:
        """Stop stepping; requests and KV stay."""
        self._move()
        self.paused = True
        self._settle()

    def resume(self) -> None:
        """Step again."""
        self._move()
        self.paused = False
        self._settle()

    def forget_prefixes(self) -> None:
        """Empty the prefix cache."""
        self._cached.clear()
        self._cached_tokens = 0

    def discard(self) -> None:
        """Give weights, KV and prefix cache back. The engine must be idle."""
        self.weights, self.kv_awake, self.paused = None, False, False
        self.forget_prefixes()

    def die(self) -> int:
        """The process is gone; returns the tokens lost with it."""
        lost = self.unreported()
        self._waiting.clear()
        self._running.clear()
        self._prefilling = None
        self._served = self._kv_base = 0.0
        self.discard()
        self.alive = False
        self._settle()
        return lost

    def _jobs(self) -> list[Job]:
        """Everything in flight: decoding, prefilling, then queued."""
        prefilling = [] if self._prefilling is None else [self._prefilling]
        return [*self._running.values(), *prefilling, *self._waiting]

    def _move(self) -> None:
        """Bring the counters to the present."""
        seconds = self.clock.now - self._moved_at
        self._moved_at = self.clock.now
        if self.paused or seconds <= 0:
            return
        self._served += self._rate * seconds
        if self._prefilling is not None:
            self._prefilling.prefill -= seconds * self.cost.prefill_tokens_per_second

    def _kv_used(self) -> float:
        prefilling = self._prefilling.prompt + self._prefilling.made if self._prefilling else 0.0
        return self._kv_base + len(self._running) * self._served + prefilling

    def _made(self, job: Job) -> float:
        return job.made + (self._served - job.mark if job.attempt in self._running else 0.0)

    def _tokens(self, job: Job) -> int:
        """Whole tokens so far; the last one belongs to `Finished`."""
        return min(int(self._made(job) + _NEARLY), job.target - 1)

    def _take_out(self, attempt: AttemptId) -> Job | None:
        if self._prefilling is not None and self._prefilling.attempt == attempt:
            job, self._prefilling = self._prefilling, None
            return job
        if attempt in self._running:
            return self._stop(self._running[attempt])
        for job in self._waiting:
            if job.attempt == attempt:
                self._waiting.remove(job)
                job.prefill = job.prompt + job.made
                return job
        return None

    def _run(self, job: Job) -> None:
        """Put a job whose prefix is computed on the batch."""
        job.prefill, job.mark = 0.0, self._served
        self._running[job.attempt] = job
        self._kv_base += job.prompt + job.made - self._served

    def _stop(self, job: Job) -> Job:
        """Take a running job off the batch, keeping what it made."""
        job.made = self._made(job)
        self._kv_base -= job.prompt + job.made - self._served
        del self._running[job.attempt]
        if not self._running:
            self._served = self._kv_base = 0.0
        return job

    def _remember(self, job: Job, tokens: int) -> None:
        """The sequence's KV, as far as it is computed, stays as a cached prefix of its trajectory."""
        computed = job.prompt + tokens - max(0, int(job.prefill))
        if computed > 0:
            self._cached[job.attempt.trajectory] = computed
            self._cached_tokens += computed

    def _take_prefix(self, trajectory: int) -> int:
        """Use up the trajectory's cached prefix; returns its tokens."""
        tokens = self._cached.pop(trajectory, 0)
        self._cached_tokens -= tokens
        return tokens

    def _settle(self) -> None:
        """Let happen what is due now, then plan the next wake-up."""
        self._finish_due()
        self._relieve_kv()
        self._admit()
        self._evict(0.0)
        self._plan()

    def _finish_due(self) -> None:
        for job in list(self._running.values()):
            if self._made(job) >= job.target - _NEARLY:
                self._stop(job)
                self._remember(job, job.target)
                self.emit(Finished(attempt=job.attempt, total=job.target, reason=job.reason, cached=job.cached))

    def _relieve_kv(self) -> None:
        """Send the youngest back to the queue while running KV is over the capacity; a lone one has failed."""
        while self.running and self._kv_used() >= self.cost.kv_capacity - _NEARLY * self.running:
            youngest = max(self._jobs()[: self.running], key=lambda job: job.order)
            alone = self.running == 1
            self._take_out(youngest.attempt)
            if alone:
                self._report(youngest)
                self.emit(Failed(attempt=youngest.attempt, error=f"KV cache full: {self.cost.kv_capacity} tokens"))
            else:
                self._waiting.appendleft(youngest)

    def _admit(self) -> None:
        if self._prefilling is not None and self._prefilling.prefill <= _NEARLY:
            job, self._prefilling = self._prefilling, None
            self._run(job)
        while self._prefilling is None and self._waiting and not self.paused:
            job = self._waiting[0]
            size = job.prompt + job.made
            # a hundredth of the cache stays free, or the next token would throw the newcomer out again
            reserve = self.cost.kv_capacity // 100 if self._running else 1
            if self._kv_used() + size + reserve > self.cost.kv_capacity:
                if self._running:
                    return
                self._waiting.popleft()
                self.emit(Failed(attempt=job.attempt, error=f"{int(size)} tokens exceed the KV cache"))
                continue
            self._waiting.popleft()
            # the last prompt token is always computed: its logits give the first new token
            job.cached = min(self._take_prefix(job.attempt.trajectory), int(size) - 1)
            job.prefill = size - job.cached
            self.prefilled_tokens += int(job.prefill)
            self._evict(size)
            self._prefilling = job

    def _evict(self, tokens: float) -> None:
        """Drop cached prefixes, oldest first, until running KV and `tokens` more fit beside them."""
        while self._cached and self._kv_used() + tokens + self._cached_tokens > self.cost.kv_capacity:
            self._cached_tokens -= self._cached.popitem(last=False)[1]

    def _plan(self) -> None:
        """Set the rate for the time until the next change and ask the clock for that time."""
        if self._ticket is not None:
            self.clock.cancel(self._ticket)
            self._ticket = None
        batch = len(self._running)
        self._rate = 0.0
        if not batch:
            self._next_report = float("inf")
        elif self._next_report == float("inf"):
            self._next_report = self.clock.now + self.cost.progress_seconds
        if self.paused or not self.running:
            return
        wait = self._next_report - self.clock.now
        if batch:
            kv = self._kv_used()
            self._rate = 1.0 / self.cost.step_time(batch, kv, self._prefilling is not None)
            shortest = min(job.target - job.made + job.mark for job in self._running.values()) - self._served
            wait = min(wait, shortest / self._rate, (self.cost.kv_capacity - kv) / (batch * self._rate))
        if self._prefilling is not None:
            wait = min(wait, self._prefilling.prefill / self.cost.prefill_tokens_per_second)
        self._ticket = self.clock.after(max(wait, 0.0), self._wake)

    def _wake(self) -> None:
        self._ticket = None
        self._move()
        if self.clock.now >= self._next_report - 1e-9:
            self._next_report = self.clock.now + self.cost.progress_seconds
            for job in list(self._running.values()):
                self._report(job)
        self._settle()

    def _report(self, job: Job) -> None:
        total = self._tokens(job)
        if total > job.reported:
            job.reported = total
            self.emit(Progress(attempt=job.attempt, total=total))
