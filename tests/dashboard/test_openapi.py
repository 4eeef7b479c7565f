"""The OpenAPI document is true: schemathesis asks everything that it allows and much that it does not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dashboard_servers import Client, Running

from chainscout.dashboard.interface import READS, WRITES

COMMAND = Path(sys.executable).with_name("schemathesis")


def test_the_document_names_what_is_there(client: Client, writer: Client) -> None:
    reading, writing = client.get("/api/openapi.json").json(), writer.get("/api/openapi.json").json()
    paths = {read.address for read in READS} | {"/api/events"}
    assert set(reading["paths"]) == paths
    assert set(writing["paths"]) == paths | {write.path for write in WRITES}
    references = json.dumps(writing).split("#/components/schemas/")[1:]
    assert {text.partition('"')[0] for text in references} <= set(writing["components"]["schemas"])


def test_schemathesis_finds_nothing(run: Callable[..., Running], where: Path, tmp_path: Path) -> None:
    server = run(where, "--writable")
    with server.client() as client:
        document = client.get("/api/openapi.json").json()
    del document["paths"]["/api/events"]  # it has no end
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document))
    # A body can be too large and wrong in other ways as well: 413 is a refusal too.
    refusals = '["4xx", "5xx"]'
    settings = f"[checks]\nnegative_data_rejection.expected-statuses = {refusals}\n"
    (tmp_path / "schemathesis.toml").write_text(settings)
    words = [str(COMMAND), "run", str(path), "--url", server.address, "-H", f"Authorization: Bearer {server.token}"]
    words += ["--max-examples", "15", "--seed", "1", "--no-color", "--suppress-health-check", "all"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "COLUMNS": "100"})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
