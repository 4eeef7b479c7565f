"""The rule of a study that exists: what its first entry says of it, and the policy of this program."""

import json
from collections.abc import Mapping
from typing import Any

from .. import policies
from ..errors import InputError
from ..policies import Policy

__all__ = ["needed", "not_built_in"]


def not_built_in(name: str) -> InputError:
    """The error for a rule that is needed but not available."""
    return InputError(
        f"the study uses the policy {name!r}, which is not built in: only a Python program that gives this policy to "
        "Study.open can go on with it"
    )


def needed(settings: Mapping[str, Any], version: int, given: str | Policy | None, *, read_only: bool) -> Policy | None:
    """The policy that the study was created with; None if it is not built in, and the study is only read.

    ``version``: of the rule that chose last. A built-in rule may have another version now. Raises ``InputError`` if the
    policy given is another one.
    """
    stored = settings["policy"]
    name, parameters = stored["name"], stored["parameters"]
    if given is None:
        if policies.is_built_in(name.partition(":")[0]):  # a user's own rule may have any name
            return policies.get(name)
        if read_only:
            return None
        raise not_built_in(name)
    rule = policies.get(given)
    own = json.loads(json.dumps(dict(rule.parameters)))
    # A name means the built-in rule as it is now; an object means itself.
    if (rule.name, own) != (name, parameters) or (rule.version != version and rule is given):
        raise InputError(
            f"the study was created with the policy {name!r}, parameters {parameters}, version {version}; the one given"
            f" is {rule.name!r}, parameters {own}, version {rule.version}"
        )
    return rule
