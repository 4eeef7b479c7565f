"""A Dask cluster as an executor for an experiment."""

import gc
import signal
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from typing import Any

from ..errors import ChainscoutError, InputError, MissingExtraError

#: How long a Dask scheduler may take to answer.
PATIENCE = "5s"


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """An executor on the Dask cluster whose scheduler has this address; 'local': on a cluster made for this run."""
    try:
        from distributed import Client, LocalCluster
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise MissingExtraError("--dask", "cluster") from None
    with ExitStack() as stack:
        why = None
        try:
            if address == "local":
                # One process per core, any free port for the dashboard, and no log lines beside the table.
                quiet = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
                cluster = stack.enter_context(LocalCluster(threads_per_worker=1, preload=[__name__], **quiet))
                client = stack.enter_context(Client(cluster, set_as_default=False))
            else:
                client = stack.enter_context(Client(address, timeout=PATIENCE, set_as_default=False))
        except Exception as error:  # the library raises all kinds of errors for a wrong address
            why = str(error) or type(error).__name__
        if why is not None:
            # The unfinished client closes itself when it is collected. It hangs if another one starts at that moment.
            gc.collect()
            raise InputError(f"no Dask scheduler answers at {address!r}: {why}")
        try:
            yield client.get_executor()
        except KilledWorker as error:
            raise ChainscoutError(f"the workers of the Dask cluster die again and again: {error}") from None


def dask_setup(worker: Any) -> None:
    """Dask calls this in each worker. A terminal sends Ctrl-C to all processes, and only the first may react."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
