"""``demo``: a study of three processes told as a story, and the files that it leaves."""

import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import FileError
from .rendering import echo, writing

if TYPE_CHECKING:
    from ..answers import Answer
    from ..learning import StudyFile
    from ..problems import Problem
    from ..study import Study

#: The study file that the demonstration copies and runs.
STUDY = Path(__file__).with_suffix(".toml")
CHAIN, QUESTION = "queue", "reach full from empty within 5"
#: What the demonstration leaves.
FILES = ("study.toml", "lab.db", "report.html")
#: Characters of the longest bar.
BAR = 34
#: Ways to choose that are compared with this study's, and the seeds of the runs.
OWN = "this study's rule"
WAYS = {"uniform": "taking turns (round-robin)", "ba-mc": "the paper's algorithm (BA-MC)"}
SEEDS = (1, 2, 3)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default="chainscout-demo", help="Directory.")
def demo(out: Path) -> None:
    """Learn three simulated processes, and tell what is known of them, what is not, and what it cost."""

    from ..learning import learn, read_study_file
    from ..report.study_page import study_page

    file, where, page = (out / name for name in FILES)
    text = STUDY.read_text(encoding="utf-8")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        if file.exists() and file.read_text(encoding="utf-8", errors="replace") != text:
            raise FileError(
                f"{file} is not what a demonstration wrote, and is kept: chainscout learn {file} runs it, and --out"
                " names another directory for the demonstration"
            )
        for suffix in ("", "-wal", "-shm"):  # of the last demonstration
            where.with_name(where.name + suffix).unlink(missing_ok=True)
        file.write_text(text, encoding="utf-8")
    echo("Three processes move only when they are sampled, and every sample costs.")
    echo(f"  $ chainscout learn {file}", exact=True)
    found = read_study_file(file)
    with learn(
        found.sources, where=found.where, states=found.states, progress=sys.stderr.isatty(), **found.settings.given()
    ) as study:
        _tell_shares(study)
        _tell_knowledge(study)
        _tell_answer(study.answer(CHAIN, QUESTION))
        page.write_text(study_page(study, "Three processes"), encoding="utf-8")
    needed = _tell_others(found)
    fewer = 1 - sum(needed[OWN]) / sum(needed[WAYS["uniform"]])
    echo("", f"Conclusion: all three matrices have the same bound for {fewer:.0%} fewer samples than")
    echo("taking turns, and nothing is claimed of rows that nobody has seen.")
    echo("", f"In {out}: {file.name} to edit, {where.name} the study, {page.name} to open.", "Try next:")
    called = _called()
    for command in (f"status {where}", f"answer {where} {CHAIN} 'share of full'", f"serve {where}"):
        echo(f"  {called} {command}", exact=True)


def _called() -> str:
    """The program's name, as it can be typed here."""
    program = Path(sys.argv[0])
    if program.stem != "chainscout":  # python -m chainscout
        return f"{_near(Path(sys.executable))} -m chainscout"
    return "chainscout" if shutil.which("chainscout") == str(program) else str(_near(program))


def _near(path: Path) -> Path:
    """The path as it is written from here, if it lies below this directory."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _tell_shares(study: "Study") -> None:
    told = study.allocation()
    total = sum(told.values())
    echo("", "1. Where the samples went")
    for name, number in told.items():
        bar = "█" * round(BAR * number / max(told.values()))
        echo(f"  {name:<8} {len(study.states(name))} states {number:>6,} samples {number / total:>5.0%}  {bar}")
    echo("  A row with many possible next states needs more samples, and a row that nearly")
    echo("  always does the same needs fewer. Taking turns would not notice.")


def _tell_knowledge(study: "Study") -> None:
    from ..counts import never_left
    from ..numerals import bound, sure

    certificate = study.certificate()
    echo("", "2. What is known, and what is not")
    said = f"With probability {sure(certificate.delta)} no loss is above {bound(certificate.max)}."
    echo(f"  {said} A loss is the squared error")
    echo("  of a row of the matrix, averaged over the rows as often as they were left.")
    for name in study.names:
        counts = study.counts(name)
        known = f"all {counts.size} rows were left, each at least {min(counts.visited_exits()):,} times"
        if counts.unknown_rows:
            states = ", ".join(str(counts.states[x]) for x in range(counts.size) if not counts.exits_of(x))
            known = f"{never_left(counts.unknown_rows, counts.size)}: nothing is known of {states}"
        echo(f"  {name:<8} {known}")


def _tell_answer(answer: "Answer") -> None:
    from ..answers import answer as answer_exactly
    from ..numerals import lower, near, sure, upper

    truth = answer_exactly(demonstrated()[CHAIN], QUESTION).estimate
    echo("", "3. An answer: how likely is an empty queue full within 5 steps?")
    assert answer.estimate is not None
    said = f"with probability {sure(answer.delta)} from {lower(answer.lower)} to {upper(answer.upper)}"
    echo(f"  About {near(answer.estimate)}; {said}.")
    echo(f"  (The matrix in the file says {truth:.2f}. Your own processes come without one.)")


def _tell_others(found: "StudyFile") -> dict[str, list[int]]:
    """What each way to choose needs for the same bounds, in several runs with the same paths for each way."""
    from ..learning import learn
    from ..sources import simulated

    problem, budget = demonstrated(), int(found.settings.budget or 0)
    seeds = ", ".join(map(str, SEEDS))
    echo("", f"4. How many samples each way to choose needs for the same bounds (seeds {seeds})")
    needed: dict[str, list[int]] = {words: [] for words in (OWN, *WAYS.values())}
    for seed in SEEDS:
        with learn(simulated(problem, seed=seed), progress=False, **found.settings.given()) as study:
            enough = study.allocation()
        needed[OWN].append(sum(enough.values()))
        for policy, words in WAYS.items():
            needed[words].append(_until(problem, policy, list(enough.values()), seed, budget))
    for words, numbers in needed.items():
        cells = (f"{number:,}" if number < budget else f">{budget:,}" for number in numbers)
        echo(f"  {words:<30}" + "".join(f"{cell:>9}" for cell in cells))
    return needed


def _until(problem: "Problem", policy: str, enough: list[int], seed: int, most: int) -> int:
    """After how many samples a rule has made enough of each chain; ``most`` if it needs more.

    A chain's bound depends on the chain's own samples alone, and these are the same for every rule.
    """
    import numpy as np

    from ..engine import Options, trace

    choices, _ = trace(problem, policy, most, options=Options(seed=seed, engine="python"))
    places = [np.flatnonzero(choices == chain) for chain in range(len(enough))]
    if any(len(made) < number for made, number in zip(places, enough, strict=True)):
        return most
    return 1 + max(int(made[number - 1]) for made, number in zip(places, enough, strict=True))


def demonstrated() -> "Problem":
    """The processes of the demonstration, with their matrices."""
    from ..chains import MarkovChain
    from ..problems import Problem

    tables = tomllib.loads(STUDY.read_text(encoding="utf-8"))["chains"]
    return Problem({name: MarkovChain(t["matrix"], t.get("initial"), t["states"]) for name, t in tables.items()})
