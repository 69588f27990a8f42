"use strict";
// The page: state, drawing and files. Every number comes from the worker.

/* ---------- small things ---------- */
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const sub = (n) => String(n).replace(/\d/g, (d) => "₀₁₂₃₄₅₆₇₈₉"[d]);

// el builds an element; children are nodes or text, never markup.
function el(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG_TAGS.has(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (v !== false && v != null) node.setAttribute(k, v === true ? "" : v);
  }
  node.append(...children.flat());
  return node;
}
const SVG_TAGS = new Set(["svg", "g", "path", "line", "rect", "text", "circle", "title"]);

// show writes a number the way a person reads it.
function show(x, digits = 4) {
  if (x === undefined || x === null) return "–";
  if (x === Infinity) return "∞";
  if (Number.isNaN(x)) return "not a number";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e-3 && size < 1e5) return String(Number(x.toPrecision(digits))).replace("-", "−");
  const [m, e] = x.toExponential(digits - 2).split("e");
  return (m + "·10" + e.replace("+", "").replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(c)])).replace(/^-/, "−");
}

let messageTimer;
function message(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
  clearTimeout(messageTimer);
  if (text) messageTimer = setTimeout(() => message(""), 12000);
}

/* ---------- the worker ---------- */
const engine = {
  pending: new Map(), next: 0, compute: 0,
  async start() {
    const text = $("wasm").textContent, bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i); // the low byte, see build.go
    $("wasm").textContent = "";
    const url = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
    this.worker = new Worker(url);
    await new Promise((resolve, reject) => {
      this.worker.onerror = (e) => reject(new Error(e.message || "the worker did not start"));
      this.worker.onmessage = ({ data }) => {
        if (data.ready) resolve();
        else if (data.stopped) { reject(new Error(data.error)); this.fail("the engine has stopped; reload the page"); }
        else {
          const call = this.pending.get(data.id);
          this.pending.delete(data.id);
          this.compute += data.ms;
          if (data.error) call.reject(new Error(data.error)); else call.resolve(data.value);
        }
      };
      this.worker.postMessage({ wasm: bytes.buffer }, [bytes.buffer]);
    });
    URL.revokeObjectURL(url);
  },
  fail(why) {
    message(why);
    for (const call of this.pending.values()) call.reject(new Error(why));
    this.pending.clear();
  },
  call(op, ...args) {
    return new Promise((resolve, reject) => {
      this.pending.set(++this.next, { resolve, reject });
      this.worker.postMessage({ id: this.next, op, args });
    });
  },
};

/* ---------- settings ---------- */
const PRESETS = {
  random: "Random", "sparse-transitions": "Sparse transitions", "sparse-rewards": "Sparse rewards", ring: "Ring",
  "strong-mixing": "Strong mixing", "frozen-lake": "FrozenLake 4×4", "lock-up": "Lock-up witness", file: "Loaded from a file",
};
const SETTINGS = {
  preset: { name: "Preset", choices: PRESETS, start: "random", full: true },
  S: { name: "States S", min: 2, max: 16, whole: true, start: 8 },
  A: { name: "Actions A", min: 2, max: 16, whole: true, start: 3 },
  seed: { name: "Seed", min: 0, max: 2 ** 53 - 1, whole: true, start: 1 },
  gamma: { name: "Discount γ", min: 0, max: 0.999, start: 0.9 },
  eta: { name: "Step η", min: 0.001, max: 20, start: 0.8 },
  m: { name: "Packets m", min: 1, max: 64, whole: true, start: 6 },
  T: { name: "Rounds T", min: 1, max: 200, whole: true, start: 40 },
  expected: { name: "Exact expectations instead of samples", flag: true, start: false, full: true },
  phi: { name: "Mixture φ", min: 0, max: 1, start: 0, more: true },
  tol: { name: "Tolerance ε_r", min: 1e-12, max: 1.9, start: 0.001, more: true },
  kappa: { name: "Margin κ", min: 0, max: 1e6, start: 0, more: true, auto: true },
  tau1: { name: "Margin τ₁", min: 0, max: 1e6, start: 0, more: true, auto: true },
  tau2: { name: "Margin τ₂", min: 0, max: 1e6, start: 0, more: true, auto: true },
  H: { name: "Carrier H", min: 1, max: 1e15, start: 1e6, more: true },
};
const defaults = () => Object.fromEntries(Object.entries(SETTINGS).map(([k, f]) => [k, f.start]));

// check returns the setting's value for a text, or throws what is wrong with it.
function check(key, text) {
  const f = SETTINGS[key];
  if (f.choices) {
    if (!Object.hasOwn(f.choices, text)) throw new Error(`${f.name} “${String(text).slice(0, 40)}” is not one of the presets.`);
    return text;
  }
  if (f.flag) {
    if (!["0", "1", "true", "false"].includes(String(text))) throw new Error(`“${f.name}” takes 0 or 1.`);
    return text === true || text === "1" || text === "true";
  }
  if (f.auto && String(text).trim() === "") return 0;
  const value = String(text).trim() === "" || String(text).length > 40 ? NaN : Number(text);
  if (!(value >= f.min && value <= f.max) || (f.whole && !Number.isInteger(value)))
    throw new Error(`${f.name} is “${String(text).slice(0, 40)}”, want ${f.whole ? "a whole number" : "a number"} from ${show(f.min)} to ${show(f.max)}.`);
  return value;
}

const CONTROLLERS = {
  decoder: { name: "Constructed decoder", why: "hand-written weights, sampled packets", color: "accent", dash: "" },
  exact: { name: "Exact PMD", why: "the operation itself with an exact critic", color: "ink", dash: "7 4" },
  normalized: { name: "Normalized compilation", why: "the decoder with pre-LN and final LN", color: "violet", dash: "2 3" },
  learned: { name: "Learned actor", why: "trained weights with an exact critic", color: "green", dash: "10 3 2 3" },
  idle: { name: "Actor that never moves", why: "what lock-up looks like", color: "grey", dash: "1 5" },
};
const STAGES = [
  { name: "Context", why: "The context holds the present policy π and the critic’s values Q, one memory token for each state and action." },
  { name: "Actor", why: "Each state asks one query; its softmax over memories with score κ + ν + log π + ηQ is the new policy." },
  { name: "Environment", why: "Fresh transitions are drawn from every state and action; successor actions come from the policy just returned." },
  { name: "Critic", why: "Packets look up Q at their successors, a ReLU forms r + γQ, and each query averages its own packets." },
];

/* ---------- the run ---------- */
let run = null; // {settings, file, info, phases, edits, rounds: {name: [...]}, errors}
const pos = { k: 0, stage: 0 };
const view = { call: "actor", station: "tokens", part: "tokens", follow: 0, row: 0, col: 0 };
let shown = new Set(["decoder", "exact"]);
let playing = 0; // generation of the running play loop, 0 when stopped
let generation = 0;

// begin starts a run with edits applied; if any of it is refused, the run that
// was there goes on as if nothing had happened.
async function begin(settings, file, edits = []) {
  const old = run, was = { ...pos };
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
  for (const name of Object.keys(run.rounds)) run.rounds[name].length = Math.min(run.rounds[name].length, phase.start);
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
    for (const [name, r] of Object.entries(got.rounds)) if (mine.rounds[name].length === j) mine.rounds[name].push(Object.assign(r, { phase: got.phase }));
    Object.assign(mine.errors, got.errors);
    if (mine.errors.decoder) throw new Error(mine.errors.decoder);
  }
  return true;
}

const decoderRound = (k) => run.rounds.decoder?.[k];
const phaseAt = (k) => run.phases.findLast((p) => p.start <= k) || run.phases[0];

async function go(k, stage) {
  const T = run.settings.T;
  if (stage > 3) { k++; stage = 0; }
  if (stage < 0) { k--; stage = 3; }
  if (k < 0) k = stage = 0;
  if (k >= T) { k = T; stage = 0; }
  if (!(await reach(Math.min(T, k + 1)))) return;
  pos.k = k;
  pos.stage = stage;
  render();
}

async function play() {
  if (playing) return stop();
  const mine = (playing = ++generation);
  if (pos.k >= run.settings.T) pos.k = pos.stage = 0;
  render();
  try {
    while (playing === mine) {
      const speed = $("speed").value;
      const before = performance.now();
      if (speed === "stage") await go(pos.k, pos.stage + 1);
      else await go(pos.k + 1, 0);
      if (playing !== mine) return;
      if (pos.k >= run.settings.T) break;
      const wait = speed === "max" ? 0 : (speed === "stage" ? 900 : 1000 / speed) - (performance.now() - before);
      if (wait > 0) await new Promise((r) => setTimeout(r, wait));
    }
  } catch (e) { message(e.message); }
  if (playing === mine) stop();
}
function stop() {
  playing = 0;
  render();
}

/* ---------- matrices on canvas ---------- */
function mix(a, b, t) {
  const p = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
  const [x, y] = [p(a), p(b)];
  return x.map((v, i) => Math.round(v + (y[i] - v) * t));
}
let theme = null;
const palette = () => (theme ||= Object.fromEntries(["card", "ink", "soft", "line", "accent", "warm", "green", "violet", "grey", "wash"].map((n) => [n, css(n)])));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme = null; render(); });

