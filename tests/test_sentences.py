"""What is said of bounds is true: weights, old bounds, rounding, probabilities, budgets, warm starts, and δ."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import chainscout as cs
from chainscout.cli import main
from chainscout.counts import Counts
from chainscout.diagnostics import diagnose
from chainscout.errors import InputError, StudyFinished
from chainscout.report import studies
from chainscout.report.study_data import StudyReport
from chainscout.report.study_page import study_page

DOCS = Path(__file__).parents[1] / "docs"
NUMBER = r"\d[\d,]*\.?\d*(?:e[+-]\d+)?"


def fair(number: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, 2, number).tolist()


def every_medium(study: cs.Study) -> dict[str, str]:
    """All that a person can see of a study's bounds."""
    tables = studies.status(study)
    notes = "\n".join(note for table in tables for note in table.notes)
    return {"print": str(study), "notebook": study._repr_html_(), "status": notes, "page": study_page(study, "lab")}


# -- weights: the certificate bounds ω·L


@pytest.fixture
def weighted() -> cs.Study:
    """A study whose chain 'light' has the weight 0.01: its weighted loss is certified far below its loss."""
    study = cs.Study.create(None, {"light": 2, "heavy": 2}, budget=500, weights={"light": 0.01, "heavy": 2.0})
    study.tell_many([(name, state) for name in ("light", "heavy") for state in fair(250, len(name))])
    assert study.finished
    return study


def test_a_weighted_loss_is_called_weighted_and_the_loss_is_shown(weighted: cs.Study) -> None:
    certificate = weighted.certificate()
    plain = cs.certify({name: weighted.counts(name) for name in weighted.names})
    assert dict(certificate.loss) == dict(plain.loss)  # the losses themselves
    assert certificate.weighted == {"light": 0.01 * plain.loss["light"], "heavy": 2.0 * plain.loss["heavy"]}
    assert certificate.max == max(certificate.weighted.values())
    said = {**every_medium(weighted), "certificate": str(certificate)}
    for medium, text in said.items():
        assert "every weighted loss is at most" in text, medium
        for number in re.findall(rf"every loss is at most ({NUMBER})", text):
            assert float(number) >= max(plain.loss.values()), medium
    assert "every loss is at most" in said["certificate"]
    assert "weighted" in repr(certificate)
    assert "weighted loss ≤" in certificate._repr_html_()


def test_the_loss_itself_is_in_every_table_and_in_json(weighted: cs.Study, tmp_path: Path) -> None:
    bounds = weighted.certificate()
    report = StudyReport(weighted, "lab")
    for line in report.page().chains:
        assert line.certificate == bounds.weighted[line.name]
        assert line.loss == pytest.approx(bounds.loss[line.name], rel=1e-12)
        assert "loss ≤" in dict(report.chain(line.number).facts)
    chains = next(table for table in studies.status(weighted) if table.title == "chains")
    rows = {row["chain"]: row for row in chains.records()}
    assert rows["light"]["loss ≤"] == pytest.approx(bounds.loss["light"], rel=1e-12)
    assert rows["light"]["weighted loss ≤"] == bounds.weighted["light"]
    weighted.export(tmp_path / "all.json")
    written = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["chains"]["light"]
    assert (written["certificate"], written["loss"]) == (bounds.weighted["light"], bounds.loss["light"])


def test_without_weights_nothing_is_weighted() -> None:
    study = cs.Study.create(None, {"a": 2}, budget=300)
    study.tell_many([("a", state) for state in fair(300)])
    assert not any("weighted" in text for text in every_medium(study).values())
    assert "weighted" not in f"{study.certificate()} {study.certificate()!r}"


# -- old bounds


def lazy(number: int) -> cs.Study:
    """A study whose chain stays in its state until the last step, and leaves a state that was never left."""
    study = cs.Study.create(None, {"a": 2}, target_loss=1e-9)
    study.tell_many([("a", state) for state in [1, *[0] * number]])
    for state in (1, 0):
        study.tell("a", state)
    return study


