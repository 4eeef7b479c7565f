"""Runs beside PyDTMC, in its own environment: chains as JSON on standard input, what PyDTMC makes of them on output.

Only ``chainscout.chains`` is imported, from the sources: it needs NumPy and SciPy, which PyDTMC brings.
"""

import json
import sys
from typing import Any

import numpy as np
import pydtmc

from chainscout.chains import MarkovChain


def quantities(theirs: pydtmc.MarkovChain) -> dict[str, Any]:
    """What PyDTMC computes, under its own names; null where it says that a chain has no such thing."""
    times = theirs.mean_recurrence_times()
    return {
        "pi": [law.tolist() for law in theirs.pi],
        "is_irreducible": bool(theirs.is_irreducible),
        "is_aperiodic": bool(theirs.is_aperiodic),
        "is_ergodic": bool(theirs.is_ergodic),
        "is_reversible": bool(theirs.is_reversible),
        "period": theirs.period,
        "spectral_gap": theirs.spectral_gap,
        "mean_recurrence_times": None if times is None else times.tolist(),
        # To the last state: from each state ever; the steps it takes; at step 1, 2, … 5 from the first one. And the
        # rewards 0, 1, 2, … of the states at the moments 0 to 3.
        "hitting_probabilities": theirs.hitting_probabilities(theirs.states[-1:]).tolist(),
        "hitting_times": theirs.hitting_times(theirs.states[-1:]).tolist(),
        "first_passages": theirs.first_passage_probabilities(5, theirs.states[0], theirs.states[-1:]).tolist(),
        "expected_rewards": theirs.expected_rewards(3, list(range(theirs.size))).tolist(),
        # The least t ≥ 1 with ‖μP^t − π‖₁ ≤ 0.25, here from each state in turn; null beyond 99.
        "mixing_times": [theirs.mixing_time(start, cutoff_type="traditional") for start in np.eye(theirs.size)],
    }


def described(chain: MarkovChain) -> dict[str, Any]:
    return {"matrix": chain.matrix.tolist(), "states": list(chain.states)}


def answer(given: dict[str, Any]) -> dict[str, Any]:
    theirs = pydtmc.MarkovChain(np.array(given["matrix"]), given["states"])
    exported = MarkovChain(given["matrix"], states=given["states"]).to_pydtmc()
    return {
        "quantities": quantities(theirs),
        "converted": described(MarkovChain.convert(theirs)),
        "exported": {
            "class": f"{type(exported).__module__}.{type(exported).__qualname__}",
            "matrix": exported.p.tolist(),
            "states": exported.states,
        },
        "there and back": described(MarkovChain.convert(exported)),
        "numbered": MarkovChain(given["matrix"]).to_pydtmc().states,
    }


if __name__ == "__main__":
    json.dump([answer(given) for given in json.load(sys.stdin)], sys.stdout)
