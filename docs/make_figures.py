"""Makes the pictures and the tables of numbers that the documentation shows: ``python docs/make_figures.py``.

Every number comes from the library: from ``report.plan``, or from certificates of simulated counts.
"""

import contextlib
import os
import platform
import re
import shutil
import tempfile
import timeit
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import chainscout as cs
from chainscout import report
from chainscout.certificates import METHODS
from chainscout.cli.demonstration import CHAIN, QUESTION, demonstrated

HERE = Path(__file__).resolve().parent
DELTA = 0.05

# ---------------------------------------------------------------- numbers

PICTURED, TARGET = "unlike", 0.01
PROBLEMS = (
    "two-state",
    "gilbert-elliott",
    "unlike",
    "birth-death",
    "nearly-decomposable",
    "equal",
    "cpg-islands",
    "cd4",
    "dirichlet",
    "reversible",
    "sparse",
)
BUDGET, RUNS, SEED = 10_000, 100, 0


def needed(problem: cs.Problem, target: float) -> dict[str, int]:
    """quantity → observations for a loss ≤ target, as ``chainscout plan`` shows them."""
    quantity, observations, _ = zip(*report.plan(problem, target_loss=target, delta=DELTA)[-1].rows, strict=True)
    return dict(zip(quantity, observations, strict=True))


def predicted(allocation: str) -> str:
    return f"{allocation}: {1 - DELTA:.4g} quantile"


def simulated(chain: cs.MarkovChain, transitions: int, rng: np.random.Generator) -> np.ndarray:
    """Transition counts of RUNS independent paths, all at once."""
    runs, upper = np.arange(RUNS), np.cumsum(chain.matrix, axis=1)
    upper[:, -1] = 1.0
    states = np.searchsorted(np.cumsum(chain.initial)[:-1], rng.random(RUNS), side="right")
    counts = np.zeros((RUNS, chain.size, chain.size), dtype=np.int64)
    for u in rng.random((transitions, RUNS)):
        after = (u[:, None] >= upper[states]).sum(axis=1)
        counts[runs, states, after] += 1
        states = after
    return counts


def losses() -> Iterator[tuple[Any, ...]]:
    """Problem by problem, equal shares: each chain's mean certificate over its mean loss, least and largest."""
    for name in PROBLEMS:
        problem, rng = cs.problems.get(name), np.random.default_rng(SEED)
        transitions = BUDGET // len(problem) - 1
        paths = {key: simulated(chain, transitions, rng) for key, chain in problem.chains.items()}
        loss, certified = dict.fromkeys(problem, 0.0), {method: dict.fromkeys(problem, 0.0) for method in METHODS}
        for run in range(RUNS):
            counts = {key: cs.Counts.from_transitions(paths[key][run], problem[key].states) for key in problem}
            for key in problem:
                loss[key] += cs.loss(problem[key], counts[key])
            for method, total in certified.items():
                found = cs.certify(counts, DELTA, method, budget=BUDGET if method == "paper" else None).loss
                for key in problem:
                    total[key] += found[key]
        times = [[total[key] / loss[key] for key in problem] for total in certified.values()]
        yield (f"`{name}`", transitions, *(span(row) for row in times))


def times() -> Iterator[tuple[Any, ...]]:
    """Method by method: microseconds for one chain's certificate, S = 5 and S = 50, 10,000 transitions."""
    rng = np.random.default_rng(SEED)
    chains = [cs.problems.get("dirichlet", chains=1, states=size, seed=1)["chain-1"] for size in (5, 50)]
    counts = [cs.Counts.from_transitions(simulated(chain, BUDGET, rng)[0]) for chain in chains]
    for method in METHODS:
        row = [f"`{method}`"]
        for seen in counts:
            timer = timeit.Timer(partial(cs.certify, {"chain": seen}, DELTA, method))
            number, _ = timer.autorange()
            row.append(f"{min(timer.repeat(3, number)) / number * 1e6:,.0f} µs")
        yield tuple(row)


# ---------------------------------------------------------------- tables


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def span(values: Sequence[float]) -> str:
    ends = shown(min(values)), shown(max(values))
    return ends[0] if ends[0] == ends[1] else " … ".join(ends)


