"""A reliability trial: eight workers, each a process with simulators of its own, are killed at random on three chains.

The workers run the program that a user would write first: lease, advance, tell. It has no word of restarts or of
continuing. Each worker writes down what it told, with the number of the draw in its own simulator, before and after.
"""

import json
import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

import chainscout as cs
from chainscout.errors import ChainscoutError
from chainscout.study import Study

CHAINS = {
    "dense": cs.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]),
    "sticky": cs.MarkovChain([[0.95, 0.05], [0.1, 0.9]]),
    "cyclic": cs.MarkovChain([[0.1, 0.9, 0.0], [0.0, 0.1, 0.9], [0.9, 0.0, 0.1]]),
}
SIZES = {name: chain.size for name, chain in CHAINS.items()}
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["chainscout.study", "psycopg"])


class Simulator:
    """A user's own simulator of a chain: it starts somewhere and walks."""

    def __init__(self, chain: cs.MarkovChain, seed: str) -> None:
        self.rows = chain.matrix.tolist()
        self.rng = random.Random(seed)
        self.draws, self.state = 0, 0

    def advance(self) -> int:
        self.draws += 1
        self.state = self.rng.choices(range(len(self.rows)), self.rows[self.state])[0]
        return self.state


def work(where: Any, name: str, notes: Path) -> None:
    """The naive program of one worker."""
    simulators = {chain: Simulator(CHAINS[chain], f"{name} {chain}") for chain in CHAINS}
    with notes.open("a", buffering=1) as written:
        while True:
            try:
                study = Study.open(where)
                with study.worker(name) as worker:
                    while lease := worker.lease(seconds=1.0):
                        state = simulators[lease.chain].advance()
                        line = [lease.chain, lease.path, lease.step, simulators[lease.chain].draws, state]
                        lease.tell(state)
                        written.write(json.dumps(line) + "\n")
                study.close()
                return
            except ChainscoutError:  # a lease that was lost, or a server that was restarted: open it and go on
                time.sleep(0.05)


class Trial:
    """One study, its workers, and what they wrote down."""

    def __init__(self, where: Any, folder: Path, workers: int = 8) -> None:
        self.where, self.folder = where, folder
        self.started = 0
        self.running = [self.start() for _ in range(workers)]

    def start(self) -> Any:
        self.started += 1
        name = f"worker {self.started}"
        notes = self.folder / f"{self.started}.notes"
        process = CONTEXT.Process(target=work, args=(self.where, name, notes))
        process.start()
        return process

    def kill(self, rng: random.Random) -> None:
        """kill -9 of one worker; another one takes its place."""
        place = rng.randrange(len(self.running))
        self.running[place].kill()
        self.running[place].join()
        self.running[place] = self.start()

    def join(self) -> None:
        for process in self.running:
            process.join(timeout=900)  # a whole budget may be left, on a busy machine
            assert process.exitcode == 0

    def notes(self) -> list[list[Any]]:
        found = []
        for file in self.folder.glob("*.notes"):
            lines = [
                line for line in file.read_text().splitlines() if line.endswith("]")
            ]  # a kill cuts the last one off
            found += [[int(file.stem), *json.loads(line)] for line in lines]
        return found

    def check(self, study: Study) -> None:
        """Nothing acknowledged is lost, and every counted transition is one that a worker's own simulator made."""
        study.audit()
        log = {(line.chain, line.path, line.step): line.state for line in study.log()}
        assert len(log) == study.progress().observations
        draws: dict[tuple[str, int, int], tuple[int, int]] = {}
        for worker, chain, path, step, draw, state in self.notes():
            assert log[chain, path, step] == state
            assert (chain, path, step) not in draws, "acknowledged twice"
            draws[chain, path, step] = worker, draw
        for (chain, path, step), (worker, draw) in draws.items():
            before = draws.get((chain, path, step - 1))
            if before is not None:
                assert before == (worker, draw - 1), "a transition that no simulator made"

    @staticmethod
    def misses(study: Study) -> int:
        """How many chains break their bound."""
        certificate = study.certificate()
        losses = {name: cs.loss(CHAINS[name], study.counts(name)) for name in CHAINS}
        return sum(bool(losses[name] > certificate.loss[name]) for name in CHAINS)


def run(where: Any, folder: Path, kills: int, budget: int, seed: int, restart: Any = None, restarts: int = 0) -> int:
    """A whole trial; gives how many chains broke their bound."""
    rng = random.Random(seed)
    Study.create(where, SIZES, budget=budget, delta=0.05).close()
    trial = Trial(where, folder)
    at = np.linspace(0, kills, restarts + 2)[1:-1].astype(int).tolist() if restarts else []
    for kill in range(kills):
        time.sleep(rng.uniform(0.0, 0.3))
        if kill in at:
            restart()
        trial.kill(rng)
    trial.join()
    with Study.open(where, read_only=True) as study:
        progress = study.progress()
        assert progress.observations == budget
        trial.check(study)
        return trial.misses(study)
