"""Servers that show a study, in this process and in one of their own."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from dashboard_studies import TOKEN

from chainscout.dashboard.application import Dashboard
from chainscout.dashboard.guard import Guard
from chainscout.dashboard.server import writing_study
from chainscout.study import Study

ADDRESS = "http://127.0.0.1:8321"


class Client:
    """Requests to an application in this process, one after the other in one event loop."""

    def __init__(self, application: Any, runner: asyncio.Runner) -> None:
        self._runner = runner
        transport = httpx.ASGITransport(application, client=("127.0.0.1", 4711))
        self.client = httpx.AsyncClient(
            transport=transport, base_url=ADDRESS, headers={"authorization": f"Bearer {TOKEN}"}
        )

    def request(self, method: str, path: str, **settings: Any) -> httpx.Response:
        return self._runner.run(self.client.request(method, path, **settings))

    def together(self, *requests: tuple[str, str, dict[str, Any]]) -> list[tuple[httpx.Response, float]]:
        """Requests (method, path, settings) at the same time: each answer, and the seconds that it took."""

        async def one(method: str, path: str, settings: dict[str, Any]) -> tuple[httpx.Response, float]:
            asked = time.monotonic()
            return await self.client.request(method, path, **settings), time.monotonic() - asked

        async def all_of_them() -> list[tuple[httpx.Response, float]]:
            return await asyncio.gather(*(one(*request) for request in requests))

        return self._runner.run(all_of_them())

    def get(self, path: str, **settings: Any) -> httpx.Response:
        return self.request("GET", path, **settings)

    def post(self, path: str, **settings: Any) -> httpx.Response:
        return self.request("POST", path, **settings)


def connect(where: Path, writable: bool = False) -> Iterator[Client]:
    with Study.open(where, read_only=True) as study:
        writing = writing_study(str(where)) if writable else None
        dashboard = Dashboard(study, "Study", writing)
        guard = Guard(dashboard.application, token=TOKEN, host="127.0.0.1", port=8321)
        with asyncio.Runner() as runner:
            yield Client(guard, runner)
        if writing is not None:
            writing.close()


class Running:
    """``chainscout serve`` in a process of its own."""

    def __init__(self, where: Path, *options: str) -> None:
        command = [sys.executable, "-m", "chainscout", "serve", str(where), "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        found = re.fullmatch(r"(http://\S+)/\?token=(\w+)", line)
        assert found, line + self.end()[1]
        self.address, self.token = found.groups()
        self.entrance = line

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.address, headers={"authorization": f"Bearer {self.token}"}, timeout=30)

    def end(self) -> tuple[str, str]:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.communicate(timeout=20)
