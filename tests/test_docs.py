"""The documentation says what is so: its blocks run, the names it gives exist, its numbers are those of the library."""

import contextlib
import importlib
import importlib.util
import io
import itertools
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

import chainscout as cs
from chainscout.certificates import planning
from chainscout.cli import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GALLERY = [path for path in sorted((DOCS / "gallery").glob("*.md")) if path.stem != "index"]
if importlib.util.find_spec("deeptime") is None:  # it has no wheels for the newest Python
    GALLERY = [path for path in GALLERY if path.stem != "molecules"]
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(DOCS.glob("*.md")), *GALLERY)
}
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.M | re.S)


def lines_of(text: str) -> list[str]:
    """The lines, without the blanks that end them and without blank lines around them."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").split("\n")


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_still_to_be_written(page: str) -> None:
    """No comments of MyST's, which readers do not see: what goes there is written or is not promised."""
    without_blocks = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.M | re.S)
    assert not re.findall(r"^%.*$", without_blocks, flags=re.M)
    assert not re.findall(r"\b(?:TODO|TBD|FIXME)\b|goes here", without_blocks)


# ---------------------------------------------------------------- blocks


def run_commands(block: str) -> None:
    """Each ``$ chainscout …`` ends with status 0 and prints what is shown below it, if anything is."""
    for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, _, shown = command.partition("\n")
        words = shlex.split(line)
        if words[0] == "make":  # it cannot run inside the tests, but its target can be missing
            assert re.search(rf"^[\w -]*\b{words[1]}\b[\w -]*:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
            continue
        assert words[0] == "chainscout"
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, result.output
        if shown.strip():
            assert lines_of(shown) == lines_of(result.stdout)


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if BLOCK.search(text)])
def test_blocks_run_in_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One namespace a page, an empty directory; a ```text block after a ```python block is what that one prints."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    printed: str | None = None
    for block in BLOCK.finditer(PAGES[page]):
        kind, text = block.groups()
        if kind == "python":
            above = "\n" * PAGES[page][: block.start(2)].count("\n")  # so that a traceback names the page's line
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(above + text, str(DOCS / f"{page}.md"), "exec"), names)
            printed = out.getvalue()
        elif kind == "text":
            if printed is not None:
                assert lines_of(text) == lines_of(printed)
            printed = None
        else:
            run_commands(text)


def test_the_gallery_has_a_figure_a_page_and_a_line_in_its_list() -> None:
    """Each page makes its figure: the test above runs it. What is shown was made by ``docs/make_figures.py``."""
    listed = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    assert len(GALLERY) >= 9
    for page in GALLERY:
        text = page.read_text(encoding="utf-8")
        assert f'savefig("{page.stem}.svg"' in text
        assert f"figures/{page.stem}.svg" in text
        assert f"{{doc}}`{page.stem}`" in listed
        kinds = [block[1] for block in BLOCK.finditer(text)]
        assert "text" in kinds, "it shows nothing that it prints"
        shown = (DOCS / "gallery" / "figures" / f"{page.stem}.svg").read_text(encoding="utf-8")
        assert "<svg" in shown
        assert len(shown) < 100_000


def test_the_tutorial_shows_what_its_blocks_print() -> None:
    kinds = [block[1] for block in BLOCK.finditer(PAGES["tutorial"])]
    assert kinds.count("python") == kinds.count("text") > 5
    assert kinds.count("console") == 3


# ---------------------------------------------------------------- names


def exists(name: str) -> bool:
    """Whether a dotted name is a module of the package or of the tests, or something in it."""
    first, *rest = name.split(".")
    thing: Any = importlib.import_module(first if first.startswith("reference") else f"chainscout.{first}")
    for part in rest:
        if isinstance(thing, ModuleType) and not hasattr(thing, part):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(f"{thing.__name__}.{part}")
        if part in getattr(thing, "__annotations__", {}):  # an attribute of every instance
            return part == rest[-1]
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


def dotted_names(page: str) -> list[str]:
    layers = "chains|problems|counts|losses|guarantees|predictions|certificates|report|reference|reference_policies"
    return re.findall(rf"`((?:{layers})(?:\.[A-Za-z_]\w*)+)`", PAGES[page])


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert exists("chains.MarkovChain.matrix")
    assert exists("chains.spectral.pseudo_spectral_gap")
    assert not exists("chains.MarkovChain.matrices")
    assert not exists("guarantees.lemma_9")


@pytest.mark.parametrize("page", ["paper", "errata", "certificates"])
def test_every_name_in_the_code_exists(page: str) -> None:
    names = dotted_names(page)
    assert names
    assert [name for name in names if not exists(name)] == []


