"""What count_transitions hands over: streams, tables, certificates and what they refuse, paths, and the command."""

import contextlib
import decimal
import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import deeptime
import duckdb
import log_engines
import numpy as np
import pandas as pd
import pytest
import reference_logs
from click.testing import CliRunner
from reference_logs import Row

import chainscout as cs
from chainscout.certificates.mixture import bound_from_exits
from chainscout.cli import main
from chainscout.errors import CorrelatedCountsWarning, InputError, LogError
from chainscout.installation import extra_command
from chainscout.logs.results import next_samples
from chainscout.numerals import bound

NAMES: dict[str, Any] = {"chain": "id", "time": "at", "state": "what"}


def simulated(number: int = 300) -> list[Row]:
    """Three chains, of which 'steady' hardly moves and 'short' has few rows."""
    random = np.random.default_rng(7)
    rows = []
    for name, stay, length in (("lively", 0.4, number), ("short", 0.4, number // 10), ("steady", 0.98, number)):
        state = 0
        for time in range(length):
            rows.append(Row(name, time, state))
            state = state if random.random() < stay else int(random.integers(3))
    return rows


def pairs_of(counts: cs.Counts) -> list[tuple[Any, Any, int]]:
    """(from, to, count) of a reference's counts whose paths begin in state 0."""
    label = counts.states
    rows = counts.rows()
    found = [(label[x], label[y], number) for x, row in rows.items() for y, number in row.items()]
    return [(None, 0, counts.paths), *found]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    return log_engines.write_parquet(simulated(), tmp_path_factory.mktemp("log") / "log.parquet")


# ---------------------------------------------------------------- streams and tables


def test_chains_come_one_at_a_time_in_their_order(log: str) -> None:
    with cs.count_transitions(log, **NAMES) as found:
        assert len(found) == 3
        assert [name for name, _ in found] == ["lively", "short", "steady"]
        assert dict(found) == found.counts() == reference_logs.counts(simulated())  # and again from the beginning
        first, second = iter(found), iter(found)
        assert [next(first)[0], next(second)[0], next(first)[0]] == ["lively", "lively", "short"]
        assert repr(found) == "TransitionCounts(3 chains, lag 1)"


def test_more_rows_than_a_batch_holds(monkeypatch: pytest.MonkeyPatch, log: str) -> None:
    monkeypatch.setattr("chainscout.logs._spool.BATCH", 4)
    expected = reference_logs.counts(simulated())
    assert cs.count_transitions(log, **NAMES).counts() == expected
    # Rows of an answer come in any order, and with a missing label in any batch.
    rows = [(k, x, y, n, 0) for k, counts in expected.items() for x, y, n in pairs_of(counts)]
    assert cs.logs.read_counts(np.random.default_rng(0).permutation(np.array(rows, dtype=object))).counts() == expected


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ([3, 1], (1, 3)),
        (np.array([3, 1]), (1, 3)),
        ([0.5, 2], (0.5, 2.0)),
        ([True, False], (False, True)),
        (["b", "a"], ("a", "b")),
        ([decimal.Decimal("1.50"), decimal.Decimal("0.50")], ("0.50", "1.50")),
        ([uuid.UUID(int=1), uuid.UUID(int=0)], (str(uuid.UUID(int=0)), str(uuid.UUID(int=1)))),
    ],
)
def test_labels_of_an_answer_keep_their_type_or_become_text(labels: Any, kept: tuple[Any, ...]) -> None:
    x, y = labels
    for absent in (None, float("nan")):
        [(name, counts)] = cs.logs.read_counts([(7, x, y, decimal.Decimal(2), 0), (7, absent, x, 1, 0)])
        assert (name, counts.states, counts.total, counts.paths) == ("7", kept, 2, 1)
        assert [type(state) for state in counts.states] == [type(state) for state in kept]


