"""Chains from and to networkx, pandas, QuantEcon and deeptime, and the same quantities computed by them."""

import sys
from types import SimpleNamespace

import deeptime.markov.tools.analysis as deeptime_analysis
import networkx
import numpy as np
import pandas
import pytest
import quantecon
from deeptime.markov.msm import MarkovStateModel
from quantecon.markov.gth_solve import gth_solve
from scipy.sparse import csr_array, csr_matrix
from strategies import birth_and_death, cycle_with_jump

from chainscout.chains import MarkovChain
from chainscout.chains.structure import communicating_classes, recurrent_classes
from chainscout.errors import ChainscoutError, InputError

RING = np.roll(np.eye(4), 1, axis=1)
CHAINS = {
    "single": [[1.0]],
    "two states": [[0.9, 0.1], [0.4, 0.6]],
    "periodic": RING,
    "bipartite": 0.5 * RING + 0.5 * RING.T,
    "jump": cycle_with_jump(5, 0.25),
    "birth and death": birth_and_death(8, 0.3, 0.4),
    "dense": np.random.default_rng(0).dirichlet(np.ones(12), 12),
    "nearly decomposable": 1e-9 * np.full((4, 4), 0.25) + (1 - 1e-9) * np.kron(np.eye(2), np.full((2, 2), 0.5)),
    "unichain": [[0.5, 0.5, 0, 0], [0, 0.2, 0.8, 0], [0, 0.6, 0.4, 0], [0.1, 0, 0, 0.9]],
    "two ends": [[1, 0, 0], [0.3, 0.4, 0.3], [0, 0, 1]],
    "identity": np.eye(3),
}
IRREDUCIBLE = [name for name, matrix in CHAINS.items() if MarkovChain(matrix).is_irreducible]

every_chain = pytest.mark.parametrize("name", CHAINS)
every_irreducible_chain = pytest.mark.parametrize("name", IRREDUCIBLE)


def as_sets(classes):
    return {frozenset(int(state) for state in states) for states in classes}


def our_classes(chain):
    number, labels = communicating_classes(chain.matrix)
    return as_sets(np.flatnonzero(labels == label) for label in range(number))


# ---------------------------------------------------------------- there and back

LABELS = [
    ["dry", "wet"],
    [0, 1],
    [2, -5],
    [0.5, 1.5],
    [("a", 1), ("b", 2)],
    [("a",), ("b", 2)],
    [None, "a"],
    ["a", 1],
    [frozenset({1}), 2**70],
    [2**53 + 1, 0.5],
]


@every_chain
@pytest.mark.parametrize("library", ["pandas", "networkx", "quantecon", "deeptime"])
def test_there_and_back(name, library):
    chain = MarkovChain(CHAINS[name])
    assert MarkovChain.convert(getattr(chain, f"to_{library}")()) == chain


@pytest.mark.parametrize("labels", LABELS, ids=str)
@pytest.mark.parametrize(
    ("library", "lost"),
    [("pandas", []), ("networkx", [[None, "a"]]), ("quantecon", LABELS[4:]), ("deeptime", [])],
    ids=["pandas", "networkx", "quantecon", "deeptime"],
)
def test_labels_survive_or_are_refused(labels, library, lost):
    chain = MarkovChain(CHAINS["two states"], states=labels)
    if labels in lost:
        with pytest.raises(InputError, match=r"cannot have None as a node|keeps states in an array of one type"):
            getattr(chain, f"to_{library}")()
        return
    back = MarkovChain.convert(getattr(chain, f"to_{library}")())
    # deeptime numbers its states.
    assert back == (MarkovChain(chain.matrix) if library == "deeptime" else chain)


def test_a_conversion_shares_no_memory():
    chain = MarkovChain(CHAINS["two states"])
    table = chain.to_pandas()
    table.iloc[0, 0] = 7
    chain.to_quantecon().P[0, 0] = 7
    chain.to_deeptime().transition_matrix[0, 0] = 7
    assert chain == MarkovChain(CHAINS["two states"])


def test_what_our_objects_look_like_to_others():
    chain = MarkovChain([[1, 0], [0.25, 0.75]], states=["end", "go"])
    table = chain.to_pandas()
    assert (list(table.index), list(table.columns), table.loc["go", "end"]) == (["end", "go"], ["end", "go"], 0.25)
    graph = chain.to_networkx()
    expected = {("end", "end"): 1, ("go", "end"): 0.25, ("go", "go"): 0.75}
    assert {edge[:2]: edge[2] for edge in graph.edges(data="weight")} == expected
    assert list(chain.to_quantecon().state_values) == ["end", "go"]
    assert chain.to_deeptime().n_states == 2