def test_a_stored_bound_is_as_of_its_transition() -> None:
    study = lazy(1_000)
    line = study.look().chain("a")
    assert line.certified < line.transitions
    for medium, text in every_medium(study).items():
        assert "loss is at most" not in text, medium
        assert f"s of transition {line.certified:,}" in text, medium
    assert line.certificate < study.certificate().max  # why an old bound may not be said of now
    assert "loss of the chain is at most" in str(study.certificate())  # computed now


def test_a_bound_of_this_moment_is_said_in_the_present() -> None:
    study = lazy(1_000)
    study.extend(budget=1_003)  # it stops, and computes all certificates
    assert study.finished
    for medium, text in every_medium(study).items():
        assert "the loss of the chain is at most" in text, medium
    assert studies.status(study)[0].records()[4] == {"quantity": "certificate as of", "value": "now"}


def test_the_page_does_not_call_the_latest_bound_that_of_now() -> None:
    page = study_page(lazy(1_000), "lab")
    assert not re.search(rf"{NUMBER} now", page)


# -- rounding


def test_upper_ends_are_printed_rounded_up_and_lower_ends_down() -> None:
    from chainscout.numerals import bound, lower, near, upper

    rng = np.random.default_rng(5)
    values = np.concatenate([rng.random(2_000), 10 ** rng.uniform(-12, 12, 2_000), [0.1, 0.03, 1.0, 999_999.5, 5e-324]])
    for value in values.tolist():
        for text, digits in ((bound(value), 2), (upper(value), 3)):
            assert value <= float(text.replace(",", "")) <= value * (1 + 10 ** (1 - digits)) or value < 1e-300, text
            assert len(re.sub(r"e.*|^[0,.]*|[,.]", "", text)) <= max(digits, 1 + math.log10(value)), text
        assert value * 0.99 <= float(lower(value).replace(",", "")) <= value
        assert float(upper(-value).replace(",", "")) >= -value >= float(lower(-value).replace(",", ""))
        assert float(near(value).replace(",", "")) == pytest.approx(value, rel=0.0051)
    assert [bound(value) for value in (0.1, 0.0300001, 1234.5, 1e-9, math.inf, 0.0)] == [
        "0.1", "0.031", "1,235", "1e-09", "inf", "0",
    ]  # fmt: skip


def test_no_printed_bound_is_below_the_bound() -> None:
    for seed in range(20):
        counts = Counts(2)
        for state in fair(50 + 17 * seed, seed):
            counts.record(state)
        certificate = cs.certify({"a": counts})
        for text in (str(certificate).splitlines()[0], repr(certificate), certificate._repr_html_()):
            shown = re.findall(rf"(?:at most |≤ |right\">)({NUMBER})", text)
            assert shown, text
            assert all(float(number) >= certificate.max for number in shown), text
        (error,) = re.findall(rf"±({NUMBER})", certificate.in_words(exits=10))
        assert float(error) >= certificate.largest_error(10)
        answer = cs.answer(counts, "reach 1 from 0 within 3")
        low, high = re.findall(rf"\[({NUMBER}), ({NUMBER})\]", str(answer))[0]
        assert float(low) <= answer.lower < answer.upper <= float(high)


def test_every_medium_rounds_the_same_bound_upwards() -> None:
    study = cs.Study.create(None, {"a": 2}, budget=300, questions="reach 1 from 0 within 3")
    study.tell_many([("a", state) for state in fair(300)])
    bound, (line,) = study.certificate().max, study.questions()
    report = StudyReport(study, "lab")
    for text in (*every_medium(study).values(), dict(report.chain(0).facts)["certificate"]):
        numbers = re.findall(rf"at most ({NUMBER})", text) or [text]
        assert all(float(number) >= bound for number in numbers if float(number) < 0.2), text
    low, high = re.findall(rf"\[({NUMBER}), ({NUMBER})\]", str(study))[0]
    assert float(low) <= line.lower < line.upper <= float(high)
    estimate, page = study.estimate("a"), study_page(study, "lab")
    cells = re.findall(rf"between ({NUMBER}) and ({NUMBER}) with probability", page)
    for (low, high), lower, upper in zip(cells, estimate.lower.ravel(), estimate.upper.ravel(), strict=True):
        assert float(low) <= lower < upper <= float(high)


# -- 1 − δ


