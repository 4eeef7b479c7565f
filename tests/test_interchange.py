"""Data in and out, against the real libraries: Arrow streams, pandas, xarray; durations in words; names of problems."""

import datetime
import io
import json
import math
import os
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner
from postgres import postgres  # noqa: F401

import chainscout as cs
from chainscout.certificates import Estimate
from chainscout.certificates.open_states import OpenEstimate
from chainscout.cli import main
from chainscout.errors import InputError, LogError
from chainscout.validation import duration, seconds

COLUMNS = {"chain": "rig", "time": "at", "state": "mode"}
NOON = datetime.datetime(2026, 5, 1, 12)
LOG = {
    "rig": ["b", "a", "a", "b", "a", "b", "a"],
    "at": [NOON + datetime.timedelta(minutes=m) for m in (0, 1, 2, 3, 4, 90, 61)],
    "mode": [1, 2, 1, 2, 2, 2, 1],
    "note": [[1], None, [2], None, None, [], None],  # no label, and not asked for
}
EXPECTED = cs.count_transitions(pd.DataFrame(LOG), gap="30min", **COLUMNS).counts()


KINDS = ("pyarrow table", "pyarrow batch", "pyarrow reader", "polars eager", "polars lazy", "duckdb relation")


def stream(kind):
    table = pa.table(LOG)
    return {
        "pyarrow table": table,
        "pyarrow batch": table.combine_chunks().to_batches()[0],
        "pyarrow reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
        "polars eager": pl.DataFrame(LOG),
        "polars lazy": pl.LazyFrame(LOG),
        "duckdb relation": duckdb.connect().from_arrow(table),
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_an_arrow_stream_is_counted_like_a_frame(kind):
    counts = cs.count_transitions(stream(kind), gap="30min", **COLUMNS).counts()
    assert counts == EXPECTED
    assert counts["a"].transitions.tolist() == [[0, 1], [1, 0]]
    assert counts["a"].paths == 2
    assert counts["a"].states == (1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_without_the_column_is_one_sentence(kind):
    with pytest.raises(InputError, match=r"^the log has no .*'mood'.*its columns are"):
        cs.count_transitions(stream(kind), chain="rig", time="at", state="mood")


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_needs_the_names_of_its_columns(kind):
    with pytest.raises(InputError, match="needs their names"):
        cs.count_transitions(stream(kind))


def test_whole_numbers_beside_missing_ones_stay_whole():
    log = pl.DataFrame({"rig": ["a"] * 3, "at": [1, 2, 3], "mode": [7, None, 8]})
    with pytest.raises(LogError, match="has no state in column 'mode'"):
        cs.count_transitions(log, **COLUMNS)
    [(_, counts)] = cs.count_transitions(log, missing="break", **COLUMNS)
    assert counts.states == (7, 8)
    assert all(type(state) is int for state in counts.states)


def test_rows_of_a_stream_that_are_tied_are_named():
    log = pa.table({"rig": ["a", "a"], "at": [5, 5], "mode": [1, 2]})
    with pytest.raises(cs.ChainscoutError, match=r"'a'.*5"):
        cs.count_transitions(log, **COLUMNS)


def test_a_column_of_lists_cannot_be_a_state():
    with pytest.raises(InputError, match="nested or binary"):
        cs.count_transitions(pa.table(LOG), chain="rig", time="at", state="note")


def test_a_stream_that_fails_is_one_sentence():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise OSError("the cable is out")

    with pytest.raises(InputError, match=r"Broken cannot be read as a table: .*the cable is out"):
        cs.count_transitions(Broken(), **COLUMNS)


def test_what_pm4py_reads_is_counted_by_its_own_column_names():
    """pm4py keeps an event log as a frame with these columns."""
    events = pd.DataFrame(
        {
            "case:concept:name": ["1", "1", "2", "2", "2"],
            "concept:name": ["open", "close", "open", "ask", "close"],
            "time:timestamp": pd.to_datetime([0, 60, 10, 20, 30], unit="s", utc=True),
        }
    )
    [(name, counts)] = cs.count_transitions(
        events.assign(process="orders"),
        chain="process",
        path="case:concept:name",
        time="time:timestamp",
        state="concept:name",
    )
    assert (name, counts.paths, counts.total) == ("orders", 2, 3)


# --- a schema of PostgreSQL


def test_a_schema_of_postgresql_is_used_and_a_missing_one_is_named(postgres):  # noqa: F811
    where = f"{postgres.address}&options=-csearch_path%3Dinterchange"
    with pytest.raises(InputError, match=r"has no schema interchange, .*as in 'CREATE SCHEMA interchange'$"):
        cs.Study.create(where, {"a": 2}, budget=4)
    with psycopg.connect(postgres.address) as connection:
        connection.execute("CREATE SCHEMA interchange")
    with cs.Study.create(where, {"a": 2}, budget=4) as study:
        study.tell("a", 1)
    with cs.Study.open(where) as study:
        assert study.progress().observations == 1
    with psycopg.connect(postgres.address) as connection:
        found = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'journal'").fetchall()
        assert ("interchange",) in found
        connection.execute("DROP SCHEMA interchange CASCADE")


# --- durations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30),
        ("1.5min", 90),
        ("2 h", 7200),
        ("1d", 86400),
        ("1w", 604800),
        ("250ms", 0.25),
        ("1h 30min", 5400),
        ("1h30min", 5400),
    ],
)
def test_a_duration_in_words(text, expected):
    assert duration(text, "gap").total_seconds() == expected
    assert seconds(text, "gap") == expected


