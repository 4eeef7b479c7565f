"""What an entry is, its digest, and the journal as lines that a person can read."""

import json
from contextlib import closing
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_places import CREATED, Reader, told

from chainscout.errors import FileError, InputError
from chainscout.journal.backup import read_lines, restore, write_lines
from chainscout.journal.entry import KINDS, START, Draft, End, Kind, packed, sealed, unpacked
from chainscout.journal.opening import create


def test_the_numbers_of_kinds_are_those_of_the_format():
    """Another list is another format: the number of the format changes with this test."""
    names = (
        "CREATED, SESSION, WORKER, CONTINUED, LEASE, TOLD, LABEL, RENEWED, EXPIRED, ABANDONED, GIVEN_BACK, PATH_ENDED, "
        "LOST, SET_ASIDE, TAKEN_UP, EXTENDED, BOUND, ANSWERED, CHECKED, REPEATED, RULE, AIM, CLOSED, CORRECTED"
    )
    assert ", ".join(kind.name for kind in Kind) == names
    assert [kind.value for kind in Kind] == list(range(1, 25))
    assert [(end.value, end.name) for end in End] == list(
        enumerate(["TERMINATED", "TRUNCATED", "DUE", "LOST", "UNKNOWN"], start=1)
    )
    assert list(KINDS.values()) == list(Kind)


def test_a_digest_is_what_the_documentation_says():
    before = 0
    for entry in sealed(START, 1_700_000_000_000, [CREATED, told(3), told(-1, more=packed(key="ß"))]):
        values = [*entry[:2], int(entry.kind), *entry[3:7], unpacked(entry.more) or None]
        line = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        content = str(before).encode() + line.encode()
        assert entry.digest == int.from_bytes(blake2b(content, digest_size=8).digest(), "big", signed=True)
        before = entry.digest


def test_what_more_holds():
    assert unpacked(packed(reason="a\nb", of={"x": [1, None, True]})) == {
        "reason": "a\nb",
        "of": {"x": [1, None, True]},
    }
    assert unpacked("") == {}
    assert "\n" not in packed(reason="a\nb")
    with pytest.raises(ValueError, match="not JSON compliant"):
        packed(ratio=float("inf"))


@pytest.fixture(scope="module")
def study():
    """A journal in memory with what lines may hold."""
    journal = create(None, CREATED)
    texts = [
        "",
        packed(key='"],"0123456789abcdef"]'),
        packed(label="Zürich\n\r\u2028\x85\0🙂"),
        packed(label={"a": [1]}),
    ]
    journal.append(START, lambda tail: [told(value, more=texts[value % 4], by=value) for value in range(12)])
    return journal


@pytest.fixture
def lines(study, tmp_path):
    path = tmp_path / "study.jsonl"
    assert write_lines(study.pages(), path) == study.read()[-1].head
    return path


def test_lines_and_back_again(place, folder):
    """From each kind of journal to each: the same entries, the same digests."""
    journal, where = place.new()
    reader = Reader(journal)
    reader.append(3)
    journal.append(reader.head, lambda tail: [told(1, more=packed(label="Zürich\0"))])
    head = write_lines(journal.pages(), folder / "a.jsonl")
    assert head == reader.read().head
    for target in (None, folder / "copy.db"):
        with closing(restore(folder / "a.jsonl", target)) as copy:
            assert copy.read() == reader.entries
            Reader(copy).append()
    if place.kind == "memory":
        return
    with pytest.raises(InputError, match="exists already"):
        restore(folder / "a.jsonl", where)
    for table in ("journal", "snapshot"):
        place.change(where, f"DROP TABLE {table}")
    if place.kind == "postgres":
        with closing(restore(folder / "a.jsonl", where)) as again:
            assert again.read() == reader.entries


