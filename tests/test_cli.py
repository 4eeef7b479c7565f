"""The command line as a person meets it: real processes for the entry point, the runner for the rest."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import chainscout as cs
from chainscout.cli import main
from chainscout.numerals import cell


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_change_log_names_every_command() -> None:
    text = (Path(__file__).resolve().parent.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    listed = next(found for found in re.findall(r"`chainscout ([^`]*)`", text) if "|" in found)
    assert re.split(r"\s*\|\s*", listed) == list(main.commands)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom chainscout.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'rich', 'pydantic', 'numba', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_status_imports_nothing_that_it_does_not_show(tmp_path: Path) -> None:
    where = tmp_path / "lab.db"
    with cs.Study.create(where, {f"c{k}": 2 for k in range(3)}) as study:
        study.tell_many([(f"c{k}", x) for x in (0, 1, 1, 0) for k in range(3)])
    code = (
        "import sys\nfrom chainscout.cli import main\n"
        f"try: main(['status', {str(where)!r}, '--json'])\nexcept SystemExit as end: assert not end.code\n"
        "heavy = {'scipy', 'rich', 'pydantic', 'numba', 'matplotlib', 'starlette'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_inspect_lists_the_catalogue() -> None:
    shown = run("inspect")
    assert shown.exit_code == 0
    assert all(name in shown.output for name in cs.problems.names())


def test_json_is_what_the_library_says(tmp_path: Path) -> None:
    file = tmp_path / "channels.toml"
    cs.problems.get("gilbert-elliott").save(file)
    shown = run("inspect", str(file), "--json")
    assert shown.exit_code == 0
    tables = json.loads(shown.output)
    chains = cs.problems.get("gilbert-elliott").chains
    assert [row["chain"] for row in tables[0]["rows"]] == list(chains)
    assert [row["ΣG"] for row in tables[0]["rows"]] == [chain.variability for chain in chains.values()]
    name = next(iter(chains))
    states = json.loads(run("inspect", str(file), "--chain", name, "--json").output)[0]["rows"]
    assert [row["state"] for row in states] == list(chains[name].states)


@pytest.mark.parametrize(
    "options", [["--budget", "5000"], ["--target-loss", "0.05"], ["--budget", "60", "--delta", ".2"]]
)
def test_plan_prints_a_table_and_json(options: list[str]) -> None:
    assert "Theorem 1" in run("plan", "two-state", *options).output
    tables = json.loads(run("plan", "two-state", *options, "--json").output)
    assert {"quantity", "what it is"} < set(tables[1]["rows"][0])


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["inspect", "no-such-thing"], 2, "neither a file nor a built-in problem"),
        (["inspect", "unlyke"], 2, "problem 'unlyke' (did you mean unlike?); built-in are two-state, "),
        (["plan", "dirichlet:sed=1", "--budget", "99"], 2, "has no parameter 'sed' (did you mean seed?)"),
        (["inspect", "missing.toml"], 1, "missing.toml"),
        (["inspect", "unlike", "--chain", "purple"], 2, "unknown chain 'purple'"),
        (["inspect", "unlike", "--chain", "stick"], 2, "unknown chain 'stick' (did you mean sticky?)"),
        (["inspect", "dirichlet:states=0"], 2, "states"),
        (["inspect", "unlike", "--delta", "2"], 2, "delta"),
        (["plan", "unlike"], 2, "needs a budget"),
        (["plan", "unlike", "--budget", "many"], 2, "--budget"),
        (["plan", "unlike", "--target-loss", "-1"], 2, "target_loss"),
        (["plan", "unlike", "--budget", "100", "--delta", "1e-320"], 2, "delta"),
        (["plan"], 2, "FILE|NAME"),
        (["fly"], 2, "fly"),
    ],
)
def test_a_wrong_use_ends_with_a_sentence_and_no_traceback(arguments: list[str], status: int, words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "chainscout", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_the_terminal_cannot_write_is_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "chainscout", "inspect", "two-state"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
    )
    assert done.returncode == 1
    assert done.stderr.strip() == r"chainscout: '\u03b3' cannot be written in ascii"


def test_a_bad_file_has_every_error_listed(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('format = 1\n[chains.a]\nmatrix = [[0.5, 0.4], [0, 1]]\n[chains.b]\nmatrix = "x"\n')
    shown = run("inspect", str(file))
    assert shown.exit_code == 1
    assert "chains.a" in shown.output
    assert "chains.b" in shown.output


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (True, "yes"),
        (False, "no"),
        (1234567, "1,234,567"),
        (10**40, "1e+40"),
        (0.0, "0.0000"),
        (0.12345678, "0.1235"),
        (1234.5678, "1,235"),
        (1e-9, "1.000e-09"),
        (2.5e9, "2.500e+09"),
        ("a [bold] name", "a [bold] name"),
    ],
)
def test_a_cell_is_short_and_true(value: object, text: str) -> None:
    assert cell(value) == text


def in_terminal(columns: int, *arguments: str) -> str:
    """What a person sees in a terminal of so many columns."""
    main_end, other_end = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    command = [sys.executable, "-m", "chainscout", *arguments]
    with subprocess.Popen(command, stdout=other_end, stderr=subprocess.PIPE, env=environment) as process:
        os.close(other_end)
        found = b""
        with contextlib.suppress(OSError):  # Linux: the other end was closed
            while piece := os.read(main_end, 65536):
                found += piece
        os.close(main_end)
        assert process.stderr is not None
        words = process.stderr.read()
    assert process.returncode == 0, words
    return re.sub(r"\x1b\[[0-9;]*m", "", found.decode())


@pytest.mark.parametrize("columns", [100, 80, 60, 40])
@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "unlike"],
        ["inspect", "unlike", "--chain", "sticky"],
        ["inspect"],
        ["plan", "unlike", "--budget", "100000", "--target-loss", "0.01"],
        ["compare", "unlike", "--policies", "uniform,oracle", "--budgets", "300", "--replications", "20"],
        ["status", "lab.db"],
    ],
)
def test_tables_break_no_word_and_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int, arguments: list[str]
) -> None:
    """Every word and every number of what a wide pipe gets is there, whole, in lines that have room."""
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "status":
        with cs.learn(cs.problems.get("unlike"), 300, where="lab.db", progress=False):
            pass
    shown = in_terminal(columns, *arguments)
    assert max(map(len, shown.splitlines())) <= columns
    wide = run(*arguments).output
    longest = (columns - 7) // 2  # only words that are longer may be broken
    words = {word for word in wide.split() if len(word) <= longest and not set(word) <= {"─"}}
    assert words <= set(shown.split())


def test_a_table_in_parts_repeats_what_its_rows_are_about() -> None:
    arguments = ["compare", "unlike", "--policies", "uniform,oracle", "--budgets", "300,400", "--replications", "20"]
    shown = in_terminal(60, *arguments)
    losses = shown[: shown.index("differences")]
    heads = [line.split() for line in losses.splitlines() if line.split()[:1] == ["policy"]]
    assert len(heads) > 1
    assert all(words[:2] == ["policy", "budget"] for words in heads)
    assert losses.count("uniform") == 2 * len(heads)


def test_status_says_which_rows_are_unknown(tmp_path: Path) -> None:
    where = tmp_path / "lab.db"
    with cs.Study.create(where, {"pump": ["idle", "hot", "down"], "saw": 2}) as study:
        for state in ("idle", "idle", "hot"):
            study.tell("pump", state)
        for state in (0, 1, 0):
            study.tell("saw", state)
    shown = run("status", str(where)).output
    assert "pump: 2 of 3 rows were never left: nothing is known of them" in shown
    assert "saw: " not in shown


def test_a_name_that_is_too_long_for_a_line_is_broken_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "names.json"
    name = "z" * 70
    cs.Problem({name: cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])}).save(file)
    shown = in_terminal(60, "inspect", str(file))
    assert "z" * 26 in shown
    assert shown.count("z") % 70 == 0
    assert "5.735e+07" in in_terminal(20, "inspect", str(file)), "a number stays whole where there is no room"


def test_markup_in_names_is_shown_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "names.json"
    chain = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["[red]x[/red]", "<b>"])
    cs.Problem({"[bold]north[/bold]": chain}).save(file)
    assert "[bold]north[/bold]" in run("inspect", str(file)).output
    assert "[red]x[/red]" in run("inspect", str(file), "--chain", "[bold]north[/bold]").output