// Heat draws a matrix: zero is paper, positive blue, negative orange, each cell
// relative to the largest magnitude. It can be read with pointer and keyboard.
class Heat {
  constructor(canvas, { label, hover, pick } = {}) {
    Object.assign(this, { canvas, label, hover, pick, cursor: null });
    if (!hover) { canvas.setAttribute("role", "img"); return; }
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "matrix");
    const at = (e) => {
      const box = canvas.getBoundingClientRect();
      const j = Math.floor((e.clientX - box.left - this.left) / this.w), i = Math.floor((e.clientY - box.top - this.top) / this.h);
      return i >= 0 && j >= 0 && i < this.rows && j < this.cols ? [i, j] : null;
    };
    canvas.addEventListener("pointermove", (e) => { const c = at(e); if (c && e.pointerType === "mouse") this.move(...c, false); });
    canvas.addEventListener("click", (e) => { const c = at(e); if (c) { this.move(...c, false); this.pick?.(...c); } });
    canvas.addEventListener("keydown", (e) => {
      const d = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
      const [i, j] = this.cursor || [0, 0];
      if (d) this.move(Math.max(0, Math.min(this.rows - 1, i + d[0])), Math.max(0, Math.min(this.cols - 1, j + d[1])), true);
      else if (e.key === "Enter" || e.key === " ") { this.move(i, j, true); this.pick?.(i, j); }
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }
  move(i, j, speak) {
    if (this.cursor && this.cursor[0] === i && this.cursor[1] === j) return;
    this.cursor = [i, j];
    this.draw();
    this.hover(i, j, speak);
  }
  set(x) {
    Object.assign(this, { rowGroups: null, colGroups: null, mark: -1, rowFirst: 0, colFirst: 0, maxCell: 40, text: false, heads: null }, x);
    if (this.cursor && (this.cursor[0] >= this.rows || this.cursor[1] >= this.cols)) this.cursor = null;
    this.canvas.setAttribute("aria-label", x.label || this.label);
    this.draw();
  }
  draw() {
    const { canvas, rows, cols, data } = this, colors = palette(), width = Math.max(40, (canvas.parentElement || canvas).clientWidth);
    if (!rows || !cols) return;
    this.left = this.rowGroups ? 74 : this.heads ? 26 : 0;
    this.top = this.colGroups ? 92 : this.heads ? 16 : 0;
    this.w = Math.min(this.maxCell, (width - this.left) / cols);
    if (this.minCell) this.w = Math.max(this.w, this.minCell);
    const tall = this.maxHeight || 620;
    this.h = Math.max(this.heads || this.text ? 15 : 3, Math.min(this.w, 26, tall / rows));
    if (!this.heads && !this.text) this.h = Math.min(this.h, Math.max(3, tall / rows));
    const W = Math.ceil(this.left + this.w * cols) + 1, H = Math.ceil(this.top + this.h * rows) + 1, ratio = Math.min(3, devicePixelRatio || 1);
    canvas.width = W * ratio; canvas.height = H * ratio;
    canvas.style.width = W + "px"; canvas.style.height = H + "px";
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    let top = 0;
    for (const v of data) if (Number.isFinite(v) && Math.abs(v) > top) top = Math.abs(v);
    top = this.scale || top || 1;
    const ramp = [colors.accent, colors.warm].map((c) => Array.from({ length: 33 }, (_, i) => mix(colors.card, c, i / 32)));
    const small = document.createElement("canvas");
    small.width = cols; small.height = rows;
    const sg = small.getContext("2d"), image = sg.createImageData(cols, rows);
    for (let n = 0; n < rows * cols; n++) {
      const v = data[n], t = Math.min(1, Math.abs(v) / top);
      const c = ramp[v < 0 ? 1 : 0][v === 0 ? 0 : Math.max(2, Math.round(Math.sqrt(t) * 32))] || ramp[0][0];
      image.data.set([c[0], c[1], c[2], 255], 4 * n);
    }
    sg.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(small, this.left, this.top, this.w * cols, this.h * rows);
    g.strokeStyle = colors.line;
    g.lineWidth = 1;
    g.strokeRect(this.left + 0.5, this.top + 0.5, this.w * cols - 0.5, this.h * rows - 0.5);
    if (this.w >= 9 && this.h >= 9) {
      g.beginPath();
      for (let j = 1; j < cols; j++) { g.moveTo(this.left + j * this.w, this.top); g.lineTo(this.left + j * this.w, this.top + this.h * rows); }
      for (let i = 1; i < rows; i++) { g.moveTo(this.left, this.top + i * this.h); g.lineTo(this.left + this.w * cols, this.top + i * this.h); }
      g.stroke();
    }
    const font = (n) => (g.font = `${n}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`);
    if (this.text && this.w >= 30) {
      font(Math.min(12, this.w / 3.4)); g.textAlign = "center"; g.textBaseline = "middle";
      for (let i = 0; i < rows; i++) for (let j = 0; j < cols; j++) {
        const v = data[i * cols + j];
        g.fillStyle = Math.sqrt(Math.abs(v) / top) > 0.6 ? colors.card : colors.ink;
        g.fillText(Math.abs(v) < 0.005 ? (v === 0 ? "0" : "·") : v.toFixed(Math.abs(v) >= 10 ? 1 : 2).replace("-", "−"), this.left + (j + 0.5) * this.w, this.top + (i + 0.55) * this.h);
      }
    }
    g.fillStyle = colors.soft;
    if (this.heads) {
      font(11); g.textBaseline = "middle";
      const every = (step) => Math.max(1, Math.ceil(14 / step));
      g.textAlign = "right";
      for (let i = 0; i < rows; i += every(this.h)) g.fillText(this.heads[0](i), this.left - 4, this.top + (i + 0.5) * this.h);
      g.textAlign = "center";
      for (let j = 0; j < cols; j += every(this.w)) g.fillText(this.heads[1](j), this.left + (j + 0.5) * this.w, 8);
    }
    font(11);
    if (this.rowGroups) {
      let last = -99;
      for (const r of this.rowGroups) {
        const a = this.top + Math.max(0, r.from - this.rowFirst) * this.h, b = this.top + Math.min(rows, r.to - this.rowFirst) * this.h;
        if (b <= a || r.to <= this.rowFirst) continue;
        g.strokeStyle = colors.soft; g.beginPath(); g.moveTo(this.left - 6, a + 0.5); g.lineTo(this.left, a + 0.5); g.stroke();
        const y = Math.min(this.top + rows * this.h - 6, (a + b) / 2);
        if (y - last < 12) continue;
        last = y; g.textAlign = "right"; g.textBaseline = "middle"; g.fillText(r.name, this.left - 8, y);
      }
    }
    if (this.colGroups) {
      let last = -99;
      for (const c of this.colGroups) {
        const a = this.left + Math.max(0, c.from - this.colFirst) * this.w, b = this.left + Math.min(cols, c.to - this.colFirst) * this.w;
        if (b <= a || c.to <= this.colFirst) continue;
        g.strokeStyle = colors.soft; g.beginPath(); g.moveTo(a + 0.5, this.top - 5); g.lineTo(a + 0.5, this.top); g.stroke();
        const x = (a + b) / 2;
        if (x - last < 12) continue;
        last = x;
        g.save(); g.translate(x, this.top - 8); g.rotate(-Math.PI / 2); g.textAlign = "left"; g.textBaseline = "middle"; g.fillText(c.name, 0, 0); g.restore();
      }
    }
    const frame = (i, j, h, w, color) => { g.strokeStyle = color; g.lineWidth = 2; g.strokeRect(this.left + j * this.w + 1, this.top + i * this.h + 1, Math.max(2, w * this.w - 2), Math.max(2, h * this.h - 2)); };
    if (this.mark >= this.rowFirst && this.mark < this.rowFirst + rows) frame(this.mark - this.rowFirst, 0, 1, cols, colors.warm);
    if (this.cursor) frame(this.cursor[0], this.cursor[1], 1, 1, colors.ink);
  }
}

/* ---------- the chain ---------- */
const cards = {};
function buildChain() {
  const heat = (name, caption) => {
    const canvas = el("canvas");
    cards[name] = new Heat(canvas, { label: caption });
    return el("div", {}, el("p", { class: "cap" }, caption), el("div", {}, canvas));
  };
  const body = [
    [el("div", { class: "two" }, heat("pi", "π"), heat("q", "Q"))],
    [heat("nextPi", "π̂, the returned policy"), el("p", { class: "cap num", id: "card-actor" })],
    [heat("counts", "successors drawn, (s,a) × s′"), el("p", { class: "cap num", id: "card-env" })],
    [heat("nextQ", "Q of the next round"), el("p", { class: "cap num", id: "card-critic" }), el("p", { class: "cap" }, "With π̂ it is the next round’s context.")],
  ];
  STAGES.forEach((s, i) => {
    $("stages").append(el("div", { class: "stagecard", id: "stage-" + i },
      el("button", { type: "button", onclick: () => act(() => go(Math.min(pos.k, run.settings.T - 1), i)) }, s.name), el("div", { class: "body" }, ...body[i])));
  });
}

function renderChain() {
  const { S, A } = run.info, T = run.settings.T;
  const r = decoderRound(Math.min(pos.k, T - 1));
  if (!r) return;
  const end = pos.k >= T;
  const pi = end ? r.nextPi : r.pi, q = end ? r.nextQ : r.q, B = run.info.certificate.B;
  const size = { rows: S, cols: A, maxCell: 34 };
  let reachQ = 0;
  for (const v of r.q) reachQ = Math.max(reachQ, Math.abs(v));
  for (const v of r.nextQ) reachQ = Math.max(reachQ, Math.abs(v));
  const words = (what) => `${what}, ${S} states by ${A} actions`;
  cards.pi.set({ ...size, data: pi, scale: 1, label: words("Policy π") });
  cards.q.set({ ...size, data: q, scale: reachQ || B, label: words("Values Q") });
  cards.nextPi.set({ ...size, data: r.nextPi, scale: 1, maxCell: 44, text: true, label: words("Returned policy") });
  const counts = new Float64Array(S * A * S);
  for (let i = 0; i < r.packets.length; i += 6) counts[(r.packets[i] * A + r.packets[i + 1]) * S + r.packets[i + 2]] += Math.exp(r.packets[i + 5]);
  cards.counts.set({ rows: S * A, cols: S, data: counts, maxCell: 34, maxHeight: 208, label: `Successors drawn from each of ${S * A} pairs` });
  cards.nextQ.set({ ...size, data: r.nextQ, scale: reachQ || B, maxCell: 44, text: true, label: words("Next values Q") });
  $("card-actor").textContent = `ζ = ${show(r.zeta, 3)}, at most ${show(r.zetaBound, 3)}`;
  $("card-env").textContent = run.settings.expected ? `${r.packets.length / 6} packets with exact weights` : `${r.packets.length / 6} packets, m = ${run.info.certificate.m} a pair`;
  $("card-critic").textContent = `δ = ${show(r.delta, 3)}, at most ${show(r.deltaBound, 3)}`;
  STAGES.forEach((s, i) => {
    $("stage-" + i).classList.toggle("now", i === pos.stage);
    $("stage-" + i).classList.toggle("later", !end && i > pos.stage);
    $("stage-" + i).firstChild.setAttribute("aria-current", i === pos.stage ? "step" : "false");
  });
  $("round-title").textContent = end ? `the end after ${T} rounds` : `round ${pos.k} of ${T}`;
  $("stage-why").textContent = end ? `The returned policy π̂${sub(T)} is final: the last critic call could change no policy, so the bound does not charge it.` : STAGES[pos.stage].why;
  $("scrub").max = T; $("scrub").value = pos.k;
  $("scrub-out").textContent = `${pos.k} of ${T}`;
  $("play").textContent = playing ? "Stop" : "Play";
  $("play").setAttribute("aria-pressed", String(!!playing));
}

/* ---------- readings ---------- */
// gauge marks a value and its bound on a logarithmic scale.
function gauge(value, bound, lowest) {
  const at = (x) => (x <= 0 ? 0 : Math.max(0, Math.min(1, Math.log(x / lowest) / Math.log((bound * 1.6) / lowest))) * 300);
  const c = palette();
  return el("svg", { class: "gauge", viewBox: "0 0 300 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    el("rect", { x: 0, y: 3, width: 300, height: 4, fill: c.wash }), el("rect", { x: 0, y: 3, width: at(value), height: 4, fill: c.accent }),
    el("rect", { x: at(bound) - 2, y: 0, width: 3, height: 10, fill: c.warm }));
}
function terms(rows) {
  return el("table", { class: "terms" }, el("tbody", {}, rows.map(([name, value, sum]) => el("tr", { class: sum ? "sum" : false }, el("th", { scope: "row" }, name), el("td", {}, show(value))))));
}
function renderReadings() {
  const k = Math.min(pos.k, run.settings.T - 1), r = decoderRound(pos.k >= run.settings.T || pos.stage > 0 ? k : Math.max(0, k - 1)), first = pos.k === 0 && pos.stage === 0;
  if (!r) return;
  const at = pos.k >= run.settings.T || pos.stage > 0 ? k : Math.max(0, k - 1), phase = phaseAt(at);
  const oracle = run.rounds.exact?.[at];
  const c = run.info.certificate, h = at + 1 - phase.start;
  const exactly = (x) => (x < 1e-12 ? " That is rounding alone." : "");
  $("readings").replaceChildren(
    el("div", { class: "reading" }, el("h3", {}, `Actor residual ζ${sub(at)}`), el("b", {}, show(r.zeta)),
      el("p", { class: "of" }, `certificate: at most ${show(r.zetaBound)}`), gauge(r.zeta, r.zetaBound, 1e-17),
      el("p", { class: "why" }, "The largest L₁ distance between a row of the decoder’s policy and exact PMD on the same π and Q." + exactly(r.zeta))),
    el("div", { class: "reading" }, el("h3", {}, `Critic residual δ${sub(at)}`), el("b", {}, show(r.delta)),
      el("p", { class: "of" }, `certificate: at most ${show(r.deltaBound)}`), gauge(r.delta, r.deltaBound, 1e-17),
      el("p", { class: "why" }, run.settings.expected ? "The largest error of the new Q against the exact one-step backup; packets carry exact weights, so routing is all of it." :
        "The largest error of the new Q against the exact one-step backup; almost all of it is sampling, which more packets shrink."),
      terms([["routing, measured", r.route], ["routing, bound", r.routeBound], ["sampling, measured", r.sampling], [`sampling, bound (${Math.round(100 * (1 - c.alpha))} % of runs)`, run.settings.expected ? 0 : c.deltaStat]])),
    el("div", { class: "reading" }, el("h3", {}, `Loss of the returned policy π̂${sub(at + 1)}`), el("b", {}, show(r.loss)),
      el("p", { class: "of" }, `${show((100 * r.loss) / phase.gap, 3)} % of the start’s ${show(phase.gap)}` + (oracle ? `; exact PMD has ${show(oracle.loss)}` : "")), gauge(r.loss, r.bound, 1e-6),
      el("p", { class: "why" }, "How far the values of the policy lie below optimal at worst, and what the returned-policy theorem allows."),
      terms([[`initial error, 2γ${sup(h)}E₀/(1−γ)`, r.initial], [`critic, from δ before round ${at}`, r.critic], ["greedy defects ḡ before the last", r.greedy], ["last greedy defect", r.last], ["bound", r.bound, true]])));
  if (first) $("readings").prepend(el("p", { class: "why" }, "Round 0 has not run yet; these are the numbers it will give."));
  if (run.phases.length > 1) $("readings").append(el("p", { class: "why" }, `The problem was last changed before round ${phase.start}; the theorem is accounted from there.`));
}
const sup = (n) => String(n).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);

/* ---------- charts ---------- */
function chart({ series, T, label, floor, marker, size = [520, 360], colors = palette() }) {
  const [W, H] = size, left = 52, right = 12, top = 10, bottom = 34;
  let lo = Infinity, hi = -Infinity;
  for (const s of series) for (const v of s.values) if (v > 0 && Number.isFinite(v)) { lo = Math.min(lo, Math.max(v, floor)); hi = Math.max(hi, v); }
  if (!(hi > 0)) { lo = 0.1; hi = 1; }
  let a = Math.floor(Math.log10(lo)), b = Math.ceil(Math.log10(hi));
  if (a === b) a--;
  const x = (k) => left + ((W - left - right) * k) / Math.max(1, T), y = (v) => top + (H - top - bottom) * (1 - (Math.log10(Math.max(v, 10 ** a)) - a) / (b - a));
  const svg = el("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label, "font-family": "system-ui, DejaVu Sans, sans-serif", "font-size": 12 });
  const step = Math.max(1, Math.ceil((b - a) / 7));
  for (let e = a; e <= b; e += step) svg.append(el("line", { x1: left, x2: W - right, y1: y(10 ** e), y2: y(10 ** e), stroke: colors.line }), el("text", { x: left - 6, y: y(10 ** e) + 4, "text-anchor": "end", fill: colors.soft }, e < 0 ? "10⁻" + sup(-e) : "10" + sup(e)));
  const ticks = Math.max(1, Math.ceil(T / 8));
  for (let k = 0; k <= T; k += ticks) svg.append(el("text", { x: x(k), y: H - 16, "text-anchor": "middle", fill: colors.soft }, String(k)));
  svg.append(el("text", { x: (W + left) / 2, y: H - 1, "text-anchor": "middle", fill: colors.soft }, "round"));
  for (const p of run.phases.slice(1)) svg.append(el("line", { x1: x(p.start), x2: x(p.start), y1: top, y2: H - bottom, stroke: colors.soft, "stroke-dasharray": "1 3" }, el("title", {}, `problem edited before round ${p.start}`)));
  if (marker !== undefined) svg.append(el("line", { x1: x(marker), x2: x(marker), y1: top, y2: H - bottom, stroke: colors.grey, "stroke-width": 1 }));
  for (const s of series) {
    let d = "";
    s.values.forEach((v, i) => { if (Number.isFinite(v)) d += `${d ? "L" : "M"}${x(i + s.from).toFixed(1)} ${y(v).toFixed(1)}`; });
    if (d) svg.append(el("path", { d, fill: "none", stroke: colors[s.color], "stroke-width": s.thin ? 1.4 : 2.2, "stroke-dasharray": s.dash, "stroke-linejoin": "round" }, el("title", {}, s.name)));
  }
  return svg;
}
function lossSeries() {
  const series = [];
  for (const name of Object.keys(CONTROLLERS)) {
    const list = run.rounds[name];
    if (!shown.has(name) || !list?.length) continue;
    series.push({ ...CONTROLLERS[name], from: 0, values: [run.phases[0].gap, ...list.map((r) => r.loss)] });
  }
  if (run.rounds.decoder?.length) series.push({ name: "Bound on the decoder’s loss", color: "warm", dash: "5 3", thin: true, from: 1, values: run.rounds.decoder.map((r) => r.bound) });
  return series;
}
function residualSeries() {
  const d = run.rounds.decoder || [];
  return [
    { name: "ζ, actor", color: "accent", dash: "", from: 0, values: d.map((r) => r.zeta) }, { name: "bound on ζ", color: "accent", dash: "5 3", thin: true, from: 0, values: d.map((r) => r.zetaBound) },
    { name: "δ, critic", color: "warm", dash: "", from: 0, values: d.map((r) => r.delta) }, { name: "bound on δ", color: "warm", dash: "5 3", thin: true, from: 0, values: d.map((r) => r.deltaBound) },
    { name: "routing part of δ", color: "violet", dash: "", from: 0, values: d.map((r) => r.route) }, { name: "bound on routing", color: "violet", dash: "5 3", thin: true, from: 0, values: d.map((r) => r.routeBound) },
  ];
}
function legend(series) {
  const c = palette();
  return el("p", { class: "keys" }, series.map((s) => el("span", {}, keyLine(c[s.color], s.dash), s.name)));
}
const keyLine = (color, dash) => el("svg", { viewBox: "0 0 28 10", width: 28, height: 10, "aria-hidden": "true" }, el("line", { x1: 0, x2: 28, y1: 5, y2: 5, stroke: color, "stroke-width": 2.4, "stroke-dasharray": dash }));
function renderCharts() {
  const T = run.settings.T, loss = lossSeries(), residual = residualSeries();
  const last = decoderRound(Math.max(0, pos.k - 1));
  const keys = (list) => legend(list.filter((x) => !x.thin || x.color === "warm"));
  $("loss-chart").replaceChildren(chart({ series: loss, T, floor: 1e-12, marker: pos.k, label: `Loss over ${T} rounds on a logarithmic axis. At round ${pos.k} the decoder’s is ${show(last?.loss)}, its bound ${show(last?.bound)}.` }), keys(loss));
  $("residual-chart").replaceChildren(chart({ series: residual, T, floor: 1e-18, marker: pos.k, label: `Residuals of the decoder over ${T} rounds, all below their bounds shown dashed.` }), legend(residual.filter((s) => !s.thin)), el("p", { class: "cap" }, "Dashed lines are the certificate’s bounds."));
}
function renderControllers() {
  const c = palette();
  if (!$("controllers").children.length) {
    for (const [name, x] of Object.entries(CONTROLLERS)) {
      const box = el("input", { type: "checkbox", id: "show-" + name, disabled: name === "decoder", onchange: () => act(() => toggle(name)) });
      $("controllers").append(el("div", { class: "controller" }, box, el("span", { class: "line" }), el("label", { for: "show-" + name }, x.name), el("p", { class: "cap", id: "state-" + name })));
    }
    $("controllers").append(el("div", { class: "controller" }, el("label", { class: "file" }, "Other weights (.safetensors)", el("input", { id: "weights", type: "file", accept: ".safetensors", onchange: (e) => act(() => weightsFile(e.target)) }))));
  }
  for (const [name, x] of Object.entries(CONTROLLERS)) {
    const box = $("show-" + name);
    box.checked = shown.has(name);
    box.parentElement.querySelector(".line").replaceChildren(keyLine(c[x.color], x.dash));
    const r = run.rounds[name]?.[Math.max(0, Math.min(pos.k, run.settings.T) - 1)];
    $("state-" + name).textContent = run.errors[name] ? "Stopped: " + run.errors[name] : r && shown.has(name) ? `loss ${show(r.loss)}, ζ ${show(r.zeta, 3)}` : x.why;
  }
}
async function toggle(name) {
  if (shown.has(name)) shown.delete(name);
  else {
    if (name === "learned" && !learned.label) await fetchLearned();
    shown.add(name);
    delete run.errors[name];
    await reach(Math.min(run.settings.T, Math.max(pos.k + 1, run.rounds.decoder?.length || 0)));
    if (run.errors[name]) message(`${CONTROLLERS[name].name}: ${run.errors[name]}.`);
  }
  render();
  remember();
}

/* ---------- learned actors ---------- */
const learned = { label: "", builtIn: [] };
// fetchLearned loads the weights that were built for this problem's shape. They
// come in a script because a page opened from a file may fetch nothing else.
async function fetchLearned() {
  const { S, A } = run.info;
  const found = learned.builtIn.find((x) => x.states === S && x.actions === A);
  if (!found) {
    $("show-learned").checked = false;
    const have = learned.builtIn.map((x) => `S=${x.states}, A=${x.actions}`).join("; ");
    throw new Error(`There are no trained weights for S=${S}, A=${A}` + (have ? `; this copy has ${have}.` : " in this copy of the page; a .safetensors file of an actor can be loaded instead."));
  }
  const text = await new Promise((resolve, reject) => {
    self.policyAttentionWeights = resolve;
    const script = el("script", { src: found.file });
    script.onerror = () => reject(new Error(`The weights ${found.file} could not be loaded; they lie beside this page.`));
    document.head.append(script);
  });
  await learn(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}
async function weightsFile(input) {
  const file = input.files[0];
  input.value = "";
  if (!file) return;
  if (file.size > 32e6) throw new Error(`${file.name} has ${Math.round(file.size / 1e6)} MB; an actor’s weights have less than 32.`);
  await learn(await file.arrayBuffer());
  shown.add("learned");
  delete run.rounds.learned; delete run.errors.learned;
  await reach(Math.max(1, run.rounds.decoder?.length || 0));
  if (run.errors.learned) message("Learned actor: " + run.errors.learned);
  render();
}
// learn reads the project's safetensors form of an actor.
async function learn(buffer) {
  const bad = (why) => new Error("These are not weights of an actor of this project: " + why + ".");
  const bytes = new DataView(buffer);
  if (buffer.byteLength < 8) throw bad("the file is too short");
  const length = Number(bytes.getBigUint64(0, true));
  if (!(length > 0 && length <= buffer.byteLength - 8)) throw bad("the header’s length is wrong");
  let header, config;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, length)));
    config = JSON.parse(header.__metadata__.config);
  } catch { throw bad("the header is not the JSON it should be"); }
  if (config.objective === "critic") throw bad("they are a critic’s");
  if (!config.recipe || !Array.isArray(config.sizes) || config.sizes.length !== 1 || config.slots !== config.sizes[0]) throw bad("they are not for one number of states");
  const tensors = {};
  for (const [name, t] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [from, to] = t?.data_offsets || [];
    if (t.dtype !== "F32" || !Number.isInteger(from) || !Number.isInteger(to) || from < 0 || to < from || (to - from) % 4 || 8 + length + to > buffer.byteLength) throw bad(`tensor “${name.slice(0, 40)}” lies outside the file or is not float32`);
    tensors[name] = new Float32Array(buffer.slice(8 + length + from, 8 + length + to));
  }
  const shape = {
    states: config.slots, actions: config.actions, layers: config.layers, heads: config.heads, width: config.width, hidden: config.hidden,
    logPolicy: config.recipe.policy === "log", priorReadout: config.recipe.readout === "prior",
  };
  for (const v of Object.values(shape)) if (typeof v !== "boolean" && !(Number.isInteger(v) && v > 0 && v < 1e6)) throw bad("the configuration has no valid shape");
  await engine.call("learn", shape, tensors);
  learned.label = `${config.objective} actor, recipe ${config.recipe.name}, S=${config.slots}, step ${header.__metadata__.step}`;
  CONTROLLERS.learned.why = learned.label;
  delete run.rounds.learned; delete run.errors.learned;
}

