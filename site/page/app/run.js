// The run: what was computed so far, and where the visitor is in it.

const CONTROLLERS = {
  decoder: {
    name: "Constructed decoder",
    why: "hand-written weights, sampled packets",
    color: "accent",
    dash: "",
  },
  exact: { name: "Exact PMD", why: "the operation itself with an exact critic", color: "ink", dash: "7 4" },
  normalized: {
    name: "Normalized compilation",
    why: "the decoder with pre-LN and final LN",
    color: "violet",
    dash: "2 3",
  },
  learned: {
    name: "Learned actor",
    why: "trained weights with an exact critic",
    color: "green",
    dash: "10 3 2 3",
  },
  idle: { name: "Actor that never moves", why: "what lock-up looks like", color: "grey", dash: "1 5" },
};
const STAGES = [
  {
    name: "Context",
    why: "The context holds the present policy π and the critic’s values Q, one memory token for each state and action.",
  },
  {
    name: "Actor",
    why: "Each state asks one query; its softmax over memories with score κ + ν + log π + ηQ is the new policy.",
  },
  {
    name: "Environment",
    why: "Fresh transitions are drawn from every state and action; successor actions come from the policy just returned.",
  },
  {
    name: "Critic",
    why: "Packets look up Q at their successors, a ReLU forms r + γQ, and each query averages its own packets.",
  },
];

let run = null; // {settings, file, info, phases, edits, rounds: {name: [...]}, errors}
const pos = { k: 0, stage: 0 };
const view = { call: "actor", station: "tokens", part: "tokens", follow: 0, row: 0, col: 0 };
let shown = new Set(["decoder", "exact"]);
let playing = 0; // generation of the running play loop, 0 when stopped
let generation = 0;

// begin starts a run with edits applied; if any of it is refused, the run that
// was there goes on as if nothing had happened.
async function begin(settings, file, edits = []) {
  const old = run,
    was = { ...pos };
  try {
    const info = await engine.call("start", settings, settings.preset === "file" ? file : null);
    stop();
    run = { settings, file, info, phases: [info.phase], edits: [], rounds: {}, errors: {}, id: ++generation };
    pos.k = pos.stage = 0;
    for (const e of edits) {
      takePhase(await engine.call("edit", e.k, e));
      run.edits.push(e);
    }
  } catch (e) {
    if (old && run !== old) {
      await engine.call("start", old.settings, old.settings.preset === "file" ? old.file : null);
      for (const x of old.edits) await engine.call("edit", x.k, x);
      run = old;
      Object.assign(pos, was);
      render();
    }
    throw e;
  }
  view.row = view.col = view.follow = 0;
  engine.compute = 0;
}

function takePhase(phase) {
  run.phases.length = phase.index;
  run.phases.push(phase);
  for (const name of Object.keys(run.rounds))
    run.rounds[name].length = Math.min(run.rounds[name].length, phase.start);
  run.errors = {};
}

// reach computes the shown controllers' rounds before round k.
async function reach(k) {
  const mine = run;
  for (let j = 0; j < k; j++) {
    const names = [...shown].filter((n) => !mine.errors[n] && (mine.rounds[n] ||= []).length <= j);
    if (!names.length) continue;
    const got = await engine.call("round", j, names);
    if (run !== mine) return false;
    for (const [name, r] of Object.entries(got.rounds))
      if (mine.rounds[name].length === j) mine.rounds[name].push(Object.assign(r, { phase: got.phase }));
    Object.assign(mine.errors, got.errors);
    if (mine.errors.decoder) throw new Error(mine.errors.decoder);
  }
  return true;
}

const decoderRound = (k) => run.rounds.decoder?.[k];
const phaseAt = (k) => run.phases.findLast((p) => p.start <= k) || run.phases[0];

// go shows stage of round k, unless still says on the way that nobody waits for it any more.
async function go(k, stage, still = () => true) {
  const T = run.settings.T;
  if (stage > 3) {
    k++;
    stage = 0;
  }
  if (stage < 0) {
    k--;
    stage = 3;
  }
  if (k < 0) k = stage = 0;
  if (k >= T) {
    k = T;
    stage = 0;
  }
  if (!(await reach(Math.min(T, k + 1))) || !still()) return;
  pos.k = k;
  pos.stage = stage;
  render();
}

async function play() {
  if (playing) return stop();
  const mine = (playing = ++generation),
    still = () => playing === mine;
  if (pos.k >= run.settings.T) pos.k = pos.stage = 0;
  render();
  try {
    while (still()) {
      const speed = $("speed").value;
      const before = performance.now();
      if (speed === "stage") await go(pos.k, pos.stage + 1, still);
      else await go(pos.k + 1, 0, still);
      if (!still()) return;
      if (pos.k >= run.settings.T) break;
      const wait =
        speed === "max" ? 0 : (speed === "stage" ? 900 : 1000 / speed) - (performance.now() - before);
      if (wait > 0) await new Promise((r) => setTimeout(r, wait));
    }
  } catch (e) {
    message(e.message);
  }
  if (still()) stop();
}
function stop() {
  playing = 0;
  render();
}
