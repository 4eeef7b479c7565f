#!/bin/bash
# The same without dask-jobqueue, as one job of several nodes: sbatch examples/slurm_job.sh
#SBATCH --job-name=chainscout
#SBATCH --ntasks=64
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=2G
#SBATCH --time=01:00:00
#SBATCH --output=chainscout-%j.out

set -euo pipefail
folder=${SLURM_SUBMIT_DIR:-$PWD}/dask-${SLURM_JOB_ID:-local}
mkdir -p "$folder"
export NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-$folder/numba}"

dask scheduler --host "$(hostname)" --port 0 --no-dashboard --scheduler-file "$folder/scheduler.json" &
scheduler=$!
srun dask worker --scheduler-file "$folder/scheduler.json" --nthreads 1 --no-dashboard \
    --local-directory "${TMPDIR:-/tmp}" &
workers=$!
trap 'kill "$workers" "$scheduler" 2> /dev/null || true' EXIT

until [ -s "$folder/scheduler.json" ]; do sleep 0.2; done
address=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$folder/scheduler.json")
out=${SLURM_SUBMIT_DIR:-$PWD}/chainscout-run
# Submitted again, the job takes the tasks that an earlier one has finished from the folder.
chainscout compare "${CHAINSCOUT_PROBLEM:-unlike}" --replications "${CHAINSCOUT_REPLICATIONS:-10000}" \
    --dask "$address" --out "$out" $([ -d "$out/tasks" ] && echo --resume)
