"""The examples of docs/studies.md: its program for many workers, those in shell and C, and its study file."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from chainscout.learning import ChainTable, StudyTable
from chainscout.study import Study

PAGE = Path(__file__).resolve().parents[2] / "docs" / "studies.md"


def code_blocks():
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_the_study_file_of_the_documentation_is_one():
    (text,) = [block for language, block in code_blocks() if language == "toml"]
    table = StudyTable.model_validate(tomllib.loads(text))
    # A command with a fixed seed gives the same states again when the study goes on after a crash.
    assert ChainTable.model_validate(table.chains["rig"]).command == ["./simulate"]
    assert "a fixed one repeats its paths, and no bound holds" in text


def test_the_page_has_a_program_in_shell_and_one_in_c():
    assert {"sh", "c"} <= {language for language, _ in code_blocks()}


@pytest.mark.system
def test_the_program_in_c_takes_a_new_seed_at_every_start(tmp_path):
    compiler = shutil.which("cc")
    assert compiler is not None, "this test needs a C compiler"
    (source,) = [block for language, block in code_blocks() if language == "c"]
    (tmp_path / "simulate.c").write_text(source, encoding="utf-8")
    program = tmp_path / "simulate"
    subprocess.run([compiler, "-o", program, tmp_path / "simulate.c"], check=True)
    walks = [
        subprocess.run([program], input="next\n" * 100, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert [len(walk.split()) for walk in walks] == [100, 100]
    assert walks[0] != walks[1]  # equal with probability 2⁻¹⁰⁰ if the seeds differ, and 2⁻³² that they do not


def test_the_page_says_when_a_second_call_is_right_and_what_to_do_with_a_spoilt_study():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert "So the same call is right the second time too, if its sources do not repeat themselves" in text
    assert "Mend the source, and make a new study under another name. The old study keeps its whole log" in text


# -- many workers


def many_workers():
    """The program, and what the page says that it prints."""
    text = PAGE.read_text(encoding="utf-8")
    program = re.search(r"^```{code-block} python\n:caption: four.py\n\n(.*?)^```", text, re.M | re.S)
    assert program is not None
    printed = re.compile(r"^```text\n(.*?)^```", re.M | re.S).search(text, program.end())
    assert printed is not None
    return program[1], printed[1]


def without_numbers(text):
    return re.sub(r"[0-9. ]+", " ", text)


def test_the_program_of_many_workers_on_both_stores(where, tmp_path):
    """As a new user runs it. The estimates are those of the truth: five standard errors, and what smoothing adds."""
    program, printed = many_workers()
    file = tmp_path / "four.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file), str(where)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert without_numbers(done.stdout) == without_numbers(printed)
    laws = runpy.run_path(str(file))["LAWS"]
    with Study.open(where, read_only=True) as study:
        progress = study.progress()
        assert (progress.observations, progress.stop_reason, progress.lost) == (2000, "budget", 0)
        assert len(laws) <= progress.paths <= 4 * len(laws)
        assert sum(study.counts(name).total for name in laws) == 2000 - progress.paths
        assert study.repeated_paths() == ()
        for name, law in laws.items():
            estimate, truth = study.estimate(name), np.array(law)
            exits = estimate.exits[:, None]
            assert (exits > 20).all()
            assert (abs(estimate.matrix - truth) <= 5 * np.sqrt(truth * (1 - truth) / exits) + 1 / exits).all()
            loss = (estimate.stationary * ((estimate.matrix - truth) ** 2).sum(axis=1)).sum()
            assert loss <= study.certificate().loss[name]
        study.audit()
