"""The numbers that are shown are those of the library."""

import math
import time
from pathlib import Path

import pytest
from dashboard_studies import HOSTILE, PROBLEM, advance, new_study

import chainscout as cs
from chainscout.certificates import certify
from chainscout.counts import Counts
from chainscout.errors import InputError
from chainscout.report import studies
from chainscout.report.cells import duration, label
from chainscout.report.study_report import StudyReport
from chainscout.study import Study


@pytest.fixture(params=["memory", "sqlite"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    return new_study(None if request.param == "memory" else tmp_path / "study.db")


def test_overview(study: Study) -> None:
    report = StudyReport(study, "Study")
    empty = report.overview()
    assert (empty.state, empty.certificate, empty.seconds_left, empty.last) == ("empty", None, None, None)
    assert "nothing is certified yet" in " ".join(empty.notes)
    advance(study, 500)
    overview = report.overview()
    assert overview.state == "running"
    assert (overview.observations, overview.used, overview.budget, overview.unit) == (500, 500, 2000, "observations")
    assert overview.certificate == study.certificate().max
    assert overview.rate is not None
    assert overview.seconds_left == pytest.approx(1500 / overview.rate)
    assert overview.chains == 3


def test_shares_are_those_of_the_plug_in_problem(study: Study) -> None:
    advance(study, 500)
    plug_in = cs.Problem({name: cs.MarkovChain(study.estimate(name).matrix) for name in PROBLEM.names})
    lines = StudyReport(study, "Study").page().chains
    assert [line.plug_in for line in lines] == pytest.approx(list(plug_in.allocation), rel=1e-12)
    aim = study.policy.aim(plug_in)
    assert aim is not None
    assert [line.aim for line in lines] == pytest.approx(list(aim), rel=1e-12)
    assert sum(line.share or 0 for line in lines) == pytest.approx(1)
    assert StudyReport(study, "Study").overview().variability == pytest.approx(plug_in.variability, rel=1e-12)


def test_weights_move_the_shares(tmp_path: Path) -> None:
    study = new_study(tmp_path / "study.db", weights={"sticky": 9.0})
    advance(study, 200)
    lines = {line.name: line for line in StudyReport(study, "Study").page().chains}
    assert sum(line.plug_in or 0 for line in lines.values()) == pytest.approx(1)
    other = new_study(None)
    advance(other, 200)
    plain = {line.name: line for line in StudyReport(other, "Study").page().chains}
    assert (lines["sticky"].plug_in or 0) > (plain["sticky"].plug_in or 0)


def test_the_page_of_a_chain_is_its_estimate(study: Study) -> None:
    advance(study, 60)
    report = StudyReport(study, "Study")
    certificate = study.certificate()
    for number, name in enumerate(PROBLEM.names):
        chain = report.chain(number)
        estimate = study.estimate(name)
        assert chain.line.certificate == certificate.loss[name]
        assert chain.line.index == study.indices()[name]
        window = chain.window
        assert window.matrix == tuple(map(tuple, estimate.matrix.tolist()))
        assert window.lower == tuple(map(tuple, estimate.lower.tolist()))
        assert window.upper == tuple(map(tuple, estimate.upper.tolist()))
        assert [state.exits for state in window.rows] == estimate.exits.tolist()
        assert [state.stationary for state in window.rows] == estimate.stationary.tolist()
        assert chain.never == sum(state.left == "never" for state in window.rows) == (estimate.exits == 0).sum()
        for x, state in enumerate(window.rows):
            if state.left == "rarely":
                assert (estimate.upper - estimate.lower)[x].max() > 0.5
    assert report.chain(report.number("sticky")).line.name == "sticky"


def test_a_window_of_a_large_matrix(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "study.db", {"large": 500}, budget=1000)
    study.tell_many([("large", (7 * t) % 500) for t in range(900)])
    chain = StudyReport(study, "Study").chain(0, row=480, column=3, size=30)
    assert len(chain.window.rows) == 20
    assert chain.window.columns == tuple(str(y) for y in range(3, 33))
    estimate = study.estimate("large")
    assert chain.window.matrix == tuple(map(tuple, estimate.matrix[480:510, 3:33].tolist()))
    with pytest.raises(InputError, match="at most 60 states"):
        StudyReport(study, "Study").chain(0, size=61)


def test_history_is_what_the_certificate_was(tmp_path: Path) -> None:
    """Every point against a replay of the log up to it, certified from scratch."""
    study = new_study(tmp_path / "study.db")
    advance(study, 250)
    study.restart("cyclic")
    report = StudyReport(study, "Study")
    report.curves()
    for _ in range(150):  # the history goes on from where it was
        name = study.ask()
        study.tell(name, 0)
    curves = report.curves(tuple(range(3))).curves
    log = list(study.log())
    for curve in curves:
        assert curve.complete
        assert curve.observations[-1] == 400
        assert curve.certificate[-1] == study.certificate().loss[curve.label]
        points = zip(curve.observations, curve.certificate, curve.share, curve.plug_in, curve.aim, strict=True)
        aims = 0
        for number, bound, share, plug_in, aim in points:
            counts = {name: Counts(5) for name in PROBLEM.names}
            paths: dict[str, int] = {}
            for line in log[:number]:
                if paths.get(line.chain, line.path) != line.path:
                    counts[line.chain].restart()
                paths[line.chain] = line.path
                counts[line.chain].record(line.state)
            expected = certify(counts, 0.05).loss[curve.label]
            assert bound == (expected if math.isfinite(expected) else None)
            assert share == counts[curve.label].observations / number
            known = cs.Problem({name: cs.MarkovChain(part.matrix()) for name, part in counts.items()})
            place = PROBLEM.names.index(curve.label)
            assert plug_in == pytest.approx(known.allocation[place], rel=1e-12)
            if aim is not None:
                aimed = study.policy.aim(known)
                assert aimed is not None
                assert aim == pytest.approx(aimed[place], rel=1e-12)
                aims += 1
        assert aims >= len(curve.observations) / 4
        assert curve.plug_in[-1] == pytest.approx(report.page().chains[curve.number].plug_in, rel=1e-12)


def test_history_of_warm_started_and_open_chains(tmp_path: Path) -> None:
    prior = Counts(2)
    for state in (0, 1, 1, 0, 1):
        prior.record(state)
    study = Study.create(
        tmp_path / "study.db", {"warm": 2, "open": ["a"]}, budget=None, open_states=["open"], warm_start={"warm": prior}
    )
    for state in (0, 1, 0, 0, 1):
        study.tell("warm", state)
    for state in ("a", "b", "c", "a", "b", "d"):
        study.tell("open", state)
    report = StudyReport(study, "Study")
    shares = {line.name: line.plug_in for line in report.page().chains}
    for curve in report.curves().curves:
        assert curve.certificate[-1] == study.certificate().loss[curve.label]
        assert curve.plug_in[-1] == pytest.approx(shares[curve.label], rel=1e-12)
        assert curve.plug_in[-2] is not None


def test_weights_are_in_the_shares_of_the_past(tmp_path: Path) -> None:
    study = new_study(tmp_path / "study.db", weights={"sticky": 9.0, "cyclic": 0.5})
    advance(study, 333)
    report = StudyReport(study, "Study")
    curves = report.curves((0, 1, 2)).curves
    for place in range(len(curves[0].observations)):
        assert sum(curve.plug_in[place] or 0 for curve in curves) == pytest.approx(1, rel=1e-12)
    for curve, line in zip(curves, report.page().chains, strict=True):
        assert curve.plug_in[-1] == pytest.approx(line.plug_in, rel=1e-12)
        assert curve.aim[-1] == line.aim


def test_the_past_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking again reads what is new, and nothing else."""
    study = new_study(tmp_path / "study.db")
    advance(study, 300)
    report = StudyReport(study, "Study")
    report.curves()
    read = []
    browser = report.browser
    lines = browser.observations
    monkeypatch.setattr(browser, "observations", lambda *asked: read.append(len(lines(*asked))) or lines(*asked))
    report.curves()
    assert read == []
    study.tell("sticky", 0)
    report.curves()
    assert sum(read) == 2  # the chain's own log, and that of all


def test_counts_that_do_not_fit_are_said_to_be_too_many(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "study.db", {"huge": 6000, "small": 2}, budget=1000)
    for t in range(10):
        study.tell("small", t % 2)
    report = StudyReport(study, "Study")
    curves = report.curves()
    assert "more than 25,000,000 entries" in str(curves.note)
    assert all(curve.complete for curve in curves.curves)
    (small,) = report.curves((1,)).curves
    assert small.plug_in[:-1] == (None,) * (len(small.plug_in) - 1)
    assert small.plug_in[-1] == report.page().chains[1].plug_in


def test_search_sort_and_pages(study: Study, tmp_path: Path) -> None:
    names = [f"Chain {k:03d}" for k in range(130)] + ["50%_\\odd"]
    for place in (None, tmp_path / "many.db"):
        many = Study.create(place, dict.fromkeys(names, 2), budget=1000)
        for k in range(130):
            many.tell_many([(names[k], t % 2) for t in range(k % 7)])
        report = StudyReport(many, "Study")
        first = report.page(size=50)
        assert (first.total, first.pages, [line.number for line in first.chains]) == (131, 3, list(range(50)))
        assert len(report.page(size=50, page=3).chains) == 31
        assert report.page(size=50, page=9).chains == ()
        assert [line.name for line in report.page("chain 01").chains] == [f"Chain 01{d}" for d in range(10)]
        assert [line.name for line in report.page("%_\\").chains] == ["50%_\\odd"]
        assert report.page("_").total == 1
        assert report.page("no such").total == 0
        by = report.page(sort="observations", descending=True, size=200).chains
        assert [(-line.observations, line.number) for line in by] == sorted((-x.observations, x.number) for x in by)
        certified = report.page(sort="certificate", descending=True, size=131).chains
        bounds = [math.inf if line.certificate is None else line.certificate for line in certified]
        assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"sort": "length"}, "sort must be one of"),
        ({"page": 0}, "page .* must be a whole number ≥ 1"),
        ({"size": 201}, "at most 200 chains"),
        ({"search": "x" * 201}, "at most 200 characters"),
    ],
)
def test_wrong_pages_are_refused(study: Study, asked: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        StudyReport(study, "Study").page(**asked)


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_many_chains_without_a_target(place: str, tmp_path: Path) -> None:
    """The largest certificate and the order by certificates, of more chains than are computed at each moment."""
    where = None if place == "memory" else tmp_path / "study.db"
    study = Study.create(where, {f"chain {k}": 2 for k in range(501)}, budget=100_000)
    report = StudyReport(study, "Study")
    assert report.overview().certificate is None
    assert "there are chains without a transition" in " ".join(report.overview().notes)
    study.tell_many([(f"chain {k}", (t * k) % 2) for k in range(501) for t in range(3 + k % 40)])
    for _ in range(2):
        overview, exact = report.overview(), study.certificate()
        assert overview.certificate == exact.max
        assert overview.certificate_as_of == study.progress().observations
        assert f"as of observation {overview.certificate_as_of:,} or later" in " ".join(overview.notes)
        for descending in (True, False):
            page = report.page(sort="certificate", descending=descending, size=200, page=2)
            assert (page.total, page.pages) == (501, 3)
            assert "as of observation" in str(page.note)
            order = sorted(exact.loss, key=exact.loss.__getitem__, reverse=descending)
            assert [line.certificate for line in page.chains] == [exact.loss[name] for name in order[200:400]]
        found = report.page("CHAIN 49", sort="certificate", descending=True)
        named = sorted((name for name in exact.loss if "chain 49" in name), key=exact.loss.__getitem__, reverse=True)
        assert found.total == len(named) == 11
        assert [line.certificate for line in found.chains] == [exact.loss[name] for name in named]
        assert report.page("nul\0", sort="certificate").total == 0
        assert {curve.label for curve in report.curves().curves} <= set(sorted(exact.loss, key=exact.loss.get)[-20:])
        study.tell_many([("chain 7", t % 2) for t in range(100)])  # only this one is computed again
    with pytest.raises(InputError, match="at most 12 chains"):
        report.curves(tuple(range(13)))
    with pytest.raises(InputError, match="there is no 501"):
        report.chain(501)


def test_certificates_are_found_beside_the_readers(tmp_path: Path) -> None:
    """With a second connection nobody waits, what is not known yet is said, and then it is known."""
    where = tmp_path / "study.db"
    with Study.create(where, {f"{k}": 2 for k in range(3000)}, budget=100_000) as study:
        study.tell_many([(f"{k}", t % 2) for k in range(3000) for t in range(3)])
    with Study.open(where, read_only=True) as study, Study.open(where, read_only=True) as second:
        report = StudyReport(study, "Study", second)
        first = report.overview()
        assert first.certificate is None
        assert "certificates of 3,000 chains are being computed" in " ".join(first.notes)
        assert "are being computed" in str(report.page(sort="certificate").note)
        end = time.monotonic() + 60
        while report.overview().certificate is None and time.monotonic() < end:
            time.sleep(0.05)
        assert report.overview().certificate == study.certificate().max


def test_leases_events_and_the_end(tmp_path: Path) -> None:
    study = new_study(tmp_path / "study.db", budget=40, target_loss=1e-6)
    lease = study.worker("worker <7>").lease(50, steps=4)
    assert lease is not None
    report = StudyReport(study, "Study")
    (held,) = report.leases()
    assert (held.label, held.path, held.worker, held.promised) == (lease.chain, 1, "worker <7>", 4)
    assert 0 < held.seconds_left <= 50
    assert report.page(lease.chain).chains[0].leases == 1
    lease.abandon()
    advance(study, 40)
    overview = report.overview()
    assert (overview.state, overview.stop_reason, overview.lost) == ("finished", "budget", 1)
    assert overview.seconds_left is None
    assert "1 observation was lost" in " ".join(overview.notes)
    kinds = [event.kind for event in report.events()]
    assert kinds == ["created", "lease abandoned", "finished"]
    assert [event.kind for event in report.events(after=1, limit=1)] == ["lease abandoned"]
    assert [event.kind for event in report.events(after=-1)] == ["finished"]
    assert overview.certificate == study.certificate().max


def test_events_of_paths_read_well() -> None:
    study = Study.create(None, {"a": 2, "b": 2}, budget=40)
    study.tell("a", 0)
    study.restart("a")
    study.tell("a", 1)
    study.restart("a", lost=True)
    with study.worker("rig 7") as worker:
        lease = worker.lease()
        assert lease is not None
        lease.give_back()
    study.set_aside("a", "the rig is broken")
    study.take_up("a")
    assert [(event.kind, event.chain, event.detail) for event in StudyReport(study, "Study").events(after=1)] == [
        ("path ended", "a", "worker main, path 1, step 2"),
        ("path ended", "a", "worker main, path 2, step 2, an observation was lost"),
        ("lease given back", "b", "worker rig 7, path 1, step 1"),
        ("set aside", "a", "reason the rig is broken"),
        ("taken up", "a", ""),
    ]
    assert studies.status(study)[0].notes == ()


def test_time_left_is_the_first_of_budget_target_and_deadline(tmp_path: Path) -> None:
    study = new_study(tmp_path / "study.db", target_loss=0.4, deadline=4e9)
    advance(study, 100)
    overview = StudyReport(study, "Study").overview()
    assert overview.rate is not None
    assert overview.certificate is not None
    by_target = 100 * (overview.certificate / 0.4 - 1) / overview.rate
    assert overview.seconds_left == pytest.approx(min(by_target, 1900 / overview.rate))


def test_costs_are_shown_as_costs() -> None:
    study = Study.create(None, {"a": 2, "b": 2}, budget=30.0, costs={"a": 2.5})
    for t in range(6):
        study.tell("a", t % 2)
    overview = StudyReport(study, "Study").overview()
    assert (overview.used, overview.budget, overview.unit) == (15, 30, "cost units")


def test_hostile_names_are_made_harmless() -> None:
    for name in HOSTILE:
        shown = label(name)
        assert len(shown) <= 400
        assert shown.isprintable()
    assert label("nul\x00") == "nul\\u0000"
    assert label("\u202eabc") == "\\u202eabc"
    assert label("") == "(empty)"
    assert label("x" * 100) == "x" * 59 + "…"


def test_durations() -> None:
    found = [duration(seconds) for seconds in (None, math.inf, 0.2, 59, 61, 7320, 200_000)]
    assert found == ["—", "—", "0 s", "59 s", "1 min 1 s", "2 h 2 min", "2 d 7 h"]


def test_the_unit_of_a_budget_is_known_before_the_first_cost_that_is_not_one():
    costs = {"cheap": 1.0, "dear": 2.5}
    study = Study.create(None, {"cheap": 2, "dear": 2}, budget=20, costs=costs)
    plain = Study.create(None, {"a": 2}, budget=20)
    for told in range(3):
        for found, unit in ((study, "cost units"), (plain, "observations")):
            assert StudyReport(found, "x").overview().unit == unit
            assert studies.status(found)[0].rows[2][0] == f"budget used ({unit})"
        study.tell("cheap", told % 2)
        plain.tell("a", told % 2)
    assert study.progress().used == study.progress().observations == 3


def test_an_iterator_that_has_ended_is_reported_as_that():
    study = cs.learn({"a": iter([0, 1, 0]), "b": iter([0])}, states={"a": 2, "b": 2}, budget=30, progress=False)
    said = [f"chain {name!r} was set aside: the iterator has no more states" for name in ("b", "a")]
    assert sorted(studies.set_aside(study)) == sorted(said)
    shown = [event.detail for event in StudyReport(study, "x").events() if event.kind == "set aside"]
    assert shown == ["reason the iterator has no more states"] * 2
    everything = " ".join([*studies.status(study)[0].notes, *StudyReport(study, "x").overview().notes])
    assert "brought no transition" not in everything
