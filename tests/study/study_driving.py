"""A study that is driven by states which depend on nothing but the seed, the chain and the observation's number."""

import random

from chainscout.study import Study

STATES = {"north": ["idle", "busy", "down"], "south": 4, "east": 2}


def drive(study: Study, number: int, seed: int = 0) -> list[str]:
    """Asks and tells; a state is a function of the seed, the chain and the number of its observation in the chain."""
    choices = []
    for _ in range(number):
        name = study.ask()
        choices.append(name)
        study.tell(name, next_state(study, name, seed))
    return choices


def next_state(study: Study, name: str, seed: int = 0):
    return nth_state(name, study.chain(name).observations + 1, seed)


def nth_state(name: str, number: int, seed: int = 0):
    known = STATES[name]
    states = known if isinstance(known, list) else list(range(known))
    return random.Random(f"{seed} {name} {number}").choice(states)