def test_every_statement_of_the_paper_has_its_row() -> None:
    rows = [line for line in PAGES["paper"].splitlines() if line.startswith("|")]
    statements = [f"Lemma {number}" for number in range(1, 14)] + [f"Theorem {number}" for number in (1, 2, 3)]
    for statement in [*statements, "Corollary 1", "Definition 1", "Definition 2", "Algorithm 1"]:
        assert any(re.search(rf"\b{statement}\b", row.split("|")[1]) for row in rows), statement
    # What is implemented under a statement's own name is in the row of that statement.
    for name in ("lemma_3", "lemma_4", "lemma_5", "lemma_7", "lemma_8", "theorem_1", "theorem_2"):
        statement = name.replace("_", " ").capitalize()
        assert any(f"`guarantees.{name}`" in row and statement in row for row in rows), name


def test_errata_and_their_tests_name_each_other() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGES["errata"]))

    def defined(pattern: str) -> set[str]:
        texts = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").glob(pattern)]
        return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.M)}

    assert named <= defined("test_errata_*.py") | defined("test_reference.py")
    assert defined("test_errata_*.py") <= named


# ---------------------------------------------------------------- numbers


@pytest.fixture(scope="module")
def figures() -> Any:
    spec = importlib.util.spec_from_file_location("make_figures", DOCS / "make_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cells(table: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]


def numbers(cell: str) -> list[float] | str:
    """The numbers of a cell, or its text if it has none."""
    parts = cell.replace(",", "").split(" … ")
    try:
        return [float(part) for part in parts]
    except ValueError:
        return cell


def test_the_table_of_losses_is_that_which_the_library_makes(figures: Any) -> None:
    """For its first problems only, for time. One per cent: rounding may differ on another machine."""
    columns, make = figures.TABLES["losses"]
    made = cells(figures.table(columns, itertools.islice(make(), 4)))
    shown = cells((DOCS / "_generated" / "losses.md").read_text(encoding="utf-8"))
    assert len(shown) == len(figures.PROBLEMS) + 1
    for there, here in zip(shown, made, strict=False):
        assert len(there) == len(here)
        for old, new in zip(map(numbers, there), map(numbers, here), strict=True):
            assert old == (new if isinstance(new, str) else pytest.approx(new, rel=0.01))


@pytest.mark.parametrize("name", ["two-state", "unlike"])
def test_the_table_of_budgets_is_that_which_the_library_makes(name: str) -> None:
    """The quotients of two problems at the target 0.01, by the functions that ``plan`` uses."""
    problem = cs.problems.get(name)
    table = cells((DOCS / "_generated" / "budgets.md").read_text(encoding="utf-8"))
    head = table[0]
    shown = next(row for row in table if row[0] == f"`{name}`")
    place = head.index("predicted for 0.01")
    bound, mixture = planning.sharp_bound(problem, 0.05), planning.mixture_bound(problem, 0.05)
    predicted, *quotients = (float(cell.replace(",", "")) for cell in shown[place : place + 3])
    sharp = sum(1 + planning.least_transitions(chain, 0.01, bound, 1_000.0) for chain in problem.chains.values())
    found = [sharp, planning.certified_budget(problem, 0.01, lambda _: mixture)]
    assert [part / predicted for part in found] == pytest.approx(quotients, rel=0.01)


def test_the_times_are_of_every_method(figures: Any) -> None:
    shown = cells((DOCS / "_generated" / "times.md").read_text(encoding="utf-8"))
    assert [row[0] for row in shown[1:]] == [f"`{method}`" for method in figures.METHODS]


def test_the_picture_shows_the_numbers_of_today(figures: Any) -> None:
    words = figures.description()
    assert f"<dc:description>{words}</dc:description>" in (DOCS / "figures" / "plan.svg").read_text(encoding="utf-8")


def test_the_picture_of_the_idea_shows_the_numbers_of_today(figures: Any) -> None:
    words = figures.idea_in_words()
    for theme in ("light", "dark"):
        shown = (DOCS / "figures" / f"idea-{theme}.svg").read_text(encoding="utf-8")
        assert f"<dc:description>{words}</dc:description>" in shown
        assert len(shown) < 100_000


def test_the_picture_of_evidence_shows_the_numbers_of_today(figures: Any) -> None:
    shown = (DOCS / "figures" / "evidence.svg").read_text(encoding="utf-8")
    assert f"<dc:description>{figures.evidence_in_words()}</dc:description>" in shown


def test_the_picture_of_answers_shows_the_numbers_of_today(figures: Any) -> None:
    shown = (DOCS / "figures" / "answers.svg").read_text(encoding="utf-8")
    assert f"<dc:description>{figures.answers_in_words()}</dc:description>" in shown