def test_each_line_is_json_and_shows_its_entry(study, lines):
    content = lines.read_text(encoding="utf-8")
    found = [json.loads(line) for line in content.split("\n")[:-1]]
    entries = study.read()
    assert [line[:8] for line in found] == [
        [*entry[:2], int(entry.kind), *entry[3:7], unpacked(entry.more) or None] for entry in entries
    ]
    assert [int(line[8], 16) for line in found] == [entry.digest % 2**64 for entry in entries]


def test_lines_never_replace_a_file(study, lines):
    before = lines.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        write_lines(study.pages(), lines)
    assert lines.read_bytes() == before
    assert [found.name for found in lines.parent.iterdir()] == [lines.name]


def test_a_last_line_that_was_cut_off_is_left_out(study, lines):
    content, entries = lines.read_bytes(), study.read()
    for cut in range(len(content)):
        lines.write_bytes(content[:cut])
        found = list(read_lines(lines))
        whole = content[:cut].count(b"\n")
        assert found == entries[: len(found)]
        assert len(found) - whole in (0, 1)  # 1: only the end of the line is missing


def test_other_ends_of_lines_are_no_damage(study, lines):
    lines.write_bytes(lines.read_bytes().replace(b"\n", b"\r\n"))
    assert list(read_lines(lines)) == study.read()


@pytest.mark.parametrize("number", [1, 5, 13])
def test_each_changed_character_is_found_with_the_entrys_number(study, lines, number):
    content = lines.read_bytes().split(b"\n")
    line = content[number - 1]
    for place in range(len(line)):
        for new in (b"0", b"7", b" ", b'"', b"\xff", b""):
            changed = line[:place] + new + line[place + 1 :]
            if changed == line:
                continue
            lines.write_bytes(b"\n".join([*content[: number - 1], changed, *content[number:]]))
            with pytest.raises(FileError, match=rf"study.jsonl is damaged: entry {number} is"):
                list(read_lines(lines))


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: lines[:4] + lines[5:], 5),
        (lambda lines: lines[1:], 1),
        (lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], 5),
        (lambda lines: [*lines[:4], lines[3], *lines[4:]], 5),
        (lambda lines: [*lines[:4], "", *lines[4:]], 5),
        (lambda lines: [*lines[:-1], lines[-2], ""], 14),
    ],
    ids=["missing", "the first is missing", "exchanged", "twice", "empty", "added"],
)
def test_lines_that_are_moved_missing_or_added_are_found(study, lines, change, number):
    content = lines.read_text(encoding="utf-8").split("\n")
    lines.write_text("\n".join(change(content)), encoding="utf-8")
    with pytest.raises(FileError, match=f"is damaged: entry {number} is"):
        list(read_lines(lines))


def test_damaged_lines_make_no_study(lines, folder):
    content = lines.read_text(encoding="utf-8").split("\n")
    content[6] = content[6].replace("[7", "[8")
    lines.write_text("\n".join(content), encoding="utf-8")
    with pytest.raises(FileError, match="entry 7 is"):
        restore(lines, folder / "study.db")
    assert not list(folder.iterdir())
    lines.write_text("", encoding="utf-8")
    with pytest.raises(FileError, match="its first entry does not create one"):
        restore(lines, folder / "study.db")
    with pytest.raises(FileError, match="could not be read"):
        restore(folder / "missing.jsonl", folder / "study.db")


whole = st.integers(0, 2**62)
small = st.integers(0, 2**31 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner),
    max_leaves=5,
)
drafts = st.builds(
    Draft, st.sampled_from(Kind), small, small, st.integers(-(2**62), 2**62), whole,
    st.just("") | st.builds(lambda value: packed(x=value), values),
)  # fmt: skip


@given(st.lists(drafts, max_size=8))
def test_any_drafts_come_back_from_lines(tmp_path_factory, given):
    journal = create(None, CREATED)
    journal.append(START, lambda tail: given)
    path = tmp_path_factory.mktemp("lines") / "study.jsonl"
    write_lines(journal.pages(), path)
    assert list(read_lines(path)) == journal.read()
