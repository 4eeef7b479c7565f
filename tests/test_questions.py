"""Questions and their one line: round trips, and one sentence for what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainscout as cs
from chainscout.answers import parse
from chainscout.errors import InputError

LABELS = st.one_of(st.integers(-5, 10**6), st.text(min_size=0, max_size=6), st.sampled_from(["from", "7", "a b", "->"]))
SEVERAL = st.lists(LABELS, min_size=1, max_size=3, unique=True).map(tuple)
LAWS = st.lists(LABELS, min_size=1, max_size=3, unique=True).map(lambda labels: {x: 1 / len(labels) for x in labels})
STARTS = st.one_of(st.none(), LABELS, LAWS)
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "absorbing": st.lists(LABELS, max_size=2, unique=True),
        "impossible": st.lists(st.tuples(LABELS, LABELS), max_size=2, unique=True),
        "complete": st.booleans(),
    },
)
REACHES = st.builds(
    lambda both, start, within, use, facts: cs.Reach(
        both[:1], start, within, both[1:] if use and both[1:] else None, **facts
    ),
    SEVERAL, STARTS, st.none() | st.integers(0, 10**6), st.booleans(), FACTS,
)  # fmt: skip
TIMES = st.builds(lambda target, start, facts: cs.PassageTime(target, start, **facts), SEVERAL, STARTS, FACTS)
COSTS = st.builds(
    lambda costs, start, end, facts: cs.Cost(costs, start, **end, **facts),
    st.dictionaries(LABELS, st.floats(-1e9, 1e9), min_size=1, max_size=3),
    STARTS,
    st.one_of(st.integers(1, 10**6).map(lambda n: {"steps": n}), st.floats(0, 0.999999).map(lambda g: {"discount": g})),
    FACTS,
)
SHARES = st.builds(
    lambda states, anchor, facts: cs.LongRunShare(states, anchor, **facts), SEVERAL, st.none() | LABELS, FACTS
)


@given(st.one_of(REACHES, TIMES, COSTS, SHARES))
def test_a_line_means_the_question_that_it_was_written_from(question):
    line = str(question)
    assert parse(line) == question
    assert str(parse(line)) == line
    assert hash(parse(line)) == hash(question)


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("reach down from idle within 100", cs.Reach("down", "idle", within=100)),
        ("reach down within 100 from idle", cs.Reach("down", "idle", within=100)),
        ("reach won before ruined from 3", cs.Reach("won", 3, before="ruined")),
        ('reach "a b", 7 ever', cs.Reach(["a b", 7])),
        ("time to empty from full=0.5, 3=0.5", cs.PassageTime("empty", {"full": 0.5, 3: 0.5})),
        ("cost busy=2, down=50.5 from idle over 365 steps", cs.Cost({"busy": 2, "down": 50.5}, "idle", steps=365)),
        ("cost down=1 discounted 0.99", cs.Cost({"down": 1}, discount=0.99)),
        ("share of good, fair anchor bad", cs.LongRunShare(["good", "fair"], anchor="bad")),
        (
            "reach a given b absorbing, a -> b impossible, complete",
            cs.Reach("a", absorbing="b", impossible=[("a", "b")], complete=True),
        ),
    ],
)
def test_the_grammar(line, question):
    assert parse(line) == question
    assert parse(str(question)) == question


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "a question begins with reach, time, cost, share, not the end at character 1"),
        ("rech a", r"a question begins with .*, not 'rech' \(did you mean reach\?\) at character 1"),
        ("reach", "a state is expected after 'reach', not the end at character 6"),
        ("reach down from", "a state is expected after 'from', not the end at character 16"),
        ("reach down from idle within", "a number is expected of steps after 'within', not the end at character 28"),
        ("reach down from idle within soon", "a number is expected .*, not 'soon' at character 29"),
        ("reach down frm idle", r"'before', .* is expected, not 'frm' \(did you mean from\?\) at character 12"),
        ("reach a, from b", "a state is expected after ',', not 'from' at character 10"),
        ("reach a from b from c", "each part of a question can be given once, not 'from' at character 16"),
        ("reach a within 3 ever", "each part of a question can be given once, not 'ever'"),
        ("time down", "'to' is expected after 'time', not 'down' at character 6"),
        ("cost a over 3 steps", "'=' is expected after the state 'a', not 'over' at character 8"),
        ("cost a=x over 3 steps", "a number is expected for the state 'a', not 'x' at character 8"),
        ("cost a=1 over 3", "'steps' is expected after a number, not the end"),
        ("cost a=1", "a cost needs steps"),
        ("share a", "'of' is expected after 'share'"),
        ("reach a given b", "'absorbing' is expected or '->' after the state 'b', not the end"),
        ("reach a given b -> c", "'impossible' is expected after a transition, not the end"),
        ("reach a given complete from b", "the end is expected, not 'from' at character 24"),
        ('reach "a', "a text in quotes has no end, at character 7"),
        (7, "a question must be a line of text, not 7"),
    ],
)
def test_an_error_names_its_place(line, words):
    with pytest.raises(InputError, match=words):
        parse(line)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cs.Reach([]), "target must name at least one state"),
        (lambda: cs.Reach("a", within=-1), r"within \(steps\) must be a whole number ≥ 0, not -1"),
        (lambda: cs.Reach("a", within=2.5), "within .* must be a whole number"),
        (lambda: cs.Reach("a", before=["b", "a"]), "before must not name a state of the target, and names 'a'"),
        (lambda: cs.Reach("a", start={"b": 0.5}), "probabilities that sum to 1"),
        (lambda: cs.Reach("a", start={"b": -1, "c": 2}), "a probability of start must be"),
        (lambda: cs.Reach("a", start=[1]), "start must be a state's label"),
        (lambda: cs.Reach("a", impossible=["ab"]), "impossible must be pairs"),
        (lambda: cs.Reach("a", complete=1), "complete .* must be True or False"),
        (lambda: cs.Cost({"a": "much"}, steps=1), "the cost of 'a' must be a finite number, not 'much'"),
        (lambda: cs.Cost({}, steps=1), "costs must name at least one state"),
        (lambda: cs.Cost(3, steps=1), "costs must map states to numbers, not 3"),
        (lambda: cs.Cost({"a": 1}, discount=1), "discount .* must be a finite number ≥ 0 and < 1, not 1"),
        (lambda: cs.Cost({"a": 1}), "a cost needs steps"),
        (lambda: cs.Cost({"a": 1}, steps=2, discount=0.5), "a cost needs steps .* and not both"),
        (lambda: cs.LongRunShare([]), "states must name at least one state"),
        (lambda: str(cs.Reach([("a", 1)])), "texts or whole numbers"),
    ],
)
def test_bad_questions_are_refused_with_one_sentence(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_questions_are_frozen_and_show_what_was_said():
    question = cs.Reach("down", start="idle", within=100)
    with pytest.raises(AttributeError):
        question.within = 3
    assert repr(question) == "Reach(target=('down',), start='idle', within=100)"
    assert cs.Reach({"b", "a"}).target == ("a", "b")