def test_the_table_of_counts_says_everything(log: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.parquet"
    path.write_text("what was there before")
    cs.count_transitions(log, **NAMES).to_parquet(path)
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(path))
        assert relation.columns == ["chain", "from", "to", "count"]
        rows = relation.fetchall()
    for name, expected in reference_logs.counts(simulated()).items():
        pairs = [row[1:] for row in rows if row[0] == name]
        assert cs.Counts.from_pairs(pairs, expected.states, open_states=True) == expected
    assert [file.name for file in tmp_path.iterdir()] == ["counts.parquet"]


def test_a_table_that_cannot_be_written(log: str, tmp_path: Path) -> None:
    found = cs.count_transitions(log, **NAMES)
    with pytest.raises(LogError, match="the counts cannot be written here"):
        found.to_parquet(tmp_path / "nowhere" / "counts.parquet")
    with pytest.raises(InputError, match="path must be a string or a path, not 3"):
        found.to_parquet(3)  # type: ignore[arg-type]


def test_temporary_files_are_removed(log: str, tmp_path: Path) -> None:
    found = cs.count_transitions(log, temp_directory=tmp_path, **NAMES)
    assert len(list(tmp_path.iterdir())) == 1
    found.close()
    found.close()
    assert not list(tmp_path.iterdir())
    assert repr(found) == "TransitionCounts(closed)"
    for use in (found.counts, found.certificate, lambda: found.to_parquet(tmp_path / "x.parquet")):
        with pytest.raises(InputError, match="these counts were closed"):
            use()
    cs.count_transitions(log, temp_directory=tmp_path, **NAMES)  # never used: gone at once
    assert not list(tmp_path.iterdir())


