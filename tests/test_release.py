"""What a release states in several places is the same everywhere."""

import re
from pathlib import Path

import chainscout as cs

ROOT = Path(__file__).resolve().parent.parent


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_one() -> None:
    assert re.search(r"^version: (\S+)$", read("CITATION.cff"), re.M)[1] == cs.__version__  # type: ignore[index]
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \(", read("CHANGELOG.md"), re.M)
    assert versions[0] == cs.__version__
    assert versions == sorted(versions, key=lambda text: [int(part) for part in text.split(".")], reverse=True)


def test_the_change_log_has_no_empty_version() -> None:
    for section in re.split(r"^## ", read("CHANGELOG.md"), flags=re.M)[1:]:
        assert section.count("\n- ") > 3


def test_read_the_docs_builds_what_make_docs_builds() -> None:
    text = read(".readthedocs.yaml")
    configuration = re.search(r"configuration: (\S+)", text)
    assert configuration is not None
    assert (ROOT / configuration[1]).is_file()
    assert "fail_on_warning: true" in text
    assert "--group docs" in text
    assert re.search(r"^docs = \[", read("pyproject.toml"), re.M)