def table(columns: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> str:
    lines = ["| " + " | ".join(map(shown, row)) + " |" for row in (columns, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def stamp() -> str:
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    return (
        f"*Made by `python docs/make_figures.py` on {date.today().isoformat()}; {platform.system()} on {processor()},"
        f" {os.cpu_count()} cores, {versions}.*"
    )


def processor() -> str:
    description = Path("/proc/cpuinfo")
    if description.exists():
        for line in description.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()} ({platform.machine()})"
    return platform.machine()


TABLES = {
    "losses": (("problem", "transitions a chain", *(f"`{method}`" for method in METHODS)), losses),
    "times": (("method", "S = 5", "S = 50"), times),
}

# ---------------------------------------------------------------- the picture

INK, PALE, GRID, PAPER = "#1f2933", "#66727f", "#e4e7eb", "#ffffff"
SEA, LEAF, AMBER, RUST = "#2f6db5", "#1d8a5f", "#c77700", "#b3392f"


def bars() -> list[tuple[str, str, str, int]]:
    """The picture's rows: label, explanation, colour, observations."""
    plan = needed(cs.problems.get(PICTURED), TARGET)
    chance = f"with probability {1 - DELTA:.4g}"
    return [
        ("Λ / n", "the paper's yardstick, in expectation", PALE, plan["Λ/n"]),
        ("best shares", f"predicted, {chance}", SEA, plan[predicted("oracle-max")]),
        ("equal shares", f"predicted, {chance}", SEA, plan[predicted("uniform")]),
        ("sharp certificate", "proved from the data, at all times", LEAF, plan["certificate 'sharp'"]),
        ("mixture certificate", "a simpler proof, at all times", LEAF, plan["certificate 'mixture'"]),
        ("BA-MC's index", "proved from the data, the paper's", AMBER, plan["certificate 'paper'"]),
        ("Theorem 1", "the paper's bound for any budget", RUST, plan["Theorem 1, as stated"]),
        ("Theorem 2", "the paper's bound for large budgets", RUST, plan["Theorem 2, as stated"]),
    ]


def compact(number: int) -> str:
    """1,234,567 as '1.2 million', which is easier to remember."""
    for size, word in ((10**9, " billion"), (10**6, " million")):
        if number >= size:
            return f"{number / size:,.{0 if number >= 10 * size else 1}f}{word}"
    return f"{number:,}"


def description() -> str:
    """The picture in words. A test compares it with the library's current numbers."""
    return "; ".join(f"{label}: {compact(number)}" for label, _, _, number in bars())


def picture() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    settings = {
        "svg.hashsalt": "chainscout",  # the same file from the same numbers
        "font.family": "DejaVu Sans",
        "text.color": INK,
    }
    with plt.rc_context(settings):
        figure, axes = plt.subplots(figsize=(9, 5.5), facecolor=PAPER)
        figure.subplots_adjust(left=0.29, right=0.96, top=0.8, bottom=0.15)
        rows, start = bars(), 100
        best = rows[1][-1]
        beside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right", "va": "center"}
        for place, (label, explanation, colour, number) in enumerate(rows):
            axes.barh(place, number - start, left=start, height=0.54, color=colour, linewidth=0)
            axes.annotate(label, (0, place), (-12, 6.5), fontsize=11.5, fontweight="bold", color=colour, **beside)
            axes.annotate(explanation, (0, place), (-12, -7.5), fontsize=8.8, color=PALE, **beside)
            end = axes.annotate(
                compact(number), (number, place), (7, -0.5), textcoords="offset points", va="center_baseline",
                fontsize=11.5, fontweight="bold",
            )  # fmt: skip
            if best < number < 1000 * best:
                times = f"  {number / best:.2g} ×"
                axes.annotate(times, (1, 0), xycoords=end, va="bottom", fontsize=10, color=PALE)
        axes.set(xscale="log", xlim=(start, 1e13), ylim=(len(rows) - 0.45, -0.55), yticks=[], facecolor=PAPER)
        axes.set_xticks([10.0**power for power in range(2, 13, 2)])
        axes.tick_params(axis="x", which="both", length=0, labelsize=9.5, labelcolor=PALE)
        axes.minorticks_off()
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID, linewidth=1)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("observations, logarithmic;  × as many as the best shares need", fontsize=9.5, color=PALE)
        problem = cs.problems.get(PICTURED)
        title = f"How many observations until every matrix is known to a loss of {TARGET:g}?"
        figure.text(0.03, 0.93, title, fontsize=14.5, fontweight="bold", va="center")
        subtitle = (
            f"{len(problem)} Markov chains of {problem.sizes[0]} states: one sticky, one cyclic, one that jumps"
            f" anywhere (built-in problem '{PICTURED}', δ = {DELTA:g})"
        )
        figure.text(0.03, 0.866, subtitle, fontsize=9.8, color=PALE, va="center")
        folder = HERE / "figures"
        folder.mkdir(exist_ok=True)
        figure.savefig(folder / "plan.svg", metadata={"Date": None, "Description": description()})
        plt.close(figure)


# ---------------------------------------------------------------- evidence over time

LAW = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.25, 0.25]])
WALK, CHANGED_AT = 3_000, 1_500


