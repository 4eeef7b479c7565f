"""The policy of a study whose rule is not here: a user's own. What does not need the rule can be read all the same.

A study stores its policy's name, parameters and version, and no code: nothing that a file names is ever imported.
"""

import json
from typing import Any

from ..errors import InputError
from ..policies import Policy
from ..store import StudyRecord


class AbsentPolicy(Policy):
    """A name without a rule."""


def absent(stored: StudyRecord) -> AbsentPolicy:
    """What stands for the policy that the study was created with."""

    def refuse(*given: Any) -> Any:
        raise not_built_in(stored.policy)

    parameters = json.loads(stored.parameters)
    return AbsentPolicy(stored.policy, refuse, refuse, refuse, version=stored.version, parameters=parameters)


def not_built_in(name: str) -> InputError:
    """The one error of those who need the rule."""
    return InputError(
        f"the study uses the policy {name!r}, which is not built in: only a Python program that gives this policy to "
        "Study.open can go on with it"
    )
