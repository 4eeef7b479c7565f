"""Whether two experiments gave the same numbers, for tests of ``compare``."""

import chainscout as cs


def same(first: cs.Results, second: cs.Results) -> bool:
    """To the bit."""
    return first.loss.tobytes() == second.loss.tobytes() and first.pulls.tobytes() == second.pulls.tobytes()
