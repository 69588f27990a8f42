//go:build linux

package cli

// Job arrays are tested on a real Slurm: a controller and two node daemons on the loopback interface, with
// every file of theirs in a folder of the test's own. It needs root and Debian's packages slurm-wlm and munge;
// 'make slurm-test' installs them where it can.

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"icrl/internal/testkit"
)

// SLURM_TEST=1 asks for the test; it takes a minute.
const wanted = "SLURM_TEST"

// cluster is a Slurm on this machine, with the grid of a preset.
type cluster struct {
	t              *testing.T
	dir            string
	env            []string
	nodes          map[string]*exec.Cmd
	preset         string // a file of JSON
	binary, shared string // the command, and the artifacts that all nodes share
}

// start starts the cluster and ends it with the test.
func start(t *testing.T, preset string) *cluster {
	if os.Getenv(wanted) == "" {
		t.Skipf("skipped: it takes a minute and root; 'make slurm-test' runs it")
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: Slurm's daemons need root")
	}
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: %v; the Debian packages slurm-wlm and munge have it", err)
		}
	}
	dir := testkit.Must(os.MkdirTemp("", "slurm"))(t)
	c := &cluster{t: t, dir: dir, nodes: map[string]*exec.Cmd{}, preset: preset,
		binary: filepath.Join(dir, "policyattention"), shared: filepath.Join(dir, "artifacts")}
	t.Cleanup(c.end)
	testkit.Check(t, os.Chmod(dir, 0o755)) // munge insists
	for _, sub := range []string{"munge", "state", "spool"} {
		testkit.Check(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	for name, text := range map[string]string{"slurm.conf": configuration(t, dir),
		"munge/key": strings.Repeat("a key that guards nothing", 2)} {
		testkit.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	// Slurm's own variables would reach into the jobs, were this test itself a job.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SLURM") {
			c.env = append(c.env, v)
		}
	}
	c.env = append(c.env, "SLURM_CONF="+filepath.Join(dir, "slurm.conf"), "GOMLX_BACKEND=go")
	m := filepath.Join(dir, "munge")
	c.must("munged", "--key-file="+m+"/key", "--socket="+m+"/socket", "--pid-file="+m+"/pid", "--log-file="+m+"/log",
		"--seed-file="+m+"/seed")
	c.must("slurmctld")
	for _, node := range []string{"n1", "n2"} {
		c.startNode(node)
	}
	c.wait("both nodes are idle", time.Minute, func() bool {
		return strings.Count(c.must("sinfo", "--noheader", "--Node", "--format=%N %T"), " idle\n") == 2
	})
	c.must("go", "build", "-o", c.binary, "icrl/policyattention/cmd/policyattention")
	return c
}

// configuration is that of a controller and two nodes with their files in dir.
func configuration(t *testing.T, dir string) string {
	host, _, _ := strings.Cut(testkit.Must(os.Hostname())(t), ".")
	var ports [3]int
	for i := range ports {
		l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close() // all are held until all are known
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	conf := string(testkit.Must(os.ReadFile("testdata/slurm.conf"))(t))
	return fmt.Sprintf(conf, dir, host, ports[0], ports[1], ports[2])
}

// startNode starts a node in a namespace of processes, which end with the first of them.
func (c *cluster) startNode(node string) {
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
		"slurmd -N "+node+" && while :; do sleep 1; done")
	cmd.Env = c.env
	testkit.Check(c.t, cmd.Start())
	c.nodes[node] = cmd
}

// killNode ends a node as a loss of power would: its daemon, the daemon's helpers and the jobs, all at once.
func (c *cluster) killNode(node string) {
	c.nodes[node].Process.Kill() //nolint:errcheck // it may have gone
	c.nodes[node].Wait()         //nolint:errcheck // it was killed
}

// end ends whatever belongs to the cluster.
func (c *cluster) end() {
	for node := range c.nodes {
		c.killNode(node)
	}
	for _, file := range []string{"slurmctld.pid", "munge/pid"} {
		if text, err := os.ReadFile(filepath.Join(c.dir, file)); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have gone
			}
		}
	}
	if c.t.Failed() {
		c.t.Logf("logs are in %s", c.dir)
		return
	}
	os.RemoveAll(c.dir)
}

// must runs a program of the cluster and returns what it prints.
func (c *cluster) must(name string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = c.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s %s: %v: %s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

func (c *cluster) wait(what string, limit time.Duration, done func() bool) {
	c.t.Helper()
	for began := time.Now(); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > limit {
			logs, _ := exec.Command("sh", "-c", "tail -n 100 "+c.dir+"/*.log").Output()
			c.t.Fatalf("after %v it is not so that %s:\n%s%s", limit, what, c.must("squeue"), logs)
		}
	}
}

// run runs the command on the grid's artifacts.
func (c *cluster) run(args ...string) string {
	return c.must(c.binary, append([]string{"--artifacts", c.shared, "--preset", c.preset}, args...)...)
}

