"""`Study.diagnose` and ``chainscout diagnose``: checks from a study's log."""

import numpy as np
import pytest
from study_commands import answer, run
from test_repeated_paths import driven

import chainscout as cs
from chainscout.errors import InputError

MATRIX = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.5, 0.25, 0.25]])


def fed(study, length, seed, memory=(), matrix=MATRIX):
    """Advances the chains in turn; those in ``memory`` go back where they came from more often than not."""
    rng = np.random.default_rng(seed)
    names = study.names
    walks = {name: [0, 0] for name in names}
    told = []
    for step in range(length):
        name = names[step % len(names)]
        walk = walks[name]
        back = name in memory and rng.random() < 0.6
        walk.append(walk[-2] if back else int(rng.choice(3, p=matrix[walk[-1]])))
        told.append((name, walk[-1]))
    study.tell_many(told)
    return study


def test_from_the_log_of_any_store(place):
    study = fed(place.create({"north": 3, "south": 3}), 1200, 1, memory=["south"])
    found = study.diagnose()
    assert (found.delta, found.kinds) == (0.05, 5)
    assert found.blamed[cs.diagnostics.Kind.ORDER, "predecessor"] == ("south",)
    direct = cs.diagnose({name: study.paths(name) for name in study.names})
    assert [check.e_value for check in found] == [check.e_value for check in direct]
    # The newest draw of every chain is pending: the common queue ends before the older one of the two, not earlier.
    together = next(check for check in found if check.chain is None and check.kind == "change")
    assert together.cards >= 1200 - 2 - 2
    assert study.diagnose(delta=1e-200).against == ()


def test_known_matrices_and_another_study():
    study = fed(cs.Study.create(None, {"north": 3, "south": 3}), 1500, 2)
    same = fed(cs.Study.create(None, {"north": 3, "west": 3}), 1500, 3)
    other = fed(cs.Study.create(None, {"north": 3}), 1500, 4, matrix=MATRIX[:, ::-1])
    known = {"north": cs.MarkovChain(MATRIX)}
    assert study.diagnose(reference=known, other=same).against == ()
    found = study.diagnose(reference={"north": cs.MarkovChain(MATRIX[:, ::-1])}, other=other)
    assert {(check.kind, check.by) for check in found.against} == {
        ("reference", "known matrix"), ("sameness", "other data"),
    }  # fmt: skip
    # Chains that the caller did not name for these checks do not thin them.
    single = next(check for check in found if check.chain == "north" and check.by == "other data")
    together = next(check for check in found if check.chain is None and check.by == "other data")
    assert together.e_value == pytest.approx(single.e_value)
    with pytest.raises(InputError, match="other must be a study that has a chain of this study"):
        study.diagnose(other=cs.Study.create(None, {"elsewhere": 3}))


def test_workers_that_repeat_each_other_and_draws_that_were_lost_are_shown():
    class Memory:
        """Where studies are made: in memory."""

        def create(self, chains):
            return cs.Study.create(None, chains)

    study = driven(Memory(), (1, 2, 1), 3)
    with study.worker("gone", renews=False) as worker:
        lease = worker.lease(steps=3)
        lease.tell(0)
        lease.abandon()
    found = study.diagnose()
    assert "paths 1 and 3 of a begin with the same 64 states" in found.repeated[0]
    assert found.repeated[0] in str(found)
    assert [(rate.chain, rate.state, rate.lost) for rate in found.losses] == [("a", 0, 1)]
    assert found.waiting == 0  # nothing later was known when the draw was given up


def test_a_process_that_workers_pass_on_has_no_workers_to_compare():
    study = cs.Study.create(None, {"a": 2}, paths="shared")
    for number in range(40):
        with study.worker(f"worker {number % 2}", renews=False) as worker:
            lease = worker.lease(steps=2)
            lease.tell(number % 2)
            lease.tell(0)
    assert study.paths("a").transitions == 79
    assert not any(check.by == "worker" for check in study.diagnose())


@pytest.fixture
def lab(folder):
    path = folder / "lab.db"
    with cs.Study.create(path, {"north": ["idle", "busy", "down"], "south": 3}) as study:
        names = ["idle", "busy", "down"]
        rng = np.random.default_rng(5)
        north, south = [0, 0], [0, 0]
        told = []
        for _ in range(600):
            north.append(int(rng.choice(3, p=MATRIX[north[-1]])))
            south.append(south[-2] if rng.random() < 0.6 else int(rng.integers(3)))
            told += [("north", names[north[-1]]), ("south", south[-1])]
        study.tell_many(told)
    return path


def test_the_command(lab):
    text = run("diagnose", lab)
    assert "Of all chains together, the next state depends on what came before the state" in text
    assert "Chains that order (predecessor) speaks against: south." in text
    assert "each kind of check rejects at a level of at most 0.05/5" in text
    content = answer("diagnose", lab, "--delta", "0.01")
    assert content["delta"] == 0.01
    assert content["blamed"][0] == {"kind": "order", "by": "predecessor", "chains": ["south"]}
    assert {check["chain"] for check in content["checks"]} == {None, "north", "south"}
    with cs.Study.open(lab, read_only=True) as study:
        assert [check["level"] for check in content["checks"]] == [c.level for c in study.diagnose(delta=0.01)]


def test_the_command_with_known_matrices_and_another_study(lab, folder):
    chain = cs.MarkovChain(MATRIX, states=["idle", "busy", "down"])
    cs.Problem({"north": chain}).save(folder / "known.toml")
    content = answer("diagnose", lab, "--reference", folder / "known.toml", "--other", lab)
    by = {(check["chain"], check["by"]) for check in content["checks"]}
    assert ("north", "known matrix") in by
    assert ("south", "known matrix") not in by
    assert {("north", "other data"), ("south", "other data")} <= by
    cs.Problem({"west": chain}).save(folder / "other.toml")
    said = run("diagnose", lab, "--reference", folder / "other.toml", status=2)
    assert "--reference must name a problem with a chain of the study" in said
    assert "delta" in run("diagnose", lab, "--delta", "2", status=2)
    run("diagnose", folder / "none.db", status=1)
