"""Tables of problems: their quantities, what a budget buys, and what a loss costs."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import guarantees, predictions
from ..certificates import ASSUMPTION, planning
from ..certificates.planning import BEYOND
from ..chains import MarkovChain
from ..errors import InputError
from ..problems import Problem
from ..validation import failure_probability, quantile_failure, real_number, whole_number
from .tables import Table, if_any

#: Quantities of a chain that need not exist.
GAPS = ("is_reversible", "spectral_gap", "pseudo_spectral_gap")


def inspect_problem(problem: Problem, delta: float = 0.05) -> list[Table]:
    """The quantities of a problem: one row for each chain, then those of the whole problem."""
    failure_probability(delta)
    columns = ("chain", "states", "ergodic", "reversible", "γ", "γ_ps", "mixing time", "min π", "H", "ΣG", "η")
    shares = problem.allocation if problem.variability > 0 else [None] * len(problem)
    rows = [
        (
            name,
            chain.size,
            chain.is_ergodic,
            *(if_any(partial(getattr, chain, name)) for name in GAPS),
            if_any(partial(_mixing_time, chain)),
            if_any(partial(_smallest_probability, chain)),
            if_any(partial(getattr, chain, "inverse_stationary_sum")),
            chain.variability,
            None if share is None else float(share),
        )
        for (name, chain), share in zip(problem.chains.items(), shares, strict=True)
    ]
    whole = (
        ("chains K", len(problem)),
        ("Λ = ΣΣG, the limit of n·max E[L]", problem.variability),
        ("C₀ of Theorem 2", if_any(lambda: problem.excess_constant)),
        (f"cut-off budget of Theorem 2, δ = {delta:g}, as stated", if_any(lambda: problem.cutoff_budget(delta))),
        ("the same with its derivation's gaps closed", if_any(lambda: problem.cutoff_budget(delta, corrected=True))),
    )
    return [
        Table(problem.name or "problem", columns, tuple(rows), _about(problem)),
        Table("the whole", ("quantity", "value"), whole),
    ]


def inspect_chain(name: str, chain: MarkovChain) -> list[Table]:
    """The quantities of one chain, state by state."""
    law = if_any(lambda: chain.stationary.tolist()) or [None] * chain.size
    rows = tuple(
        (state, law[x], float(chain.gini[x]), int((chain.matrix[x] > 0).sum()), float(chain.matrix[x, x]))
        for x, state in enumerate(chain.states)
    )
    return [Table(name, ("state", "π", "G", "successors", "stays"), rows)]


def _mixing_time(chain: MarkovChain) -> str:
    return "{:,} … {:,}".format(*chain.mixing_time_bounds())


def _smallest_probability(chain: MarkovChain) -> float:
    return float(chain.stationary.min())


def _about(problem: Problem) -> tuple[str, ...]:
    source = f"source: {problem.source}" if problem.source else ""
    return tuple(text for text in (problem.description, source) if text)


def plan(
    problem: Problem, *, budget: int | None = None, target_loss: float | None = None, delta: float = 0.05
) -> list[Table]:
    """What a budget buys, or what a loss costs: limits, predictions, certificates and theorems side by side."""
    quantile_failure(delta)
    if budget is None and target_loss is None:
        raise InputError("a plan needs a budget, a target loss, or both")
    chains = len(problem)
    if budget is not None:
        meaning = "two observations of each chain at least"
        whole_number(budget, "budget", least=2 * chains, meaning=meaning, most=BEYOND)
    if target_loss is not None:
        real_number(target_loss, "target_loss", above=0.0, meaning="the largest loss that is good enough")
    if problem.variability == 0:
        raise InputError("all chains are deterministic: one visit of each state is enough, there is nothing to plan")
    at = None if budget is None else f"loss at {budget:,} observations"
    to = None if target_loss is None else f"observations for a loss ≤ {target_loss:g}"
    columns = tuple(c for c in ("quantity", at, to, "what it is") if c is not None)
    rows = []
    for quantity, kind, loss_at, budget_for in _lines(problem, delta):
        row: list[Any] = [quantity]
        if budget is not None:
            row.append(if_any(partial(loss_at, budget)))
        if target_loss is not None:
            row.append(if_any(partial(budget_for, target_loss)))
        rows.append((*row, kind))
    title = f"{problem.name or 'problem'}: {chains} chain{'s' * (chains > 1)}, δ = {delta:g}"
    notes = [f"a certificate assumes that {ASSUMPTION}"]
    passing = [name for name, chain in problem.chains.items() if not chain.is_irreducible]
    if passing:
        notes.append(
            f"not irreducible: {', '.join(passing)}; limits and predictions count all their rows, also those of states"
            " that are left for good"
        )
    return [_allocation(problem, budget), Table(title, columns, tuple(rows), tuple(notes))]


#: How often the shares are computed again for a bound that is not smooth. They would never settle.
ROUNDS = 20

Line = tuple[str, str, Callable[[int], float], Callable[[float], float]]


def _lines(problem: Problem, delta: float) -> Sequence[Line]:
    """The rows of a plan: quantity, what it is, loss at a budget, budget for a loss."""
    chains, variability = len(problem), problem.variability

    def limit(constant: float) -> tuple[Callable[[int], float], Callable[[float], float]]:
        # The limit law says L ≈ constant/(transitions). K of the observations bring no transition.
        return (lambda n: constant / (n - chains)), (lambda e: _ceiling(constant / e) + chains)

    yardstick = "asymptotically optimal max E[L], the paper's yardstick"
    lines: list[Line] = [("Λ/n", yardstick, problem.optimal_loss, lambda e: _ceiling(variability / e))]
    for allocation in predictions.ALLOCATIONS:
        shares = predictions.shares(problem, allocation)
        mean = limit(float(predictions.mean_of_maximum(problem, shares)))
        high = limit(float(predictions.quantile_of_maximum(problem, shares, 1 - delta)))
        lines.append((f"{allocation}: mean", "predicted from the limit law", *mean))
        lines.append((f"{allocation}: {1 - delta:.4g} quantile", "predicted from the limit law", *high))

    sharp = planning.sharp_bound(problem, delta)
    mixture = planning.mixture_bound(problem, delta)
    paper = partial(planning.paper_bound, problem, delta)
    lines += [
        (
            "certificate 'sharp'",
            "guaranteed, at the expected counts; what a study promises",
            lambda n: planning.certified_loss(problem, n, sharp, ROUNDS),
            lambda e: planning.sharp_budget(problem, e, sharp),
        ),
        (
            "certificate 'mixture'",
            "guaranteed, at the expected counts",
            lambda n: planning.certified_loss(problem, n, mixture),
            lambda e: planning.certified_budget(problem, e, lambda _: mixture),
        ),
        (
            "certificate 'paper'",
            "guaranteed, BA-MC's index at the expected counts",
            lambda n: planning.certified_loss(problem, n, paper(n)),
            lambda e: planning.certified_budget(problem, e, paper),
        ),
    ]
    for label, kind, theorem in (
        ("Theorem 2, as stated", "bound for BA-MC, from its cut-off budget on", guarantees.theorem_2),
        ("Theorem 1, as stated", "bound for BA-MC", guarantees.theorem_1),
    ):
        bound = partial(theorem, problem, delta=delta)
        lines.append((label, kind, bound, partial(_first, bound, 4 * chains)))
    return lines


def _allocation(problem: Problem, budget: int | None) -> Table:
    columns: tuple[str, ...] = ("chain", "states", "ΣG", "η", "best for max L")
    eta, best = problem.allocation, predictions.shares(problem, "oracle-max")
    rows: list[tuple[Any, ...]] = [
        (name, chain.size, chain.variability, float(eta[k]), float(best[k]))
        for k, (name, chain) in enumerate(problem.chains.items())
    ]
    if budget is not None:
        columns = (*columns, "η·n", "best·n")
        rows = [(*row, round(row[3] * budget), round(row[4] * budget)) for row in rows]
    notes = ("η makes max E[L] smallest in the limit; 'best for max L' makes E[max L] smallest (the share rule)",)
    return Table("how an oracle would share the budget", columns, tuple(rows), notes)


def _ceiling(budget: float) -> float:
    return math.ceil(budget) if math.isfinite(budget) else math.inf


def _first(bound: Callable[[int], float], least: int, target: float) -> float:
    """The least n ≥ ``least``, to a relative 1e-6, at which a bound that falls with n is ≤ ``target``."""
    high = least
    while bound(high) > target:
        if high > BEYOND:
            return math.inf
        high *= 2
    low = high // 2
    while high - low > max(1, high // 1_000_000):
        middle = (low + high) // 2
        low, high = (low, middle) if middle >= least and bound(middle) <= target else (middle, high)
    return high
