"""The numbers that are shown are those of the library."""

import itertools
import math
from pathlib import Path

import pytest
from dashboard_studies import HOSTILE, PROBLEM, advance, new_study

import chainscout as cs
from chainscout.certificates import certify
from chainscout.counts import Counts
from chainscout.errors import InputError, SetAsideWarning
from chainscout.report import studies
from chainscout.report.format import duration, label
from chainscout.report.study_data import StudyReport
from chainscout.study import Study


@pytest.fixture(params=["memory", "sqlite"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    return new_study(None if request.param == "memory" else tmp_path / "study.db")


def replayed(study: Study, chain: str, transitions: int) -> tuple[Counts, float | None]:
    """The counts of a chain when it had so many transitions, and their certificate."""
    counts = Counts(5)
    path = 1
    for line in study.log(chain):
        if line.path != path:
            counts.restart()
        path = line.path
        counts.record(line.state)
        if counts.total == transitions:
            break
    assert counts.total == transitions
    others = {name: counts for name in PROBLEM.names if name != chain}  # the bound depends on how many chains there are
    bound = certify({chain: counts, **others}, 0.05).loss[chain]
    return counts, bound if math.isfinite(bound) else None


def test_overview(study: Study) -> None:
    empty = StudyReport(study, "Study").overview()
    assert (empty.state, empty.certificate, empty.seconds_left, empty.last) == ("empty", None, None, None)
    assert "nothing is certified yet" in " ".join(empty.notes)
    advance(study, 1100)
    report = StudyReport(study, "Study")
    overview = report.overview()
    assert overview.state == "running"
    assert (overview.observations, overview.used, overview.budget, overview.unit) == (1100, 1100, 2000, "observations")
    lines = report.page().chains
    assert overview.certificate == max(replayed(study, line.name, line.certified)[1] for line in lines)
    assert all(0 <= line.transitions - line.certified < max(100, line.certified / 4) for line in lines)
    said = "As of the transitions of the stored bounds, with probability 0.95, each probability of a transition"
    assert overview.notes[0].startswith(said)
    assert overview.rate is not None
    assert overview.seconds_left == pytest.approx(900 / overview.rate)
    assert overview.chains == 3


def test_shares_are_those_of_the_plug_in_problem(study: Study) -> None:
    advance(study, 500)
    lines = StudyReport(study, "Study").page().chains
    stored = {line.name: replayed(study, line.name, line.certified)[0] for line in lines}
    plug_in = cs.Problem({name: cs.MarkovChain(counts.matrix()) for name, counts in stored.items()})
    assert [line.plug_in for line in lines] == pytest.approx(list(plug_in.allocation), rel=1e-12)
    aim = study.policy.aim(cs.Problem({name: cs.MarkovChain(study.estimate(name).matrix) for name in PROBLEM.names}))
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
    for number, name in enumerate(PROBLEM.names):
        chain = report.chain(number)
        estimate = study.estimate(name)
        assert chain.line.certificate == replayed(study, name, chain.line.certified)[1]
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
    assert report.chain("sticky").line.name == "sticky"


def test_a_window_of_a_large_matrix(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "study.db", {"large": 500}, budget=1000)
    study.tell_many([("large", (7 * t) % 500) for t in range(900)])
    chain = StudyReport(study, "Study").chain(0, row=480, column=3, size=30)
    assert len(chain.window.rows) == 20
    assert chain.window.columns == tuple(str(y) for y in range(3, 33))
    estimate = study.estimate("large")
    assert chain.window.matrix == tuple(map(tuple, estimate.matrix[480:510, 3:33].tolist()))


def test_history_is_what_was_known(tmp_path: Path) -> None:
    """Every point against a replay of the log, certified from scratch."""
    study = new_study(tmp_path / "study.db")
    advance(study, 250)
    study.restart("cyclic")
    for _ in range(150):
        name = study.ask()
        study.tell(name, 0)
    report = StudyReport(study, "Study")
    for curve in report.curves(tuple(range(3))).curves:
        line = report.page().chains[curve.number]
        assert len(curve.observations) >= 1
        assert list(curve.observations) == sorted(set(curve.observations))
        assert curve.observations[-1] == 400
        assert (curve.certificate[-1], curve.share[-1], curve.plug_in[-1]) == (
            line.certificate,
            line.share,
            line.plug_in,
        )
        assert curve.aim == line.aim
        bounds = {
            replayed(study, curve.label, transitions)[1]: transitions for transitions in range(line.transitions + 1)
        }
        told = list(itertools.accumulate(line.chain == curve.label for line in study.log()))
        for number, bound, share in zip(curve.observations[:-1], curve.certificate, curve.share, strict=False):
            known = bounds[bound]
            assert told[number - 1] - 2 < known + max(100, known // 4)  # it is not older than the schedule allows
            # The share is of the moment of the certificate: it had so many transitions, and one or two paths.
            assert share in {told[m] / (m + 1) for m in range(number) if known < told[m] <= known + 2}


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
    lines = {line.name: line for line in report.page().chains}
    assert {name: line.certified for name, line in lines.items()} == {"warm": 4, "open": 0}
    study.tell_many([(name, state) for k in range(100) for name, state in (("warm", k % 2), ("open", "abcd"[k % 4]))])
    report = StudyReport(study, "Study")
    lines = {line.name: line for line in report.page().chains}
    assert {name: line.certified for name, line in lines.items()} == {"warm": 100, "open": 100}
    for curve in report.curves().curves:
        assert curve.certificate[-1] == lines[curve.label].certificate
        assert curve.plug_in[-1] == lines[curve.label].plug_in


def test_weights_are_in_the_shares(tmp_path: Path) -> None:
    study = new_study(tmp_path / "study.db", weights={"sticky": 9.0, "cyclic": 0.5})
    advance(study, 333)
    report = StudyReport(study, "Study")
    curves = report.curves((0, 1, 2)).curves
    assert sum(curve.plug_in[-1] or 0 for curve in curves) == pytest.approx(1, rel=1e-12)
    for curve, line in zip(curves, report.page().chains, strict=True):
        assert curve.plug_in[-1] == line.plug_in
        assert curve.aim == line.aim


def test_what_is_drawn_is_what_the_curves_say(tmp_path: Path) -> None:
    study = new_study(tmp_path / "study.db", target_loss=1e-6)
    advance(study, 400)
    report = StudyReport(study, "Study")
    found, curves = report.drawings(), report.curves().curves
    assert (found.certificate.level, found.certificate.level_name, found.questions) == (1e-6, "target", ())
    for line, share, curve in zip(found.certificate.lines, found.shares, curves, strict=True):
        known = [(x, y) for x, y in zip(curve.observations, curve.certificate, strict=True) if y is not None]
        assert (line.label, list(zip(line.x, line.y, strict=True))) == (curve.label, known)
        assert (share.title, [line.label for line in share.lines]) == (curve.label, ["share", "η̂", "aim"])
        assert (share.lines[0].y, set(share.lines[2].y)) == (curve.share, {curve.aim})
        late = max(y for line in share.lines for x, y in zip(line.x, line.y, strict=True) if x >= 20)
        assert share.top == pytest.approx(min(1.0, 1.15 * late))


def test_a_chain_that_is_asked_for_is_drawn_in_any_case() -> None:
    study = Study.create(None, {f"c{k}": 2 for k in range(9)}, budget=1000)
    study.tell_many([(f"c{k}", t % 2) for k in range(9) for t in range(5 + k)])
    report = StudyReport(study, "Study")
    least_known = [drawing.title for drawing in report.drawings().shares]
    assert least_known == [f"c{k}" for k in range(6)]
    assert [drawing.title for drawing in report.drawings((8,)).shares] == ["c8", *least_known[:5]]
    assert [drawing.title for drawing in report.drawings((2,)).shares] == least_known
    assert report.drawings().certificate.title == "Certificate, the 6 least known chains"
    assert report.drawings((8,)).certificate.title == "Certificate, 6 of 9 chains"
    last = report.curves().curves[-1].number
    others = [number for number in range(9) if f"c{number}" not in least_known]
    for asked in ((8, last), (last, *others, 8), (8, 8)):
        drawn = [drawing.title for drawing in report.drawings(asked).shares]
        assert len(drawn) == 6 == len(set(drawn))
        assert {f"c{number}" for number in asked} <= set(drawn)
    assert len(report.drawings(tuple(range(9))).shares) == 9


def test_a_report_is_of_one_moment() -> None:
    """The study grows between any two parts of a report. All parts are of the moment at which the report was made."""
    study = Study.create(None, {"a": 2, "b": 2})
    study.tell_many([("a", t % 2) for t in range(500)])
    report = StudyReport(study, "Study")

    def parts() -> list[object]:
        study.tell_many([(name, t % 2) for t in range(500) for name in "ab"])
        curve = report.curves((0,)).curves[0]
        assert set(curve.share) == {1.0}
        assert list(curve.observations) == sorted(set(curve.observations))
        return [report.overview(), report.page(), report.chain(0).line, curve, report.leases(), report.events()]

    first = parts()
    assert parts() == first
    assert first[0].observations == first[3].observations[-1] == 500
    assert [line.share for line in first[1].chains] == [1.0, 0.0]
    assert StudyReport(study, "Study").overview().observations == 2500


def test_the_only_chain_has_all_observations_at_every_point() -> None:
    study = Study.create(None, {"a": 2})
    for t in range(1200):
        study.tell("a", t * t // 3 % 2)
    curve = StudyReport(study, "Study").curves().curves[0]
    assert len(curve.share) > 10
    assert set(curve.share) == {1.0}


def test_few_lines_of_history(tmp_path: Path) -> None:
    """A chain has a line for each of its bounds, and the study has one with them when it has grown by a per cent."""
    study = new_study(None, budget=None)
    study.tell_many([(name, (t * t // 7) % 5) for t in range(1000) for name in PROBLEM.names])
    for _ in range(20):
        study.tell_many([(name, (t * t // 3) % 5) for t in range(100) for name in PROBLEM.names])
    look = study.look()
    whole = look.history(None)
    assert [line.observations for line in whole] == [3000, 3900, 4800, 6000, 7500]
    assert [line.own for line in whole] == [line.observations for line in whole]
    own = look.history(0)
    numbers = [line.own for line in own]
    assert numbers == [1000, 1000, 1300, 1600, 2000, 2500]  # after 100 transitions, and then a quarter more each
    assert look.history(0, own[-2].number) == own[-1:]
    assert whole[-1].variability == pytest.approx(sum(look.history(k)[-1].variability for k in range(3)))


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


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_many_chains_without_a_target(place: str, tmp_path: Path) -> None:
    """Bounds of many chains are looked at from 100 transitions on, and then order the chains."""
    where = None if place == "memory" else tmp_path / "study.db"
    names = [f"chain {k}" for k in range(501)]
    study = Study.create(where, dict.fromkeys(names, 2), budget=100_000)
    empty = StudyReport(study, "Study").overview()
    assert empty.certificate is None
    assert "nothing is certified yet" in " ".join(empty.notes)
    study.tell_many([(name, (t * k) % 2) for k, name in enumerate(names) for t in range(95 + k % 40)])
    report = StudyReport(study, "Study")
    assert report.overview().certificate is None
    lines = {line.name: line for k in range(1, 4) for line in report.page(size=200, page=k).chains}
    kept = [name for k, name in enumerate(names) if k % 40 > 5]
    for name, line in lines.items():
        assert (line.certified >= 100) == (name in kept) == (line.certificate is not None)
        assert line.certified == 0 or line.certified <= line.transitions < 1.25 * line.certified
    began = {
        name: Counts.from_path([(t * k) % 2 for t in range(lines[name].certified + 1)], 2)
        for k, name in enumerate(names)
    }
    exact = certify(began, 0.05).loss
    kept.sort(key=exact.__getitem__)
    page = report.page(sort="certificate", size=200)
    assert [line.certificate for line in page.chains] == [exact[name] for name in kept[:200]]
    last = report.page(sort="certificate", size=200, page=3)
    assert (last.total, last.pages, [line.certified for line in last.chains][-60:]) == (501, 3, [0] * 60)
    exact = study.certificate().loss
    report = StudyReport(study, "Study")
    stored = {line.name: line.certificate for k in range(1, 4) for line in report.page(size=200, page=k).chains}
    assert stored == {name: bound if math.isfinite(bound) else None for name, bound in exact.items()}
    assert report.overview().certificate == max(exact.values())
    found = report.page("CHAIN 49", sort="certificate", descending=True)
    assert found.total == 11
    assert report.page("nul\0", sort="certificate").total == 0
    with pytest.raises(InputError, match="there is no 501"):
        report.chain(501)


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
    report = StudyReport(study, "Study")
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
    study = new_study(tmp_path / "study.db", target_loss=0.3, deadline=4e9)
    advance(study, 100)
    overview = StudyReport(study, "Study").overview()
    assert overview.rate is not None
    assert overview.certificate is not None
    lines = StudyReport(study, "Study").page().chains
    by_target = sum(max(0.0, line.ratio * line.looked - line.transitions) for line in lines) / overview.rate
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
    with pytest.warns(SetAsideWarning, match="the iterator has no more states"):
        study = cs.learn({"a": iter([0, 1, 0]), "b": iter([0])}, states={"a": 2, "b": 2}, budget=30, progress=False)
    said = [f"chain {name!r} was set aside: the iterator has no more states" for name in ("b", "a")]
    assert sorted(studies.set_aside(study.look())) == sorted(said)
    shown = [event.detail for event in StudyReport(study, "x").events() if event.kind == "set aside"]
    assert shown == ["reason the iterator has no more states"] * 2
    everything = " ".join([*studies.status(study)[0].notes, *StudyReport(study, "x").overview().notes])
    assert "brought no transition" not in everything
