"""Executors on a Dask cluster."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from ..errors import ChainscoutError, InputError, MissingExtraError

#: How long a scheduler may take to answer.
PATIENCE = "5s"


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """An executor on the cluster whose scheduler has this address, or on one made for the occasion ('local')."""
    try:
        from distributed import Client, LocalCluster
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise MissingExtraError("--dask", "cluster") from None
    with ExitStack() as stack:
        try:
            if address == "local":
                # One process a core: no port for a dashboard that nobody looks at, no log lines beside the table.
                cluster = LocalCluster(threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL")
                client = stack.enter_context(Client(stack.enter_context(cluster)))
            else:
                client = stack.enter_context(Client(address, timeout=PATIENCE))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"no Dask scheduler answers at {address!r}: {error}") from None
        try:
            yield client.get_executor()
        except KilledWorker as error:
            raise ChainscoutError(f"the workers of the Dask cluster die again and again: {error}") from None
