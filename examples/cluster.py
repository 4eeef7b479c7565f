"""An experiment on a Dask cluster: two worker processes here; on a real cluster, Client("tcp://scheduler:8786").

pip install 'chainscout[cluster]'
python examples/cluster.py
"""

from distributed import Client, LocalCluster

import chainscout as cs

if __name__ == "__main__":
    problem = cs.problems.get("unlike")
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        results = cs.compare(problem, ["uniform", "scout"], [1_000], 200, executor=client.get_executor())
    for row in results.differences():
        print(f"{row['policy']} − {row['against']}: {row['difference']:.3f} ({row['from']:.3f} … {row['to']:.3f})")
