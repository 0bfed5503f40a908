"""A small event simulation of a continuous-batching engine: what the analytic loop is held against."""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from roofcast.features.queries import FloatArray


@dataclass(frozen=True, slots=True)
class Engine:
    """One replica.

    `step_s` takes the requests that decode and their mean context, `prefill_s` the prompt tokens of one pass. A
    request holds room for its prompt and half its output. Without `chunk_token` waiting prompts are prefilled whole,
    up to `pass_token` (at least one prompt) in a pass, while decoding stands still; with it each step carries that
    many prompt tokens along. New requests are seen every `poll_pass` passes, or at once when nothing runs.
    """

    step_s: Callable[[float, float], float]
    prefill_s: Callable[[float], float]
    capacity_request: float = np.inf
    capacity_token: float = np.inf
    chunk_token: int | None = None
    pass_token: int = 1
    poll_pass: int = 1


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients ask: `concurrency` of them, each at once again, or Poisson arrivals at `rate_per_s`.

    Lengths are drawn evenly between ``(1 - spread)`` and 1 times the nominal. The clients of a closed loop start
    together; with `is_steady` each starts somewhere within an answer, and its first two and last are not
    reported. Of arrivals at a rate the first `n_warm_up` are not reported.
    """

    n_request: int
    n_input: int
    n_output: int
    concurrency: int = 0
    rate_per_s: float = 0.0
    spread: float = 0.2
    is_steady: bool = False
    n_warm_up: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Times of each request in seconds, and the gaps between tokens with how many of each there were."""

    ttft_s: FloatArray
    tpot_s: FloatArray
    e2e_s: FloatArray
    gap_s: FloatArray
    n_gap: FloatArray
    request_per_s: float

    def gap_quantile_s(self, q: float) -> float:
        """Return the quantile of the time between tokens, over all tokens."""
        order = np.argsort(self.gap_s)
        reached = np.cumsum(self.n_gap[order])
        return float(self.gap_s[order][np.searchsorted(reached, q * reached[-1])])


def simulate(engine: Engine, load: Load, seed: int = 0) -> Outcome:
    """Return what each request of the load met with."""
    run = _Run(engine, load, np.random.default_rng(seed))
    while run.n_finished < load.n_request:
        run.see_arrivals()
        if engine.chunk_token is not None:
            run.mixed_step(engine.chunk_token)
        elif not run.admit_whole():
            run.decode()
    return run.outcome()


