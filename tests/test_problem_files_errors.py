"""A bad problem file is one FileError that names every place."""

import json
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainscout import MarkovChain
from chainscout.errors import FileError, InputError
from chainscout.problems import Problem
from chainscout.problems.reading import MOST_SHOWN
from chainscout.problems.writing import _toml

BAD_FILES = {
    "missing": ("p.toml", None, "cannot be read: No such file or directory"),
    "missing, odd suffix": ("p.yaml", None, "cannot be read: No such file or directory"),
    "odd suffix": (
        "p.yaml",
        b"format: 1",
        "ends in .toml, .json, .drn or .umb, not '.yaml'",
    ),
    "no suffix": (
        "p",
        b"format = 1",
        "ends in .toml, .json, .drn or .umb, not ''",
    ),
    "empty TOML": ("p.toml", b" \n", "this file is empty"),
    "empty JSON": ("p.json", b"", "this file is empty"),
    "binary TOML": ("p.toml", b"\x89PNG\r\n\x1a\n\0\0", "not a text file in UTF-8: byte 0"),
    "binary JSON": ("p.json", b'{"format": "\xff', "not a text file in UTF-8: byte 12"),
    "truncated TOML": ("p.toml", b"format = 1\n[chains.a", r"not TOML: .*\(at (line 2, column \d+|end of document)\)"),
    "truncated JSON": ("p.json", b'{\n"format": 1,', "line 2, column 1[34]: this is not JSON"),
    "deep TOML": ("p.toml", b"a = " + b"[" * 100_000, "nested too deeply"),
    "deep JSON": ("p.json", b"[" * 100_000, "nested too deeply"),
    "key twice in TOML": ("p.toml", b"format = 1\nformat = 1\n", r"not TOML: .*line 2"),
    "chain twice in JSON": ("p.json", b'{"chains": {"a": {}, "a": {}}}', "key 'a' is given twice in one table"),
    "huge number": ("p.json", b'{"format": ' + b"1" * 5_000 + b"}", "not JSON: .*digits"),
    "list at the top": ("p.json", b"[1, 2]", r"a table of keys at its top, not \[1, 2\]"),
    "null at the top": ("p.json", b"null", "a table of keys at its top, not None"),
    "no format": ("p.toml", b"[chains.a]\nmatrix = [[1]]", "format: this key is required, and it is missing"),
    "later format": ("p.toml", b"format = 2\n[chains.a]\nmatrix = [[1]]", "format: .* reads format 1, not 2"),
    "format as text": ("p.toml", b'format = "1"\n[chains.a]\nmatrix = [[1]]', "format: .* reads format 1, not '1'"),
    "no chains": ("p.toml", b"format = 1", "chains: this key is required"),
    "empty chains": ("p.toml", b"format = 1\n[chains]", "chains: a problem must have at least one chain"),
    "chains as list": ("p.json", b'{"format": 1, "chains": []}', r"chains: this must be a table of keys, not \[\]"),
    "chain as list": ("p.json", b'{"format": 1, "chains": {"a": []}}', r"chains.a: a chain must be a table .* \[\]"),
    "empty name": ("p.toml", b'format = 1\n[chains.""]\nmatrix = [[1]]', "chains.'': a chain's name must be"),
    "name as number": (
        "p.toml",
        b"format = 1\nname = 3\n[chains.a]\nmatrix = [[1]]",
        "name: this must be a string, not 3",
    ),
    "unknown key": ("p.toml", b"format = 1\nx = 3\n[chains.a]\nmatrix = [[1]]", "x: unknown key; .* format, name"),
    "NaN in JSON": ("p.json", b'{"format": 1, "chains": {"a": {"matrix": [[NaN]]}}}', "chains.a.matrix: .* is nan"),
}
BAD_CHAINS = {
    "unknown key": ("matrix = [[1]]\nx = 1", "x: unknown key; .* states, initial, tolerance, matrix"),
    "no matrix": ("", "matrix: this key is required"),
    "empty matrix": ("matrix = []", "matrix: .* at least one state"),
    "ragged": ("matrix = [[1], [0.5, 0.5]]", "matrix: row 0 has 1 entries, .* needs 2"),
    "not square": ("matrix = [[0.5, 0.5]]", "matrix: row 0 has 2 entries, .* needs 1"),
    "flat matrix": ("matrix = [1]", "matrix, row 1: this must be a list, not 1"),
    "text in a matrix": ("matrix = [['1']]", "matrix, row 1, column 1: .* number, not '1'"),
    "truth in a matrix": ("matrix = [[true]]", "matrix, row 1, column 1: .* number, not True"),
    "huge number in a matrix": (f"matrix = [[{10**400}]]", "matrix, row 1, column 1: .* number, not 1000"),
    "date in a matrix": ("matrix = [[1979-05-27]]", "matrix, row 1, column 1: .* number, not datetime"),
    "NaN": ("matrix = [[nan]]", "matrix: row 0 holds probabilities, but that of 0 is nan"),
    "infinity": ("matrix = [[inf]]", "matrix: row 0 holds probabilities, but that of 0 is inf"),
    "negative": ("matrix = [[0.5, -0.5], [0, 1]]", "matrix: row 0 holds probabilities, but that of 1 is -0.5"),
    "row sum": ("matrix = [[0.5, 0.4], [0, 1]]", "matrix: row 0 sums to 0.9, .* needs a 'tolerance'"),
    "beyond tolerance": ("tolerance = 0.05\nmatrix = [[0.9]]", "matrix: row 0 sums to 0.9, .* one within 0.05$"),
    "bad tolerance": ("tolerance = 1.0\nmatrix = [[1]]", "tolerance: .* < 1"),
    "states twice": ("states = ['a', 'a']\nmatrix = [[1, 0], [0, 1]]", "states: states must be unique, .*'a'"),
    "too few states": ("states = ['a']\nmatrix = [[1, 0], [0, 1]]", "states: states must have .* 2 in all"),
    "odd states": ("states = [true]\nmatrix = [[1]]", "states, item 1: a state's label must be .* not True"),
    "initial": ("initial = [0.5]\nmatrix = [[1]]", "initial: the initial law must be"),
    "initial as text": ("initial = 'a'\nmatrix = [[1]]", "initial: .* list, not 'a'"),
}
BAD_FILES |= {
    f"chain: {name}": ("p.toml", f"format = 1\n[chains.north]\n{text}".encode(), f"chains.north.{sentence}")
    for name, (text, sentence) in BAD_CHAINS.items()
}