def test_a_million_states_and_many_chains_of_ten(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.sql(
            "SELECT 0 AS id, i AS at, i * 7919 % 1_000_000 AS what FROM range(1_000_001) r(i) ORDER BY hash(i)"
        ).write_parquet(str(tmp_path / "states.parquet"))
        connection.sql(
            "SELECT i % 100_000 AS id, i // 100_000 AS at, i // 100_000 % 2 AS what FROM range(1_000_000) r(i)"
            " ORDER BY hash(i)"
        ).write_parquet(str(tmp_path / "chains.parquet"))
    [(name, counts)] = cs.count_transitions(str(tmp_path / "states.parquet"), **NAMES)
    assert (name, counts.size, counts.total, counts.paths) == ("0", 1_000_000, 1_000_000, 1)
    assert all(len(row) == 1 for row in counts.rows().values())
    seen = 0
    for _, counts in cs.count_transitions(str(tmp_path / "chains.parquet"), **NAMES):
        assert counts.rows() == {0: {1: 5}, 1: {0: 4}}
        seen += 1
    assert seen == 100_000


# ---------------------------------------------------------------- states and certificates


def test_states_that_are_seen_are_open_and_given_ones_closed(log: str) -> None:
    seen = cs.count_transitions(log, **NAMES)
    given = cs.count_transitions(log, states=4, **NAMES)
    assert seen.open_states
    assert not given.open_states
    for counts, spread in ((seen.counts(), True), (given.counts(), False)):
        for name, chain in counts.items():
            expected = bound_from_exits(chain.visited_exits(), chain.size, np.log(3 / 0.1), open_states=spread)
            assert cs.certify(counts, 0.1, "mixture").loss[name] == expected
    for method in ("sharp", "mixture"):
        assert seen.certificate(0.1, method) == cs.certify(seen.counts(), 0.1, method)
        assert given.certificate(0.1, method) == cs.certify(given.counts(), 0.1, method)
    assert given.certificate(0.1) == given.certificate(0.1, "sharp") != given.certificate(0.1, "mixture")
    # Not knowing how many states there are costs something.
    assert seen.certificate().max > cs.count_transitions(log, states=3, **NAMES).certificate().max
    for method in ("paper", "entrywise"):
        cs.certify(given.counts(), method=method)
        with pytest.raises(InputError, match="needs the chains' states to be known beforehand"):
            cs.certify(seen.counts(), method=method)
    assert cs.Estimate(given.counts()["lively"]).lower.shape == (4, 4)
    estimate = cs.Estimate(seen.counts()["lively"])
    assert estimate.matrix.shape == (3, 3)
    with pytest.raises(InputError, match="intervals need the chain's states to be known beforehand"):
        _ = estimate.lower


def test_states_by_chain_and_states_that_do_not_fit(log: str) -> None:
    each = {"lively": 3, "short": [0, 1, 2, 3], "steady": (2, 1, 0)}
    counts = cs.count_transitions(log, states=each, **NAMES).counts()
    assert [counts[name].states for name in each] == [range(3), (0, 1, 2, 3), (2, 1, 0)]
    with pytest.raises(InputError, match="chain 'lively': a state must be a whole number from 0 to 1, not 2"):
        cs.count_transitions(log, states=2, **NAMES).counts()
    with pytest.raises(InputError, match="states must name the states of every chain, and 'short'"):
        cs.count_transitions(log, states={"lively": 3}, **NAMES).counts()


def test_the_open_certificate_holds_for_states_never_seen() -> None:
    """P goes to each of 50 states alike; from ten exits most are unknown, and the loss counts them all."""
    random = np.random.default_rng(3)
    misses = 0
    for _ in range(200):
        counts = cs.Paths.from_walks([random.integers(50, size=40).tolist()]).counts()
        estimate = np.zeros((50, 50))
        places = list(counts.states)
        estimate[np.ix_(places, places)] = counts.matrix()
        weights = np.zeros(50)
        weights[places] = counts.occupancy
        loss = float(weights @ ((estimate - 1 / 50) ** 2).sum(axis=1))
        misses += loss > cs.certify({"chain": counts}, 0.05).max
    assert misses <= 10  # δ = 0.05 of 200 paths


def test_a_sliding_lag_warns_and_nothing_certifies_it(log: str) -> None:
    with pytest.warns(CorrelatedCountsWarning, match="sliding lag of 2 overlap"):
        found = cs.count_transitions(log, lag=2, sliding=True, states=3, **NAMES)
    counts = found.counts()
    assert found.correlated
    assert all(chain.correlated for chain in counts.values())
    for certify in (lambda: cs.certify(counts), found.certificate):
        with pytest.raises(InputError, match="correlated and no certificate holds for them"):
            certify()
    with pytest.raises(InputError, match="no interval holds for counts taken with a sliding lag"):
        _ = cs.Estimate(counts["lively"]).upper
    merged = counts["lively"].merge(counts["lively"])
    assert merged.correlated
    disjoint = cs.count_transitions(log, lag=2, states=3, **NAMES)
    assert disjoint.certificate().max < np.inf
    assert not cs.count_transitions(log, lag=1, sliding=True, **NAMES).correlated  # a lag of one does not overlap


def test_problem_and_what_to_sample_next(log: str) -> None:
    found = cs.count_transitions(log, states=3, **NAMES)
    problem = found.problem(name="log")
    assert np.array_equal(problem["steady"].matrix, found.counts()["steady"].matrix())
    following = found.next_samples(1_000)
    assert sum(following.values()) == 1_000
    assert following["short"] > following["lively"] > following["steady"]
    # Few observations go where they are needed most.
    assert found.next_samples(10) == {"lively": 0, "short": 10, "steady": 0}


def test_next_samples_makes_the_shares_as_equal_as_can_be() -> None:
    problem = cs.problems.get("unlike")
    from chainscout import predictions

    share = predictions.shares(problem, "oracle-max")
    none = dict.fromkeys(problem.names, 0)
    exact = np.array(list(next_samples(problem, none, 10**6).values()))
    assert np.abs(exact - share * 10**6).max() <= 1
    known = dict.fromkeys(problem.names, 10**5)
    more = np.array(list(next_samples(problem, known, 1_000).values()))
    level = (10**5 + more) / share
    assert more.sum() == 1_000
    assert np.ptp(level[more > 0]) <= 1 / share[more > 0].min()  # all that get something end level, to rounding
    assert level[more > 0].max() <= level[more == 0].min() + 1 / share[more > 0].min()


# ---------------------------------------------------------------- walks in memory


def test_walks_agree_with_deeptime_and_with_the_same_log() -> None:
    random = np.random.default_rng(5)
    walks = [random.integers(0, 4, size) for size in (50, 3, 1, 200)]
    expected = deeptime.markov.TransitionCountEstimator(1, "sliding").fit_fetch(walks).count_matrix
    counts = cs.Paths.from_walks(walks, states=4).counts()
    assert np.array_equal(counts.transitions, expected)
    rows = [Row("chain", t, int(state), p) for p, walk in enumerate(walks) for t, state in enumerate(walk)]
    frame = pd.DataFrame(log_engines.objects(rows))
    [(_, same)] = cs.count_transitions(frame, path="part", states=4, **NAMES)
    assert same == counts
    for lag in (2, 3):
        for mode, sliding in (("sliding", True), ("sample", False)):
            expected = deeptime.markov.TransitionCountEstimator(lag, mode).fit_fetch(walks).count_matrix
            with pytest.warns() if sliding else contextlib.nullcontext():
                [(_, counts)] = cs.count_transitions(frame, path="part", lag=lag, sliding=sliding, states=4, **NAMES)
            assert np.array_equal(counts.transitions, expected), (lag, mode)


def test_counts_from_pairs() -> None:
    counts = cs.Counts.from_pairs([(None, "a", 2), ("a", "b", 3), ("a", "b", 1)], ["a", "b"])
    assert (counts.observations, counts.paths, counts.total, counts.last) == (6, 2, 4, None)
    with pytest.raises(InputError, match="unknown state 'c'"):
        cs.Counts.from_pairs([("a", "c", 1)], ["a", "b"])


# ---------------------------------------------------------------- the command


def command(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["count", *words])
    assert not isinstance(result.exception, Exception), result.exception
    return result.exit_code, result.stdout + result.stderr


COLUMNS = ["--chain", "id", "--time", "at", "--state", "what"]


def test_the_command_shows_and_writes(log: str, tmp_path: Path) -> None:
    out = tmp_path / "out.toml", tmp_path / "out.parquet"
    options = ["--states", "0,1,2", "--budget", "1000", "--json", *(f"--out={path}" for path in out)]
    status, text = command(log, *COLUMNS, *options)
    assert status == 0, text
    chains, whole = json.loads(text)
    found = cs.count_transitions(log, states=3, **NAMES)
    assert [row["chain"] for row in chains["rows"]] == ["lively", "short", "steady"]
    assert [row["loss ≤, δ = 0.05"] for row in chains["rows"]] == list(found.certificate().loss.values())
    assert [row["of the next 1,000"] for row in chains["rows"]] == list(found.next_samples(1_000).values())
    assert whole["rows"][0] == {"quantity": "chains", "value": 3}
    saved = cs.Problem.load(out[0])
    assert saved.source == "log.parquet"
    assert np.array_equal(saved["short"].matrix, found.counts()["short"].matrix())
    assert out[1].read_bytes()[:4] == b"PAR1"
    status, text = command(log, *COLUMNS)
    assert status == 0
    assert "the states are those that the log shows" in text


def test_the_command_says_what_declared_states_are_worth(log: str) -> None:
    found = cs.count_transitions(log, states=3, **NAMES)
    more = int(sum(cs.plan(found, 0.02).more.values()))
    status, text = command(log, *COLUMNS, "--target-loss", "0.02")
    assert status == 0
    then = f"then every loss is at most {bound(found.certificate().max)}, and {more:,} more observations are needed"
    assert f"if these are all the states, say so with --states: {then}" in " ".join(text.split())
    status, text = command(log, *COLUMNS, "--states", "0,1,2")
    assert "say so with --states" not in text


def test_the_command_takes_the_states_of_each_chain(log: str) -> None:
    each = [word for name in ("lively", "short", "steady") for word in ("--states", f"{name}=0,1,2")]
    assert command(log, *COLUMNS, "--json", *each) == command(log, *COLUMNS, "--json", "--states", "0,1,2")
    assert command(log, *COLUMNS, *each, "--diagnose")[0] == 0
    status, text = command(log, *COLUMNS, *each[2:])
    assert status == 2
    assert "states must name the states of every chain, and 'lively' is not among them" in text
    status, text = command(log, *COLUMNS, *each, "--states", "0,1")
    assert status == 2
    assert "--states must be given as NAME=VALUE, not '0,1'" in text


def test_the_command_shows_the_least_known_of_many_chains(tmp_path: Path) -> None:
    rows = [Row(k, t, t % 2) for k in range(60) for t in range(2 + k)] + [Row(60, 0, 0)]
    path = log_engines.write_csv(rows, tmp_path / "log.csv")
    status, text = command(path, *COLUMNS)
    assert status == 0
    assert "11 chains that are better known are not shown" in text
    lines = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert lines[0][0] == "60"  # it has no transition at all
    status, text = command(path, *COLUMNS, "--json")
    assert len(json.loads(text)[0]["rows"]) == 61


def test_the_command_says_what_a_sliding_lag_is_worth(log: str) -> None:
    status, text = command(log, *COLUMNS, "--lag", "2", "--sliding")
    assert status == 0
    assert "no certificate holds for them" in text
    assert "the matrix of 2 steps is estimated" in text


def test_the_command_reads_durations(tmp_path: Path) -> None:
    import datetime

    begin = datetime.datetime(2024, 1, 1)
    rows = [Row("a", begin + datetime.timedelta(minutes=m), 0) for m in (0, 1, 10, 11, 100)]
    path = log_engines.write_parquet(rows, tmp_path / "log.parquet")
    for gap, paths in (("90s", 3), ("9min", 2), ("2h", 1), ("1d", 1), ("0.5h", 2)):
        status, text = command(path, *COLUMNS, "--gap", gap, "--json")
        assert status == 0, text
        assert json.loads(text)[0]["rows"][0]["paths"] == paths, gap


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["log.csv", *COLUMNS, "--out", "x.txt"], 2, "--out must end in .parquet (counts) or .toml or .json"),
        (["log.csv", *COLUMNS, "--gap", "soon"], 2, "must be a duration such as 30s, 5min"),
        (["log.csv", *COLUMNS, "--delta", "2"], 2, "delta (the probability with which a guarantee may fail)"),
        (["no-such.csv", *COLUMNS], 1, "there is no file 'no-such.csv'"),
        (["log.csv"], 2, "Missing option '--chain'"),
        (["postgresql://host/name", *COLUMNS], 2, "a database counts its log itself: run cs.logs.counting_sql"),
    ],
)
def test_wrong_uses_of_the_command(words: list[str], status: int, text: str) -> None:
    found, printed = command(*words)
    assert found == status
    assert text in printed


@pytest.mark.parametrize("module", ["duckdb", "sqlalchemy"])
def test_a_missing_extra_is_one_line(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for use in (
        lambda: cs.count_transitions("a.csv", **NAMES),
        lambda: cs.logs.read_paths("a.csv", **NAMES),
        lambda: cs.logs.counting_sql("events", dialect="sqlite", **NAMES),
        lambda: cs.logs.read_counts([]),
    ):
        with pytest.raises(cs.ChainscoutError) as caught:
            use()
        assert str(caught.value).endswith(f"needs an optional dependency: {extra_command('logs')}")
    # Walks in memory need none of them.
    assert cs.Paths.from_walks([[0, 1, 0]]).counts().total == 2


def test_a_pandas_frame_is_counted_without_pyarrow() -> None:
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import pandas, chainscout as cs
at = pandas.to_datetime([0, 60, 120], unit="s", utc=True)
log = pandas.DataFrame({"id": ["a"] * 3, "at": at, "what": ["up", None, "up"]})
[(name, counts)] = cs.count_transitions(log, chain="id", time="at", state="what", missing="break")
print(name, counts.paths, counts.total)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("a 2 0\n", "")