/* ---------- the microscope ---------- */
const STATIONS = [
  ["tokens", "Tokens"], ["0.0", "Block 1: actor head"], ["0.1", "Block 1: lookup head"], ["map", "Block 1: ReLU map"],
  ["1.0", "Block 2: predecessor head"], ["1.1", "Block 2: idle head"], ["end", "Read-out"],
];
const HEAD_PARTS = [["query", "Queries"], ["key", "Keys"], ["score", "Scores"], ["weight", "Attention weights"], ["value", "Values"], ["mixed", "Mixed values"], ["written", "Output projection"], ["q", "W_Q"], ["k", "W_K"], ["v", "W_V"], ["o", "W_O"]];
const PARTS = {
  tokens: [["tokens", "Tokens"]],
  map: [["attended", "After attention"], ["pre", "Before the ReLU"], ["post", "After the ReLU"], ["output", "After block 1"], ["w1", "W₁"], ["w2", "W₂"]],
  end: [["attended1", "After block 2"], ["output", "Last tokens"], ["results", "Read-outs"]],
};
const partsOf = (station) => PARTS[station] || HEAD_PARTS;
const WHY = {
  tokens: "One row a token, one column a named coordinate: this is all the network sees.",
  query: "What each token asks for: W_Q times the token. Only the role’s own fields reach it.", key: "What each token offers: W_K times the token.",
  score: "Inner products of queries (rows) and keys (columns); a token sees itself and what came before, nothing later.",
  weight: "The softmax of each row of scores. Every row sums to one.", value: "What a token hands over when it is attended to: W_V times the token.",
  mixed: "Each row is the mean of the values, weighted by that token’s attention.", written: "W_O times the mixed values: what the head adds to each token.",
  attended: "Tokens with what both heads wrote added to them.", pre: "Two units a token, reward plus γ times the value looked up, shut by −B everywhere but on packets.",
  post: "Negative numbers cut to zero: only packets pass.", output: "Tokens as they leave, with what the ReLU map wrote added.", attended1: "Tokens with what block 2 wrote added; it has no ReLU map.",
  results: "The affine read-out of the queries: rows of π̂ for an actor call, the new Q for a critic call.",
  q: "The frozen query weights.", k: "The frozen key weights.", v: "The frozen value weights.", o: "The frozen output weights.", w1: "The weights into the two ReLU units.", w2: "The weights out of them.",
};
const isWeight = (part) => ["q", "k", "v", "o", "w1", "w2"].includes(part);
function matrixName(station, part) {
  if (station === "tokens") return "tokens";
  if (station === "map") return (isWeight(part) ? "block.0.map." : "block.0.") + part;
  if (station === "end") return part === "attended1" ? "block.1.attended" : part;
  const [b, h] = station.split(".");
  return `block.${b}.head.${h}.${part}`;
}

