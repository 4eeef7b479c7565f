"""Conversion between chains and the objects of other libraries, by duck typing: none of them is a dependency."""

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ChainscoutError, InputError
from ..frames import label_index, pandas_library
from ..installation import package_command
from ..validation import real_number, shown

if TYPE_CHECKING:
    from .chain import MarkovChain


def to_chain(thing: Any) -> "MarkovChain":
    """The chain that ``thing`` describes."""
    try:
        return _read(thing)
    except ChainscoutError:
        raise
    except Exception as error:  # an object with the attributes of a chain, but not its behaviour, may raise anything
        raise InputError(f"{shown(thing)} cannot be read as a Markov chain: {shown(error)}") from error


def _read(thing: Any) -> "MarkovChain":
    from .chain import MarkovChain

    if isinstance(thing, MarkovChain):
        return thing
    if is_labelled_table(thing):
        return MarkovChain(thing)
    if hasattr(thing, "nodes") and hasattr(thing, "edges"):
        return _from_digraph(thing)
    if hasattr(thing, "P"):  # quantecon.MarkovChain
        return MarkovChain(_dense(thing.P), states=_labels(getattr(thing, "state_values", None)))
    if hasattr(thing, "p") and hasattr(thing, "states"):  # pydtmc.MarkovChain
        return MarkovChain(_dense(thing.p), states=thing.states)
    if hasattr(thing, "transition_matrix"):  # deeptime.markov.msm.MarkovStateModel
        return MarkovChain(_dense(thing.transition_matrix))
    return MarkovChain(_dense(thing))


def to_pandas(chain: "MarkovChain") -> Any:
    """A DataFrame with the states as index and columns."""
    labels = label_index(chain.states)
    return pandas_library("to_pandas").DataFrame(chain.matrix.copy(), index=labels, columns=labels)


def to_networkx(chain: "MarkovChain") -> Any:
    """A DiGraph with an edge for every possible transition."""
    graph = _library("networkx").DiGraph()
    if None in chain.states:
        raise InputError(f"a networkx graph cannot have None as a node: {shown(list(chain.states))}")
    graph.add_nodes_from(chain.states)
    for x, y in np.argwhere(chain.matrix > 0):
        graph.add_edge(chain.states[x], chain.states[y], weight=float(chain.matrix[x, y]))
    return graph


def to_quantecon(chain: "MarkovChain") -> Any:
    """A quantecon.MarkovChain with the states as its values."""
    quantecon = _library("quantecon")
    try:
        values = np.array(list(chain.states))
        kept = values.dtype != object and tuple(_labels(values)) == chain.states
    except ValueError:  # tuples of unlike length
        kept = False
    if not kept:
        raise InputError(
            f"QuantEcon keeps states in an array of one type, and these do not fit: {shown(list(chain.states))}"
        )
    return quantecon.MarkovChain(chain.matrix.copy(), state_values=values)


def to_pydtmc(chain: "MarkovChain") -> Any:
    """A pydtmc.MarkovChain with the labels as strings."""
    names = [str(label) for label in chain.states]
    if len(set(names)) != len(names):
        raise InputError(f"PyDTMC names states by strings, and these labels are not unique as strings: {shown(names)}")
    return _library("pydtmc").MarkovChain(chain.matrix.copy(), names)


def to_deeptime(chain: "MarkovChain") -> Any:
    """A deeptime MarkovStateModel."""
    return _library("deeptime.markov.msm").MarkovStateModel(chain.matrix.copy())


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ChainscoutError(
            f"this conversion needs {package}, which is not installed: {package_command(package)}"
        ) from None


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def _labels(values: Any) -> Any:
    if values is None:
        return None
    # A QuantEcon chain on a product space has one row of coordinates for each state.
    return [tuple(value) if isinstance(value, list) else value for value in np.asarray(values).tolist()]


def is_labelled_table(thing: Any) -> bool:
    """Whether this is a table with labels for rows and columns, like a pandas DataFrame."""
    return hasattr(thing, "index") and hasattr(thing, "columns")


def labelled_table(table: Any) -> tuple[Any, list[Any]]:
    """The values and the states of a table whose rows and columns are the same states, in the order of the rows."""
    rows, columns = list(table.index), list(table.columns)
    if len(set(rows)) != len(rows) or set(rows) != set(columns) or len(rows) != len(columns):
        raise InputError(
            "a labelled table must have the same unique states as rows and as columns, not rows"
            f" {shown(rows)} and columns {shown(columns)}"
        )
    order = [columns.index(label) for label in rows]
    return np.asarray(table)[:, order], rows


def _from_digraph(graph: Any) -> "MarkovChain":
    from .chain import MarkovChain

    if not graph.is_directed():
        raise InputError("a graph must be directed to be a Markov chain, and this one is not")
    states = list(graph.nodes)
    position = {state: number for number, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for x, y, weight in graph.edges(data="weight"):
        name = f"the 'weight' of the edge from {shown(x)} to {shown(y)}"
        with np.errstate(over="ignore"):  # an infinite weight is refused below
            matrix[position[x], position[y]] += real_number(weight, name, least=0.0, meaning="its probability")
    return MarkovChain(matrix, states=states)