// path is one below the folder of the preset.
func (c *cluster) path(below string) string {
	return filepath.Join(c.shared, "sweep", below)
}

func (c *cluster) folders(pattern string) []string {
	found, _ := filepath.Glob(c.path(pattern))
	return found
}

func (c *cluster) log(name string) string {
	text, _ := os.ReadFile(c.path(filepath.Join(".work", "slurm", name)))
	return string(text)
}

// A sweep is a file of JSON: two settings of two numbers each, with two seeds. It runs as arrays on
// two nodes. While the first task trains, its node dies; Slurm finds out, queues the task again, and it is
// done elsewhere. Another training run cannot succeed: it and its evaluation are reported, and are made
// when the cause is gone. The results are, byte for byte, those of a run on this machine without Slurm.
func TestSweep(t *testing.T) {
	c := start(t, testkit.Must(filepath.Abs("testdata/sweep.json"))(t))
	if n := len(regexp.MustCompile(`(?m)^\d+ `).FindAllString(c.run("plan"), -1)); n != 17 {
		t.Fatalf("%d tasks, want 8 training runs, their evaluations and exact PMD's", n)
	}
	local := filepath.Join(c.dir, "local")
	c.must(c.binary, "--artifacts", local, "--preset", c.preset, "evaluate")

	// An interrupted training run, task 7, whose state is damaged.
	trained := testkit.Must(filepath.Glob(filepath.Join(local, "sweep", "train", "*width=32,layers=2*-14101-*")))(t)
	if len(trained) != 1 {
		t.Fatalf("training runs %v", trained)
	}
	broken := c.path(filepath.Join(".work", filepath.Base(trained[0])))
	testkit.Check(t, os.MkdirAll(broken, 0o755))
	testkit.Check(t, os.WriteFile(filepath.Join(broken, "state.safetensors"), []byte("no state"), 0o644))

	c.must("../../scripts/slurm/submit.sh", "--preset", c.preset, "--artifacts", c.shared, "--binary", c.binary, "--",
		"--mem=0")
	c.killInTask0(t)
	reports := c.folders(".work/slurm/report-*.log")
	if len(reports) != 1 {
		t.Fatalf("reports %v", reports)
	}
	report := c.log(filepath.Base(reports[0]))
	if n := strings.Count(report, "state.safetensors"); n != 2 ||
		!strings.Contains(report, "2 of 17 tasks failed for good") {
		t.Errorf("the report names %d failures:\n%s", n, report)
	}
	if n := strings.Count(c.log("1_7.log"), "attempt"); n != 1 {
		t.Errorf("what fails for good was attempted %d times", n)
	}
	testkit.Check(t, os.RemoveAll(broken))
	c.run("evaluate")
	c.run("grid", "status") // fails if anything is left
	c.run("verify", "--whole")
	if n := len(c.folders("train/*")); n != 8 {
		t.Errorf("%d training runs, want 8", n)
	}
	got, want := digests(t, c.path("")), digests(t, filepath.Join(local, "sweep"))
	if len(want) < 12 || !maps.Equal(got, want) {
		t.Errorf("by Slurm %v, locally %v", got, want)
	}
}

// killInTask0 kills the node that trains the first task, and sees the task end elsewhere.
func (c *cluster) killInTask0(t *testing.T) {
	const run = "*width=16,layers=1*-14100-*"
	// What is being made has a folder from before its first step until it is published.
	c.wait("task 0 trains", time.Minute, func() bool {
		return len(c.folders(".work/"+run+"-new")) > 0 && strings.Contains(c.log("1_0.log"), " on n")
	})
	_, after, _ := strings.Cut(c.log("1_0.log"), " on ")
	node, _, _ := strings.Cut(after, ",")
	c.killNode(node)
	if len(c.folders("train/"+run)) > 0 {
		t.Fatal("task 0 was done before its node died")
	}
	c.wait("task 0 is queued again", 2*time.Minute, func() bool {
		return strings.Contains(c.must("squeue", "--noheader", "--array", "--states=PENDING", "--format=%F_%K %r"),
			"1_0 BeginTime")
	})
	if len(c.folders("train/"+run)) > 0 {
		t.Fatal("task 0 was done without its job")
	}
	c.must("scontrol", "update", "JobId=1_0", "StartTime=now") // instead of Slurm's two minutes of patience
	c.wait("task 0 is done", 5*time.Minute, func() bool { return len(c.folders("train/"+run)) > 0 })
	c.startNode(node) // helps with the rest
	c.wait("all jobs have ended", 15*time.Minute, func() bool { return c.must("squeue", "--noheader") == "" })
	if text := c.log("1_0.log"); !strings.Contains(text, "attempt 2") || !strings.Contains(text, ": done") {
		t.Errorf("the second attempt did not do task 0: %s", text)
	}
}