@pytest.mark.parametrize(("file", "content", "sentence"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_one_error_with_its_place(file, content, sentence, tmp_path):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(FileError) as caught:
        Problem.load(tmp_path / file)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path / file}: ")
    assert re.search(sentence, line)


def test_every_error_of_a_file_is_told_at_once(tmp_path):
    (tmp_path / "p.toml").write_text(
        "format = 1\ntitle = 1\n"
        "[chains.a]\nx = 1\ninitial = [1]\nmatrix = [[0.5, 0.4], [0.5, -0.5]]\n"
        "[chains.'b c']\ntolerance = 7\nstates = ['u', 2.5]\nmatrix = [[1.0, 'x'], [0.5]]\n"
        "[chains.c]\nmatrix = [[nan, 0], [0.1, 0.1]]\n"
    )
    with pytest.raises(FileError) as caught:
        Problem.load(tmp_path / "p.toml")
    places = [line.removeprefix(f"{tmp_path / 'p.toml'}: ").split(": ")[0] for line in str(caught.value).splitlines()]
    expected = ["title", "chains.a.x", "chains.a.initial", "chains.a.matrix", "chains.a.matrix"]
    expected += ["chains.'b c'.states, item 2", "chains.'b c'.matrix, row 1, column 2"]
    assert sorted(places) == sorted([*expected, "chains.c.matrix", "chains.c.matrix"])


def test_too_many_errors_are_counted(tmp_path):
    rows = [["x"] * 10] * 10
    (tmp_path / "p.json").write_text(json.dumps({"format": 1, "chains": {"a": {"matrix": rows}}}))
    with pytest.raises(FileError) as caught:
        Problem.load(tmp_path / "p.json")
    lines = str(caught.value).splitlines()
    assert len(lines) == MOST_SHOWN + 1
    assert lines[-1] == f"… and {100 - MOST_SHOWN} more errors"


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    for name in ("pipe.toml", "folder.toml"):
        with pytest.raises(FileError, match=rf"{name}: a problem is read from a file, and this is none"):
            Problem.load(tmp_path / name)
    with pytest.raises(FileError, match=r"cannot be read: .*null"):
        Problem.load("a\0b.toml")
    with pytest.raises(FileError, match="cannot be read: File name too long"):
        Problem.load("x" * 5_000 + ".toml")
    with pytest.raises(InputError, match="path must be a string or a path, not None"):
        Problem.load(None)


ALMOST = st.sampled_from(
    [0.5, 0.25, 1.0, 0.0, -0.5, 0.5 + 1e-9, 0.5 + 9e-10, 0.5 - 3e-9, float("nan"), float("inf"), 2]
)


def almost_square(size):
    return st.lists(st.lists(ALMOST, min_size=size, max_size=3), min_size=size, max_size=size)


@given(matrix=st.integers(1, 3).flatmap(almost_square))
@settings(max_examples=60, deadline=None)
def test_a_file_takes_exactly_the_matrices_that_a_chain_takes(matrix, tmp_path_factory):
    where = tmp_path_factory.mktemp("p") / "p.toml"
    where.write_text(_toml({"format": 1, "chains": {"a": {"matrix": matrix}}}))
    try:
        chain = MarkovChain(matrix)
    except InputError:
        with pytest.raises(FileError):
            Problem.load(where)
    else:
        assert Problem.load(where)["a"] == chain
