"""Results: their rows, their figure, their files, and what becomes of a damaged one."""

import io
import json
import math
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

import chainscout as cs
from chainscout.errors import FileError, InputError, MissingExtraError
from chainscout.experiment import files
from chainscout.experiment.statistics import STATISTICS
from chainscout.report import experiments as report


@pytest.fixture(scope="module")
def problem() -> cs.Problem:
    chains = {
        "größer <b>": cs.MarkovChain([[0.9, 0.1], [0.3, 0.7]], initial=[1, 0], states=["on", "off"]),
        "$x$": cs.MarkovChain([[0.2, 0.8, 0.0], [0.5, 0.0, 0.5], [1 / 3, 1 / 3, 1 / 3]]),
    }
    return cs.Problem(chains, name="naïve", description="two chains", source="made up")


@pytest.fixture(scope="module")
def results(problem: cs.Problem) -> cs.Results:
    return cs.compare(problem, ["uniform", "static:weights=1/3", "gini-ucb", "oracle"], [3, 40, 200], 30, seed=8)


# ---------------------------------------------------------------- rows


def test_the_summary_is_the_definition(results: cs.Results) -> None:
    rows = {(row["policy"], row["budget"]): row for row in results.summary()}
    assert len(rows) == 4 * 3
    n, variability = 200, results.problem.variability
    for p, policy in enumerate(results.policies):
        loss = results.loss[p, 2]
        row = rows[policy, n]
        assert row["n·max E[L]/Λ"] == pytest.approx(n * loss.mean(axis=0).max() / variability)
        assert row["n·E[max L]/Λ"] == pytest.approx(n * loss.max(axis=1).mean() / variability)
        assert row["n·quantile(L)/Λ"] == pytest.approx(n * np.quantile(loss.max(axis=1), 0.95) / variability)
        assert row["± n·E[max L]/Λ"] == pytest.approx(n * loss.max(axis=1).std(ddof=1) / math.sqrt(30) / variability)
        oracle = results.loss[results.position("oracle"), 2]
        assert row["E[max L] / oracle"] == pytest.approx(loss.max(axis=1).mean() / oracle.max(axis=1).mean())
    assert rows["oracle", n]["± E[max L] / oracle"] == pytest.approx(0, abs=1e-12)  # against itself, paired
    assert math.isnan(rows["uniform", 3]["n·max E[L]/Λ"])


@pytest.mark.parametrize("statistic", STATISTICS)
def test_differences_are_paired(results: cs.Results, statistic: str) -> None:
    rows = results.differences(statistic)
    assert len(rows) == 3 * 6
    row = next(r for r in rows if (r["budget"], r["policy"], r["against"]) == (200, "uniform", "oracle"))
    scale = 200 / results.problem.variability
    assert row["from"] < row["difference"] < row["to"]
    if statistic == "E[max L]":
        gaps = results.loss[0, 2].max(axis=1) - results.loss[3, 2].max(axis=1)
        assert row["difference"] == pytest.approx(scale * gaps.mean())
        assert row["to"] - row["from"] == pytest.approx(2 * 1.96 * scale * gaps.std(ddof=1) / math.sqrt(30), rel=1e-3)
    assert row["better"] == ("uniform" if row["to"] < 0 else "oracle" if row["from"] > 0 else None)
    with pytest.raises(InputError, match="statistic must be one of"):
        results.differences("mode")


def test_allocation_against_eta_and_the_policy_s_target(results: cs.Results) -> None:
    rows = {(row["policy"], row["chain"]): row for row in results.allocation()}
    names = results.problem.names
    for k, name in enumerate(names):
        assert rows["uniform", name]["share"] == 0.5 == rows["uniform", name]["target"]
        assert rows["oracle", name]["target"] == results.problem.allocation[k] == rows["uniform", name]["η"]
        assert rows["static:weights=1/3", name]["target"] == [0.25, 0.75][k]
        assert rows["static:weights=1/3", name]["share"] == pytest.approx([0.25, 0.75][k], abs=0.01)
    for policy in results.policies:
        assert sum(rows[policy, name]["share"] for name in names) == pytest.approx(1)


def test_arrays_cannot_be_changed_and_names_are_found(results: cs.Results) -> None:
    with pytest.raises(ValueError, match="read-only"):
        results.loss[0] = 0
    assert results.position("oracle") == 3
    with pytest.raises(InputError, match="unknown policy 'bayes': these results have uniform"):
        results.position("bayes")


# ---------------------------------------------------------------- figure


