"""The identity of a policy: what distinguishes it from others of the same name."""

import json
from collections.abc import Sequence
from typing import Any

from ..compile import digest
from ..policies import Policy, settings
from ..problems import Problem


def identity(name: str, policy: Policy, problem: Problem, budgets: Sequence[int | None]) -> dict[str, Any]:
    """The description of a policy in an experiment's settings; parameters as in JSON.

    ``rule`` is a digest of the policy's functions, and of the numbers that it prepares for the chains of this problem
    at these budgets (None: unlimited). Two policies with different digests may choose differently.
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
