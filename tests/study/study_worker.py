"""A worker for the fault tests: leases or asks, makes up states, tells, and says on stdout what was acknowledged.

    python study_worker.py WHERE NAME lease|ask NUMBER

Its states are a function of the chain and the step alone, so that a test can tell what every line must be.
"""

import hashlib
import sys

from study_rules import RULE

from chainscout.errors import StudyFinished
from chainscout.study import Study

SIZES = {f"chain{k}": 2 + k % 4 for k in range(12)}


def nth_state(chain: str, step: int) -> int:
    return hashlib.sha256(f"{chain} {step}".encode()).digest()[0] % SIZES[chain]


def main() -> None:
    where, name, way, number = sys.argv[1:]
    study = Study.open(where, RULE)
    print("ready", flush=True)
    for _ in range(int(number)):
        try:
            if way == "lease":
                with study.lease(name, seconds=5.0) as lease:
                    chain, step = lease.chain, lease.step
                    lease.tell(nth_state(chain, step))
            else:
                chain = study.ask()
                step = study.next_step(chain)
                study.tell(chain, nth_state(chain, step), step=step)
        except StudyFinished:
            break
        print(chain, step, flush=True)  # acknowledged
    print("done", flush=True)
    study.close()


if __name__ == "__main__":
    main()
