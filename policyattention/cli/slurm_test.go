//go:build linux

package cli_test

// Job arrays are tested on a real Slurm: a controller and two node daemons on the loopback interface, with
// every file of theirs in a folder of the test's own. It needs root and Debian's packages slurm-wlm and munge;
// 'make slurm-test' installs them where it can.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SLURM_TEST=1 asks for the test; it takes a minute.
const wanted = "SLURM_TEST"

// cluster is a Slurm on this machine.
type cluster struct {
	t     *testing.T
	dir   string
	env   []string
	nodes map[string]*exec.Cmd
}

// start starts the cluster and ends it with the test.
func start(t *testing.T) *cluster {
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
	dir, err := os.MkdirTemp("", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: dir, nodes: map[string]*exec.Cmd{}}
	t.Cleanup(c.end)
	if err := os.Chmod(dir, 0o755); err != nil { // munge insists
		t.Fatal(err)
	}
	for _, sub := range []string{"munge", "state", "spool"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"slurm.conf": configuration(t, dir),
		"munge/key": strings.Repeat("a key that guards nothing", 2)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	return c
}

// configuration is that of a controller and two nodes with their files in dir.
func configuration(t *testing.T, dir string) string {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	ports := freePorts(t, 3)
	return fmt.Sprintf(`ClusterName=test
SlurmctldHost=%[2]s(127.0.0.1)
SlurmctldPort=%[3]d
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[1]s/munge/socket
StateSaveLocation=%[1]s/state
SlurmdSpoolDir=%[1]s/spool/%%n
SlurmctldPidFile=%[1]s/slurmctld.pid
SlurmdPidFile=%[1]s/%%n.pid
SlurmctldLogFile=%[1]s/slurmctld.log
SlurmdLogFile=%[1]s/%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobRequeue=1
MaxArraySize=11
SlurmdTimeout=5
NodeName=n1 NodeHostname=%[2]s NodeAddr=127.0.0.1 Port=%[4]d CPUs=1
NodeName=n2 NodeHostname=%[2]s NodeAddr=127.0.0.1 Port=%[5]d CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
`, dir, host, ports[0], ports[1], ports[2])
}

func freePorts(t *testing.T, n int) []int {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all are held until all are known
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

// startNode starts a node in a namespace of processes, which end with the first of them.
func (c *cluster) startNode(node string) {
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
		"slurmd -N "+node+" && while :; do sleep 1; done")
	cmd.Env = c.env
	if err := cmd.Start(); err != nil {
		c.t.Fatalf("slurmd -N %s: %v", node, err)
	}
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

// results returns the rows, weights and lists of runs of the artifacts in a folder, but for
// where runs were made and at what cost, by name.
func results(t *testing.T, artifacts string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(artifacts, func(path string, _ os.DirEntry, err error) error {
		name, ext := strings.TrimPrefix(path, artifacts), filepath.Ext(path)
		if err != nil || ext != ".parquet" && ext != ".safetensors" &&
			!slices.Contains([]string{"runs.json", "trainings.json"}, filepath.Base(path)) {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || ext != ".json" {
			all[name] = string(b)
			return err
		}
		var list []map[string]any
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		for _, x := range list {
			delete(x, "produced") // where and at what cost
			delete(x, "cost")
		}
		b, err = json.Marshal(list)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// grid is the grid of a preset on a cluster.
type grid struct {
	*cluster
	preset         string // a file of JSON
	binary, shared string // the command, and the artifacts that all nodes share
	began          time.Time
}

func newGrid(t *testing.T, preset string) *grid {
	c := start(t)
	g := &grid{cluster: c, preset: preset, binary: filepath.Join(c.dir, "policyattention"),
		shared: filepath.Join(c.dir, "artifacts")}
	c.must("go", "build", "-o", g.binary, "icrl/policyattention/cmd/policyattention")
	return g
}

// submit submits the grid.
func (g *grid) submit() {
	g.began = time.Now()
	g.t.Log(strings.TrimSpace(g.must("../../scripts/slurm/submit.sh", "--preset", g.preset, "--artifacts", g.shared,
		"--binary", g.binary, "--", "--mem=0")))
}

// ended waits for the end of all jobs.
func (g *grid) ended() {
	g.wait("all jobs have ended", 15*time.Minute, func() bool { return g.must("squeue", "--noheader") == "" })
}

// run runs the command on the grid's artifacts.
func (g *grid) run(args ...string) string {
	return g.must(g.binary, append([]string{"--artifacts", g.shared, "--preset", g.preset}, args...)...)
}

// path is one below the folder of the preset.
func (g *grid) path(below string) string {
	return filepath.Join(g.shared, strings.TrimSuffix(filepath.Base(g.preset), ".json"), below)
}

func (g *grid) folders(pattern string) []string {
	found, _ := filepath.Glob(g.path(pattern))
	return found
}

func (g *grid) log(name string) string {
	text, _ := os.ReadFile(g.path(filepath.Join(".work", "slurm", name)))
	return string(text)
}

func (g *grid) since() string {
	return fmt.Sprintf("%.1f s after submission", time.Since(g.began).Seconds())
}

// A sweep is a file of JSON: two settings of two numbers each, with two seeds. It runs as arrays on
// two nodes. While the first task trains, its node dies; Slurm finds out, queues the task again, and it is
// done elsewhere. Another training run cannot succeed: it and its evaluation are reported, and are made
// when the cause is gone. The results are, byte for byte, those of a run on this machine without Slurm.
func TestSweep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sweep.json")
	row := `{"block": "try", "method": "policyattention", "sizes": [4], "runs": 2, ` +
		`"recipe": "plain,mdps=4,examples=32,batch=8,hidden=16,width=%d,layers=%d"}`
	rows := []string{`{"block": "try", "method": "exact-pmd", "sizes": [4]}`}
	for _, width := range []int{16, 32} {
		for _, layers := range []int{1, 2} {
			rows = append(rows, fmt.Sprintf(row, width, layers))
		}
	}
	text := `{"name": "sweep", "steps": 2000, "problems": 4, "rows": [` + strings.Join(rows, ", ") + "]}"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	g := newGrid(t, file)
	if n := len(regexp.MustCompile(`(?m)^\d+ `).FindAllString(g.run("plan"), -1)); n != 17 {
		t.Fatalf("%d tasks, want 8 training runs, their evaluations and exact PMD's", n)
	}
	local := filepath.Join(g.dir, "local")
	g.must(g.binary, "--artifacts", local, "--preset", g.preset, "evaluate")

	// An interrupted training run, task 7, whose state is damaged.
	trained, err := filepath.Glob(filepath.Join(local, "sweep", "train", "*width=32,layers=2*-14101-*"))
	if err != nil || len(trained) != 1 {
		t.Fatalf("training runs %v, %v", trained, err)
	}
	broken := g.path(filepath.Join(".work", filepath.Base(trained[0])))
	if err := os.MkdirAll(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "state.safetensors"), []byte("no state"), 0o644); err != nil {
		t.Fatal(err)
	}

	g.submit()
	g.killInTask0(t)
	reports := g.folders(".work/slurm/report-*.log")
	if len(reports) != 1 {
		t.Fatalf("reports %v", reports)
	}
	report := g.log(filepath.Base(reports[0]))
	if n := strings.Count(report, "state.safetensors"); n != 2 ||
		!strings.Contains(report, "2 of 17 tasks failed for good") {
		t.Errorf("the report names %d failures:\n%s", n, report)
	}
	if n := strings.Count(g.log("1_7.log"), "attempt"); n != 1 {
		t.Errorf("what fails for good was attempted %d times", n)
	}
	if err := os.RemoveAll(broken); err != nil {
		t.Fatal(err)
	}
	g.run("evaluate")
	g.run("grid", "status") // fails if anything is left
	if n := len(g.folders("train/*")); n != 8 {
		t.Errorf("%d training runs, want 8", n)
	}
	g.sameAs(t, local)
}

// killInTask0 kills the node that trains the first task, and sees the task end elsewhere.
func (g *grid) killInTask0(t *testing.T) {
	const run = "*width=16,layers=1*-14100-*"
	// What is being made has a folder from before its first step until it is published.
	g.wait("task 0 trains", time.Minute, func() bool {
		return len(g.folders(".work/"+run+"-new")) > 0 && strings.Contains(g.log("1_0.log"), " on n")
	})
	_, after, _ := strings.Cut(g.log("1_0.log"), " on ")
	node, _, _ := strings.Cut(after, ",")
	g.killNode(node)
	if len(g.folders("train/"+run)) > 0 {
		t.Fatal("task 0 was done before its node died")
	}
	t.Logf("%s: killed node %s in the middle of task 0", g.since(), node)
	g.wait("task 0 is queued again", 2*time.Minute, func() bool {
		return strings.Contains(g.must("squeue", "--noheader", "--array", "--states=PENDING", "--format=%F_%K %r"),
			"1_0 BeginTime")
	})
	t.Logf("%s: Slurm has found out and queued task 0 again", g.since())
	if len(g.folders("train/"+run)) > 0 {
		t.Fatal("task 0 was done without its job")
	}
	g.must("scontrol", "update", "JobId=1_0", "StartTime=now") // instead of Slurm's two minutes of patience
	g.wait("task 0 is done", 5*time.Minute, func() bool { return len(g.folders("train/"+run)) > 0 })
	g.startNode(node) // helps with the rest
	g.ended()
	t.Logf("%s: all jobs have ended; log of task 0:\n%s", g.since(), g.log("1_0.log"))
	if text := g.log("1_0.log"); !strings.Contains(text, "attempt 2") || !strings.Contains(text, ": done") {
		t.Error("the second attempt did not do task 0")
	}
}

// sameAs holds the results against those of a run on this machine.
func (g *grid) sameAs(t *testing.T, local string) {
	got, want := results(t, g.shared), results(t, local)
	if len(want) < 12 || !maps.Equal(got, want) {
		t.Errorf("%d results by Slurm, %d locally", len(got), len(want))
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if got[name] != want[name] {
				t.Errorf("%s differs", name)
			}
		}
	}
	t.Logf("%s: %d files have the bytes of a run without Slurm", g.since(), len(want))
}
