"""A real Spark cluster for the tests: a master and two workers, each a process of its own, from the pyspark package.

It needs Java, which no wheel brings: tests that use it are marked ``system``. They import the fixture.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

WORKERS = 2


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _home() -> Path:
    found = find_spec("pyspark")
    assert found is not None, "the tests need the package pyspark"
    assert found.origin is not None
    return Path(found.origin).parent


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The master's address, once both workers have registered."""
    directory = tmp_path_factory.mktemp("spark")
    environment = os.environ | {
        "SPARK_HOME": str(_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "512m",
    }
    port = _free_port()
    address = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
    commands = [master] + [[*worker, "--work-dir", str(directory / f"worker-{i}"), address] for i in range(WORKERS)]
    processes = []
    with open(directory / "log", "wb") as log:
        for name, *arguments in commands:
            command = [str(_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
            processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=directory)
            )
    try:
        deadline = time.monotonic() + 300
        while (text := (directory / "log").read_text()).count("Registering worker") < WORKERS:
            assert time.monotonic() < deadline, text
            assert all(process.poll() is None for process in processes), text
            time.sleep(0.2)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)
