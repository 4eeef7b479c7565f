"""A study observed as fast as the disk allows, in a process of its own: python dashboard_writer.py FILE SECONDS.

It begins when it reads a line, and prints its observations a second, its share of a core and the number of the last
event. In a process of its own it has a lock of its own: what it loses to readers is lost to the server alone.
"""

import json
import sys
import time

from dashboard_studies import PROBLEM

from chainscout.study import Study, simulated


def main() -> None:
    where, seconds = sys.argv[1], float(sys.argv[2])
    with Study.open(where) as study:
        sources = simulated(PROBLEM, seed=5)
        print("ready", flush=True)
        sys.stdin.readline()
        began, worked, number = time.monotonic(), time.process_time(), 0
        while time.monotonic() < began + seconds:
            name = study.ask()
            study.tell(name, sources[name].advance()[0])
            number += 1
            if number % 200 == 0:
                study.restart(name)
        took = time.monotonic() - began
        core = (time.process_time() - worked) / took
        print(json.dumps({"rate": number / took, "core": core, "events": study.progress().events}))


if __name__ == "__main__":
    main()
