"""What tells a policy from others of its name."""

import json
from collections.abc import Sequence
from typing import Any

from ..compile import digest
from ..policies import Policy, settings
from ..problems import Problem


def identity(name: str, policy: Policy, problem: Problem, budgets: Sequence[int | None]) -> dict[str, Any]:
    """A policy as an experiment's settings have it; parameters as JSON holds them.

    ``rule`` is a digest of the functions that choose, and of the numbers that the policy prepares for the chains of
    this problem at these budgets (None: no end is known): two policies that differ in it may choose otherwise.
    """
    rule = policy.facing(budgets[-1])
    functions = (rule.terms, rule.index, rule.entry, rule.summary, rule.floor)
    constants = [rule.prepare(setting) for budget in budgets for setting in settings(problem.sizes, budget, problem)]
    return {
        "name": name,
        "version": policy.version,
        "block": policy.block,
        "parameters": json.loads(json.dumps(dict(policy.parameters), default=str)),
        "rule": digest((functions, rule.power, constants)).hex(),
    }