def walks() -> dict[str, list[int]]:
    """A Markov chain, a process that often goes back where it came from, and a chain whose last row changes."""
    found = {}
    for kind in ("a Markov chain", "memory: after 1, back in 2 of 5 steps", f"row 2 changes after step {CHANGED_AT:,}"):
        rng, walk = np.random.default_rng(SEED), [0, 1]
        for step in range(WALK):
            law = LAW[walk[-1]]
            if kind.startswith("memory") and walk[-1] == 1 and rng.random() < 0.4:
                law = np.eye(3)[walk[-2]]
            elif kind.startswith("row") and walk[-1] == 2 and step >= CHANGED_AT:
                law = np.array([0.2, 0.1, 0.7])
            walk.append(int(rng.choice(3, p=law)))
        found[kind] = walk
    return found


def histories() -> dict[str, list[cs.Check]]:
    """What *order* and *change* say of each walk."""
    return {kind: list(cs.diagnose(cs.Paths.from_walks([walk], 3)))[:2] for kind, walk in walks().items()}


def evidence_in_words() -> str:
    """The second picture in words. A test compares it with the library's current numbers."""
    parts = []
    for kind, checks in histories().items():
        parts.append(f"{kind}: " + ", ".join(f"{check.kind} {check.level:.1e}" for check in checks))
    return "; ".join(parts)


