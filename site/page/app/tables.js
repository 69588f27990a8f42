// One round in numbers, as the chain of context, actor, environment and critic.

import { $, act, atMost, el, show, sub } from "./base.js";
import { STAGES, app, current, decoderRound, ended, go } from "./state.js";
import { Heat } from "./heat.js";
import { inspect } from "./microscope.js";

const cards = {};
const pairs = () => app.run.info.A;
// column finds a coordinate of a token by its label.
const column = (label) =>
  Math.max(
    0,
    app.run.info.token.findIndex((t) => t.label === label),
  );
// whence looks at the critic call that made Q, or at the memory that holds the first.
async function whence(s, a) {
  const { pos } = app,
    pair = s * pairs() + a;
  if (pos.k === 0) return inspect("critic", "tokens", "tokens", pair, column("value"), pair);
  if (!ended()) await go(pos.k - 1, 3);
  return inspect("critic", "1.0", "weight", pair, firstPacket(pair));
}
// firstPacket is the token of the first packet from a pair.
export function firstPacket(pair) {
  const { packets } = decoderRound(current()),
    { S, A } = app.run.info;
  for (let i = 0; i < packets.length; i += 6)
    if (packets[i] * A + packets[i + 1] === pair) return S * A + i / 6;
  return 0;
}
// What a cell of each table is, and where the microscope shows how it came about.
const TABLES = {
  pi: {
    cell: (s, a) => `π(a=${a} | s=${s})`,
    look: (s, a) => inspect("actor", "tokens", "tokens", s, column("log policy"), s * pairs() + a),
  },
  q: { cell: (s, a) => `Q(s=${s}, a=${a})`, look: whence },
  nextPi: {
    cell: (s, a) => `π̂(a=${a} | s=${s})`,
    look: (s, a) => inspect("actor", "0.0", "weight", s, s * pairs() + a),
  },
  counts: {
    cell: (row, t) =>
      `share of s′=${t} among the packets of s=${Math.floor(row / pairs())}, a=${row % pairs()}`,
    look: (row) => inspect("critic", "1.0", "weight", row, firstPacket(row)),
  },
  nextQ: {
    cell: (s, a) => `Q of the next round at s=${s}, a=${a}`,
    look: (s, a) => inspect("critic", "1.0", "weight", s * pairs() + a, firstPacket(s * pairs() + a)),
  },
};
const HINT = "Point at a cell to read it, pick it to see how it came about.";
function note(text) {
  $("chain-note").textContent = text || HINT;
}
function heat(name, caption) {
  const canvas = el("canvas");
  cards[name] = new Heat(canvas, {
    label: caption,
    hover: (i, j, speak) => {
      const text = `${TABLES[name].cell(i, j)} is ${show(cards[name].data[i * cards[name].cols + j])}.`;
      note(text);
      if (speak) $("live").textContent = text;
    },
    pick: (i, j) => act(() => TABLES[name].look(i, j)),
  });
  return el("div", {}, el("p", { class: "cap" }, caption), el("div", {}, canvas));
}
export function buildTables() {
  note();
  const body = [
    [el("div", { class: "two" }, heat("pi", "π, the policy"), heat("q", "Q, the values"))],
    [heat("nextPi", "π̂, the returned policy"), el("p", { class: "cap num", id: "card-actor" })],
    [heat("counts", "where packets led"), el("p", { class: "cap num", id: "card-env" })],
    [
      heat("nextQ", "Q of the next round"),
      el("p", { class: "cap num", id: "card-critic" }),
      el("p", { class: "cap" }, "With π̂ it is the next round’s context."),
    ],
  ];
  STAGES.forEach((s, i) => {
    const open = () => act(() => go(Math.min(app.pos.k, app.run.settings.T - 1), i));
    $("stages").append(
      el(
        "div",
        { class: "stagecard", id: "stage-" + i },
        el("button", { type: "button", onclick: open }, s.name),
        el("div", { class: "body" }, ...body[i]),
      ),
    );
  });
}

// advantage returns Q − Σπ Q, which tells actions apart where values alone are alike.
function advantage(q, pi, S, A) {
  const out = new Float64Array(S * A);
  for (let s = 0; s < S; s++) {
    let mean = 0;
    for (let a = 0; a < A; a++) mean += pi[s * A + a] * q[s * A + a];
    for (let a = 0; a < A; a++) out[s * A + a] = q[s * A + a] - mean;
  }
  return out;
}
// successors returns the shares [S·A, S] of packets by where they led.
function successors(r, S, A) {
  const counts = new Float64Array(S * A * S),
    sums = new Float64Array(S * A);
  for (let i = 0; i < r.packets.length; i += 6) {
    const pair = r.packets[i] * A + r.packets[i + 1],
      weight = Math.exp(r.packets[i + 5]);
    counts[pair * S + r.packets[i + 2]] += weight;
    sums[pair] += weight;
  }
  return counts.map((n, i) => n / (sums[Math.floor(i / S)] || 1));
}
const number = (i) => String(i);
export function renderTables() {
  const { S, A } = app.run.info,
    r = decoderRound(current()),
    end = ended(),
    pi = end ? r.nextPi : r.pi,
    q = end ? r.nextQ : r.q;
  const size = { rows: S, cols: A, heads: [number, number], titles: ["s", "a"] },
    words = (what) => `${what}, ${S} states by ${A} actions`;
  cards.pi.set({ ...size, data: pi, scale: 1, maxCell: 38, text: true, label: words("Policy π") });
  cards.q.set({
    ...size,
    data: q,
    colour: advantage(q, pi, S, A),
    maxCell: 38,
    text: true,
    label: words("Values Q"),
  });
  cards.nextPi.set({
    ...size,
    data: r.nextPi,
    scale: 1,
    maxCell: 44,
    text: true,
    label: words("Returned policy"),
  });
  cards.nextQ.set({
    ...size,
    data: r.nextQ,
    colour: advantage(r.nextQ, r.nextPi, S, A),
    maxCell: 44,
    text: true,
    label: words("Next values Q"),
  });
  cards.counts.set({
    rows: S * A,
    cols: S,
    data: successors(r, S, A),
    scale: 1,
    maxCell: 34,
    maxHeight: 15 * S * A,
    heads: [(i) => (i % A ? "" : String(i / A)), number],
    titles: ["s", "s′"],
    label: `Successors drawn from each of ${S * A} pairs`,
  });
  renderWords(r);
  $("chain-title").textContent = end ? `After ${app.run.settings.T} rounds` : `Round ${app.pos.k} in numbers`;
  $("stage-why").textContent = end
    ? `The returned policy π̂${sub(app.run.settings.T)} is final: the last critic call could change no policy, so the bound does not charge it.`
    : STAGES[app.pos.stage].why;
}
function renderWords(r) {
  const { m } = app.run.info.certificate;
  $("card-actor").textContent = `ζ = ${show(r.zeta, 3)}, at most ${atMost(r.zetaBound, 3)}`;
  $("card-env").textContent = app.run.settings.expected
    ? `${r.packets.length / 6} packets with exact weights`
    : `${r.packets.length / 6} packets, m = ${m} a pair`;
  $("card-critic").textContent = `δ = ${show(r.delta, 3)}, at most ${atMost(r.deltaBound, 3)}`;
  STAGES.forEach((s, i) => {
    $("stage-" + i).classList.toggle("now", i === app.pos.stage && !ended());
    $("stage-" + i).firstChild.setAttribute("aria-current", i === app.pos.stage ? "step" : "false");
  });
}
