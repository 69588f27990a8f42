#!/usr/bin/env bash
# Prints the manifest of a preset's grid as a Kubernetes Indexed Job (1.29 or newer).
#
#   scripts/kubernetes/grid.sh [--preset NAME] [--image IMAGE] [--claim NAME] [--parallelism N] | kubectl apply -f -
#
# The claim names a PersistentVolumeClaim that all nodes can write (ReadWriteMany). Task i is
# pod index i; training runs come first. A pod that is killed, evicted, or exits with 4 is
# tried again and continues where it was; any other exit code fails its index for good, and
# the rest goes on.
set -euo pipefail
die() { echo "grid.sh: $*" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
preset=quick image=policyattention:latest claim=policyattention parallelism=64
while (($#)); do
  case $1 in
    --preset|--image|--claim|--parallelism) (($# > 1)) || die "$1 wants a value"; declare "${1#--}=$2"; shift 2 ;;
    *) die "unknown argument $1; usage: grid.sh [--preset NAME] [--image IMAGE] [--claim NAME] [--parallelism N]" ;;
  esac
done
completions=$(cd "$root" && go run ./policyattention/cmd/policyattention --preset "$preset" grid count)
cat <<YAML
apiVersion: batch/v1
kind: Job
metadata:
  name: policyattention-$preset
spec:
  completionMode: Indexed
  completions: $completions
  parallelism: $parallelism
  backoffLimitPerIndex: 20
  maxFailedIndexes: $completions
  podFailurePolicy:
    rules:
    - action: Ignore # evicted or preempted: does not count as an attempt
      onPodConditions:
      - type: DisruptionTarget
    - action: FailIndex # failed for good
      onExitCodes:
        containerName: task
        operator: In
        values: [1, 2, 3, 5]
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 60 # on TERM the program saves and exits with 4
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        fsGroup: 65532
      containers:
      - name: task
        image: $image
        args: [--artifacts, /artifacts, --preset, $preset, grid, run, \$(INDEX)]
        env:
        - name: INDEX
          valueFrom:
            fieldRef:
              fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
        resources:
          requests: {cpu: "1", memory: 2Gi}
          limits: {cpu: "1", memory: 4Gi}
        volumeMounts:
        - name: artifacts
          mountPath: /artifacts
      volumes:
      - name: artifacts
        persistentVolumeClaim:
          claimName: $claim
YAML