def ink(figure: Figure) -> list[float]:
    """The share of each panel that is not white."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=50)
    width, height = (round(50 * inches) for inches in figure.get_size_inches())
    pixels = np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)[:, :, :3]
    return [float((part < 200).any(axis=2).mean()) for part in np.array_split(pixels, 3, axis=1)]


def test_the_figure_shows_what_the_rows_say(results: cs.Results) -> None:
    figure = results.figure()
    left, middle, right = figure.axes
    rows = [row for row in results.summary() if row["policy"] == "gini-ucb"]
    for axes, column in ((left, "n·max E[L]/Λ"), (middle, "n·E[max L]/Λ")):
        line = axes.get_lines()[results.position("gini-ucb")]
        assert line.get_xdata() == pytest.approx([3, 40, 200])
        assert line.get_ydata() == pytest.approx([row[column] for row in rows], nan_ok=True)
        assert axes.get_lines()[-1].get_ydata() == [1, 1]  # Λ/n
        assert len(axes.collections) == 4  # a band each
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*results.policies, "Λ/n"]
    shares = [bar.get_height() for container in right.containers for bar in container]
    assert shares == [row["share"] for row in results.allocation()]
    targets = [y for line in right.get_lines() for y in line.get_ydata()]
    assert targets == pytest.approx([row["target"] for row in results.allocation()], nan_ok=True)
    assert [text.get_text() for text in right.get_xticklabels()] == ["größer <b>", r"\$x\$"]
    assert all(share > 0.01 for share in ink(figure))


def test_a_figure_for_a_paper(results: cs.Results) -> None:
    """A column's width, the panels that are wanted, text that can be read at that size; each format is written."""
    figure = results.figure(["E[max L]"], width=3.4)
    (axes,) = figure.axes
    assert (axes.get_title(), axes.get_ylabel()) == ("mean largest loss", "n·E[max L]/Λ")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["200", "40", "3"]  # the budgets
    assert figure.get_size_inches() == pytest.approx([3.4, 3.3], abs=0.01)
    assert {text.get_fontsize() for text in [*axes.get_xticklabels(), *figure.legends[0].get_texts()]} == {8}
    assert results.figure().axes[0].get_xticklabels()[0].get_fontsize() == 10
    figure.draw_without_rendering()  # lays it out
    inside = figure.get_tightbbox()
    assert inside.x0 >= 0
    assert inside.x1 <= 3.4
    legend = figure.legends[0].get_window_extent()
    assert legend.y1 <= axes.get_tightbbox().y0  # below the axis: it hides no line
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1
    for kind, first in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind)
        assert buffer.getvalue().startswith(first)