@dataclass(slots=True)
class _Run:
    engine: Engine
    load: Load
    random: np.random.Generator
    now: float = 0.0
    n_pass: int = 0
    n_step: int = 0
    n_finished: int = 0
    held_request: int = 0
    held_token: float = 0.0
    context: float = 0.0
    next_client: int = 0
    n_in: list[int] = field(init=False)
    n_out: list[int] = field(init=False)
    arrival: list[float] = field(init=False)
    first: list[float] = field(init=False)
    last: list[float] = field(init=False)
    unseen: deque[int] = field(default_factory=deque)
    waiting: deque[int] = field(default_factory=deque)
    prefilling: deque[list[int]] = field(default_factory=deque)
    decoding: list[tuple[int, int]] = field(default_factory=list)
    stalled: list[tuple[int, float]] = field(default_factory=list)
    gaps: list[tuple[float, int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        load, n = self.load, self.load.n_request
        shrink = 1 - load.spread * self.random.random((2, n))
        self.n_in = np.maximum(np.rint(load.n_input * shrink[0]), 1).astype(int).tolist()
        outputs = np.maximum(np.rint(load.n_output * shrink[1]), 2).astype(int)
        if load.is_steady:
            rest = self.random.random(load.concurrency)
            outputs[: load.concurrency] = np.maximum(outputs[: load.concurrency] * rest, 2)
        self.n_out = outputs.tolist()
        self.first, self.last = [0.0] * n, [0.0] * n
        if load.concurrency:
            self.arrival = [0.0] * n
            self.next_client = min(load.concurrency, n)
            self.unseen.extend(range(self.next_client))
        else:
            self.arrival = np.cumsum(self.random.exponential(1 / load.rate_per_s, n)).tolist()
            self.unseen.extend(range(n))

    def see_arrivals(self) -> None:
        """Let the scheduler see who has come, when it looks; an idle engine waits for the next request."""
        is_idle = not (self.waiting or self.prefilling or self.decoding)
        if is_idle and self.unseen:
            self.now = max(self.now, self.arrival[self.unseen[0]])
        if is_idle or self.n_pass % self.engine.poll_pass == 0:
            while self.unseen and self.arrival[self.unseen[0]] <= self.now:
                self.waiting.append(self.unseen.popleft())

    def take(self) -> int | None:
        """Take the next waiting request if there is room for it."""
        if not self.waiting:
            return None
        request = self.waiting[0]
        token = self.n_in[request] + self.n_out[request] / 2
        full = self.held_request + 1 > self.engine.capacity_request
        if self.held_request and (full or self.held_token + token > self.engine.capacity_token):
            return None
        self.held_request += 1
        self.held_token += token
        return self.waiting.popleft()

    def admit_whole(self) -> bool:
        """Prefill one pass of waiting prompts; False if there are none that fit."""
        taken, token = list[int](), 0
        while (not taken or token < self.engine.pass_token) and (request := self.take()) is not None:
            taken.append(request)
            token += self.n_in[request]
        if not taken:
            return False
        self.now += self.engine.prefill_s(token)
        self.n_pass += 1
        self.begin(taken)
        return True

    def begin(self, requests: list[int]) -> None:
        """Give the first token of these requests, now."""
        for request in requests:
            self.first[request] = self.now
            heapq.heappush(self.decoding, (self.n_step + self.n_out[request] - 1, request))
            self.context += self.n_in[request]
        self.stalled.append((len(requests), self.now))

    def decode(self) -> None:
        """Step until something can change: a request ends or the scheduler looks and finds one."""
        batch = len(self.decoding)
        n = self.decoding[0][0] - self.n_step
        step_s = self.engine.step_s(batch, self.context / batch)
        if self.unseen:
            poll = self.engine.poll_pass
            n_until = max(int(np.ceil((self.arrival[self.unseen[0]] - self.now) / step_s)), 1)
            n = min(n, -(-(self.n_pass + n_until) // poll) * poll - self.n_pass)
        step_s = self.engine.step_s(batch, self.context / batch + (n - 1) / 2)
        self.step(n, step_s)

    def mixed_step(self, chunk: int) -> None:
        """Make one step with a chunk of the prompts in it, or many without."""
        while (request := self.take()) is not None:
            self.prefilling.append([request, self.n_in[request]])
        if not self.prefilling:
            self.decode()
            return
        left, done = chunk, []
        while self.prefilling and left:
            share = min(left, self.prefilling[0][1])
            self.prefilling[0][1] -= share
            left -= share
            if not self.prefilling[0][1]:
                done.append(self.prefilling.popleft()[0])
        prefill_s = self.engine.prefill_s(chunk - left)
        if batch := len(self.decoding):
            self.step(1, prefill_s + self.engine.step_s(batch, self.context / batch))
        else:
            self.now += prefill_s
            self.n_pass += 1
        if done:
            self.begin(done)

    def step(self, n: int, step_s: float) -> None:
        """Make n steps of this length: a token for each running request in each, then let the finished go."""
        batch, end = len(self.decoding), self.now + step_s
        for count, since in self.stalled:
            self.gaps.append((end - since, count, end))
        if n > 1:
            self.gaps.append((step_s, batch * (n - 1), end))
        self.now += n * step_s
        self.n_step += n
        self.n_pass += n
        self.context += n * batch
        while self.decoding and self.decoding[0][0] <= self.n_step:
            request = heapq.heappop(self.decoding)[1]
            self.last[request] = self.now
            self.finish(request)
        self.stalled = [(len(self.decoding), self.now)] if self.decoding else []

    def finish(self, request: int) -> None:
        """Free the room of a request; its client sends the next one."""
        self.n_finished += 1
        self.held_request -= 1
        self.held_token -= self.n_in[request] + self.n_out[request] / 2
        self.context -= self.n_in[request] + self.n_out[request] - 1
        if self.load.concurrency and self.next_client < self.load.n_request:
            self.arrival[self.next_client] = self.now
            self.unseen.append(self.next_client)
            self.next_client += 1

    def outcome(self) -> Outcome:
        """Put the requests that count together."""
        load, n = self.load, self.load.n_request
        skip = load.n_warm_up or 2 * load.concurrency * load.is_steady
        counts = slice(skip, n - load.concurrency * load.is_steady)
        arrival, first, last = (np.array(x)[counts] for x in (self.arrival, self.first, self.last))
        gap, count, when = np.array(self.gaps).T
        begin, end = arrival[0], arrival[-1] if skip else self.now
        counted = (when >= begin) & (when <= end)
        finished = np.array(self.last)
        return Outcome(
            ttft_s=first - arrival,
            tpot_s=(last - first) / (np.array(self.n_out)[counts] - 1),
            e2e_s=last - arrival,
            gap_s=gap[counted],
            n_gap=count[counted],
            request_per_s=float(((finished > begin) & (finished <= end)).sum() / (end - begin)),
        )
