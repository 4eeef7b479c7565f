"""Paths from logs: the same draws in the same order from every engine, and checks of them."""

import json
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import log_engines
import numpy as np
import pandas as pd
import pytest
import reference_logs
from click.testing import CliRunner
from hypothesis import given, settings
from reference_logs import Row
from test_logs_agree import logs

import chainscout as cs
from chainscout.cli import main
from chainscout.errors import InputError, LogError
from chainscout.logs import _walks, read_paths

NAMES = {"chain": "id", "time": "at", "state": "what", "path": "part", "order": "nth"}


def read(where: Any, **options: Any) -> dict[str, cs.Paths]:
    return read_paths(where, **(NAMES | {"missing": "break"} | options))


def literal(rows: list[Row], gap: int | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """(path, step, source, target) of every draw by (moment at which it starts, path), slowly."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    before: dict[Any, Row] = {}
    numbers: dict[Any, tuple[int, int]] = {}
    begun: dict[Any, int] = {}
    for row in sorted(rows, key=lambda row: (row.chain, row.path, row.time, row.order)):
        place = row.chain, row.path
        last = before.get(place)
        before[place] = row
        if row.state is None:
            continue
        goes_on = last is not None and last.state is not None and (gap is None or row.time - last.time <= gap)
        if not goes_on:
            begun[row.chain] = begun.get(row.chain, -1) + 1
            numbers[place] = begun[row.chain], -1
        number, step = numbers[place]
        numbers[place] = number, step + 1
        start = last if goes_on else row
        card = (start.time, start.order, number, step + 1, last.state if goes_on else None, row.state)
        found.setdefault(str(row.chain), []).append(card)
    return {name: [card[2:] for card in sorted(cards, key=lambda card: card[:4])] for name, cards in found.items()}


def shown(paths: cs.Paths) -> list[tuple[Any, ...]]:
    label = [*paths.states, None]  # START is −1
    columns = (paths.path, paths.step, paths.source, paths.target)
    return [(p, s, label[x], label[y]) for p, s, x, y in zip(*(c.tolist() for c in columns), strict=True)]


@given(rows=logs())
@settings(max_examples=40, deadline=None)
def test_frames_agree_with_the_literal_order(rows: list[Row]) -> None:
    for gap in (None, 2):
        found = read(pd.DataFrame(log_engines.objects(rows)), gap=gap)
        assert {name: shown(paths) for name, paths in found.items()} == literal(rows, gap)


def some_rows() -> list[Row]:
    rng = np.random.default_rng(0)
    rows = [
        Row(k, int(t), int(rng.integers(3)) if rng.random() < 0.95 else None, p)
        for k in range(3)
        for p in range(3)
        for t in rng.permutation(40)[:30]
    ]
    return [rows[j] for j in rng.permutation(len(rows))]


def test_every_engine_gives_the_same_paths() -> None:
    rows = some_rows()
    expected, counted = literal(rows, 3), reference_logs.counts(rows, gap=3)
    with tempfile.TemporaryDirectory() as directory:
        for what, where in log_engines.places(rows, Path(directory)):
            found = read(where, gap=3)
            assert {name: shown(paths) for name, paths in found.items()} == expected, what
            for name, paths in found.items():
                assert paths.open_states
                assert np.array_equal(paths.counts().matrix(), counted[name].matrix())
                assert not paths.late_losses(by_row=False).any()


def test_given_states() -> None:
    rows = [Row("a", t, state, p) for p, walk in enumerate([[0, 1, 2], [2, 0]]) for t, state in enumerate(walk)]
    log = pd.DataFrame(log_engines.objects([*rows, Row("b", 0, 1), Row("b", 1, 1)]))
    found = read(log, states=3)
    assert found["a"].size == 3
    assert not found["a"].open_states
    assert (found["a"].transitions, found["b"].transitions) == (3, 1)
    assert read(log, states=[2, 1, 0])["b"].target.tolist() == [1, 1]
    with pytest.raises(InputError, match="chain 'a': 2 is not among its states"):
        read(log, states=2)
    with pytest.raises(InputError, match="states must name the states of every chain"):
        read(log, states={"a": 3})


def test_faults_are_those_of_counting(tmp_path: Path) -> None:
    tied = log_engines.write_parquet([Row("a", 0, "x"), Row("a", 0, "y")], tmp_path / "tied.parquet")
    with pytest.raises(LogError, match="which came first is not known"):
        read_paths(tied, chain="id", time="at", state="what")
    stateless = log_engines.write_parquet([Row("a", 0, "x"), Row("a", 1, None)], tmp_path / "stateless.parquet")
    with pytest.raises(LogError, match="has no state"):
        read_paths(stateless, chain="id", time="at", state="what")
    nameless = log_engines.write_parquet([Row("a", 0, "x"), Row(None, 1, "x")], tmp_path / "nameless.parquet")
    with pytest.raises(LogError, match="every row needs a chain, but 1 row has none"):
        read_paths(nameless, chain="id", time="at", state="what")


def test_the_command_finds_memory_in_a_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    states = ["idle", "idle"]
    while len(states) < 2000:
        states.append(states[-2] if rng.random() < 0.6 else str(rng.choice(["idle", "busy", "down"])))
    log = log_engines.write_csv([Row("rig", t, state) for t, state in enumerate(states)], tmp_path / "log.csv")
    words = ["count", log, "--chain", "id", "--time", "at", "--state", "what", "--diagnose"]
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 0, found.output
    assert "the next state depends on what came before" in found.output
    tables = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert tables[-1]["title"] == "checks"
    assert tables[-1]["rows"][0]["check"] == "order"
    refused = CliRunner().invoke(main, [*words, "--lag", "2"])
    assert refused.exit_code == 2
    assert "--diagnose looks at single steps: it goes with a lag of 1" in refused.output


def test_the_memory_that_is_stated() -> None:
    """25 bytes a row are kept of what was read, and 75 with the paths made of it; 100 at most on the way."""
    number = 50_000
    steps = ((f"chain {j // 2_000}", 1, j % 2_000 + 1, int(j % 2_000 == 0), j % 5, 0) for j in range(number))
    tracemalloc.start()
    try:
        found = _walks.gathered(steps)
        kept, _ = tracemalloc.get_traced_memory()
        paths = _walks.paths_of(found, None, untyped=False)
        both, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(chain.transitions for chain in paths.values()) == number - 25
    assert kept < 30 * number
    assert both < 85 * number
    assert peak < 100 * number
