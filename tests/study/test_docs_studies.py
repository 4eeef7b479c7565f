"""The examples of docs/studies.md: its programs in shell and C, its study file, and what it says of the protocol."""

import re
import tomllib
from pathlib import Path

from chainscout.learning import ChainTable, StudyTable

PAGE = Path(__file__).resolve().parents[2] / "docs" / "studies.md"


def code_blocks():
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_the_study_file_of_the_documentation_is_one():
    (text,) = [block for language, block in code_blocks() if language == "toml"]
    table = StudyTable.model_validate(tomllib.loads(text))
    assert {name: ChainTable.model_validate(entry).command for name, entry in table.chains.items()}["rig"] == [
        "./simulate",
        "7",
    ]


def test_the_page_has_a_program_in_shell_and_one_in_c():
    assert {"sh", "c"} <= {language for language, _ in code_blocks()}
