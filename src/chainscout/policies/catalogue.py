"""The built-in policies by name."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import specs
from ..errors import InputError
from ..validation import real_number, shown
from . import bamc, bandits, certified, fixed, furthest, scout
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

#: Rules for studies alone: an experiment has no aim.
_AIMING: dict[str, Callable[..., Policy]] = {"furthest": furthest.furthest}

#: Rules for experiments alone: they allocate for a certificate, and a study never advances a chain whose own bound has
#: reached the target. So in a study any rule needs as many observations as these.
_EXPERIMENTAL = ("gini-ucb", "certifier")

#: The default rule of a study: without a target, and with one.
DEFAULT, WITH_TARGET = "scout", "furthest"


def names() -> tuple[str, ...]:
    """The names of the rules whose index depends on counts alone: every experiment can use them."""
    return tuple(_FACTORIES)


def is_built_in(name: str) -> bool:
    """Whether ``get`` knows this name."""
    return name in _FACTORIES or name in _AIMING


def for_study(policy: "str | Policy") -> Policy:
    """The policy of a study, by name or as it is. Raises ``InputError`` for a rule that is for experiments alone."""
    found = get(policy)
    name = found.name.partition(":")[0]
    if found is not policy and name in _EXPERIMENTAL:
        raise InputError(
            f"the policy {name!r} is for experiments: a study leaves out each chain whose bound has reached the target,"
            " so there every rule needs the same number of observations; leave the policy out"
        )
    return found


def get(policy: "str | Policy", **parameters: Any) -> Policy:
    """A policy by name: ``get("ba-mc", delta=0.01)`` or ``get("ba-mc:delta=0.01")``.

    A Policy object is returned unchanged, and takes no parameters. Every named policy takes ``block`` (see
    :class:`Policy`) in addition to its own parameters.
    """
    if isinstance(policy, Policy):
        if parameters:
            raise InputError(
                f"parameters are for policies by name, and {shown(policy.name)} is a Policy already: it cannot be"
                f" given {', '.join(parameters)}"
            )
        return policy
    name, given = specs.merged(policy, parameters)
    factory = specs.look_up(name, _FACTORIES | _AIMING, "policy", "the policies are")
    specs.check_keys(given, [*inspect.signature(factory).parameters, "block"], f"the policy {name}")
    own = {key: value for key, value in given.items() if key != "block"}
    made = factory(**own)
    if "block" in given:
        block = real_number(given["block"], "block", least=0.0, below=1.0, meaning="how much of T one choice lasts")
        made = replace(made, block=block)
    return replace(made, name=specs.compose(name, given), parameters=given)