const scope = { cache: new Map(), trace: null, key: "", heat: null, busy: false, again: false, rowFirst: 0, colFirst: 0 };
const WINDOW = 320;

async function fetchMatrix(name, from = 0, to = 1e9) {
  const id = `${scope.key}|${name}|${from}|${to}`;
  if (!scope.cache.has(id)) {
    if (scope.cache.size > 60) scope.cache.clear();
    const k = Math.min(pos.k, run.settings.T - 1), last = name.split(".").pop();
    scope.cache.set(id, isWeight(last) ? engine.call("weight", name) : engine.call("matrix", k, view.call === "critic", name, from, to));
  }
  return scope.cache.get(id);
}

function groupNames(labels, rows) {
  // Runs of labels with one stem are a group: "memory.state[3]" and "packet 7 (…)" end in their own part.
  const groups = [];
  labels.forEach((label, i) => {
    const name = rows ? label.replace(/ \(.*| \d+ \(.*/s, "").replace("critic ", "").replace("actor ", "") : label.replace(/\[.*/, "");
    if (groups.length && groups[groups.length - 1].name === name) groups[groups.length - 1].to = i + 1;
    else groups.push({ name, from: i, to: i + 1 });
  });
  return groups;
}

function axes(part) {
  const { token, slots, hidden, A } = run.info, names = (list) => list.map((x) => x.label), t = scope.trace;
  const results = view.call === "actor" ? Array.from({ length: A }, (_, a) => `π̂(a=${a})`) : ["Q"];
  switch (part) {
    case "query": case "key": case "value": case "mixed": return [t.names, names(slots)];
    case "score": case "weight": return [t.names, t.names];
    case "pre": case "post": return [t.names, names(hidden)];
    case "results": return [t.reads.map((i) => t.names[i]), results];
    case "q": case "k": case "v": return [names(slots), names(token)];
    case "o": return [names(token), names(slots)];
    case "w1": return [names(hidden), names(token)];
    case "w2": return [names(token), names(hidden)];
  }
  return [t.names, names(token)];
}

async function renderScope() {
  if (playing) return;
  if (scope.busy) { scope.again = true; return; }
  scope.busy = true;
  try {
    const mine = run, k = Math.min(pos.k, run.settings.T - 1), key = `${run.id}|${run.phases.length}|${k}|${view.call}`;
    if (scope.key !== key) {
      scope.trace = await engine.call("trace", k, view.call === "critic");
      if (run !== mine) return;
      scope.key = key; scope.cache.clear();
    }
    const t = scope.trace, part = view.part, [rowNames, colNames] = axes(part), square = part === "score" || part === "weight";
    view.follow = Math.min(view.follow, t.reads.length - 1);
    if ($("follow").children.length !== t.reads.length || $("follow").dataset.key !== view.call + t.names[t.reads[0]]) {
      $("follow").replaceChildren(...t.reads.map((i, n) => el("option", { value: n }, t.names[i])));
      $("follow").dataset.key = view.call + t.names[t.reads[0]];
    }
    $("follow").value = view.follow;
    for (const input of document.querySelectorAll("[name=call]")) input.checked = input.value === view.call;
    const buttons = (box, list, now, pick) => {
      if (box.dataset.list !== list.map((x) => x[0]).join()) {
        box.dataset.list = list.map((x) => x[0]).join();
        box.replaceChildren(...list.map(([id, name]) => el("button", { type: "button", "data-id": id, onclick: () => pick(id) }, name)));
      }
      for (const b of box.children) b.setAttribute("aria-pressed", String(b.dataset.id === now));
    };
    buttons($("stations"), STATIONS, view.station, (id) => lookAt(id));
    $("parts").hidden = partsOf(view.station).length < 2;
    buttons($("parts"), partsOf(view.station), part, (id) => lookAt(view.station, id));
    $("matrix-why").textContent = WHY[part] + (view.station === "1.1" ? " The paper counts two heads a block; this one has nothing left to do." : "");
    const marked = part === "results" ? view.follow : isWeight(part) ? -1 : t.reads[view.follow];
    const R = Math.min(rowNames.length, WINDOW), C = Math.min(colNames.length, WINDOW);
    scope.rowFirst = Math.max(0, Math.min(scope.rowFirst, rowNames.length - R));
    scope.colFirst = Math.max(0, Math.min(scope.colFirst, colNames.length - C));
    const m = square ? await fetchMatrix(matrixName(view.station, part), scope.rowFirst, scope.rowFirst + R) : await fetchMatrix(matrixName(view.station, part));
    if (run !== mine) return;
    const data = new Float64Array(R * C), skip = square ? 0 : scope.rowFirst;
    for (let i = 0; i < R; i++) data.set(m.data.subarray((i + skip) * m.cols + scope.colFirst, (i + skip) * m.cols + scope.colFirst + C), i * C);
    scope.now = { data, rows: R, cols: C, rowNames, colNames };
    scope.heat ||= new Heat($("matrix"), { label: "Matrix", hover: (i, j, speak) => act(() => describe(i, j, speak)), pick: (i, j) => pickCell(i) });
    if (scope.jump) { scope.heat.cursor = [Math.max(0, Math.min(R - 1, view.row - scope.rowFirst)), Math.max(0, Math.min(C - 1, view.col - scope.colFirst))]; scope.jump = false; }
    scope.heat.set({
      rows: R, cols: C, data, mark: marked, rowFirst: scope.rowFirst, colFirst: scope.colFirst, minCell: C > 40 ? 3 : 10, maxCell: C > 40 ? 14 : 34,
      rowGroups: groupNames(rowNames, !isWeight(part)), colGroups: groupNames(colNames, square), text: false,
      label: `${partsOf(view.station).find((p) => p[0] === part)[1]}, ${rowNames.length} by ${colNames.length}. Arrow keys move from cell to cell.`,
    });
    pager(rowNames.length, colNames.length, R, C);
    await describePath();
    if (scope.heat.cursor) await describe(...scope.heat.cursor, false);
  } catch (e) {
    $("matrix-why").textContent = e.message;
    $("cell").replaceChildren(el("p", { class: "why" }, "There is no matrix to look into.")); $("path").replaceChildren();
    scope.key = ""; scope.heat?.set({ rows: 1, cols: 1, data: new Float64Array(1) });
  } finally {
    scope.busy = false;
    if (scope.again) { scope.again = false; renderScope(); }
  }
}
function pager(rows, cols, R, C) {
  const box = $("pager");
  box.hidden = rows <= R && cols <= C;
  if (box.hidden) return;
  const step = (key, d) => () => { scope[key] += d; renderScope(); };
  const one = (key, n, size, what) => (n <= size ? [] : [el("button", { type: "button", onclick: step(key, -size), "aria-label": `Earlier ${what}` }, "‹"), el("span", {}, `${what} ${scope[key]}–${scope[key] + size - 1} of ${n}`), el("button", { type: "button", onclick: step(key, size), "aria-label": `Later ${what}` }, "›")]);
  box.replaceChildren(...one("rowFirst", rows, R, "rows"), ...one("colFirst", cols, C, "columns"));
}
function lookAt(station, part) {
  view.station = station;
  const list = partsOf(station);
  view.part = list.some((p) => p[0] === part) ? part : list.some((p) => p[0] === view.part) ? view.part : list[0][0];
  if (!part && list === HEAD_PARTS) view.part = "weight";
  // Long calls are looked at where their queries are.
  scope.rowFirst = 0; scope.colFirst = 0;
  if (scope.trace && !isWeight(view.part) && view.part !== "results") scope.rowFirst = Math.max(0, scope.trace.reads[view.follow] - WINDOW + 40);
  renderScope();
  remember();
}
function pickCell(i) {
  const n = scope.trace.reads.indexOf(scope.rowFirst + i);
  if (n >= 0 && !isWeight(view.part) && view.part !== "results") { view.follow = n; renderScope(); remember(); }
}

// rowOf returns one row of a matrix of the call.
async function rowOf(name, i) {
  if (/score|weight$/.test(name)) { const m = await fetchMatrix(name, i, i + 1); return m.data; }
  const m = await fetchMatrix(name);
  return m.data.subarray(i * m.cols, (i + 1) * m.cols);
}
const linksInto = (matrix, row) => run.info.legend.filter((l) => l.matrix === matrix && row >= l.to && row < l.to + l.toLen).map((l) => ({ ...l, col: l.fromLen === 1 ? l.from : l.from + row - l.to }));
// sumOf explains entry row of matrix·x by the links of the legend.
function sumOf(matrix, row, x, labels) {
  const list = linksInto(matrix, row);
  if (!list.length) return ["No weight leads here, so it is zero for every token."];
  return list.map((l) => `${l.symbol} × ${labels[l.col].label} ${show(x[l.col])}: ${l.why}`);
}
async function describe(i, j, speak) {
  const n = scope.now, part = view.part, station = view.station, [b, h] = station.split("."), { token, slots, hidden } = run.info;
  const row = i + scope.rowFirst, col = j + scope.colFirst, value = n.data[i * n.cols + j];
  view.row = row; view.col = col;
  const input = b === "1" || station === "end" ? "block.0.output" : "tokens", head = `block.${b}.head.${h}.`;
  let lines = [], meaning = "";
  const top = (list, k) => list.map((v, x) => [v, x]).sort((p, q) => Math.abs(q[0]) - Math.abs(p[0])).slice(0, k).filter(([v]) => v !== 0);
  switch (part) {
    case "tokens": meaning = token[col].note + "."; lines = ["Written into the context; no weight is involved."]; break;
    case "query": case "key": case "value":
      meaning = slots[col].note + "."; lines = sumOf(head + part[0], col, await rowOf(input, row), token); break;
    case "score": {
      if (col > row) { meaning = "Hidden by the causal mask: a token sees nothing later than itself."; break; }
      const [q, k] = [await rowOf(head + "query", row), await rowOf(head + "key", col)];
      meaning = "How well the key of the column answers the query of the row.";
      lines = slots.flatMap((s, x) => (q[x] * k[x] ? [`${s.label}: ${show(q[x])} × ${show(k[x])}`] : []));
      if (!lines.length) lines = ["No slot of query and key is non-zero in both."];
      break;
    }
    case "weight": {
      if (col > row) { meaning = "Hidden by the causal mask: a token sees nothing later than itself."; break; }
      const s = await rowOf(head + "score", row);
      meaning = `${show(100 * value, 3)} % of this token’s attention.`;
      lines = [`Score ${show(s[col])}; the row’s largest is ${show(Math.max(...s.subarray(0, row + 1)))}. The weight is e^score over the row’s sum.`]; break;
    }
    case "mixed": {
      const w = Array.from(await rowOf(head + "weight", row)), v = await fetchMatrix(head + "value");
      meaning = "The attention-weighted mean of the values in this slot.";
      lines = top(w.map((x, t) => x * v.data[t * v.cols + col]), 3).map(([x, t]) => `${show(x)} from ${scope.trace.names[t]}`); break;
    }
    case "written": meaning = token[col].note + "."; lines = sumOf(head + "o", col, await rowOf(head + "mixed", row), slots); break;
    case "attended": case "attended1": {
      const block = part === "attended" ? 0 : 1, x = await rowOf(block ? "block.0.output" : "tokens", row);
      meaning = token[col].note + ".";
      lines = [`came in as ${show(x[col])}`];
      for (const y of [0, 1]) { const v = (await rowOf(`block.${block}.head.${y}.written`, row))[col]; if (v) lines.push(`plus ${show(v)} from head ${y + 1}`); }
      break;
    }
    case "pre": meaning = hidden[col].note + "."; lines = sumOf("block.0.map.w1", col, await rowOf("block.0.attended", row), token); break;
    case "post": meaning = hidden[col].note + "."; lines = [`max(0, ${show((await rowOf("block.0.pre", row))[col])})`]; break;
    case "output": {
      meaning = token[col].note + ".";
      if (station === "end") { lines = ["What the read-out sees."]; break; }
      lines = [`came in as ${show((await rowOf("block.0.attended", row))[col])}`];
      if (linksInto("block.0.map.w2", col).length) lines.push(...sumOf("block.0.map.w2", col, await rowOf("block.0.post", row), hidden));
      break;
    }
    case "results": {
      const r = decoderRound(Math.min(pos.k, run.settings.T - 1));
      meaning = view.call === "actor" ? "Probability in the returned policy π̂." : "The new value Q of this pair.";
      lines = [view.call === "actor" ? (run.settings.phi ? "(1−φ) times the policy’s coordinate, plus φ/A." : "The policy’s coordinate of the last token.") : "The average coordinate of the last token.",
        `The streaming pass that runs the loop gave ${show((view.call === "actor" ? r.nextPi : r.nextQ)[row * n.cols + col], 8)}.`]; break;
    }
    default: {
      const l = linksInto(matrixName(station, part), row).find((x) => x.col === col);
      meaning = l ? l.why + "." : "Zero: nothing flows here.";
      if (l) lines = [`written as ${l.symbol}`];
    }
  }
  if (scope.now !== n) return;
  const where = `${n.rowNames[row]}, ${n.colNames[col]}`;
  $("cell").replaceChildren(el("p", {}, n.rowNames[row]), el("p", { class: "cap" }, (part === "score" || part === "weight" ? "towards " : "") + n.colNames[col]), el("b", {}, show(value, 6)), el("p", {}, meaning), el("ul", { class: "why" }, lines.map((l) => el("li", {}, l))));
  if (speak) $("live").textContent = `${where}: ${show(value, 5)}. ${meaning}`;
}
async function describePath() {
  const t = scope.trace, i = t.reads[view.follow], head = view.call === "actor" ? "block.0.head.0." : "block.1.head.0.", { slots, A } = run.info;
  const [q, w, mixed, out] = [await rowOf(head + "query", i), await rowOf(head + "weight", i), await rowOf(head + "mixed", i), await rowOf("results", view.follow)];
  const nonzero = (x) => slots.flatMap((s, n) => (x[n] ? [`${s.label} ${show(x[n])}`] : [])).join(", ");
  const best = Array.from(w.subarray(0, i + 1), (v, n) => [v, n]).sort((x, y) => y[0] - x[0]).slice(0, view.call === "actor" ? A : 4);
  const steps = [
    el("li", {}, el("b", {}, t.names[i]), " asks with ", nonzero(q), "."),
    el("li", {}, "It attends to ", best.map(([v, n], x) => `${x ? "; " : ""}${t.names[n]} ${show(100 * v, 3)} %`).join(""), "."),
  ];
  if (view.call === "critic") {
    const p = best[0][1], look = await rowOf("block.0.head.1.weight", p), post = await rowOf("block.0.post", p);
    let found = 0;
    look.forEach((v, n) => { if (v > look[found]) found = n; });
    steps.push(el("li", {}, `The first of these had looked up ${t.names[found]} with ${show(100 * look[found], 4)} % of its attention, and the ReLU map made its target ${show(post[0] - post[1])}.`));
  }
  steps.push(el("li", {}, `Mixed values: ${nonzero(mixed)}.`), el("li", {}, `Read out: ${Array.from(out, (v) => show(v)).join(", ")}.`));
  $("path").replaceChildren(el("ol", {}, steps));
}

/* ---------- the problem ---------- */
let rewards, transitions, edited = null;
function renderProblem() {
  const { S, A } = run.info, phase = phaseAt(pos.k), B = run.info.certificate.RMax;
  const note = (text, speak) => { $("cell-note").textContent = text; if (speak) $("live").textContent = text; };
  rewards ||= new Heat($("rewards"), { hover: (i, j, speak) => note(`r(s=${i}, a=${j}) = ${show(rewards.data[i * rewards.cols + j], 6)}`, speak), pick: (i, j) => openEditor({ transition: false, s: i, a: j, t: 0 }) });
  transitions ||= new Heat($("transitions"), {
    hover: (i, j, speak) => note(`P(s′=${j} | s=${Math.floor(i / run.info.A)}, a=${i % run.info.A}) = ${show(transitions.data[i * transitions.cols + j], 6)}`, speak),
    pick: (i, j) => openEditor({ transition: true, s: Math.floor(i / run.info.A), a: i % run.info.A, t: j }),
  });
  rewards.set({ rows: S, cols: A, data: phase.r, scale: B, heads: [(i) => i, (j) => j], maxCell: 34, label: `Rewards, ${S} states by ${A} actions. Enter changes a cell.` });
  transitions.set({ rows: S * A, cols: S, data: phase.p, scale: 1, heads: [(i) => (i % A ? "" : i / A), (j) => j], maxCell: 34, label: `Transition probabilities, ${S * A} pairs by ${S} successors. Enter changes a cell.` });
}
function openEditor(e) {
  edited = e;
  const phase = phaseAt(pos.k), { S, A } = run.info;
  $("editor-name").textContent = e.transition ? `P(s′=${e.t} | s=${e.s}, a=${e.a})` : `r(s=${e.s}, a=${e.a})`;
  $("editor-value").value = e.transition ? phase.p[(e.s * A + e.a) * S + e.t] : phase.r[e.s * A + e.a];
  $("editor-why").textContent = (e.transition ? "The row’s other probabilities are rescaled to the rest." : `The decoder was built for |r| ≤ ${show(run.info.certificate.RMax)}.`) + (run.phases[0].r.length && pos.k ? ` The change takes effect from round ${pos.k}; later rounds are run anew.` : "");
  $("editor").hidden = false;
  $("editor-value").focus();
  $("editor-value").select();
}
async function applyEdit(event) {
  event.preventDefault();
  const text = $("editor-value").value, value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new Error("The new value must be a number; nothing was changed.");
  const was = playing, e = { ...edited, value, k: pos.k };
  playing = 0;
  let phase;
  try { phase = await engine.call("edit", e.k, e); } finally { if (was) setTimeout(play); }
  run.edits = run.edits.filter((x) => x.k <= e.k);
  run.edits.push(e);
  takePhase(phase);
  $("editor").hidden = true;
  (e.transition ? $("transitions") : $("rewards")).focus({ preventScroll: true });
  await go(pos.k, 0);
  remember();
}

function buildSettings() {
  const form = $("settings"), more = el("div"), box = el("details", { class: "more" }, el("summary", {}, "Margins, mixture, carrier"), more);
  for (const [key, f] of Object.entries(SETTINGS)) {
    const id = "set-" + key;
    let input;
    if (f.choices) input = el("select", { id }, Object.entries(f.choices).map(([v, n]) => el("option", { value: v, hidden: v === "file" }, n)));
    else if (f.flag) input = el("input", { id, type: "checkbox" });
    else input = el("input", { id, type: "number", min: f.auto ? 0 : f.min, max: f.max, step: f.whole ? 1 : "any", placeholder: f.auto ? "by ε_r" : "", inputmode: "decimal" });
    input.addEventListener("change", () => act(() => settingsChanged(key)));
    const label = f.flag ? el("label", { class: "check full" }, input, f.name) : el("label", { class: f.full ? "full" : "" }, f.name, input);
    (f.more ? more : form).append(label);
  }
  more.append(el("p", { class: "why" }, "Without entries, κ, τ₁ and τ₂ follow from ε_r. Smaller margins leak more attention; the bounds say how much. H is the scale of the normalized compilation, which needs φ above 0 to have a floor under its policies."));
  form.append(box);
  form.addEventListener("submit", (e) => e.preventDefault());
}
function fillSettings() {
  for (const [key, f] of Object.entries(SETTINGS)) {
    const input = $("set-" + key), v = run.settings[key];
    input.removeAttribute("aria-invalid");
    if (f.flag) input.checked = v;
    else input.value = f.auto && v === 0 ? "" : v;
  }
  const fixed = !["random", "sparse-transitions", "sparse-rewards", "ring", "strong-mixing"].includes(run.settings.preset);
  for (const key of ["S", "A"]) { $("set-" + key).disabled = fixed; if (fixed) $("set-" + key).value = run.info[key]; }
  $("set-gamma").disabled = run.settings.preset === "file";
  if (run.settings.preset === "file") $("set-gamma").value = run.info.gamma;
  $("set-preset").querySelector("[value=file]").hidden = !run.file;
  const c = run.info.certificate, rows = [
    ["κ, actor’s margin", c.kappa, "2ηB + log(2S/r_ε): other states keep a share below ε_r."], ["ν, memories over queries", c.nu], ["τ₁, lookup margin", c.tau1], ["τ₂, predecessor margin", c.tau2],
    ["B = R_max/(1−γ)", c.B, "No value exceeds it."], ["ζ at most", c.zeta, "2R/(1+R) with the leaked mass R of the actor" + (run.settings.phi ? ", plus the mixture." : ".")],
    ["δ from routing at most", c.deltaRoute, "2B(γλ₁ + λ₂) with the masses leaked by the two critic heads."], [`δ from sampling at most`, c.deltaStat, `With probability ${1 - c.alpha} in all ${run.settings.T} rounds together.`],
    ["width of a token", run.info.width, "6S + 6A + 14 named coordinates."], ["head dimension", run.info.headDim, "S + A + 3."],
  ];
  $("certificate").replaceChildren(...rows.flatMap(([n, v, why]) => [el("dt", {}, n), el("dd", {}, show(v, 5)), ...(why ? [el("dd", { class: "why" }, why)] : [])]));
}
async function settingsChanged(key) {
  const input = $("set-" + key), next = { ...run.settings };
  try {
    next[key] = check(key, SETTINGS[key].flag ? input.checked : input.value);
    if (key === "preset" && next.preset !== "file") { const d = SETTINGS; if (run.settings.preset === "file" || run.settings.preset === "frozen-lake" || run.settings.preset === "lock-up") { next.S = d.S.start; next.A = d.A.start; } }
    if (key === "preset" && next.preset === "file" && !run.file) throw new Error("Load an MDP first.");
    const kept = ["preset", "S", "A", "seed", "gamma"].includes(key) ? [] : run.edits.map((e) => ({ ...e, k: 0 }));
    await restart(next, run.file, kept);
    if (key === "preset" && next.preset === "lock-up") { shown.add("idle"); await go(0, 0); }
  } catch (e) {
    input.setAttribute("aria-invalid", "true");
    message(e.message);
    setTimeout(() => { if (run) fillSettings(); }, 2500);
  }
}
async function restart(settings, file, edits = [], k = 0) {
  await begin(settings, file, edits);
  if (shown.has("learned") && !learned.label) shown.delete("learned");
  fillSettings();
  $("editor").hidden = true;
  await go(k, 0);
  remember();
}

/* ---------- files ---------- */
const MAX_FILE = 4e6;
async function loadFile(input) {
  const file = input.files[0];
  input.value = "";
  if (!file) return;
  if (file.size > MAX_FILE) throw new Error(`${file.name} has ${Math.round(file.size / 1e6)} MB; a problem of 16 states and 16 actions has less than ${MAX_FILE / 1e6}. Nothing was changed.`);
  let x;
  try { x = JSON.parse(await file.text()); } catch (e) { throw new Error(`${file.name} is not JSON: ${e.message.slice(0, 80)}. Nothing was changed.`); }
  const problem = readProblem(x);
  await restart({ ...run.settings, preset: "file", S: problem.states, A: problem.actions }, problem).catch((e) => { throw new Error(`${e.message}. Nothing was changed.`); });
}
// readProblem turns the project's JSON of an MDP into tables; the library checks them.
function readProblem(x) {
  const bad = (why) => new Error(`This is not the JSON of an MDP: ${why}. Nothing was changed.`);
  if (!x || typeof x !== "object" || Array.isArray(x)) throw bad("want an object with gamma, P and r");
  for (const key of Object.keys(x)) if (!["gamma", "P", "r", "pi0"].includes(key)) throw bad(`there is an unknown field “${key.slice(0, 40)}”`);
  if (typeof x.gamma !== "number") throw bad("gamma is missing or not a number");
  const states = Array.isArray(x.r) ? x.r.length : 0, actions = states && Array.isArray(x.r[0]) ? x.r[0].length : 0;
  if (states < 1 || actions < 2 || states > 16 || actions > 16) throw bad(`r is ${states} by ${actions}, the page takes 1 to 16 states and 2 to 16 actions`);
  const table = (name, rows, n, m) => {
    if (!Array.isArray(rows) || rows.length !== n) throw bad(`${name} has ${rows?.length ?? "no"} rows, want ${n}`);
    return rows.flatMap((row) => {
      if (!Array.isArray(row) || row.length !== m || row.some((v) => typeof v !== "number")) throw bad(`a row of ${name} is not ${m} numbers`);
      return row;
    });
  };
  const r = table("r", x.r, states, actions);
  if (!Array.isArray(x.P) || x.P.length !== states) throw bad(`P has not ${states} states`);
  const p = x.P.flatMap((rows, s) => table(`P[${s}]`, rows, actions, states));
  const pi0 = x.pi0 === undefined || x.pi0 === null ? Array(states * actions).fill(1 / actions) : table("pi0", x.pi0, states, actions);
  return { states, actions, gamma: x.gamma, p: Float64Array.from(p), r: Float64Array.from(r), pi0: Float64Array.from(pi0) };
}
const rowsOf = (x, m) => Array.from({ length: x.length / m }, (_, i) => Array.from(x.subarray(i * m, (i + 1) * m)));
function problemJSON() {
  const { S, A, gamma } = run.info, phase = phaseAt(pos.k), rows = rowsOf(phase.p, S);
  return JSON.stringify({ gamma, P: Array.from({ length: S }, (_, s) => rows.slice(s * A, (s + 1) * A)), r: rowsOf(phase.r, A), pi0: rowsOf(phase.pi0, A) }) + "\n";
}
function download(name, blob) {
  const a = el("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
const SCALARS = ["zeta", "zetaBound", "delta", "deltaBound", "route", "routeBound", "sampling", "defect", "loss", "bound", "initial", "critic", "greedy", "last"];
function trajectoryCSV() {
  const lines = [["controller", "round", ...SCALARS].join(",")];
  for (const name of shown) (run.rounds[name] || []).forEach((r, k) => lines.push([name, k, ...SCALARS.map((s) => r[s])].join(",")));
  return lines.join("\n") + "\n";
}
function trajectoryJSON() {
  const { A } = run.info, controllers = {};
  for (const name of shown) controllers[name] = (run.rounds[name] || []).map((r, k) => ({ round: k, ...Object.fromEntries(SCALARS.map((s) => [s, r[s]])), pi: rowsOf(r.pi, A), q: rowsOf(r.q, A), next_pi: rowsOf(r.nextPi, A), next_q: rowsOf(r.nextQ, A) }));
  return JSON.stringify({ settings: run.settings, edits: run.edits, states: run.info.S, actions: A, gamma: run.info.gamma, certificate: run.info.certificate, problem: JSON.parse(problemJSON()), e0: run.phases[0].e0, gap: run.phases[0].gap, controllers });
}
// picture puts both charts, π and Q on one white sheet.
function picture() {
  const colors = { card: "#ffffff", ink: "#1d2226", soft: "#565f66", line: "#ddd9d0", accent: "#1f5a8c", warm: "#b4531a", green: "#2f6f4f", violet: "#6d4a8f", grey: "#6d6a64", wash: "#f1eee7" };
  const { S, A } = run.info, T = run.settings.T, W = 1160, H = 664;
  const svg = el("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, "font-family": "system-ui, DejaVu Sans, sans-serif", "font-size": 13 }, el("rect", { width: W, height: H, fill: colors.card }));
  const r = decoderRound(Math.max(0, Math.min(pos.k, T) - 1));
  svg.append(el("text", { x: 30, y: 40, "font-size": 20, fill: colors.ink }, `PolicyAttention: ${PRESETS[run.settings.preset]}, S = ${S}, A = ${A}, after ${pos.k} of ${T} rounds`),
    el("text", { x: 30, y: 64, fill: colors.soft }, `seed ${run.settings.seed}, γ = ${run.info.gamma}, η = ${run.settings.eta}, m = ${run.settings.m}, φ = ${run.settings.phi}; loss ${show(r.loss)}, bound ${show(r.bound)}; ζ ${show(r.zeta)}, δ ${show(r.delta)}`));
  const place = (chartSvg, x, title, series) => {
    for (const [a, v] of [["x", x], ["y", 110], ["width", 540], ["height", 312]]) chartSvg.setAttribute(a, v);
    svg.append(el("text", { x: x + 10, y: 100, fill: colors.ink }, title), chartSvg);
    series.forEach((s, i) => svg.append(el("line", { x1: x + 20 + (i % 3) * 175, x2: x + 48 + (i % 3) * 175, y1: 440 + Math.floor(i / 3) * 20, y2: 440 + Math.floor(i / 3) * 20, stroke: colors[s.color], "stroke-width": 2, "stroke-dasharray": s.dash }), el("text", { x: x + 54 + (i % 3) * 175, y: 444 + Math.floor(i / 3) * 20, fill: colors.soft, "font-size": 11 }, s.name)));
  };
  const loss = lossSeries(), residual = residualSeries();
  place(chart({ series: loss, T, floor: 1e-12, label: "loss", colors, size: [520, 300] }), 20, "Loss of the returned policy", loss);
  place(chart({ series: residual, T, floor: 1e-18, label: "residuals", colors, size: [520, 300] }), 590, "Residuals of the decoder and their bounds", residual);
  const table = (data, x, name, scale) => {
    svg.append(el("text", { x, y: 502, fill: colors.ink }, name));
    const c = Math.min(24, 120 / S, 500 / A), wide = Math.min(24, 500 / A);
    for (let s = 0; s < S; s++) for (let a = 0; a < A; a++) {
      const v = data[s * A + a], rgb = mix(colors.card, v < 0 ? colors.warm : colors.accent, Math.sqrt(Math.min(1, Math.abs(v) / scale)));
      svg.append(el("rect", { x: x + a * wide, y: 512 + s * c, width: wide - 0.5, height: c - 0.5, fill: `rgb(${rgb})`, stroke: colors.line, "stroke-width": 0.5 }));
    }
  };
  table(r.nextPi, 30, "Returned policy π̂", 1);
  table(r.nextQ, 600, "Values Q", Math.max(...Array.from(r.nextQ, Math.abs)) || 1);
  return new XMLSerializer().serializeToString(svg);
}
async function exportAs(kind) {
  $("export").open = false;
  const base = `policyattention-${run.settings.preset}-seed${run.settings.seed}`;
  if (kind === "csv") download(base + ".csv", new Blob([trajectoryCSV()], { type: "text/csv" }));
  if (kind === "json") download(base + ".json", new Blob([trajectoryJSON()], { type: "application/json" }));
  if (kind === "svg") download(base + ".svg", new Blob([picture()], { type: "image/svg+xml" }));
  if (kind === "png") {
    const url = URL.createObjectURL(new Blob([picture()], { type: "image/svg+xml" })), image = new Image();
    image.src = url;
    await image.decode();
    const canvas = el("canvas", { width: 2320, height: 1328 });
    canvas.getContext("2d").drawImage(image, 0, 0, 2320, 1328);
    URL.revokeObjectURL(url);
    download(base + ".png", await new Promise((r) => canvas.toBlob(r, "image/png")));
  }
}

/* ---------- the address ---------- */
const b64 = {
  write: (x) => { let s = ""; for (const byte of new Uint8Array(x.buffer)) s += String.fromCharCode(byte); return btoa(s).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, ""); },
  read: (t) => { const s = atob(t.replace(/-/g, "+").replace(/_/g, "/")), bytes = Uint8Array.from(s, (c) => c.charCodeAt(0)); if (bytes.length % 8) throw new Error(); return new Float64Array(bytes.buffer); },
};
function address() {
  const p = new URLSearchParams(), d = defaults();
  for (const key of Object.keys(SETTINGS)) if (run.settings[key] !== d[key]) p.set(key, run.settings[key] === true ? "1" : run.settings[key]);
  if (run.settings.preset === "file") { const f = run.file; p.set("mdp", b64.write(Float64Array.from([f.gamma, ...f.p, ...f.r, ...f.pi0]))); }
  if (run.edits.length) p.set("edits", run.edits.map((e) => [e.k, e.transition ? "p" : "r", e.s, e.a, ...(e.transition ? [e.t] : []), e.value].join(":")).join("~"));
  if (pos.k) p.set("k", pos.k);
  if (pos.stage) p.set("stage", pos.stage);
  const also = [...shown].filter((n) => n !== "decoder").sort().join(".");
  if (also !== "exact") p.set("show", also);
  if (view.call !== "actor" || view.station !== "tokens") p.set("view", [view.call, view.station, view.part, view.follow].join("/"));
  return "#" + p.toString();
}
let remembered = 0;
function remember() {
  clearTimeout(remembered);
  remembered = setTimeout(() => { if (run && !playing) history.replaceState(null, "", address()); }, 250);
}
// readAddress returns the state in a hash or throws what is wrong with it.
function readAddress(hash) {
  if (hash.length > 2e5) throw new Error("The link is too long.");
  const p = new URLSearchParams(hash.replace(/^#/, "")), settings = defaults(), state = { settings, file: null, edits: [], k: 0, stage: 0, shown: ["decoder", "exact"], view: null };
  const known = new Set([...Object.keys(SETTINGS), "mdp", "edits", "k", "stage", "show", "view"]);
  for (const key of p.keys()) if (!known.has(key)) throw new Error(`The link has an unknown entry “${key.slice(0, 40)}”.`);
  for (const key of Object.keys(SETTINGS)) if (p.has(key)) settings[key] = check(key, p.get(key));
  const whole = (text, name, max) => { const v = /^\d{1,6}$/.test(text) ? Number(text) : NaN; if (!(v <= max)) throw new Error(`The link’s ${name} is “${text.slice(0, 40)}”.`); return v; };
  if (settings.preset === "file") {
    let x;
    try { x = b64.read(p.get("mdp") || ""); } catch { throw new Error("The link’s MDP cannot be read."); }
    const { S, A } = settings;
    if (x.length !== 1 + S * A * (S + 2)) {
      const s1 = 1, fits = x.length === 1 + s1 * A * (s1 + 2);
      throw new Error(fits ? "The link’s MDP has one state; load it from its file." : "The link’s MDP has another size than S and A say.");
    }
    state.file = { states: S, actions: A, gamma: x[0], p: x.slice(1, 1 + S * A * S), r: x.slice(1 + S * A * S, 1 + S * A * (S + 1)), pi0: x.slice(1 + S * A * (S + 1)) };
  }
  if (p.has("edits")) {
    const list = p.get("edits").split("~");
    if (list.length > 500) throw new Error("The link has more than 500 edits.");
    state.edits = list.map((text) => {
      const [k, kind, ...rest] = text.split(":"), transition = kind === "p";
      if ((kind !== "r" && kind !== "p") || rest.length !== (transition ? 4 : 3) || rest.at(-1).trim() === "" || !Number.isFinite(Number(rest.at(-1)))) throw new Error(`The link’s edit “${text.slice(0, 40)}” cannot be read.`);
      return { k: whole(k, "edit’s round", settings.T), transition, s: whole(rest[0], "edit’s state", 15), a: whole(rest[1], "edit’s action", 15), t: transition ? whole(rest[2], "edit’s successor", 15) : 0, value: Number(rest.at(-1)) };
    });
  }
  if (p.has("k")) state.k = whole(p.get("k"), "round", settings.T);
  if (p.has("stage")) state.stage = whole(p.get("stage"), "stage", 3);
  if (p.has("show")) {
    state.shown = ["decoder", ...p.get("show").split(".").filter((n) => n)];
    for (const n of state.shown) if (!Object.hasOwn(CONTROLLERS, n)) throw new Error(`The link names a controller “${n.slice(0, 40)}”.`);
  }
  if (p.has("view")) {
    const [call, station, part, follow] = p.get("view").split("/");
    if (!["actor", "critic"].includes(call) || !STATIONS.some((s) => s[0] === station) || !partsOf(station).some((x) => x[0] === part)) throw new Error("The link names a matrix that is not there.");
    state.view = { call, station, part, follow: whole(follow || "0", "query", 255) };
  }
  return state;
}
async function open(state) {
  await begin(state.settings, state.file, state.edits);
  shown = new Set(state.shown.filter((n) => n !== "learned"));
  if (state.view) Object.assign(view, state.view);
  fillSettings();
  await go(Math.min(state.k, state.settings.T), state.stage);
  if (state.shown.includes("learned")) await act(() => toggle("learned"));
}
async function openAddress() {
  try { await open(readAddress(location.hash)); return true; } catch (e) {
    message(`${e.message.replace(/[.]?$/, ".")} ${run ? "Nothing was changed." : "The page shows its usual start instead."}`);
    return false;
  }
}

/* ---------- drawing and events ---------- */
let frame = 0, charted = 0;
function render() {
  if (!frame) frame = requestAnimationFrame(() => {
    frame = 0;
    if (!run || !decoderRound(0)) return;
    renderChain(); renderReadings();
    const now = performance.now();
    if (!playing || now - charted > 120) { // charts take the longest to draw
      charted = now;
      renderCharts(); renderControllers();
    }
    if (!playing) { renderProblem(); renderScope(); remember(); }
    $("figures").textContent = `${run.rounds.decoder.length} rounds took ${show(engine.compute / 1000, 3)} s of compute in a worker. Everything is computed on this machine.`;
  });
}
// act runs a handler and shows what went wrong.
async function act(f) { try { return await f(); } catch (e) { message(e.message); } }

async function boot() {
  const began = performance.now();
  learned.builtIn = JSON.parse($("learned").textContent);
  buildChain();
  buildSettings();
  try { await engine.start(); } catch (e) { message("The page could not start: " + e.message + "."); return; }
  const on = (id, event, f) => $(id).addEventListener(event, (e) => act(() => f(e)));
  on("play", "click", play);
  on("first", "click", () => { stop(); return go(0, 0); });
  on("back", "click", () => { stop(); return go(pos.k, pos.stage - 1); });
  on("forth", "click", () => { stop(); return go(pos.k, pos.stage + 1); });
  on("round-on", "click", () => { stop(); return go(pos.k + 1, 0); });
  on("scrub", "input", () => { stop(); return go(Number($("scrub").value), 0); });
  on("share", "click", async () => {
    history.replaceState(null, "", address());
    try { await navigator.clipboard.writeText(location.href); message("The link is copied; it holds the whole state, seed and edits included."); } catch { message("The address bar holds the whole state now; copy it from there."); }
  });
  for (const b of document.querySelectorAll("[data-export]")) b.addEventListener("click", () => act(() => exportAs(b.dataset.export)));
  on("load", "change", (e) => loadFile(e.target));
  on("save", "click", () => download("mdp.json", new Blob([problemJSON()], { type: "application/json" })));
  on("editor", "submit", applyEdit);
  on("editor-cancel", "click", () => { $("editor").hidden = true; });
  for (const input of document.querySelectorAll("[name=call]")) input.addEventListener("change", () => {
    view.call = input.value; view.follow = 0; scope.jump = false;
    if (scope.heat) scope.heat.cursor = null;
    lookAt(view.call === "actor" ? "0.0" : "1.0", "weight");
  });
  on("follow", "change", () => { view.follow = Number($("follow").value); lookAt(view.station, view.part); });
  document.addEventListener("keydown", (e) => {
    if (e.target.closest("input, select, button, summary, canvas, .scroll") || e.ctrlKey || e.metaKey || e.altKey) return;
    const key = { " ": "play", ArrowRight: "forth", ArrowLeft: "back", ArrowDown: "round-on", Home: "first" }[e.key];
    if (key) { e.preventDefault(); $(key).click(); }
  });
  addEventListener("hashchange", () => act(openAddress));
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(render, 120); });
  if (!(await openAddress())) await open({ settings: defaults(), file: null, edits: [], k: 0, stage: 0, shown: ["decoder", "exact"], view: null });
  await new Promise(requestAnimationFrame); // the first picture is drawn
  document.body.dataset.ready = String(Math.round(performance.now()));
  document.body.dataset.boot = String(Math.round(performance.now() - began));
}