# ---------------------------------------------------------------- from what others make


def weighted(kind, edges):
    graph = kind()
    graph.add_weighted_edges_from(edges)
    return graph


MATRIX = [[0.9, 0.1], [0.4, 0.6]]
NAMED = MarkovChain(MATRIX, states=["a", "b"])


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (NAMED, NAMED),
        (MATRIX, MarkovChain(MATRIX)),
        (np.array(MATRIX), MarkovChain(MATRIX)),
        (csr_array(np.array(MATRIX)), MarkovChain(MATRIX)),
        (pandas.DataFrame(MATRIX), MarkovChain(MATRIX)),
        (pandas.DataFrame(MATRIX, index=["a", "b"], columns=["a", "b"]), NAMED),
        (pandas.DataFrame([[0.1, 0.9], [0.6, 0.4]], index=["a", "b"], columns=["b", "a"]), NAMED),
        (pandas.DataFrame(MATRIX).convert_dtypes(), MarkovChain(MATRIX)),
        (
            weighted(networkx.DiGraph, [("a", "b", 0.1), ("a", "a", 0.9), ("b", "b", 0.6), ("b", "a", 0.4)]),
            NAMED,
        ),
        (weighted(networkx.MultiDiGraph, [(0, 0, 0.25), (0, 0, 0.75)]), MarkovChain([[1]])),
        (quantecon.MarkovChain(np.array(MATRIX)), MarkovChain(MATRIX)),
        (quantecon.MarkovChain(csr_matrix(np.array(MATRIX)), state_values=["a", "b"]), NAMED),
        (
            quantecon.MarkovChain(np.array(MATRIX), state_values=[[1, 2], [3, 4]]),
            MarkovChain(MATRIX, states=[(1, 2), (3, 4)]),
        ),
        (MarkovStateModel(csr_matrix(np.array(MATRIX))), MarkovChain(MATRIX)),
        (SimpleNamespace(p=np.array(MATRIX), states=["a", "b"]), NAMED),  # as PyDTMC has it
    ],
)
def test_conversion(thing, expected):
    assert MarkovChain.convert(thing) == expected


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (pandas.DataFrame([[1.0]], index=["a"], columns=["b"]), r"not rows \['a'\] and columns \['b'\]"),
        (pandas.DataFrame(MATRIX, index=["a", "a"], columns=["a", "a"]), "the same unique states as rows and as"),
        (pandas.DataFrame([["x"]]), "must be numbers in rows of equal length, not .*'x'"),
        (pandas.DataFrame([[None]]), "must be numbers in rows of equal length, not .*None|is nan"),
        (pandas.DataFrame(MATRIX, index=[pandas.NA, 1], columns=[pandas.NA, 1]), "NA.* cannot be read as a Markov"),
        (pandas.DataFrame(), r"at least one state, not of shape \(0, 0\)"),
        (networkx.Graph([(0, 1)]), "a graph must be directed"),
        (networkx.DiGraph(), r"at least one state, not of shape \(0, 0\)"),
        (
            networkx.DiGraph([("a", "b")]),
            "'weight' of the edge from 'a' to 'b' .* ≥ 0, not None",
        ),
        (weighted(networkx.DiGraph, [(0, 0, "much")]), "not 'much'"),
        (weighted(networkx.DiGraph, [(0, 0, 10**400)]), "must be a finite number ≥ 0, not 1000"),
        (weighted(networkx.DiGraph, [(0, 0, 1j)]), "not 1j"),
        (weighted(networkx.MultiDiGraph, [(0, 0, 1e308), (0, 0, 1e308)]), "the one from 0 to 0 is inf"),
        (weighted(networkx.DiGraph, [(0, 1, 1.0)]), "the row of 1 sums to 0"),
        (networkx.DiGraph, "DiGraph'> cannot be read as a Markov chain"),
        (quantecon.MarkovChain(np.array(MATRIX), state_values=[1, 1]), "states must be unique, but 1 stands for 2"),
        (SimpleNamespace(P=None), r"must be square with at least one state, not of shape \(\)"),
        (SimpleNamespace(P=MATRIX, state_values=5), "cannot be read as a Markov chain: TypeError"),
        (SimpleNamespace(nodes=5, edges=6), "cannot be read as a Markov chain: AttributeError"),
        (SimpleNamespace(index=None, columns=None), "cannot be read as a Markov chain: TypeError"),
        (SimpleNamespace(p=MATRIX, states=3), "states must be a sequence of hashable labels, at least one, not 3"),
        (SimpleNamespace(transition_matrix="x"), "must be numbers in rows of equal length, not 'x'"),
        (None, r"must be square with at least one state, not of shape \(\)"),
        ("matrix", "must be numbers in rows of equal length, not 'matrix'"),
    ],
)
def test_what_is_no_chain_says_why(thing, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        MarkovChain.convert(thing)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("library", ["pandas", "networkx", "quantecon", "pydtmc", "deeptime"])
def test_a_library_that_is_not_there_is_named(library, monkeypatch):
    chain = MarkovChain([[1.0]])
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "deeptime.markov.msm", None)
    with pytest.raises(ChainscoutError, match=rf"needs .*{library}\]?'?$"):
        getattr(chain, f"to_{library}")()


