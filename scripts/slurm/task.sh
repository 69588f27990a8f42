#!/usr/bin/env bash
# One element of a job array: task OFFSET + SLURM_ARRAY_TASK_ID of a preset's grid.
# Submitted by submit.sh; any other sbatch options can be given there.
#
#SBATCH --job-name=policyattention
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=06:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@60
#SBATCH --open-mode=append
set -uo pipefail
binary=$1 artifacts=$2 preset=$3 offset=$4
index=$((offset + SLURM_ARRAY_TASK_ID))
attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
echo "task $index, attempt $attempt, on ${SLURMD_NODENAME:-?}, $(date -u +%FT%TZ)"

# As a step, so that Slurm's TERM at the time limit reaches the program, which then saves.
srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" \
  "$binary" --artifacts "$artifacts" --preset "$preset" grid run "$index"
code=$?

# 4: interrupted or short of something; above 128: killed. Both go on where they were.
# Anything else would fail again, and 'grid status' tells why.
if (( (code == 4 || code > 128) && attempt < ${ATTEMPTS:-20} )); then
  echo "task $index: exit code $code, queued again"
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60 # until Slurm ends this attempt
fi
exit "$code"
