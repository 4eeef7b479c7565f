"""What objects show of themselves: in a terminal, and as HTML for notebooks."""

import re
from html.parser import HTMLParser

import pytest

import chainscout as cs
from chainscout.errors import ChainscoutError
from chainscout.markup import html_table, text_table
from chainscout.numerals import bound, ends, near
from chainscout.report import studies

EVIL = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """The tags of a page, and the cells of its tables row by row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] in (["td"], ["th"]):
            self.rows[-1].append(data)


@pytest.fixture
def study() -> cs.Study:
    chain = cs.MarkovChain([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]], states=["up", EVIL, "gone"])
    chain = cs.MarkovChain(chain.matrix, states=chain.states, initial=[1, 0, 0])
    return cs.learn({"north": chain, EVIL: chain}, 200, certificate="mixture", progress=False)


def things(study: cs.Study) -> dict[str, object]:
    open_study = cs.Study.create(None, {"south": ["up", EVIL]}, budget=10)
    lease = open_study.worker("rig <7>", renews=False).lease()
    assert lease is not None
    results = cs.compare("two-state", policies=["uniform", "scout"], budgets=[20], replications=3, engine="python")
    return {
        "study": study,
        "estimate": study.estimate("north"),
        "certificate": study.certificate(),
        "answer": study.answer("north", cs.Reach(EVIL, start="up", within=3)),
        "lease": lease,
        "results": results,
    }


def test_every_repr_is_a_line_that_a_person_can_read(study: cs.Study) -> None:
    shown = {name: repr(thing) for name, thing in things(study).items()}
    assert shown["study"] == "Study(2 chains, 200 of 200 observations, finished (the budget is spent))"
    assert re.fullmatch(r"Estimate\(3 states, \d+ transitions, 1 of 3 rows was never left\)", shown["estimate"])
    losses = rf"north ≤ 0\.\d+, {re.escape(EVIL)} ≤ 0\.\d+"
    assert re.fullmatch(rf"Certificate\('mixture', δ = 0\.05: {losses}\)", shown["certificate"])
    assert shown["answer"].startswith(f'Answer(reach "{EVIL}" from up within 3: 0.')
    assert shown["lease"] == "Lease(of 'south', to 'rig <7>', path 1, at its beginning, to tell 1, is held)"
    assert shown["results"] == "Results(2 policies, 1 budgets, 3 replications)"
    assert all("\n" not in text for text in shown.values())


def test_every_html_is_escaped_and_closed(study: cs.Study) -> None:
    for name, thing in things(study).items():
        page = Reader(thing._repr_html_())  # type: ignore[attr-defined]
        assert "script" not in page.tags, name
        assert len(page.rows) > 1, name
        assert len({len(row) for row in page.rows}) == 1, name


def test_a_study_printed_says_what_is_not_known(study: cs.Study) -> None:
    lines = str(study).splitlines()
    assert lines[0] == "Study(2 chains, 200 of 200 observations, finished (the budget is spent))"
    assert lines[1].split() == ["chain", "states", "observations", "loss", "≤", "rows"]
    assert lines[2].endswith("1 of 3 rows was never left")
    assert lines[-1] == f"With probability 0.95, every loss is at most {bound(study.certificate().max)}."
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("aim", "wanted"), [({"target_width": 0.2}, ", wanted ≤ 0.2 wide"), ({"limit": 0.9}, ", limit 0.9"), ({}, "")]
)
def test_a_printed_study_shows_its_answers(aim: dict[str, float], wanted: str) -> None:
    study = cs.Study.create(None, {"a": ["up", "down"]}, questions="reach down from up within 2", **aim)
    study.tell_many([("a", state) for state in ("up", "down", "up", "up") * 5])
    (one,) = study.questions()
    expected = f"a: reach down from up within 2: {near(one.estimate)} in {ends(one.lower, one.upper)}{wanted}"
    assert str(study).splitlines()[-1] == expected
    tables = studies.status(study)
    facts, columns = dict(tables[0].rows), next(table.columns for table in tables if table.title == "questions")
    # Without an aim, no answer is ever good enough, and nothing says that it is not.
    assert ("questions answered well enough" in facts) == ("done" in columns) == bool(aim)


def test_a_study_with_many_chains_shows_the_least_known() -> None:
    study = cs.Study.create(None, {f"chain {number}": 2 for number in range(25)}, target_loss=0.1)
    for state in (0, 1, 0):
        study.tell("chain 7", state)
    text = str(study)
    assert len(text.splitlines()) == 14
    assert "chain 7" not in text
    assert text.endswith(
        "There is no bound on every loss yet.\nThese are the 10 chains with the largest bounds, of 25."
    )


def test_a_closed_study_shows_itself_all_the_same(tmp_path) -> None:
    study = cs.Study.create(tmp_path / "lab.db", {"a": 2})
    study.close()
    for text in (repr(study), str(study), study._repr_html_()):
        assert "Study" in text


def test_tables() -> None:
    lines = text_table(("name", "n"), [("a\x1b", 1_000), ("b", None)])
    assert [line.split() for line in lines] == [["name", "n"], ["a\\u001b", "1,000"], ["b", "—"]]
    assert {len(line) for line in lines} == {len(lines[0])}
    page = html_table("T & t", ("a",), [("<b>",)], ["x < y"])
    assert "T &amp; t" in page
    assert "&lt;b&gt;" in page
    assert "x &lt; y" in page


def test_without_ipython_live_says_how_to_get_it(study: cs.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "IPython.display", None)
    with pytest.raises(ChainscoutError, match=r"needs IPython, which is not installed: .* install ipython"):
        study.live()
    with pytest.raises(ChainscoutError, match=r"two looks at the study\) must be"):
        study.live(every=0)