def test_labels_that_are_equal_as_strings_cannot_go_to_pydtmc():
    with pytest.raises(InputError, match=r"not unique as strings: \['1', '1'\]"):
        MarkovChain(np.eye(2), states=[1, "1"]).to_pydtmc()


# ---------------------------------------------------------------- the same quantities


@every_chain
def test_structure_agrees_with_quantecon(name):
    chain = MarkovChain(CHAINS[name])
    theirs = chain.to_quantecon()
    assert our_classes(chain) == as_sets(theirs.communication_classes_indices)
    assert as_sets(recurrent_classes(chain.matrix)) == as_sets(theirs.recurrent_classes_indices)
    assert chain.is_irreducible == theirs.is_irreducible
    if chain.is_irreducible:
        assert (chain.period, chain.is_aperiodic) == (theirs.period, theirs.is_aperiodic)
    laws = theirs.stationary_distributions
    if len(laws) == 1:
        assert chain.stationary == pytest.approx(laws[0], rel=1e-12)
    else:
        with pytest.raises(InputError, match=f"it has {len(laws)} sets of states that cannot be left"):
            _ = chain.stationary


@every_chain
def test_structure_agrees_with_networkx(name):
    chain = MarkovChain(CHAINS[name])
    graph = chain.to_networkx()
    assert our_classes(chain) == as_sets(networkx.strongly_connected_components(graph))
    assert as_sets(recurrent_classes(chain.matrix)) == as_sets(networkx.attracting_components(graph))
    assert chain.is_irreducible == networkx.is_strongly_connected(graph)
    if chain.is_irreducible:
        assert chain.is_aperiodic == networkx.is_aperiodic(graph)


@every_irreducible_chain
def test_quantities_agree_with_deeptime(name):
    chain = MarkovChain(CHAINS[name])
    theirs = chain.to_deeptime()
    tolerance = 1e-6 if name == "nearly decomposable" else 1e-10  # deeptime solves for an eigenvector
    assert chain.stationary == pytest.approx(theirs.stationary_distribution, rel=tolerance)
    assert chain.is_irreducible == deeptime_analysis.is_connected(chain.matrix)
    assert chain.is_reversible == deeptime_analysis.is_reversible(chain.matrix)
    if chain.size > 1:
        sizes = np.sort(np.abs(deeptime_analysis.eigenvalues(chain.matrix)))
        if chain.is_reversible:
            assert chain.spectral_gap == pytest.approx(1 - sizes[-2], abs=1e-9)
        # γ((P*)^ℓ P^ℓ) ≤ 1 − |λ₂|^{2ℓ} (MATH §2)
        assert chain.pseudo_spectral_gap <= 1 - sizes[-2] ** 2 + 1e-9


def test_the_stationary_law_agrees_with_quantecons_elimination_to_the_last_digits():
    block = np.random.default_rng(3).dirichlet(np.ones(3), 3)
    matrix = 1e-14 * np.full((6, 6), 1 / 6) + (1 - 1e-14) * np.kron(np.eye(2), block)
    assert MarkovChain(matrix).stationary == pytest.approx(gth_solve(matrix), rel=1e-14)
