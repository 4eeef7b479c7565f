"""All trials, in the size of a minute or in the size of the documentation's figures."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from chainscout import problems
from chainscout.engine.gpu import LAUNCH_LANES
from chainscout.validation import real_number, seed_number

from . import bounds, events, limits
from .findings import Finding
from .instances import coins, slow_and_fast

#: The probability with which the paper's guarantees may fail.
DELTA = 0.05

#: Replications of a claim on a GPU, where each takes about this many steps at most (10¹² steps are half a minute of one
#: H200); beyond that there are as many as run side by side.
MILLION = 1_000_000
MOST_STEPS = 1 << 20


@dataclass(frozen=True)
class Effort:
    """How much is simulated. ``scale`` multiplies every number of replications."""

    full: bool = False
    scale: float = 1.0
    seed: int = 0
    engine: str = "cpu"

    def __post_init__(self) -> None:
        real_number(self.scale, "scale", above=0.0, meaning="what numbers of replications are multiplied by")
        seed_number(self.seed)

    @property
    def thorough(self) -> bool:
        """Whether every claim that can be decided should be decided."""
        return self.full and self.scale >= 1

    @property
    def on_gpu(self) -> bool:
        """Whether a full run has the GPU's numbers of replications."""
        return self.full and self.engine.startswith("gpu")

    def times(self, quick: int, full: int, gpu: int = MILLION) -> int:
        """A number of replications, at least four, because the engine runs four at once."""
        return max(4, round(self.scale * (gpu if self.on_gpu else full if self.full else quick)))

    def runs(self, quick: dict[int, int], full: dict[int, int]) -> list[tuple[int, int]]:
        """Budgets with their numbers of replications."""
        if self.on_gpu:
            return [(budget, self.times(0, 0, MILLION if budget <= MOST_STEPS else LAUNCH_LANES)) for budget in full]
        chosen = full if self.full else quick
        return [(budget, self.times(number, number)) for budget, number in chosen.items()]


#: A trial: its subject, and the function that runs it.
Trial = tuple[str, Callable[[], list[Finding]]]

#: Problems of the catalogue that take part, the first ones in a quick run.
NAMES = ("two-state", "unlike", "gilbert-elliott", "birth-death", "equal")


def trials(effort: Effort) -> Iterator[Trial]:
    """Every trial, in the order in which they are shown."""
    source = (effort.seed, effort.engine)
    several = [problems.get(name) for name in (NAMES if effort.full else NAMES[:2])]
    unlike = several[1]

    number, length = effort.times(400, 2_000), 10_000 if effort.full else 2_000
    for problem in several:
        yield f"whole paths: {problem.name}", partial(events.whole_paths, problem, length, number, DELTA, *source)
    number = effort.times(100, 200, 200)
    for problem in several:
        yield f"sharp: {problem.name}", partial(events.sharp_on_paths, problem, length, number, DELTA, *source)
    number = effort.times(100, 1_500)
    yield "whole paths: Lemma 8", partial(events.lemma_8_line, 50, 40_000, number, DELTA, *source)

    # Four budgets at least: with three, Student's quantile is 12.7, and an exponent decides almost nothing.
    runs = effort.runs(
        {1 << 12: 64, 1 << 14: 64, 1 << 16: 32, 1 << 18: 16},
        {1 << 16: 64, 1 << 18: 64, 1 << 20: 64, 1 << 22: 64, 1 << 24: 16},
    )
    for problem in (coins(0.5, 0.1), unlike)[: 1 + effort.full]:
        yield f"shares: {problem.name}", partial(limits.shares, problem, runs, *source)
    runs = effort.runs(
        {1 << 12: 500, 1 << 14: 500, 1 << 16: 400, 1 << 18: 400},
        {1 << 16: 4_000, 1 << 18: 1_600, 1 << 20: 600, 1 << 22: 256},
    )
    yield f"losses: {unlike.name}", partial(limits.losses, unlike, runs, *source)
    runs = effort.runs(
        {250: 4_000, 1_000: 4_000, 4_000: 4_000, 16_000: 4_000},
        {1_000: 20_000, 4_000: 20_000, 16_000: 20_000, 64_000: 5_000},
    )
    yield "the law of the loss: cd4", partial(limits.law_of_the_loss, problems.get("cd4"), runs, *source)

    number = effort.times(500, 4_000)
    for problem in several:
        budgets = [4 * len(problem), 1_000, 10_000] + [100_000] * effort.full
        yield f"bounds: {problem.name}", partial(bounds.below_the_cutoff, problem, budgets, number, DELTA, *source)
    # A larger δ makes n_cutoff smaller, and needs fewer replications to be decided.
    number, delta = effort.times(8, 100, LAUNCH_LANES), DELTA if effort.full else 0.2
    yield "bounds: at the cut-off", partial(bounds.at_the_cutoff, coins(0.5, 0.5), number, delta, *source)
    slow, fast = slow_and_fast(31)
    number = effort.times(500, 2_000)
    for budget in (1_000, 4_000, 16_000):
        yield f"mixing: n = {budget:,}", partial(bounds.mixing, slow, fast, budget, number, DELTA, *source)


def verify(effort: Effort, started: Callable[[str], None] = lambda about: None) -> list[Finding]:
    """Runs every trial. ``started`` is called with the subject of each trial when it starts."""
    findings = []
    waiting = list(trials(effort))
    for number, (about, trial) in enumerate(waiting, 1):
        started(f"{number}/{len(waiting)} {about}")
        findings.extend(trial())
    return findings
