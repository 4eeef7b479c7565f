"""``chainscout compare`` as a person meets it: tables, files, a page that loads nothing, Ctrl-C and going on."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

import chainscout as cs
from chainscout.cli import main
from chainscout.cli.experiments import split_budgets
from chainscout.installation import extra_command
from chainscout.numerals import cell
from chainscout.specs import split

COMMAND = [sys.executable, "-m", "chainscout", "compare"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A problem whose names try to be something else."""
    file = tmp_path_factory.mktemp("problem") / "hostile.json"
    chain = cs.MarkovChain([[0.9, 0.1], [0.2, 0.8]])
    names = ["<script>alert(1)</script>", "\"' onload=x --> ]]>", "&amp; $\\frac$ [bold]", "漢字"]
    other = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    chains = {name: chain if k % 2 else other for k, name in enumerate(names)}
    problem = cs.Problem(chains, name="<img src=x onerror=y>", description="</p><script src='http://evil.example/'>")
    problem.save(file)
    return file


@pytest.fixture(scope="module")
def written(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory of a finished run, and what was printed."""
    out = tmp_path_factory.mktemp("runs") / "deep" / "run"
    options = ["--policies", "uniform,static:weights=1/2/3/4,oracle", "--budgets", "40,400", "--replications", "20"]
    done = run(str(hostile), *options, "--out", str(out))
    assert done.exit_code == 0, done.output
    return out, done.stdout


# ---------------------------------------------------------------- output


def test_the_table_is_printed_and_files_are_written(written: tuple[Path, str]) -> None:
    out, printed = written
    assert sorted(file.name for file in out.iterdir()) == ["loss.png", "loss.svg", "report.html", "run.npz"]
    assert printed.splitlines()[-1] == str(out / "report.html")
    results = cs.Results.load(out / "run.npz")
    for row in results.summary():
        shown = f"{cell(row['n·E[max L]/Λ'])} ± {row['± n·E[max L]/Λ']:.2g}"
        assert re.search(rf"{re.escape(row['policy'])}.*{row['budget']}.*{re.escape(shown)}", printed)
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(out / "loss.svg")


def test_json_has_the_numbers_of_the_library(hostile: Path) -> None:
    options = ["--policies", "uniform,oracle", "--budgets", "5,60", "--replications", "6", "--seed", "3"]
    done = run(str(hostile), *options, "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    results = cs.compare(cs.Problem.load(hostile), ["uniform", "oracle"], [5, 60], 6, seed=3)
    late = [row for row in results.summary() if row["budget"] == 60]
    assert [row for row in content["summary"] if row["budget"] == 60] == late
    assert content["summary"][0]["n·max E[L]/Λ"] is None  # five observations of four chains
    assert content["allocation"] == results.allocation()
    assert content["settings"] == [json.loads(json.dumps(dict(results.settings)))]
    assert len(content["differences"]) == 2


def test_lists_on_the_command_line() -> None:
    assert split("a,b:x=1,y=2, c d:z=3") == ["a", "b:x=1,y=2", "c", "d:z=3"]
    assert split_budgets("1000, 10_000,1e5") == [1_000, 10_000, 100_000]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "neither a file nor a built-in problem"),
        (["unlike", "--policies", "scuot"], "did you mean scout?"),
        (["unlike", "--policies", ""], "at least one policy"),
        (["unlike", "--policies", "scout,scout"], "given twice"),
        (["unlike", "--budgets", "many"], "budgets must be whole numbers separated by commas, not 'many'"),
        (["unlike", "--budgets", "1.5"], "whole numbers"),
        (["unlike", "--budgets", "inf"], "whole numbers"),
        (["unlike", "--budgets", ","], "at least one budget"),
        (["unlike", "--budgets", "0"], "whole number ≥ 1"),
        (["unlike", "--replications", "0"], "replications"),
        (["unlike", "--engine", "abacus"], "engine must be one of python, cpu"),
        (["unlike", "--resume"], "--resume needs --out"),
        (["unlike", "--delta", "1"], "delta"),
        (["unlike", "--delta", "1e-17"], "delta (the quantile of probability 1 − delta is reported) must be"),
        (["unlike", "--budgets", "100000000000000000000"], "a budget (a number of observations) must be at most"),
        (["unlike", "--replications", "100000000000000000000"], "there is no room for them"),
        (["unlike", "--seed", "-1"], "seed"),
    ],
)
def test_a_wrong_use_is_one_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    out = [] if "--resume" in arguments else ["--out", str(tmp_path / "out")]
    done = run(*arguments, *out)
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()


def test_directories_are_not_overwritten(written: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = written
    before = (out / "run.npz").read_bytes()
    done = run("unlike", "--out", str(out))
    assert (done.exit_code, "holds a finished run" in done.stderr) == (2, True)
    done = run("unlike", "--out", str(out), "--resume")
    assert (done.exit_code, "holds no interrupted run" in done.stderr) == (2, True)
    assert (out / "run.npz").read_bytes() == before
    (tmp_path / "file").write_text("")
    done = run("unlike", "--policies", "uniform", "--budgets", "9", "--replications", "4", "--out", f"{tmp_path}/file")
    assert done.exit_code == 1
    assert "cannot keep an experiment" in done.stderr


# ---------------------------------------------------------------- the page


class Page(HTMLParser):
    """Tags with their attributes, and the texts of all cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag in ("td", "th", "h1")
        if self.inside:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.cells[-1] += data


def test_the_page_loads_and_runs_nothing(written: tuple[Path, str]) -> None:
    text = (written[0] / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "embed", "image", "foreignobject", "audio", "video"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src", "xlink:href", "action", "data", "srcset"):
                assert value is not None
                assert value.startswith("#"), (tag, name, value)
    # Addresses may stand only where they name a vocabulary (XML) or are shown as text.
    assert not re.findall(r"(?<!&#x27;)https?://(?!www\.w3\.org/)", text)
    assert not re.findall(r"url\((?!#)|@import", text)
    assert "default-src 'none'" in text


def test_the_page_shows_names_as_they_are_and_the_library_s_numbers(written: tuple[Path, str]) -> None:
    out, _ = written
    page = Page((out / "report.html").read_text(encoding="utf-8"))
    results = cs.Results.load(out / "run.npz")
    assert page.cells[0] == "Experiment: <img src=x onerror=y>"
    assert set(results.problem.names) <= set(page.cells)
    for row in results.summary():
        assert f"{cell(row['n·max E[L]/Λ'])} ± {row['± n·max E[L]/Λ']:.2g}" in page.cells
    for row in results.allocation():
        assert cell(row["share"]) in page.cells
    assert {"seed", "version of numba", "policy static:weights=1/2/3/4"} <= set(page.cells)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("figure") == 3
    assert tags.count("polyline") == 2 * len(results.policies)  # two losses a policy
    assert tags.count("rect") == len(results.policies) * len(results.problem)  # a share of each chain
    assert tags.count("table") == 4


def test_a_run_gives_the_same_files_again(written: tuple[Path, str], hostile: Path, tmp_path: Path) -> None:
    options = ["--policies", "uniform,static:weights=1/2/3/4,oracle", "--budgets", "40,400", "--replications", "20"]
    assert run(str(hostile), *options, "--out", str(tmp_path)).exit_code == 0
    for name in ("run.npz", "report.html", "loss.svg"):
        assert (tmp_path / name).read_bytes() == (written[0] / name).read_bytes(), name


# ---------------------------------------------------------------- Ctrl-C

#: One rule with many shares: nothing but the first is compiled, and there are many more tasks than cores.
SHARES = [f"static:weights=1/{k}/3" for k in range(1, 13)]
LONG = ["unlike", "--policies", ",".join(SHARES), "--budgets", "100,20000", "--replications", "400"]


@pytest.fixture(scope="module")
def whole() -> cs.Results:
    """What LONG gives when nobody interrupts it."""
    return cs.compare(cs.problems.get("unlike"), SHARES, [100, 20_000], 400)


def interrupted(out: Path, *options: str) -> "tuple[subprocess.Popen[str], str, str, float]":
    """A run that Ctrl-C was pressed on after its first tasks, with its output and how long it took to end."""
    process = subprocess.Popen(
        [*COMMAND, *LONG, "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(list(out.glob("tasks/*.npz"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all of the group
    printed, errors = process.communicate(timeout=60)
    return process, printed, errors, time.monotonic() - begun


def test_ctrl_c_keeps_finished_tasks_and_resume_gives_the_same_bits(tmp_path: Path, whole: cs.Results) -> None:
    out = tmp_path / "run"
    process, printed, errors, seconds = interrupted(out)
    assert process.returncode == 130
    assert errors == f"chainscout: stopped; finished tasks are kept, go on with --out {out} --resume\n"
    assert printed == ""
    # Measured: 0.1 s. What is promised is that no task is waited for; the rest is the machine's load.
    assert seconds < 10
    kept = {file: file.stat().st_mtime_ns for file in out.glob("tasks/*.npz")}
    assert 2 <= len(kept) < 12 * 8
    done = run(*LONG, "--out", str(out))
    assert (done.exit_code, "go on with it by --resume" in done.stderr) == (2, True)
    done = run(*LONG, "--out", str(out), "--resume", "--seed", "5")
    assert (done.exit_code, "holds another experiment" in done.stderr) == (2, True)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    done = run(*LONG, "--out", str(out), "--resume")
    assert done.exit_code == 0, done.output
    assert not (out / "tasks").exists()
    resumed = cs.Results.load(out / "run.npz")
    assert resumed.loss.tobytes() == whole.loss.tobytes()
    assert resumed.pulls.tobytes() == whole.pulls.tobytes()


def test_a_run_whose_files_could_not_be_written_goes_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["unlike", "--policies", "uniform", "--budgets", "50", "--replications", "8", "--out", str(tmp_path)]
    (tmp_path / "report.html").mkdir()  # in the way
    done = run(*options)
    assert done.exit_code == 1
    assert "could not be written" in done.stderr
    (tmp_path / "report.html").rmdir()
    assert run(*options, "--resume").exit_code == 0
    assert (tmp_path / "report.html").is_file()


# ---------------------------------------------------------------- Dask


def test_a_local_cluster_and_ctrl_c_on_it(tmp_path: Path, whole: cs.Results) -> None:
    out = tmp_path / "run"
    process, printed, errors, _ = interrupted(out, "--dask", "local")
    assert process.returncode == 130
    assert "chainscout: stopped; finished tasks are kept" in errors
    assert "Traceback" not in errors
    assert printed == ""
    done = subprocess.run(
        [*COMMAND, *LONG, "--out", str(out), "--resume", "--dask", "local"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert cs.Results.load(out / "run.npz").loss.tobytes() == whole.loss.tobytes()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense:x:y", "ftp://somewhere:1"])
def test_no_scheduler_is_one_sentence(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainscout.experiment.cluster.PATIENCE", "1s")
    done = run("unlike", "--dask", address)
    assert done.exit_code == 2
    assert f"no Dask scheduler answers at '{address}'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_dask_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = run("unlike", "--dask", "local")
    assert done.exit_code == 2
    assert done.stderr == f"chainscout: --dask needs an optional dependency: {extra_command('cluster')}\n"


# ---------------------------------------------------------------- progress


def test_a_terminal_gets_a_bar_with_rate_and_time_left() -> None:
    primary, secondary = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    options = ["unlike", "--policies", "uniform", "--budgets", "20000", "--replications", "2000"]
    process = subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, stderr=secondary, env=environment)
    os.close(secondary)
    seen = b""
    while True:
        ready, _, _ = select.select([primary], [], [], 60)
        try:
            piece = os.read(primary, 65_536) if ready else b""
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(primary)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    text = seen.decode()
    assert "simulating" in text
    assert re.search(r"\d\.\d M steps/s", text)
    assert re.search(r"\d:\d\d:\d\d", text)
    assert "\x1b" not in printed.decode()  # the table is in a pipe


def test_a_pipe_gets_no_bar() -> None:
    options = ["unlike", "--policies", "uniform", "--budgets", "100", "--replications", "8"]
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "simulating" not in done.stdout
