"""The HTTP interface: it gives what ``report`` gives, and the library's errors."""

import csv
import io
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from dashboard_servers import Client, connect
from dashboard_studies import HOSTILE, PROBLEM, advance, stored

from chainscout import errors
from chainscout.dashboard import work
from chainscout.dashboard.work import to_json
from chainscout.report.study_data import StudyReport
from chainscout.study import Study


def test_reading(client: Client, where: Path) -> None:
    with Study.open(where, read_only=True) as study:
        report = StudyReport(study, "Study")
        overview = client.get("/api/study").json()
        assert overview["certificate"] == study.progress().certificate
        assert overview["observations"] == 300
        page = client.get("/api/chains?sort=certificate&descending=true&size=2").json()
        assert page["total"] == 3
        assert [line["number"] for line in page["chains"]] == [
            line.number for line in report.page(sort="certificate", descending=True, size=2).chains
        ]
        chain = client.get("/api/chains/cyclic?row=1&column=2&size=2")
        assert chain.content == to_json(report.chain(1, 1, 2, 2))
        assert client.get("/api/numbered/1?row=1&column=2&size=2").content == chain.content
        curves = client.get("/api/curves?chain=0&chain=2").json()["curves"]
        assert [curve["label"] for curve in curves] == ["sticky", "uniform"]
        assert client.get("/api/leases").json() == []
        assert [event["kind"] for event in client.get("/api/log").json()] == ["created"]
        assert client.get("/api/log?after=1").json() == []


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/api/study?x=1", 400, "'x': extra inputs are not permitted"),
        ("/api/chains?page=0", 400, "'page': input should be greater than or equal to 1"),
        ("/api/chains?page=1e3", 400, "'page': input should be a valid integer"),
        ("/api/chains?page=1&page=2", 400, "'page': input should be a valid integer"),
        ("/api/chains?sort=length", 400, "'sort': input should be 'number', 'name', 'states'"),
        ("/api/chains?descending=1", 400, "'descending': input should be a valid boolean"),
        ("/api/chains?size=201", 400, "'size': input should be less than or equal to 200"),
        ("/api/numbered/0?size=61", 400, "'size': input should be less than or equal to 60"),
        ("/api/chains?search=" + "x" * 201, 400, "'search': string should have at most 200 characters"),
        ("/api/curves?" + "&".join(["chain=1"] * 13), 400, "'chain': tuple should have at most 12 items"),
        ("/part/charts?chain=99", 404, "the chains have the numbers 0 to 2, and there is no 99"),
        ("/part/chain?number=99", 404, "the chains have the numbers 0 to 2, and there is no 99"),
        ("/part/chain", 400, "'number': field required"),
        ("/part/chain?number=0&row=-1", 400, "'row': input should be greater than or equal to 0"),
        ("/part/chains?sort=colour", 400, "'sort': input should be 'number'"),
        ("/api/curves?chain=99", 404, "the chains have the numbers 0 to 2, and there is no 99"),
        ("/api/numbered/99", 404, "the chains have the numbers 0 to 2, and there is no 99"),
        ("/api/numbered/" + "9" * 400, 404, "the chains have the numbers 0 to 2"),
        ("/api/chains/nobody", 404, "the study has no chain 'nobody'"),
        ("/api/nothing", 404, "Not Found"),
        ("/api/ask", 404, "Not Found"),
        ("/download/99/matrix.csv", 404, "the chains have the numbers 0 to 2"),
    ],
)
def test_wrong_requests(client: Client, path: str, status: int, sentence: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(sentence)


def test_hostile_names(tmp_path: Path) -> None:
    where = tmp_path / "hostile.db"
    with Study.create(where, {name: ["a", *HOSTILE] for name in HOSTILE}, budget=1000) as study:
        for name in HOSTILE:
            study.tell(name, name)
            study.tell(name, "a")
    for client in connect(where):
        for number, name in enumerate(HOSTILE):
            by_number = client.get(f"/api/numbered/{number}").json()
            assert by_number["line"]["name"] == name
            assert by_number["line"]["label"].isprintable()
            assert all(state["label"].isprintable() for state in by_number["window"]["rows"])
            if name not in ("..",) and len(name) < 1000:  # a path cannot say these
                assert client.get(f"/api/chains/{quote(name, safe='')}").json() == by_number
            part = name[:30]
            if "\x00" not in part:
                found = client.get("/api/chains", params={"search": part}).json()
                assert name in [line["name"] for line in found["chains"]]
        text = client.get("/download/chains.csv").text
        assert "\n9,'=1+2," in text
        assert client.get("/download/report.html").status_code == 200


def test_downloads(client: Client, where: Path) -> None:
    report = client.get("/download/report.html")
    assert "attachment" in report.headers["content-disposition"]
    assert report.text.startswith("<!doctype html>")
    rows = list(csv.DictReader(io.StringIO(client.get("/download/chains.csv").text)))
    assert [row["name"] for row in rows] == list(PROBLEM.names)
    with Study.open(where, read_only=True) as study:
        assert [float(row["certificate"]) for row in rows] == list(stored(study).values())
        entries = list(csv.DictReader(io.StringIO(client.get("/download/2/matrix.csv").text)))
        assert len(entries) == 25
        assert float(entries[7]["estimate"]) == study.estimate("uniform").matrix[1, 2]
        assert float(entries[7]["upper"]) == study.estimate("uniform").upper[1, 2]


def test_a_study_that_cannot_be_read_any_more(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    Study.create(where, {"a": 2}, budget=10).close()
    for client in connect(where):
        assert client.get("/api/study").status_code == 200
        with where.open("r+b") as file:
            file.truncate(5000)
        time.sleep(work.FRESH)
        answer = client.get("/api/chains?page=2")
        assert answer.status_code == 503
        assert answer.json()["kind"] == "FileError"


# -- writing


def test_asking_and_telling(writer: Client, where: Path) -> None:
    with Study.open(where) as study:
        chain = study.ask()
        step = study.continue_path(chain).step
        place = study.chain(chain)
        asked = writer.post("/api/ask", json={}).json()
        assert asked == {"chains": [chain], "path": place.path, "state": place.last, "step": place.step}
        assert writer.post("/api/ask", json={"number": 3}).json()["chains"] == study.ask(3)
        observation = {"chain": chain, "state": 1, "path": 1, "step": step}
        for _ in range(2):  # the second is a retry
            told = writer.post("/api/tell", json=observation)
            assert told.json() == {"path": 1, "next_step": step + 1}
        assert study.progress().observations == 301
        other = writer.post("/api/tell", json={**observation, "state": 2})
        assert other.status_code == 409
        assert other.json() == {
            "error": f"observation {step} of path 1 of the chain {chain!r} was told before, with another state",
            "kind": "InputError",
        }
        restarted = writer.post("/api/restart", json={"chain": chain, "lost": True})
        assert restarted.json() == {"path": 2, "next_step": 1, "token": None}
        assert study.progress().lost == 1
        assert writer.post("/api/tell", json={"chain": chain, "state": 1}).json() == {"path": 2, "next_step": 2}
        assert study.counts(chain).paths == 2
        study.audit()


def test_leases(writer: Client, where: Path) -> None:
    lease = writer.post("/api/lease", json={"worker": "Julia", "seconds": 30, "steps": 2}).json()
    assert (lease["path"], lease["state"], lease["step"], lease["steps"]) == (2, None, 1, 2)
    (held,) = writer.get("/api/leases").json()
    assert (held["worker"], held["path"], held["promised"]) == ("Julia", 2, 2)
    told = {"chain": lease["chain"], "state": 0, "path": lease["path"], "step": lease["step"]}
    for token, kind in ((None, "InputError"), (10**6, "LeaseLost")):
        refused = writer.post("/api/tell", json={**told, "token": token})
        assert (refused.status_code, refused.json()["kind"]) == (409, kind)
    for step, state in ((1, 0), (1, 0), (2, 3), (2, 3)):  # each of them twice: the second is a retry
        mine = {**told, "step": step, "state": state, "token": lease["token"]}
        assert writer.post("/api/tell", json=mine).json() == {"path": lease["path"], "next_step": step + 1}
    late = writer.post("/api/tell", json={**told, "step": 3, "token": lease["token"]})
    assert (late.status_code, late.json()["kind"]) == (409, "LeaseLost")
    with Study.open(where) as study:
        assert study.progress().observations == 302
        study.audit()


def test_a_worker_goes_on_with_its_own_path(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    Study.create(where, {"a": 3}, budget=10).close()
    for client in connect(where, writable=True):
        for worker, path in (("Julia", 1), ("R", 2)):  # both at work on one chain, each on a path of its own
            lease = client.post("/api/lease", json={"worker": worker}).json()
            assert (lease["path"], lease["state"]) == (path, None)
            client.post("/api/tell", json={"chain": "a", "state": path, "token": lease["token"]})
        again = client.post("/api/lease", json={"worker": "Julia"}).json()
        assert (again["path"], again["state"], again["step"]) == (1, 1, 2)
        restarted = client.post("/api/restart", json={"chain": "a", "token": again["token"]})
        token = restarted.json()["token"]
        assert restarted.json() == {"path": 3, "next_step": 1, "token": token}
        told = {"chain": "a", "state": 0, "token": token}
        assert client.post("/api/tell", json={**told, "token": again["token"]}).json()["kind"] == "LeaseLost"
        assert client.post("/api/tell", json=told).json() == {"path": 3, "next_step": 2}
        assert client.post("/api/lease", json={"worker": "Julia", "steps": 7}).json()["path"] == 3
        nothing = client.post("/api/lease", json={"worker": "R"})
        assert (nothing.status_code, nothing.json()["kind"]) == (409, "NothingFree")
    with Study.open(where) as study:
        assert study.counts("a").total == 0
        study.audit()


def test_leases_are_renewed_and_given_back(writer: Client, where: Path) -> None:
    lease = writer.post("/api/lease", json={"worker": "Julia", "seconds": 30, "steps": 5}).json()
    key = {"chain": lease["chain"], "token": lease["token"]}
    assert writer.post("/api/renew", json={**key, "seconds": 5000}).status_code == 200
    with Study.open(where, read_only=True) as study:
        (held,) = StudyReport(study, "Study").leases()
        assert 4900 < held.seconds_left <= 5000
        for name, more in (("renew", {"seconds": 10}), ("give-back", {}), ("give-back", {"lost": True})):
            refused = writer.post(f"/api/{name}", json={**key, "token": 10**6, **more})
            assert (refused.status_code, refused.json()["kind"]) == (409, "LeaseLost")
        assert study.progress().leases == 1
        assert writer.post("/api/give-back", json=key).status_code == 200
        assert (study.progress().leases, study.progress().lost) == (0, 0)
        again = writer.post("/api/renew", json=key)
        with Study.open(where) as own, pytest.raises(errors.LeaseLost) as raised:
            own.renew(**key)
        assert again.json() == {"error": str(raised.value), "kind": "LeaseLost"}
        other = writer.post("/api/lease", json={"worker": "R", "steps": 3}).json()
        key = {"chain": other["chain"], "token": other["token"]}
        assert writer.post("/api/give-back", json={**key, "lost": True}).status_code == 200
        assert study.progress().lost == 1  # the one that may have been under way
        assert study.events()[-1].kind == "lease abandoned"
        study.audit()


def test_a_finished_study_is_a_conflict(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    with Study.create(where, dict.fromkeys(PROBLEM.names, 5), budget=9) as study:
        advance(study, 9)
    for client in connect(where, writable=True):
        for answer in (
            client.post("/api/ask", json={}),
            client.post("/api/tell", json={"chain": "sticky", "state": 0}),
        ):
            assert answer.status_code == 409
            assert answer.json() == {
                "error": "the study is finished (the budget is spent); extend it with a larger budget to go on",
                "kind": "StudyFinished",
            }


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/api/ask", b"", 400, "'the body': invalid JSON"),
        ("/api/ask", b"[]", 400, "'the body': "),
        ("/api/ask", b'{"number": "3"}', 400, "'number': input should be a valid integer"),
        ("/api/ask", b'{"number": 1001}', 400, "'number': input should be less than or equal to 1000"),
        ("/api/ask", b'{"nummer": 1}', 400, "'nummer': extra inputs are not permitted"),
        ("/api/tell", b'{"chain": "sticky"}', 400, "'state': field required"),
        ("/api/tell", b'{"chain": "sticky", "state": 5}', 409, "unknown state 5 of the chain 'sticky'"),
        ("/api/tell", b'{"chain": "sticky", "state": "\\ud800"}', 400, "'the body': invalid JSON"),
        ("/api/tell", b'{"chain": "nobody", "state": 0}', 404, "the study has no chain 'nobody'"),
        (
            "/api/tell",
            b'{"chain": "sticky", "state": 0, "step": 9999}',
            409,
            "the next observation of path 1 of the chain",
        ),
        ("/api/lease", b'{"worker": "", "seconds": 1}', 400, "'worker': string should have at least 1 character"),
        ("/api/renew", b'{"chain": "sticky"}', 400, "'token': field required"),
        ("/api/renew", b'{"chain": "nobody", "token": 7}', 404, "the study has no chain 'nobody'"),
        ("/api/renew", b'{"chain": "sticky", "token": 7, "seconds": 0}', 400, "'seconds': input should be greater"),
        ("/api/give-back", b'{"chain": "sticky", "token": 7}', 409, "the lease of the chain 'sticky'"),
        ("/api/give-back", b'{"chain": "sticky", "token": null}', 400, "'token': input should be a valid integer"),
        ("/api/give-back", b'{"chain": "sticky", "token": "7"}', 400, "'token': input should be a valid integer"),
        ("/api/restart", b'{"chain": "sticky", "lost": 1}', 400, "'lost': input should be a valid boolean"),
        ("/api/tell", b"x" * 65_537, 413, "a request has at most 65,536 bytes"),
    ],
)
def test_bad_bodies_change_nothing(
    writer: Client, where: Path, path: str, body: bytes, status: int, sentence: str
) -> None:
    before = content(where)
    answer = writer.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"].startswith(sentence)
    with Study.open(where, read_only=True) as study:
        assert study.progress().observations == 300
    assert content(where) == before


def content(where: Path) -> list[str]:
    """Everything in the tables of a study."""
    with closing(sqlite3.connect(f"file:{where}?mode=ro", uri=True)) as connection:
        return list(connection.iterdump())


def test_only_json_is_taken(writer: Client) -> None:
    answer = writer.post("/api/ask", content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    assert writer.request("DELETE", "/api/tell").status_code == 405


def test_a_read_only_server_has_no_way_to_write(client: Client, where: Path) -> None:
    for name in ("ask", "tell", "lease", "renew", "give-back", "restart"):
        assert client.post(f"/api/{name}", json={}).status_code == 404
    for path in ("/api/study", "/api/chains", "/", "/static/page.js", "/download/chains.csv"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert client.request(method, path, json={}).status_code == 405
