"""A study observed as fast as the disk allows, in a process of its own: python dashboard_writer.py FILE SECONDS.

It begins when it reads a line, and prints when it made its observations (how many in each tenth of a second), its share
of a core and the numbers of all events. In a process of its own, what it loses to readers it loses to the server.
"""

import json
import sys
import time
from collections import Counter

from dashboard_studies import PROBLEM

from chainscout.sources import simulated
from chainscout.study import Study


def main() -> None:
    where, seconds = sys.argv[1], float(sys.argv[2])
    with Study.open(where) as study:
        sources = simulated(PROBLEM, seed=5)
        print("ready", flush=True)
        sys.stdin.readline()
        began, worked, number = time.monotonic(), time.process_time(), 0
        tenths: Counter[int] = Counter()
        while time.monotonic() < began + seconds:
            name = study.ask()
            study.tell(name, sources[name].advance()[0])
            number += 1
            tenths[int(10 * time.monotonic())] += 1
            if number % 200 == 0:
                study.restart(name)
        took = time.monotonic() - began
        core = (time.process_time() - worked) / took
        print(json.dumps({"tenths": tenths, "core": core, "events": [event.number for event in study.events()]}))


if __name__ == "__main__":
    main()
