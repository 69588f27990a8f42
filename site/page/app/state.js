// The run: what was computed so far, and where the visitor is in it.

import { $, message, plural, show, stillness } from "./base.js";
import { engine } from "./engine.js";
import { records, unpackRounds } from "./wire.js";

export const CONTROLLERS = {
  decoder: { name: "Fixed decoder", why: "hand-written weights, sampled packets", color: "accent", dash: "" },
  exact: { name: "Exact PMD", why: "the operation itself with an exact critic", color: "ink", dash: "7 4" },
  learned: {
    name: "Trained",
    why: "one trained network for every problem, with an exact critic",
    color: "green",
    dash: "10 3 2 3",
  },
  normalized: { name: "LayerNorm", why: "the decoder compiled to pre-LN form", color: "violet", dash: "2 3" },
  idle: { name: "Never moves", why: "what lock-up looks like", color: "grey", dash: "3 4" },
};
export const STAGES = [
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

export const app = {
  run: /** @type {Run} */ (null),
  pos: { k: 0, stage: 0 },
  view: {
    call: "actor",
    station: "0.0",
    part: "score",
    follow: 0,
    row: 0,
    col: 0,
    state: 0,
    lit: null, // the state under the pointer
    led: false, // a weight is pointed at, and leads to the selected arrow
    action: 0,
    step: "actor",
    net: "decoder", // whose attention the step shows: "decoder" or "learned"
  },
  shown: new Set(["decoder", "exact"]),
  tensors: null, // of the trained network, once they are there
  dragging: false, // a slider is held: what lies below the first view waits
  playing: 0, // generation of the running play loop, 0 when stopped
  pins: [], // {label, values}: losses of runs to compare with, at most four
  ghost: null, // {values, what}: the decoder's losses before the last change
  history: [], // runs to go back to
  work: null, // {k, of, since, cancelled} while rounds are computed
};
let generation = 0;

// aside runs what nobody asked for; it only speaks up when it fails, and not where the run it was for is gone.
export function aside(f) {
  const { run } = app;
  return f().catch((e) => {
    if (app.run === run) message(e.message);
  });
}

// Views are drawn together, once a frame.
const views = [];
let frame = 0,
  whole = false, // whether more than progress is to be drawn
  failed = ""; // what the visitor was told of views that cannot be drawn
// always is for those that need no round, progress for those that change while rounds are computed.
export const onRender = (f, { always = false, progress = false } = {}) => views.push({ f, always, progress });
export function render() {
  whole = true;
  renderProgress();
}
function renderProgress() {
  frame ||= requestAnimationFrame((now) => {
    const partly = !whole;
    frame = 0;
    whole = false;
    draw(now, partly);
  });
}
// draw draws all views at once, or those of progress; one that fails does not keep the others from it.
export function draw(now, partly = false) {
  if (!app.run) return;
  const empty = !decoderRound(current());
  for (const { f, always, progress } of views)
    try {
      if (always || (!empty && (progress || !partly))) f(now);
    } catch (e) {
      if (failed === e.message) continue;
      console.error(e);
      failed = e.message;
      message(`A part of the page could not be drawn: ${e.message.replace(/[.]$/, "")}.`);
    }
}

export const decoderRound = (k) => app.run.rounds.decoder?.[k];
export const phaseAt = (k) => app.run.phases.findLast((p) => p.start <= k) || app.run.phases[0];
// changes returns the rounds before which the problem changes, but for the first.
export const changes = () => app.run.phases.map((p) => p.start).filter((k) => k > 0);
// current returns the index of the round whose step is on show.
export const current = () => Math.min(app.pos.k, app.run.settings.T - 1);
export const ended = () => app.pos.k >= app.run.settings.T;
// context returns the policy and the values that are on show.
export function context() {
  const r = decoderRound(current()),
    { stage } = app.pos;
  return { pi: ended() || stage > 0 ? r.nextPi : r.pi, q: ended() || stage > 2 ? r.nextQ : r.q };
}

const startsFirst = (e) => (e.kind === "start" ? -1 : e.k);
const inOrder = (edits) => [...edits].sort((x, y) => startsFirst(x) - startsFirst(y));

// begin starts a run with edits applied. Edits that do not fit the problem are
// dropped and returned if lenient is set; otherwise, and if anything else is
// refused, the run that was there goes on as if nothing had happened. cap is the settings’
// rmax without the changes.
export async function begin(settings, file, edits = [], lenient = false, cap = settings.rmax) {
  const old = app.run,
    was = { ...app.pos },
    dropped = [];
  try {
    const info = unpackInfo(await engine.call("start", settings, settings.preset === "file" ? file : null));
    stop();
    engine.compute = 0;
    const seconds = settings.T * effort(settings, info);
    if (seconds > LONGEST)
      throw new Error(
        `This run would take about ${plural(Math.round(seconds / 60), "minute")}: each of its ${settings.T} rounds has ${packetsOf(settings, info).toLocaleString("en")} packets. The page takes runs of ${LONGEST / 60} minutes; fewer rounds, or samples in place of exact expectations, make it shorter.`,
      );
    app.run = {
      settings: { ...settings, eta: info.eta }, // where η is 0 the engine has chosen one
      file,
      info,
      phases: [info.phase],
      edits: [],
      rounds: {},
      errors: {},
      id: ++generation,
      cap,
    };
    app.pos.k = app.pos.stage = 0;
    if (app.view.state >= info.S) app.view.state = 0;
    if (app.view.action >= info.A) app.view.action = 0;
    for (const e of inOrder(edits)) {
      try {
        await apply(e);
      } catch (x) {
        if (!lenient || x.cancelled) throw x;
        dropped.push(e);
      }
    }
  } catch (e) {
    if (old && app.run !== old) await back(old, was);
    throw e;
  }
  return dropped;
}
// packetsOf counts the packets of a round, and effort guesses the seconds that it takes.
function packetsOf({ expected, m }, { S, A, phase }) {
  return expected ? A * phase.p.reduce((n, v) => n + (v > 0), 0) : m * S * A;
}
export const effort = (settings, info) => 9e-9 * packetsOf(settings, info) * info.S * info.A;
const LONGEST = 900; // seconds of a run
function unpackInfo(info) {
  for (const name of ["token", "slots", "hidden"]) info[name] = records(info[name], "label", "note");
  info.legend = records(info.legend, "matrix", "symbol", "why", "value", "to", "toLen", "from", "fromLen");
  for (const link of info.legend)
    for (const key of ["value", "to", "toLen", "from", "fromLen"]) link[key] = Number(link[key]);
  return info;
}
// restore brings an engine, of which call asks, to where a run is.
export async function restore(call, run = app.run) {
  if (app.tensors) await call("learn", app.tensors);
  if (!run) return;
  await call("start", run.settings, run.settings.preset === "file" ? run.file : null);
  for (const x of run.edits) await call("edit", x.k, x);
}
async function back(old, was) {
  await restore((...x) => engine.call(...x), old);
  app.run = old;
  Object.assign(app.pos, was);
  render();
}
// apply makes an edit, at the end of those that are there.
async function apply(e) {
  if (e.k > 0) await reach(e.k);
  const { run } = app,
    phase = await engine.call("edit", e.k, e);
  if (app.run !== run) return;
  run.edits.push(e);
  if (e.kind === "start") run.rounds = {};
  run.phases.length = phase.index;
  run.phases.push(phase);
  for (const list of Object.values(run.rounds)) list.length = Math.min(list.length, phase.start);
  run.errors = {};
}

// reach computes the shown controllers' rounds before round k. It draws what
// there is on the way, and stops when it is cancelled.
export async function reach(k) {
  const mine = app.run,
    work = { k: 0, of: k, since: performance.now(), cancelled: false };
  let drawn = work.since,
    begun = false;
  const tick = setInterval(renderProgress, 300); // also before the first round is there
  app.work = work;
  try {
    for (let j = 0; j < k; j++) {
      const names = [...app.shown].filter((n) => !mine.errors[n] && (mine.rounds[n] ||= []).length <= j);
      if (!names.length) continue;
      let got;
      try {
        got = await engine.call("round", j, names);
      } catch (e) {
        if (app.run !== mine) return false; // the engine runs another problem by now
        throw e;
      }
      if (app.run !== mine) return false;
      take(mine, j, got);
      work.k = j + 1;
      if (work.cancelled)
        throw Object.assign(new Error(`Stopped after ${plural(j + 1, "round")}.`), { cancelled: true });
      if (performance.now() - drawn > 300) {
        drawn = performance.now();
        if (begun) renderProgress();
        else render(); // the place on show may be another one than before
        begun = true;
      }
    }
  } finally {
    clearInterval(tick);
    if (app.work === work) {
      app.work = null;
      render();
    }
  }
  return true;
}
function take(mine, j, got) {
  for (const [name, r] of Object.entries(unpackRounds(got, mine.info.S * mine.info.A)))
    if (mine.rounds[name].length === j) mine.rounds[name].push(r);
  Object.assign(mine.errors, got.errors);
  if (mine.errors.decoder) throw new Error(mine.errors.decoder);
}

let asked = 0,
  good = null; // what Cancel goes back to where a run has no round yet
// cancel stops what is being computed within a second, if need be by another worker.
export async function cancel() {
  const { work, run } = app;
  if (!work) return;
  work.cancelled = true;
  await new Promise((r) => setTimeout(r, 400));
  if (app.work !== work) return; // it ended between two rounds
  const none = !run.rounds.decoder?.length;
  await engine.cancel("Stopped.");
  if (none && app.tensors) await engine.call("learn", app.tensors);
  if (none && !good) return; // nothing was on show yet: the page begins as usual
  if (none) {
    await begin(good.settings, good.file, good.edits, true, good.cap);
    afterStart();
    return go(good.k, 0);
  }
  await back(run, app.pos);
}
// go shows stage of round k, unless another place or a stop was asked for on the
// way. It returns whether it did.
export async function go(k, stage) {
  const { run, pos } = app,
    T = run.settings.T,
    mine = ++asked;
  if (stage > 3) [k, stage] = [k + 1, 0];
  if (stage < 0) [k, stage] = [k - 1, 3];
  if (k < 0) k = stage = 0;
  if (k >= T) [k, stage] = [T, 0];
  try {
    if (!(await reach(Math.min(T, k + 1))) || mine !== asked) return false;
  } catch (e) {
    if (!e.cancelled || app.run !== run) throw e;
    if (mine !== asked) return false;
    const done = run.rounds.decoder?.length || 0;
    [k, stage] = [Math.max(0, done - 1), 0];
    message(`Stopped after ${plural(done, "round")}.`, "notice");
  }
  pos.k = k;
  pos.stage = stage;
  if (run.rounds.decoder?.length) good = past();
  render();
  return true;
}

const PACE = { stage: 1, 2: 2, 5: 5, 10: 10, max: Infinity };
// play runs on at a pace of the visitor's choice, or at the pace that a function
// of the round gives.
export async function play(pace = () => $("speed").value) {
  if (app.playing) return stop();
  const mine = (app.playing = ++generation),
    still = () => app.playing === mine,
    { pos } = app;
  if (ended()) pos.k = pos.stage = 0;
  render();
  try {
    while (still()) {
      const speed = pace(),
        before = performance.now();
      if (speed === "stage") await go(pos.k, pos.stage + 1);
      else await go(pos.k + 1, 0);
      if (!still()) return;
      if (ended()) break;
      const wait = 1000 / (PACE[speed] || 5) - (performance.now() - before);
      if (wait > 0) await new Promise((r) => setTimeout(r, wait));
    }
  } catch (e) {
    message(e.message);
  }
  if (still()) stop();
}
// replay shows a new run from its start or, where less motion is asked for, its end.
export async function replay() {
  if (stillness()) return go(app.run.settings.T, 0);
  if ((await go(0, 0)) && !app.playing) play(() => "10");
}
export function stop() {
  app.playing = 0;
  asked++;
  render();
}

// losses returns the decoder's losses, the start's first.
export function losses(name = "decoder") {
  const list = app.run.rounds[name];
  return list?.length ? [phaseAt(0).gap, ...list.map((r) => r.loss)] : [];
}
// The largest reward that a decoder is certified for when a change asks for more.
export const MOST_REWARD = 100;

let afterStart = () => {};
// onStart names what is to be done for each new run before it is shown.
export const onStart = (f) => (afterStart = f);

// past is what Undo needs of the run on show.
const past = () => {
  const { settings, file, edits, cap } = app.run;
  return { settings, file, edits: [...edits], cap, k: app.pos.k };
};
// restart runs other settings or another problem. Edits are kept at their rounds
// where they still fit.
/** @typedef {{ k?: number, what?: string, quiet?: boolean, cap?: number }} Options
 * @param {Options} options */
export async function restart(settings, file, edits, options = {}) {
  let { k = 0, what = "", quiet = false, cap } = options;
  if (app.run?.settings.rmax === settings.rmax) cap ??= app.run.cap;
  const before = app.run && past();
  const kept = losses().length > 1 && { values: losses(), what };
  const dropped = await begin(settings, file, edits, true, cap);
  if (before && !quiet) {
    app.history.push(before);
    if (kept) app.ghost = kept;
  }
  afterStart();
  try {
    await go(Math.min(k, settings.T), 0);
  } catch (e) {
    if (!before || app.run.rounds.decoder?.length) throw e;
    if (!quiet) app.history.pop();
    // There is nothing to see of this run: the one before comes back.
    await begin(before.settings, before.file, before.edits, true, before.cap);
    afterStart();
    await go(before.k, 0);
    throw e;
  }
  if (dropped.length)
    message(
      `Dropped ${plural(dropped.length, "change")} of the problem that did not fit; Undo restores the previous run.`,
      "notice",
    );
}
// setting runs the problem again with other settings, from the round on show.
export const setting = (changes, k = app.pos.k) =>
  restart({ ...app.run.settings, ...changes }, app.run.file, app.run.edits, { k, what: "before", cap: app.run.cap });
// edit changes the problem from round e.k on; changes of later rounds stay.
export async function edit(e) {
  const was = app.playing;
  stop();
  try {
    if (beyondCap(e)) return await recertify(e);
    const { run } = app,
      later = run.edits.filter((x) => x.kind !== "start" && x.k > e.k);
    if (e.kind === "start" || later.length) {
      const k = app.pos.k;
      await restart(run.settings, run.file, [...run.edits, e], {
        k: e.kind === "start" ? 0 : k,
        what: "before the change",
      });
      if (!app.run.edits.includes(e)) throw new Error("This change does not fit the problem.");
    } else {
      const saved = { values: losses(), what: "before the change" };
      const old = past();
      await apply(e);
      app.history.push(old);
      if (saved.values.length > 1) app.ghost = saved;
      await go(Math.min(app.pos.k, run.settings.T), 0);
    }
  } finally {
    if (was) setTimeout(play);
  }
}
const beyondCap = (e) =>
  (e.kind === "reward" || e.kind === "place") && Math.abs(e.value) > app.run.info.certificate.RMax;
// recertify makes a decoder with a larger reward cap, for a change that needs it.
async function recertify(e) {
  const { run, pos } = app,
    size = Math.abs(e.value);
  if (!(size <= MOST_REWARD))
    throw new Error(`The page takes rewards r_max up to ${MOST_REWARD}; nothing was changed.`);
  const rmax = size <= 10 ? Math.ceil(size) : Math.ceil(size / 10) * 10;
  await restart({ ...run.settings, rmax }, run.file, [...run.edits, e], {
    k: pos.k,
    what: "with the smaller cap",
    cap: run.cap,
  });
  message(
    `The weights were certified for rewards up to ${show(run.info.certificate.RMax)}. A decoder for up to ${rmax} was written instead, again without looking at the problem, and the run computed with it.`,
    "notice",
  );
}
// undo goes back to the run before the last change.
export async function undo() {
  const old = app.history.pop();
  if (!old) throw new Error("There is nothing to undo.");
  await restart(old.settings, old.file, old.edits, {
    k: old.k,
    cap: old.cap,
    quiet: true,
    what: "before undo",
  });
  return old;
}
