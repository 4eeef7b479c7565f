"""An experiment on a SLURM cluster: dask-jobqueue submits the workers as jobs, one process for each core.

pip install 'chainscout[cluster]' dask-jobqueue
python examples/slurm_cluster.py --partition short --jobs 8       # on a login node
python examples/slurm_cluster.py --show                           # prints the job script and submits nothing
"""

import argparse

from dask_jobqueue import SLURMCluster
from distributed import Client

import chainscout as cs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partition", default=None)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--cores", type=int, default=16, help="of a job")
    parser.add_argument("--memory", default="32GB", help="of a job")
    parser.add_argument("--walltime", default="01:00:00")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    cluster = SLURMCluster(
        queue=given.partition,
        cores=given.cores,
        processes=given.cores,  # a task runs on one core
        memory=given.memory,
        walltime=given.walltime,
        # A worker leaves before its job ends, so that its tasks go to other workers and are not lost.
        worker_extra_args=["--lifetime", "55m", "--lifetime-stagger", "4m"],
        # Machine code is compiled once and read by all workers, in a folder that all nodes can read.
        job_script_prologue=['export NUMBA_CACHE_DIR="$HOME/.cache/chainscout-numba"'],
    )
    if given.show:
        print(cluster.job_script())
        cluster.close()
        return
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=given.jobs)
        problem = cs.problems.get("unlike")
        results = cs.compare(
            problem,
            ["uniform", "ba-mc", "scout", "oracle"],
            [1_000, 10_000, 100_000],
            10_000,
            executor=client.get_executor(),
            checkpoint="unlike-run",  # when the script runs again, it reads finished tasks from there
            progress=True,
        )
    results.save("unlike.npz")


if __name__ == "__main__":
    main()
