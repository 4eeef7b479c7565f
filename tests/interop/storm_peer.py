"""Runs beside stormpy, in its own environment: files and formulas as JSON on standard input, Storm's values on output.

A value is given for each state, by the label that this state alone has.
"""

import json
import sys
from pathlib import Path
from typing import Any

import stormpy
from stormpy import Interval, UncertaintyResolutionMode

MODES = {"least": UncertaintyResolutionMode.MINIMIZE, "largest": UncertaintyResolutionMode.MAXIMIZE}


def built(file: Path, exact: bool) -> Any:
    """The model of a file."""
    value_type = float if exact else Interval
    if file.suffix == ".prism":
        return stormpy.build_model[value_type](stormpy.io.parse_prism_program(str(file)))
    if file.suffix == ".umb":
        return stormpy.build_model_from_umb(str(file))
    return stormpy.build_model_from_drn[value_type](str(file))


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    model = built(Path(asked["file"]), asked["exact"])
    owners = {label: list(model.labeling.get_states(label)) for label in model.labeling.get_labels()}
    places = {label: holders[0] for label, holders in owners.items() if len(holders) == 1 and label != "init"}
    values: dict[str, Any] = {}
    for formula in asked["formulas"]:
        wanted = stormpy.parse_properties(formula)[0]
        for mode, resolution in {"": None}.items() if asked["exact"] else MODES.items():
            try:
                found = stormpy.model_checking(model, wanted, uncertainty_resolution_mode=resolution)
            except Exception as error:
                values[f"{formula} {mode}".strip()] = str(error)
                continue
            values[f"{formula} {mode}".strip()] = {
                label: float(found.get_value(place)) for label, place in places.items()
            }
    initial = sorted(label for label, place in places.items() if place in model.initial_states)
    return {"values": values, "initial": initial, "labels": sorted(owners)}


if __name__ == "__main__":
    json.dump([answer(asked) for asked in json.load(sys.stdin)], sys.stdout)