def test_a_panel_of_shares_alone_names_the_policies(results: cs.Results) -> None:
    figure = results.figure(["share"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(results.policies)


def test_budgets_that_are_close_have_ticks_without_numbers() -> None:
    results = cs.compare("unlike", ["uniform"], [100, 900, 950, 1_000], 4)
    axes = results.figure(["E[max L]"]).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1,000", "100"]
    assert axes.get_xticks(minor=True).tolist() == [900, 950]
    (only,) = cs.compare("unlike", ["uniform"], [100], 4).figure(["E[max L]"]).axes
    assert [text.get_text() for text in only.get_xticklabels()] == ["100"]


@pytest.mark.parametrize("panels", ["share", [], ["loss"], ["share", "Share"]])
def test_panels_that_do_not_exist(results: cs.Results, panels: object) -> None:
    with pytest.raises(InputError, match=r"panels must be some of 'max E\[L\]', 'E\[max L\]', 'share', not"):
        results.figure(panels)


@pytest.mark.parametrize("width", [0, -1, 1_000, math.nan, "wide"])
def test_widths_that_no_figure_has(results: cs.Results, width: object) -> None:
    with pytest.raises(InputError, match=r"width \(inches\) must be"):
        results.figure(width=width)


def test_names_that_would_break_a_figure() -> None:
    chain = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    problem = cs.Problem(
        {"$": chain, "$\\frac$": chain, "_": chain, "x" * 300: chain, **{str(k): chain for k in range(12)}}
    )
    rule = cs.policies.get("uniform")
    own = cs.Policy("_$\\sqrt$_" + "y" * 100, rule.index, rule.terms, rule.constants)
    figure = cs.compare(problem, [own], [100], 4).figure()
    assert "(4 chains left out)" in figure.axes[2].get_title()
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text().startswith(r"_\$\sqrt\$_yyy")
    assert all(share > 0.01 for share in ink(figure))


# ---------------------------------------------------------------- files


def test_a_saved_run_reads_back_equal(results: cs.Results, tmp_path: Path) -> None:
    results.save(tmp_path / "run.npz")
    again = cs.Results.load(tmp_path / "run.npz")
    assert again.problem == results.problem
    assert (again.policies, again.budgets) == (results.policies, results.budgets)
    assert again.settings == json.loads(json.dumps(dict(results.settings)))
    for name in ("loss", "pulls", "targets"):
        before, after = getattr(results, name), getattr(again, name)
        assert (before.dtype, before.shape, before.tobytes()) == (after.dtype, after.shape, after.tobytes())
    assert str(again.summary()) == str(results.summary())
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    again.save(str(tmp_path / "again.npz"))
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "run.npz").read_bytes()


def test_to_xarray(results: cs.Results, tmp_path: Path) -> None:
    data = results.to_xarray()
    assert np.array_equal(data.loss.sel(policy="oracle", budget=40), results.loss[3, 1])
    assert np.array_equal(data.pulls, results.pulls)
    assert json.loads(data.attrs["settings"])["seed"] == 8
    data.to_netcdf(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc") as opened:
        assert dict(opened.loss.sizes) == {"policy": 4, "budget": 3, "replication": 30, "chain": 2}
        assert list(opened.policy.values) == list(results.policies)
        one = opened.loss.sel(policy="gini-ucb", budget=200, chain="$x$")
        assert np.array_equal(one, results.loss[2, 2, :, 1])
        assert (opened.pulls.sum("chain") == opened.budget).all()
    with pytest.raises(FileError, match="not a saved experiment"):
        cs.Results.load(tmp_path / "run.nc")


def test_without_xarray_there_is_a_hint(results: cs.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtraError, match=r"to_xarray needs an optional dependency: .*xarray"):
        results.to_xarray()


def test_a_file_cut_anywhere_is_one_error(results: cs.Results, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    results.save(file)
    whole = file.read_bytes()
    for length in [*range(0, 60, 7), *range(60, len(whole), 997), len(whole) - 1]:
        file.write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"run\.npz is damaged"):
            cs.Results.load(file)


def loaded(file: Path) -> cs.Results | str:
    """The results in a file, or the text of the one error that it may give."""
    try:
        return cs.Results.load(file)
    except FileError as error:
        return str(error)


def test_a_file_changed_anywhere_is_one_error(results: cs.Results, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    results.save(file)
    whole = file.read_bytes()
    generator = np.random.default_rng(1)
    places = [*range(4, 400, 5), *generator.integers(400, len(whole), 150).tolist()]
    unnoticed = 0
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= int(generator.integers(1, 256))
        file.write_bytes(changed)
        again = loaded(file)
        if isinstance(again, cs.Results):
            # Not data: what the archive says of dates and systems.
            assert again.loss.tobytes() == results.loss.tobytes()
            assert again.pulls.tobytes() == results.pulls.tobytes()
            assert (again.problem, again.policies) == (results.problem, results.policies)
            unnoticed += 1
        else:
            assert "\n" not in again
    assert unnoticed < len(places) / 10


def test_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no file .*missing\.npz"):
        cs.Results.load(tmp_path / "missing.npz")
    with pytest.raises(FileError, match="cannot be read"):
        cs.Results.load(tmp_path)
    (tmp_path / "text.npz").write_text("a text")
    with pytest.raises(FileError, match="not a saved experiment"):
        cs.Results.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(FileError, match="not a saved experiment"):
        cs.Results.load(tmp_path / "other.npz")
    with pytest.raises(InputError, match="path must be"):
        cs.Results.load(3)  # type: ignore[arg-type]


def test_a_file_of_another_format(results: cs.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "FORMAT", 7)
        results.save(tmp_path / "later.npz")
    with pytest.raises(FileError, match="has format 7, and this version of chainscout reads 2"):
        cs.Results.load(tmp_path / "later.npz")


def test_what_cannot_be_saved(results: cs.Results, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="could not be written"):
        results.save(tmp_path / "no" / "such" / "place.npz")
    chain = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=[("a", 1), ("b", 2)])
    with pytest.raises(InputError, match="only strings and integers as state labels"):
        cs.compare(cs.Problem({"x": chain}), ["uniform"], [10], 4).save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- tables


def test_tables_are_the_rows(results: cs.Results) -> None:
    losses, differences, shares = report.tables(results)
    assert losses.title == "naïve: losses"
    assert [record["policy"] for record in losses.records()] == [row["policy"] for row in results.summary()]
    value = next(row for row in results.summary() if row["policy"] == "gini-ucb" and row["budget"] == 200)
    shown = next(r for r in losses.records() if r["policy"] == "gini-ucb" and r["budget"] == 200)["n·E[max L]/Λ"]
    assert float(shown.split(" ± ")[0]) == pytest.approx(value["n·E[max L]/Λ"], rel=1e-3)
    assert float(shown.split(" ± ")[1]) == pytest.approx(value["± n·E[max L]/Λ"], rel=0.05)
    assert len(differences.rows) == 6
    assert len(shares.rows) == 8
    rows = dict(report.settings(results).rows)
    assert (rows["seed"], rows["replications"], rows["delta"]) == (8, 30, 0.05)
    assert rows["version of chainscout"] == cs.__version__
    assert rows["policy gini-ucb"] == "version 1, block 0.01"


def test_long_tables_are_cut_and_say_so() -> None:
    chain = cs.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    results = cs.compare(cs.Problem({f"{k:03}": chain for k in range(250)}), ["uniform"], [600], 4)
    shares = report.tables(results)[2]
    assert len(shares.rows) == 200
    assert shares.notes == ("50 more rows are left out",)


def test_results_are_pickled_with_their_arrays_at_home(results: cs.Results) -> None:
    again = pickle.loads(pickle.dumps(results))
    assert again.loss.tobytes() == results.loss.tobytes()
    assert str(again.summary()) == str(results.summary())  # nan is not equal to itself