@pytest.mark.parametrize("text", ["", "soon", "5", "-5s", "5 months", "h", "1h and 3min", "1e9w", "9" * 400 + "d"])
def test_what_is_no_duration_is_one_sentence(text):
    with pytest.raises(InputError, match="gap must be a duration such as 30s, 5min, 2h, 1d or 1h 30min"):
        duration(text, "gap")


def test_a_gap_in_words_counts_as_a_timedelta_does():
    frame = pd.DataFrame(LOG)
    as_delta = cs.count_transitions(frame, gap=datetime.timedelta(minutes=30), **COLUMNS).counts()
    assert as_delta == EXPECTED
    with pytest.raises(InputError, match="must be a number, since the time column 'at' holds whole numbers"):
        cs.count_transitions(frame.assign(at=range(7)), gap="30min", **COLUMNS)


def test_a_program_may_take_words_for_its_timeout():
    from chainscout.sources import Program

    assert Program(["cat"], "2min")._timeout == 120
    with pytest.raises(InputError, match=r"timeout \(seconds that an answer may take\)"):
        Program(["cat"], "0s")


# --- pandas


def test_counts_as_a_frame_have_what_was_seen():
    frame = cs.Counts.from_path([0, 2, 2, 0, 2], 4).to_pandas()
    assert frame.to_dict("list") == {"from": [0, 2, 2], "to": [2, 0, 2], "count": [2, 1, 1]}
    assert cs.Counts(3).to_pandas().empty


@pytest.mark.parametrize("states", [["a", "b"], [7, 8], [None, ("x", 1)], [2**70, -1]])
def test_labels_stay_what_they_are_in_a_frame(states):
    frame = cs.Counts.from_path([states[0], states[1], states[0]], states).to_pandas()
    assert frame["from"].tolist() == states
    assert frame["to"].tolist() == states[::-1]


def test_counted_logs_as_a_frame_are_the_table_that_is_written(tmp_path):
    counts = cs.count_transitions(pd.DataFrame(LOG), gap="30min", **COLUMNS)
    counts.to_parquet(tmp_path / "counts.parquet")
    written = duckdb.connect().read_parquet(str(tmp_path / "counts.parquet")).fetchall()
    frame = counts.to_pandas()
    assert list(frame.columns) == ["chain", "from", "to", "count"]
    assert [tuple(row) for row in frame.itertuples(index=False)] == written


def test_an_estimate_as_a_frame_has_a_row_an_entry():
    counts = cs.Counts.from_path(["a", "b", "a", "a", "b"], ["a", "b"])
    estimate = Estimate(counts)
    frame = estimate.to_pandas()
    assert list(frame.columns) == ["from", "to", "transitions", "estimate", "lower", "upper"]
    assert frame["from"].tolist() == ["a", "a", "b", "b"]
    for column, matrix in (("estimate", estimate.matrix), ("lower", estimate.lower), ("upper", estimate.upper)):
        assert np.array_equal(frame.pivot(index="from", columns="to", values=column).to_numpy(), matrix)


def test_an_estimate_without_intervals_has_none_in_its_frame():
    frame = Estimate(cs.Counts.from_pairs([("a", "a", 3)], ["a"], open_states=True)).to_pandas()
    assert math.isnan(frame["lower"][0])
    assert math.isnan(frame["upper"][0])
    opened = OpenEstimate(["a"], {0: {0: 3}}, {0: {0: (1, 1, 1)}}, 0.05, 1).to_pandas()
    assert opened["transitions"].tolist() == [3]
    assert 0 <= opened["lower"][0] < opened["upper"][0] <= 1


def test_the_log_of_a_study_is_a_frame():
    study = cs.Study.create(None, {"a": ["x", "y"]}, budget=5)
    study.tell_many([("a", "x"), ("a", "y"), ("a", "x")])
    frame = pd.DataFrame(study.log())
    assert frame["state"].tolist() == ["x", "y", "x"]
    assert frame["step"].tolist() == [1, 2, 3]
    [(_, counts)] = cs.count_transitions(frame, chain="chain", time="number", state="state", path="path")
    assert counts.transitions.tolist() == study.counts("a").transitions.tolist()


def test_results_as_a_frame_have_every_number_once():
    results = cs.compare("unlike", policies=["uniform", "scout"], budgets=[40, 60], replications=3)
    frame = results.to_pandas()
    assert list(frame.columns) == ["policy", "budget", "replication", "chain", "loss", "pulls"]
    back = frame.set_index(["policy", "budget", "replication", "chain"])
    for p, policy in enumerate(results.policies):
        for b, budget in enumerate(results.budgets):
            for k, chain in enumerate(results.problem.names):
                assert np.array_equal(back.loc[policy, budget, :, chain]["loss"], results.loss[p, b, :, k])
                assert np.array_equal(back.loc[policy, budget, :, chain]["pulls"], results.pulls[p, b, :, k])


