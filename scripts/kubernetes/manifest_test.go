// Package kubernetes tests the manifest of grid.sh against Kubernetes' own types.
package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func output(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, &stderr)
	}
	return out
}

func command(t *testing.T, args ...string) []byte {
	return output(t, "../..", "go", append([]string{"run", "./policyattention/cmd/policyattention"}, args...)...)
}

// The manifest decodes strictly: every field exists, is written once, and has
// its type. What the API server demands beyond types is checked by hand.
func TestManifest(t *testing.T) {
	text := output(t, ".", "./grid.sh", "--preset", "smoke", "--image", "registry/image:1", "--claim", "shared", "--parallelism", "7")
	var job batch.Job
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		t.Fatal(err)
	}
	if job.APIVersion != batch.SchemeGroupVersion.String() || job.Kind != "Job" {
		t.Errorf("a %s %s, want a %s Job", job.APIVersion, job.Kind, batch.SchemeGroupVersion)
	}
	count, err := strconv.Atoi(strings.TrimSpace(string(command(t, "--preset", "smoke", "grid", "count"))))
	if err != nil {
		t.Fatal(err)
	}
	s := job.Spec
	// batch/v1: an Indexed job needs completions; limits by index need it to be
	// Indexed; a pod failure policy needs pods that are never restarted in place,
	// and its FailIndex a limit by index.
	if s.CompletionMode == nil || *s.CompletionMode != batch.IndexedCompletion || s.Completions == nil || int(*s.Completions) != count {
		t.Errorf("completions %v in mode %v, want %d in mode Indexed", s.Completions, s.CompletionMode, count)
	}
	if s.Parallelism == nil || *s.Parallelism != 7 || s.BackoffLimitPerIndex == nil || s.MaxFailedIndexes == nil || *s.MaxFailedIndexes > *s.Completions {
		t.Errorf("parallelism %v, limit by index %v, failed indexes %v", s.Parallelism, s.BackoffLimitPerIndex, s.MaxFailedIndexes)
	}
	pod := s.Template.Spec
	if pod.RestartPolicy != core.RestartPolicyNever || len(pod.Containers) != 1 || pod.Containers[0].Image != "registry/image:1" {
		t.Fatalf("restart policy %q, containers %+v", pod.RestartPolicy, pod.Containers)
	}
	container := pod.Containers[0]

	// Of the command's exit codes, 0 and 4 and those of signals are no failures for good.
	fails := map[int32]bool{}
	for _, rule := range s.PodFailurePolicy.Rules {
		if exit := rule.OnExitCodes; exit != nil {
			if rule.Action != batch.PodFailurePolicyActionFailIndex || exit.Operator != batch.PodFailurePolicyOnExitCodesOpIn || *exit.ContainerName != container.Name {
				t.Errorf("rule %+v", rule)
			}
			for _, code := range exit.Values {
				fails[code] = true
			}
		}
	}
	for code := range int32(256) {
		if want := code == 1 || code == 2 || code == 3 || code == 5; fails[code] != want {
			t.Errorf("exit code %d fails for good: %v", code, fails[code])
		}
	}

	// Every mount has its volume, and that is the claim.
	if len(container.VolumeMounts) != 1 || len(pod.Volumes) != 1 || container.VolumeMounts[0].Name != pod.Volumes[0].Name || pod.Volumes[0].PersistentVolumeClaim.ClaimName != "shared" {
		t.Errorf("mounts %+v of volumes %+v", container.VolumeMounts, pod.Volumes)
	}

	// The arguments, expanded as the kubelet does, do the task of the pod's index.
	if len(container.Env) != 1 || container.Env[0].ValueFrom.FieldRef.FieldPath != "metadata.annotations['"+batch.JobCompletionIndexAnnotation+"']" {
		t.Errorf("environment %+v", container.Env)
	}
	index := strconv.Itoa(bytes.Count(command(t, "--preset", "smoke", "--json", "plan"), []byte(`"train"`))) // the first evaluation
	expand := strings.NewReplacer("$("+container.Env[0].Name+")", index, container.VolumeMounts[0].MountPath, t.TempDir())
	var args []string
	for _, arg := range container.Args {
		args = append(args, expand.Replace(arg))
	}
	if out := string(command(t, args...)); !strings.HasPrefix(out, "task "+index+", evaluate oracle/") {
		t.Errorf("%s: %s", strings.Join(args, " "), out)
	}
}

func TestUsage(t *testing.T) {
	cmd := exec.Command("./grid.sh", "--frobnicate")
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "usage") {
		t.Errorf("%v: %s", err, out)
	}
}
