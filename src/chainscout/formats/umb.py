"""The unified Markov binary format (UMB), written and read by the package umbi."""

import tempfile
from pathlib import Path
from typing import Any

from ..chains import MarkovChain
from ..errors import MissingExtraError
from .model import INITIAL, Model, chain_of, refused

__all__ = ["content", "read"]


def content(model: Model) -> bytes:
    """The bytes of the file."""
    umbi = _umbi()
    system = umbi.ats.ExplicitAts()
    if model.note:
        system.model_info = umbi.ats.ModelInfo(description=model.note)
    for _ in range(model.size):
        system.add_state()
    system.set_initial_states(model.initial)
    for x in range(model.size):
        choice = system.add_state_choice(state=x)
        for y, low, high in model.row(x):
            choice.add_branch(target=y, prob=low if model.exact else umbi.datatypes.Interval(low, high))
    for x, label in enumerate(model.labels):
        system.add_ap_annotation(name=label).set_state_values([y == x for y in range(model.size)])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.umb"
        umbi.ats.write(system, str(file))
        return file.read_bytes()


def read(file: str) -> MarkovChain:
    """The chain of a file."""
    umbi = _umbi()
    try:
        # umbi 0.2.5 keeps only the last label in its transition systems; the layer below has them all.
        found = umbi.umb.read(file)
    except Exception as error:
        raise refused(
            file,
            "",
            f"this is not a UMB file that umbi {umbi.version.__version__} reads: {' '.join(str(error).split())}",
        ) from None
    system = found.index.transition_system
    if system.time != "discrete" or system.num_players != 0 or system.num_choices != system.num_states:
        raise refused(file, "", "a Markov chain in discrete time has no player and one choice in each state")
    entries: dict[tuple[int, int], float] = {}
    if len(found.branch_to_target or ()) != system.num_branches:
        raise refused(file, "", "the number of transitions is not what the file says")
    # A list in which every entry is one may be left out.
    choices = found.state_to_choices or range(system.num_states + 1)
    branches = found.choice_to_branches or range(system.num_choices + 1)
    for x in range(system.num_states):
        for branch in range(branches[choices[x]], branches[choices[x] + 1]):
            pair = x, found.branch_to_target[branch]
            if not 0 <= pair[1] < system.num_states:
                raise refused(file, f"state {x}", "a transition leads to a state that the file does not have")
            value = 1.0 if found.branch_to_probability is None else found.branch_to_probability[branch]
            if isinstance(value, umbi.datatypes.Interval):
                raise refused(file, f"state {x}", f"this is an interval, {value}, and only exact chains are read")
            entries[pair] = entries.get(pair, 0.0) + float(value)
    labels: dict[str, set[int]] = {}
    for name, values in ((found.annotations or {}).get("aps") or {}).items():
        labels[name] = {x for x, holds in enumerate(values.get("states", ())) if holds}
    initial = {x for x, holds in enumerate(found.state_is_initial) if holds}
    return chain_of(file, system.num_states, entries, labels | {INITIAL: initial}, initial)


def _umbi() -> Any:
    try:
        import umbi
    except ImportError:
        raise MissingExtraError("a UMB file", "umb") from None
    return umbi
