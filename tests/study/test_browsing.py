"""A page of chains is the same from every store."""

import pytest
from study_places import Place

from chainscout.errors import InputError
from chainscout.report.study_report import StudyReport
from chainscout.study import Study

NAMES = [*(f"Chain {k:02d}" for k in range(40)), "50%_\\odd", "Übung"]


@pytest.fixture
def study(place: Place) -> Study:
    found = place.create(dict.fromkeys(NAMES, 3), budget=10_000, target_loss=0.5)
    found.tell_many([(NAMES[k], (k * t + t // 3) % 3) for k in range(40) for t in range(k % 11)])
    return found


@pytest.mark.parametrize("order", ["number", "name", "states", "observations", "certificate", "index"])
@pytest.mark.parametrize("descending", [False, True])
def test_orders(study: Study, order: str, descending: bool) -> None:
    fields = {"states": "size"}
    total, lines = study.browse(order=order, descending=descending, limit=100)
    assert total == len(NAMES) == len(lines)
    if order == "name":  # databases sort letters as they please
        assert {line.name for line in lines} == set(NAMES)
    elif order != "certificate":  # the stored one orders, the fresh one is shown
        sign = -1 if descending else 1
        keys = [(sign * getattr(line, fields.get(order, order)), line.number) for line in lines]
        assert keys == sorted(keys), "equal ones come by their numbers"
    second = study.browse(order=order, descending=descending, offset=10, limit=5)[1]
    assert second == lines[10:15]


def test_search(study: Study) -> None:
    assert [line.name for line in study.browse("chain 1")[1]] == NAMES[10:20]
    assert study.browse("CHAIN", limit=7)[0] == 40
    assert study.browse("chain", offset=100)[0] == 40
    assert [line.name for line in study.browse("%_\\")[1]] == ["50%_\\odd"]
    assert study.browse("_")[0] == 1
    assert study.browse("nothing") == (0, [])
    assert study.browse("nul\x00") == (0, [])
    with pytest.raises(InputError, match="has no chain"):
        study.number_of("nul\x00")
    with pytest.raises(InputError, match="order must be one of"):
        study.browse(order="size; DROP TABLE chain")


def test_lines_are_what_the_study_says(study: Study) -> None:
    certificate, indices = study.certificate().loss, study.indices()
    for line in study.browse(limit=100)[1]:
        assert line.certificate == certificate[line.name]
        assert line.index == indices[line.name]
        assert line == study.line(line.number)
        assert study.number_of(line.name) == line.number
    assert study.variability() == pytest.approx(sum(line.variability for line in study.browse(limit=100)[1]), rel=1e-12)


def test_the_report_of_any_store(study: Study) -> None:
    report = StudyReport(study, "Study")
    overview = report.overview()
    assert overview.observations == study.progress().observations
    assert overview.rate is not None
    assert all(curve.complete for curve in report.curves().curves)
    lease = study.lease("somebody", 60)
    assert [held.label for held in report.leases()] == [lease.chain]
    assert [event.kind for event in report.events()] == ["created"]
