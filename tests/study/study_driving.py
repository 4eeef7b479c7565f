"""A study that is driven by states which depend on nothing but the seed, the chain and the step."""

import random

from chainscout.study import Study

STATES = {"north": ["idle", "busy", "down"], "south": 4, "east": 2}


def drive(study: Study, number: int, seed: int = 0) -> list[str]:
    """Asks and tells; each chain's states are a function of the seed, the chain and the step alone."""
    choices = []
    for _ in range(number):
        name = study.ask()
        choices.append(name)
        study.tell(name, nth_state(name, study.next_step(name), seed))
    return choices


def nth_state(name: str, step: int, seed: int = 0):
    known = STATES[name]
    states = known if isinstance(known, list) else list(range(known))
    return random.Random(f"{seed} {name} {step}").choice(states)
