"""The built-in policies by name."""

import difflib
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import specs
from ..checks import real_number, shown
from ..errors import InputError
from . import bamc, bandits, certified, fixed, scout
from .policy import Policy

_FACTORIES: dict[str, Callable[..., Policy]] = {
    "uniform": fixed.uniform,
    "oracle": fixed.oracle,
    "oracle-max": fixed.oracle_max,
    "static": fixed.static,
    "ba-mc": bamc.ba_mc,
    "ba-mc-tight": bamc.ba_mc_tight,
    "gafs-max": bandits.gafs_max,
    "ch-as": bandits.ch_as,
    "b-as": bandits.b_as,
    "bayes": bandits.bayes,
    "scout": scout.scout,
    "gini-ucb": certified.gini_ucb,
    "certifier": certified.certifier,
}

#: What a study uses unless it is told otherwise.
DEFAULT = "scout"


def names() -> tuple[str, ...]:
    """The names that ``get`` knows."""
    return tuple(_FACTORIES)


def get(policy: "str | Policy", **parameters: Any) -> Policy:
    """A policy by name: ``get("ba-mc", delta=0.01)`` or ``get("ba-mc:delta=0.01")``; a Policy is given back as it is,
    and takes no parameters.

    Every policy takes ``block`` (see :class:`Policy`) beside its own parameters.
    """
    if isinstance(policy, Policy):
        if parameters:
            raise InputError(
                f"parameters are for policies by name, and {shown(policy.name)} is a Policy already: it cannot be"
                f" given {', '.join(parameters)}"
            )
        return policy
    name, given = specs.parse(policy)
    twice = sorted(given.keys() & parameters.keys())
    if twice:
        raise InputError(f"a parameter can be given only once, but {', '.join(twice)} is given twice")
    given |= parameters
    if name not in _FACTORIES:
        near = difflib.get_close_matches(name, _FACTORIES, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise InputError(f"unknown policy {shown(name)}{hint}: the policies are {', '.join(_FACTORIES)}")
    factory = _FACTORIES[name]
    known = [*inspect.signature(factory).parameters, "block"]
    for key in given:
        if key not in known:
            raise InputError(f"the policy {name} has no parameter {shown(key)}: it takes {', '.join(known)}")
    own = {key: value for key, value in given.items() if key != "block"}
    made = factory(**own)
    if "block" in given:
        block = real_number(given["block"], "block", least=0.0, below=1.0, meaning="how much of T one choice lasts")
        made = replace(made, block=block)
    return replace(made, name=specs.compose(name, given), parameters=given)