@pytest.mark.parametrize(
    ("delta", "text"),
    [(0.05, "0.95"), (1e-9, "0.999999999"), (0.001, "0.999"), (1e-15, "1 − 1e-15"), (0.05 / 3, "0.9833")],
)
def test_one_minus_delta_is_never_one(delta: float, text: str) -> None:
    counts = Counts(2)
    for state in fair(200):
        counts.record(state)
    assert f"ith probability {text}, the loss" in str(cs.certify({"a": counts}, delta))
    assert f"with probability {text} (" in str(cs.answer(counts, "reach 1 from 0 within 3", delta=delta))
    study = cs.Study.create(None, {"a": 2}, budget=200, delta=delta, questions="reach 1 from 0 within 3")
    study.tell_many([("a", state) for state in fair(200)])
    for medium, said in every_medium(study).items():
        assert f"robability {text}" in said, medium
        assert not re.search(r"probability (≥ )?1(?![ ,\d.]*−)(?!\d)", said.replace("1 − 1e-15", "")), medium


# -- the budget


def test_a_budget_with_a_rest_says_that_the_rest_does_not_pay() -> None:
    study = cs.Study.create(None, {"a": 2}, budget=10, costs={"a": 3.5})
    study.tell_many([("a", 0), ("a", 1)])
    rest = "the budget is spent; the 3 cost units left do not pay for the next observation"
    assert rest in repr(study)
    with pytest.raises(StudyFinished, match=re.escape(rest)):
        study.ask()
    for medium, text in every_medium(study).items():
        if medium != "status":
            assert rest in text, medium
    assert dict(studies.status(study)[0].rows)["finished"] == rest


def test_a_budget_without_a_rest_is_spent() -> None:
    study = cs.Study.create(None, {"a": 2}, budget=2)
    study.tell_many([("a", 0), ("a", 1)])
    assert repr(study).endswith("finished (the budget is spent))")


# -- warm starts


def test_a_bound_that_rests_on_a_warm_start_says_so() -> None:
    counts = Counts(2)
    for state in fair(400):
        counts.record(state)
    study = cs.Study.create(None, {"a": 2, "b": 2}, warm_start={"a": counts, "b": counts})
    condition = "if the data of the warm starts are of the same processes"
    certificate = study.certificate()
    assert condition in str(certificate)
    assert any("'a'" in note or "a, b" in note for note in certificate.notes if "warm start" in note)
    for medium, text in every_medium(study).items():  # it has a bound before its first observation
        assert "every loss is at most" in text, medium
        assert condition in text, medium


# -- δ


def test_delta_above_one_half_is_refused_everywhere() -> None:
    counts = Counts(2)
    for state in fair(50):
        counts.record(state)
    paths = cs.Paths.from_walks([fair(50)], states=[0, 1])
    calls: dict[str, Callable[[], object]] = {
        "certify": lambda: cs.certify({"a": counts}, 0.6),
        "answer": lambda: cs.answer(counts, "reach 1 from 0 within 3", delta=0.6),
        "study": lambda: cs.Study.create(None, {"a": 2}, delta=0.6),
        "diagnose": lambda: diagnose(paths, delta=0.6),
        "compare": lambda: cs.compare("two-state", ["uniform"], [20], 2, delta=0.6),
        "policy": lambda: cs.compare("two-state", ["gini-ucb:delta=0.6"], [20], 2),
    }
    for call in calls.values():
        with pytest.raises(InputError, match=r"^delta \(.*\) must be .*≤ 0\.5, not 0\.6$"):
            call()
    done = CliRunner().invoke(main, ["plan", "two-state", "--budget", "100", "--delta", "0.6"])
    assert "≤ 0.5, not 0.6" in done.stderr


# -- the documentation of lost draws


def test_the_documentation_recommends_no_false_declaration() -> None:
    text = " ".join((DOCS / "answers.md").read_text(encoding="utf-8").split())
    assert "because machines are switched off at night, say" not in text
    assert "how long a step takes does not depend on its outcome" in text.partition('`losses="independent"`')[2]
    for name in ("answers.md", "diagnostics.md"):
        text = " ".join((DOCS / name).read_text(encoding="utf-8").split())
        assert "issued" in text.partition("given up")[2], name
        assert "because then its loss cannot depend" not in text, name