def evidence() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": "chainscout", "font.family": "DejaVu Sans", "text.color": INK}):
        figure, panels = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True, facecolor=PAPER)
        figure.subplots_adjust(left=0.07, right=0.98, top=0.86, bottom=0.17, wspace=0.08)
        for axes, (kind, checks) in zip(panels, histories().items(), strict=True):
            for check, colour in zip(checks, (SEA, AMBER), strict=True):
                steps, values = zip(*check.history, strict=True)
                axes.plot(steps, np.array(values) / np.log(10), color=colour, linewidth=1.6, label=str(check.kind))
            axes.axhline(2, color=RUST, linewidth=1, linestyle="--")
            axes.set_title(kind, fontsize=10.5, color=INK)
            axes.set(ylim=(-3, 8), xlim=(0, WALK), facecolor=PAPER)
            axes.set_xlabel("steps", fontsize=9.5, color=PALE)
            axes.tick_params(labelsize=9, labelcolor=PALE, length=0)
            axes.grid(color=GRID, linewidth=1)
            axes.spines[:].set_visible(False)
        panels[0].set_ylabel("log₁₀ of the e-value", fontsize=9.5, color=PALE)
        panels[0].legend(loc="upper left", fontsize=9, frameon=False)
        panels[0].annotate(
            "rejects at δ/5 = 0.01",
            (WALK, 2),
            (-4, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8.5,
            color=RUST,
        )
        figure.savefig(HERE / "figures" / "evidence.svg", metadata={"Date": None, "Description": evidence_in_words()})
        plt.close(figure)


# ---------------------------------------------------------------- answers over time

MOST, LOOKS = 40_000, 60


def asked() -> dict[str, tuple[cs.MarkovChain, str]]:
    """Title → chain and question, those of docs/answers-cases.md."""
    queue = np.zeros((8, 8))
    for x in range(8):
        queue[x, min(x + 1, 7)] += 0.3
        queue[x, max(x - 1, 0)] += 0.4
        queue[x, x] += 0.3
    channel = cs.problems.get("gilbert-elliott")["failure=0.02 recovery=0.2"]
    return {
        "queue: steps from 4 waiting to empty": (cs.MarkovChain(queue), "time to 0 from 4"),
        "channel: share of the time that it is bad": (channel, "share of bad anchor good"),
        "frozen lake: home before a hole": (
            cs.problems.get("frozen-lake")["right"], "reach 15 before 5, 7, 11, 12 from 0 ever",
        ),
        "ratings: BBB defaults within 10 years": (
            cs.problems.get("sp-ratings")["ratings"], "reach D from BBB within 10 given D absorbing",
        ),
    }  # fmt: skip


def closing(last: int = LOOKS) -> dict[str, tuple[float, list[tuple[int, cs.Answer]]]]:
    """Title → the true value, and the last answers along a path that restarts where it ends."""
    found = {}
    for title, (chain, question) in asked().items():
        rng, walks = np.random.default_rng(SEED), [[0]]
        upper = np.cumsum(chain.matrix, axis=1)
        for u in rng.random(MOST):
            x = walks[-1][-1]
            if chain.matrix[x, x] == 1:
                walks.append([int(rng.integers(chain.size - 1))])
            else:
                walks[-1].append(min(int(np.searchsorted(upper[x], u, side="right")), chain.size - 1))
        whole = cs.Paths.from_walks([[chain.states[x] for x in walk] for walk in walks], list(chain.states))
        looks = np.unique(np.geomspace(100, len(whole), LOOKS).astype(int))[-last:]
        answers = [(int(look), cs.answer(first_cards(whole, int(look)), question, delta=DELTA)) for look in looks]
        found[title] = cs.answer(chain, question).estimate, answers
    return found


def first_cards(paths: cs.Paths, number: int) -> cs.Paths:
    """The cards that were known after this number of observations."""
    cards = {name: getattr(paths, name)[:number] for name in ("path", "step", "source", "target")}
    return cs.Paths(paths.states, **cards, worker=paths.worker[: cards["path"].max() + 1], workers=paths.workers)


def answers_in_words() -> str:
    """The third picture in words: the last intervals. A test compares it with the library's current numbers."""
    last = {title: (truth, answers[-1][1]) for title, (truth, answers) in closing(last=1).items()}
    return "; ".join(f"{t}: {a.lower:.3g} to {a.upper:.3g}, exactly {truth:.3g}" for t, (truth, a) in last.items())


def answers() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.hashsalt": "chainscout", "font.family": "DejaVu Sans", "text.color": INK}):
        figure, panels = plt.subplots(2, 2, figsize=(10, 6), facecolor=PAPER)
        figure.subplots_adjust(left=0.06, right=0.98, top=0.94, bottom=0.09, wspace=0.14, hspace=0.36)
        for axes, (title, (truth, looks)) in zip(panels.flat, closing().items(), strict=True):
            when = [look for look, _ in looks]
            most = max(2.5 * truth, *(answer.estimate or 0.0 for _, answer in looks))
            high = [min(answer.upper, 10 * most) for _, answer in looks]
            axes.fill_between(when, [answer.lower for _, answer in looks], high, color=SEA, alpha=0.22, linewidth=0)
            axes.plot(when, [answer.estimate for _, answer in looks], color=SEA, linewidth=1.6)
            axes.axhline(truth, color=RUST, linewidth=1, linestyle="--")
            axes.set_title(title, fontsize=10.5, color=INK)
            axes.set(xscale="log", ylim=(0, min(most, 1.0) if "steps" not in title else most), facecolor=PAPER)
            axes.set_xlim(when[0], when[-1])
            axes.tick_params(labelsize=9, labelcolor=PALE, length=0, which="both")
            axes.grid(color=GRID, linewidth=1)
            axes.spines[:].set_visible(False)
        for axes in panels[1]:
            axes.set_xlabel("observations", fontsize=9.5, color=PALE)
        figure.savefig(HERE / "figures" / "answers.svg", metadata={"Date": None, "Description": answers_in_words()})
        plt.close(figure)


# ---------------------------------------------------------------- the idea, for the README

#: Paper, ink, pale ink, grid, and a colour for each chain, on white and on black.
LIGHT = (PAPER, INK, PALE, "#d8dde3", (SEA, LEAF, AMBER))
DARK = ("#0d1117", "#e6edf3", "#9aa7b4", "#30363d", ("#6cb0f5", "#4cc38a", "#f0a832"))
MOMENTS = (60, 80, 100, 150, 200, 300, 400, 600, 800, 1_000, 1_250, 1_500, 1_750, 2_000, 2_500)
#: The default rule of a study with a target, and what people do without one.
OWN, TURNS = "chainscout", "taking turns"
ENOUGH = 0.03


class Learned(NamedTuple):
    """A way to choose: its allocation at the end, and at each moment the largest bound and an answer."""

    shares: dict[str, int]
    moments: list[int]
    bounds: list[float]
    answers: list[cs.Answer]


@cache
def learned(words: str) -> Learned:
    """The processes of the demonstration until each bound has reached the target; their paths are the same."""
    problem = demonstrated()
    sources = cs.simulated(problem, seed=1)
    chains = {name: problem[name].states for name in problem}
    if words == OWN:
        study, enough = cs.Study.create(None, chains, target_loss=ENOUGH), {}
    else:
        study, enough = cs.Study.create(None, chains, policy="uniform"), learned(OWN).shares
    found = Learned({}, [], [], [])
    going = True
    while going:
        name = study.ask()
        study.tell(name, sources[name].advance()[0])
        told = study.progress().observations
        going = not study.finished if words == OWN else any(study.allocation()[c] < enough[c] for c in enough)
        if told in MOMENTS or not going:
            found.moments.append(told)
            found.bounds.append(study.certificate().max)
            found.answers.append(study.answer(CHAIN, QUESTION))
    found.shares.update(study.allocation())
    return found


def idea_in_words() -> str:
    """The picture in words. A test compares it with the library's current numbers."""
    parts = []
    for words in (OWN, TURNS):
        found = learned(words)
        told = ", ".join(f"{name} {number}" for name, number in found.shares.items())
        answer = found.answers[-1]
        parts.append(f"{words}: {told}; bound {found.bounds[-1]:.4f}; answer {answer.lower:.3f} to {answer.upper:.3f}")
    return "; ".join(parts)


def idea(name: str, theme: tuple[str, str, str, str, tuple[str, ...]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    paper, ink, pale, grid, colours = theme
    problem, found = demonstrated(), {words: learned(words) for words in (OWN, TURNS)}
    most = max(sum(one.shares.values()) for one in found.values())
    truth = cs.answer(problem[CHAIN], QUESTION).lower
    settings = {"svg.hashsalt": "chainscout", "font.family": "DejaVu Sans", "text.color": ink, "font.size": 9.5}
    with plt.rc_context(settings):
        figure = plt.figure(figsize=(11, 3.3))
        heads = (
            (0.015, "1  Unlike processes"),
            (0.265, f"2  What a bound of {ENOUGH:g} takes"),
            (0.515, "3  How the bound falls"),
            (0.765, "4  An answer closes in"),
        )
        for left, head in heads:
            figure.text(left, 0.93, head, fontsize=11, fontweight="bold", va="center")
        for place, (chain, colour) in enumerate(zip(problem, colours, strict=True)):
            axes = figure.add_axes((0.015 + 0.078 * place, 0.36, 0.07, 0.3))
            ramp = LinearSegmentedColormap.from_list(chain, [(*matplotlib.colors.to_rgb(colour), 0.06), colour])
            axes.imshow(problem[chain].matrix, cmap=ramp, vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(grid)
            axes.set_title(chain, fontsize=9.5, color=colour, fontweight="bold")
        figure.text(0.015, 0.18, "their matrices: from each row\nto each column", color=pale, va="center")

        axes = figure.add_axes((0.265, 0.2, 0.2, 0.62))
        for place, (words, one) in enumerate(found.items()):
            left = 0
            for number, colour in zip(one.shares.values(), colours, strict=True):
                axes.barh(place, number, left=left, color=colour, height=0.5, linewidth=0)
                axes.text(left + number / 2, place, f"{number:,}", ha="center", va="center", color=paper, fontsize=8.5)
                left += number
            axes.text(0, place - 0.38, f"{words}: {left:,} samples", va="center", fontsize=9.5)
        axes.set(ylim=(1.5, -0.7), xlim=(0, most))
        axes.text(0, 1.47, "until every bound is small enough", color=pale, va="center")
        axes.axis("off")

        axes = figure.add_axes((0.545, 0.2, 0.175, 0.62))
        for one, colour, style in zip(found.values(), (ink, pale), ("-", "--"), strict=True):
            axes.plot(one.moments, one.bounds, color=colour, linestyle=style, linewidth=2)
            axes.plot(one.moments[-1], one.bounds[-1], "o", color=colour, markersize=5, clip_on=False)
        axes.axhline(ENOUGH, color=ink, linewidth=1.2, linestyle=":")
        axes.annotate(TURNS, (most, ENOUGH), (0, 30), textcoords="offset points", color=pale, ha="right")
        axes.annotate(OWN, (found[OWN].moments[-1], ENOUGH), (-4, -15), textcoords="offset points", ha="right")
        axes.set(xlim=(0, most), ylim=(0.01, 2), yscale="log", yticks=(0.01, 0.1, 1), xticks=(0, 1_000, 2_000))
        axes.set_yticklabels(("0.01", "0.1", "1"))
        axes.minorticks_off()
        axes.set_xlabel("samples", color=pale)
        figure.text(0.515, 0.855, "largest loss, at most, with probability 0.95", color=pale, fontsize=8.5, va="center")

        last_axes = figure.add_axes((0.795, 0.2, 0.19, 0.62))
        moments, answers = found[OWN].moments, found[OWN].answers
        lower, upper = [answer.lower for answer in answers], [answer.upper for answer in answers]
        last_axes.fill_between(moments, lower, upper, color=colours[0], alpha=0.35, linewidth=0)
        last_axes.axhline(truth, color=ink, linewidth=1.2, linestyle=":")
        last_axes.annotate("the truth", (moments[-1], truth), (-2, 4), textcoords="offset points", ha="right")
        last_axes.set(xlim=(0, moments[-1]), ylim=(0, 1), yticks=(0, 0.5, 1), xticks=(0, 500, 1_000))
        last_axes.set_xlabel("samples", color=pale)
        said = "empty queue full within 5 steps: probability"
        figure.text(0.765, 0.855, said, color=pale, fontsize=8.5, va="center")
        for one in (axes, last_axes):
            one.patch.set_alpha(0)
            one.grid(color=grid, linewidth=1)
            one.spines[:].set_visible(False)
            one.tick_params(length=0, labelsize=8.5, labelcolor=pale)
        metadata = {"Date": None, "Description": idea_in_words()}
        figure.savefig(HERE / "figures" / f"idea-{name}.svg", transparent=True, metadata=metadata)
        plt.close(figure)


# ---------------------------------------------------------------- the gallery


def gallery() -> None:
    """Runs the pages of the gallery, each in an empty directory, and keeps the figures that they make."""
    import matplotlib

    block = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
    with matplotlib.rc_context({"svg.hashsalt": "chainscout"}):
        for page in sorted((HERE / "gallery").glob("*.md")):
            blocks = block.findall(page.read_text(encoding="utf-8"))
            if not blocks:
                continue
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                names: dict[str, Any] = {}
                for text in blocks:
                    exec(compile(text, str(page), "exec"), names)
                shutil.copy(f"{page.stem}.svg", HERE / "gallery" / "figures")


def main() -> None:
    picture()
    evidence()
    idea("light", LIGHT)
    idea("dark", DARK)
    gallery()
    answers()
    folder = HERE / "_generated"
    folder.mkdir(exist_ok=True)
    for name, (columns, rows) in TABLES.items():
        (folder / f"{name}.md").write_text(f"{table(columns, rows())}\n\n{stamp()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
