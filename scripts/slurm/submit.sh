#!/usr/bin/env bash
# Submits the grid of a preset to Slurm as job arrays, and a last job that reports.
#
#   scripts/slurm/submit.sh [--preset NAME|FILE] [--artifacts DIR] [--binary FILE] [-- SBATCH-OPTION...]
#
# The folder of artifacts (default: artifacts) and the binary (default: built into .local/bin)
# have to be on a file system that all nodes share, and so has a preset of one's own, a file of JSON
# that is called as the preset in it. What is done is skipped, so submitting again fills in what is
# missing. Logs go to DIR/PRESET/.work/slurm. ATTEMPTS (default: 20) bounds the attempts at one task.
set -euo pipefail
die() { echo "submit.sh: $*" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
preset=quick artifacts=$root/artifacts binary= options=()
while (($#)); do
  case $1 in
    --preset|--artifacts|--binary) (($# > 1)) || die "$1 wants a value"; declare "${1#--}=$2"; shift 2 ;;
    --) shift; options=("$@"); break ;;
    *) die "unknown argument $1; usage: submit.sh [--preset NAME|FILE] [--artifacts DIR] [--binary FILE] [-- SBATCH-OPTION...]" ;;
  esac
done
command -v sbatch >/dev/null || die 'there is no sbatch here; run this on a login node of the cluster'
if [[ -z $binary ]]; then
  binary=$root/.local/bin/policyattention
  mkdir -p "${binary%/*}"
  (cd "$root" && GOTOOLCHAIN=go$(sed -n 's/^go //p' go.mod) go build -o "$binary" ./policyattention/cmd/policyattention)
fi
binary=$(realpath "$binary")
mkdir -p "$artifacts"
artifacts=$(realpath "$artifacts")
name=$preset
[[ $preset != *.json ]] || { preset=$(realpath "$preset"); name=$(basename "$preset" .json); }
if [[ -z ${PJRT_PLUGIN_LIBRARY_PATH:-} && -d $root/.local/pjrt ]]; then
  export PJRT_PLUGIN_LIBRARY_PATH=$root/.local/pjrt
fi
export GOMLX_NO_AUTO_INSTALL=1

# sends FIRST END OPTION...: tasks FIRST to END-1 as arrays, whose jobs it adds to $jobs.
# Indices of an array stay below the site's MaxArraySize.
largest=$(scontrol show config | sed -n 's/^MaxArraySize *= *//p')
logs=$artifacts/$name/.work/slurm
mkdir -p "$logs"
send() {
  local offset=$1 end=$2 size job
  shift 2
  for (( ; offset < end; offset += size)); do
    size=$((end - offset < largest ? end - offset : largest))
    job=$(sbatch --parsable --array="0-$((size - 1))" --output="$logs/%A_%a.log" "$@" \
      ${options[@]+"${options[@]}"} "$here/task.sh" "$binary" "$artifacts" "$preset" "$offset")
    job=${job%%;*} # without the name of the cluster
    echo "tasks $offset to $((offset + size - 1)): job $job"
    jobs+=:$job
  done
}

# Evaluations would make the training runs they miss themselves, one of them waiting
# for the other: better they start when the training runs have ended.
command=("$binary" --artifacts "$artifacts" --preset "$preset")
grid=("${command[@]}" grid)
plan=$("${command[@]}" plan)
trainings=$(awk '$2 == "train" { n++ } END { print n + 0 }' <<<"$plan")
tasks=$(awk '$1 ~ /^[0-9]+$/ { n++ } END { print n + 0 }' <<<"$plan")
jobs=
send 0 "$trainings"
send "$trainings" "$tasks" ${jobs:+"--dependency=afterany$jobs"}
report=$(sbatch --parsable --job-name=policyattention-report --dependency="afterany$jobs" --output="$logs/report-%j.log" \
  ${options[@]+"${options[@]}"} --wrap "$(printf '%q ' "${grid[@]}" merge); $(printf '%q ' "${grid[@]}" status)")
report=${report%%;*}
echo "report: job $report, $logs/report-$report.log"
