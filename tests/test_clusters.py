"""The files that readers submit to SLURM and Kubernetes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import chainscout as cs

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

#: Starts as many copies of a command as SLURM would for a job of two tasks.
SRUN = """#!/bin/bash
"$@" & "$@" &
trap 'kill $(jobs -p)' TERM
wait
"""


@pytest.mark.soak
def test_the_job_for_slurm_runs_where_srun_starts_its_workers(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {"PATH": path, "SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(tmp_path), "CHAINSCOUT_REPLICATIONS": "24"}
    done = subprocess.run(
        ["bash", str(EXAMPLES / "slurm_job.sh")],
        env={**os.environ, **given, "CHAINSCOUT_PROBLEM": "two-state"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = cs.Results.load(next((tmp_path / "chainscout-run").glob("*.npz")))
    expected = cs.compare(cs.problems.get("two-state"), replications=24)
    assert found.loss.tobytes() == expected.loss.tobytes()


def test_the_files_for_kubernetes_name_one_cluster_one_image_and_one_volume() -> None:
    cluster, job, volume = yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text(encoding="utf-8"))
    assert (cluster["kind"], job["kind"], volume["kind"]) == ("DaskCluster", "Job", "PersistentVolumeClaim")
    name = cluster["metadata"]["name"]
    driver = job["spec"]["template"]["spec"]
    (container,) = driver["containers"]
    assert f"tcp://{name}-scheduler:8786" in container["args"][0]
    images = {
        part["spec"]["containers"][0]["image"] for part in (cluster["spec"]["worker"], cluster["spec"]["scheduler"])
    }
    assert images == {container["image"]}
    assert driver["volumes"][0]["persistentVolumeClaim"]["claimName"] == volume["metadata"]["name"]
    assert cluster["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == name
    worker = cluster["spec"]["worker"]["spec"]["containers"][0]["args"]
    assert worker[worker.index("--nthreads") + 1] == "1"