def test_a_frame_gives_a_chain_its_labels():
    frame = pd.DataFrame([[0.1, 0.9], [0.6, 0.4]], index=["good", "bad"], columns=["bad", "good"])
    chain = cs.MarkovChain(frame)
    assert chain.states == ("good", "bad")
    assert chain.matrix.tolist() == [[0.9, 0.1], [0.4, 0.6]]
    assert chain == cs.MarkovChain.convert(frame) == cs.MarkovChain.from_table(frame)
    assert cs.MarkovChain(frame, states=["up", "down"]).matrix.tolist() == chain.matrix.tolist()
    assert cs.MarkovChain(chain.to_pandas()) == chain
    with pytest.raises(InputError, match="the same unique states as rows and as columns"):
        cs.MarkovChain(frame.reset_index(drop=True))


# --- xarray


def test_draws_of_the_posterior_have_its_moments():
    counts = cs.Counts.from_transitions([[30, 10, 0], [1, 1, 1], [0, 0, 0]], ["a", "b", "c"])
    estimate = Estimate(counts)
    draws = estimate.to_xarray(5_000, seed=3)
    assert dict(draws.sizes) == {"chain": 4, "draw": 5_000, "from": 3, "to": 3}
    P = draws["P"].to_numpy().reshape(-1, 3, 3)
    assert np.allclose(P.sum(axis=2), 1)
    # Dirichlet(a): mean a/A, variance m(1 − m)/(A + 1); six standard errors of 20,000 independent draws.
    weights = counts.transitions + 1 / 9
    total = weights.sum(axis=1, keepdims=True)
    mean = weights / total
    assert np.allclose(mean, estimate.matrix)
    variance = mean * (1 - mean) / (total + 1)
    assert (np.abs(P.mean(axis=0) - mean) < 6 * np.sqrt(variance / len(P))).all()
    assert np.allclose(P.var(axis=0), variance, rtol=0.15)
    assert draws.equals(estimate.to_xarray(5_000, seed=3))
    assert not draws.equals(estimate.to_xarray(5_000, seed=4))


def test_draws_need_a_prior_and_say_that_they_guarantee_nothing():
    counts = cs.Counts.from_path([0, 1, 0], 2)
    assert Estimate(counts).to_xarray(2).attrs["guaranteed"] == "no"
    with pytest.raises(InputError, match="draws need a prior"):
        Estimate(counts, alpha=0).to_xarray()
    with pytest.raises(InputError, match=r"draws \(draws in each group\) must be a whole number ≥ 1"):
        Estimate(counts).to_xarray(0)


# --- names of problems


def test_compare_takes_a_name_or_a_file(tmp_path):
    problem = cs.problems.get("two-state")
    problem.save(tmp_path / "mine.toml")
    options = {"policies": ["uniform"], "budgets": [30], "replications": 2}
    expected = cs.compare(problem, **options).loss
    assert np.array_equal(cs.compare("two-state", **options).loss, expected, equal_nan=True)
    assert np.array_equal(cs.compare(str(tmp_path / "mine.toml"), **options).loss, expected, equal_nan=True)
    with pytest.raises(InputError, match=r"neither a file nor a built-in problem 'unlik' \(did you mean unlike\?\)"):
        cs.compare("unlik")


# --- the command line


def test_npz_is_not_written_to_a_terminal(tmp_path):
    """Bytes on a terminal can change how it behaves."""
    with cs.Study.create(tmp_path / "lab.db", {"a": 2}, budget=4) as study:
        study.tell_many([("a", 0), ("a", 1)])
    import pty  # here, because Windows has none

    command = [sys.executable, "-m", "chainscout", "export", str(tmp_path / "lab.db"), "--format", "npz"]
    ours, theirs = pty.openpty()
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert done.stderr == "chainscout: npz is binary, and this is a terminal: name a file with --out\n"
    piped = subprocess.run(command, capture_output=True, check=True)
    assert np.load(io.BytesIO(piped.stdout))["names"].tolist() == ["a"]


def test_a_lease_lasts_as_long_as_words_say(tmp_path):
    where = str(tmp_path / "lab.db")
    cs.Study.create(where, {"a": 2}, budget=4).close()
    runner = CliRunner()
    lease = json.loads(runner.invoke(main, ["ask", where, "--lease", "rig", "--seconds", "2min", "--json"]).stdout)
    renewed = runner.invoke(main, ["renew", where, "a", "--token", lease["token"], "--seconds", "5min", "--json"])
    assert json.loads(renewed.stdout)["seconds"] == 300
    refused = runner.invoke(main, ["renew", where, "a", "--token", lease["token"], "--seconds", "soon"])
    assert refused.exit_code == 2
    assert "--seconds (how long a lease lasts) must be a duration such as 30s" in refused.stderr
