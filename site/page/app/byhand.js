// One step by hand: the columns of the update open one by one, the visitor's own row is compared with
// the network's, and below it one packet becomes a target and the packets their mean.

import { $, act, el, plural, show } from "./base.js";
import { app, current, decoderRound, render } from "./state.js";
import { actionName, stateName } from "./selection.js";
import { term } from "./glossary.js";
import { fixed, share } from "./attention.js";
import { packetsOf } from "./critic.js";

const hand = { on: false, key: "", open: 0, own: [] };
export const byHand = () => hand.on;
const keyOf = () => [app.run.id, app.run.edits.length, current(), app.view.state].join();

// columnsOf returns the steps from habit and value to the new row, for state s.
export function columnsOf(pi, q, eta) {
  const logs = Array.from(pi, Math.log),
    gains = Array.from(q, (v) => eta * v),
    scores = logs.map((v, a) => v + gains[a]),
    top = Math.max(...scores),
    exps = scores.map((v) => Math.exp(v - top)),
    Z = exps.reduce((x, y) => x + y, 0);
  return { logs, gains, scores, top, exps, Z, row: exps.map((v) => v / Z) };
}
/** @type {[() => any, string][]} */
const HEADS = [
  [() => term("logpi", "log π"), "habit"],
  [() => ["+ ", term("eta", "η"), term("q", "Q")], "what pays"],
  [() => "= score", "of the memory"],
  [() => "e^(score − max)", "always positive"],
  [() => "÷ Z", "their sum"],
  [() => ["= ", term("pihat", "π̂")], "the network’s"],
];
// distance says how far the visitor's row is, once it is a row.
function judged(own, row) {
  if (own.length < row.length || own.some((v) => !Number.isFinite(v))) return "";
  const sum = own.reduce((x, y) => x + y, 0),
    off = own.reduce((x, v, a) => x + Math.abs(v / 100 - row[a]), 0);
  if (Math.abs(sum - 100) > 2) return `Your row adds up to ${show(sum, 3)} %, a policy to 100 %.`;
  return off < 0.02
    ? `Right: off by ${show(off, 2)} in L₁.`
    : off < 0.2
      ? `Close: off by ${show(off, 2)} in L₁.`
      : `Off by ${show(off, 2)} in L₁. Open another column and try again.`;
}
export function drawByHand() {
  const s = app.view.state,
    { A } = app.run.info,
    { eta } = app.run.settings,
    r = decoderRound(current()),
    slice = (x) => x.subarray(s * A, s * A + A),
    c = columnsOf(slice(r.pi), slice(r.q), eta),
    made = slice(r.nextPi);
  if (hand.key !== keyOf()) Object.assign(hand, { key: keyOf(), open: 0, own: [] });
  const cells = (a) => [
    [fixed(c.logs[a]), `log ${show(r.pi[s * A + a])}`],
    [fixed(c.gains[a]), `${show(eta)} × ${show(r.q[s * A + a])}`],
    [fixed(c.scores[a]), `${fixed(c.logs[a])} + ${fixed(c.gains[a])}`],
    [show(c.exps[a], 3), `exp(${fixed(c.scores[a])} − ${fixed(c.top)})`],
    [`÷ ${show(c.Z, 4)}`, `${show(c.exps[a], 3)} over the sum of all of them`],
    [share(made[a]), show(made[a], 10)],
  ];
  const told = el("p", { id: "hand-told", "aria-live": "polite" }, judged(hand.own, made));
  const guess = (a) =>
    el("input", {
      type: "number",
      min: 0,
      max: 100,
      step: "any",
      value: hand.own[a] ?? null,
      "aria-label": `Your probability of ${actionName(a)}, in percent`,
      oninput: (e) => {
        hand.own[a] = e.target.value === "" ? NaN : Number(e.target.value);
        told.textContent = judged(hand.own, made);
      },
    });
  const line = (a) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, actionName(a)),
      cells(a).map(([text, why], i) =>
        el("td", { title: i < hand.open ? why : "not open yet", class: i === hand.open - 1 ? "fresh-cell" : "" }, i < hand.open ? text : "?"),
      ),
      el("td", {}, guess(a)),
    );
  $("step-table").replaceChildren(
    el(
      "table",
      { class: "attend hand" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, stateName(s)),
          HEADS.map(([name, why]) => el("th", { scope: "col" }, name(), el("small", {}, why))),
          el("th", { scope: "col" }, "yours, %", el("small", {}, "type it first")),
        ),
      ),
      el("tbody", {}, Array.from({ length: A }, (_, a) => line(a))),
    ),
    el(
      "p",
      { class: "row" },
      el(
        "button",
        {
          type: "button",
          id: "hand-next",
          class: "primary",
          disabled: hand.open >= HEADS.length,
          onclick: () => act(() => (hand.open++, render())),
        },
        "Next column",
      ),
      el("button", { type: "button", onclick: () => act(() => ((hand.open = HEADS.length), render())) }, "All"),
      el("button", { type: "button", onclick: () => act(() => ((hand.open = 0), (hand.own = []), render())) }, "Again"),
      told,
    ),
    hand.open < HEADS.length ? "" : onePacket(s, app.view.action),
  );
  $("step-said").replaceChildren(
    hand.open < HEADS.length
      ? "Type your own row, then open the columns. Nothing but these numbers goes into the softmax."
      : `The network’s row and the one by hand differ by ${show(
          c.row.reduce((x, v, a) => x + Math.abs(v - made[a]), 0),
          2,
        )} in L₁.`,
  );
}
// onePacket writes out the critic's step: one packet's target, then the mean of all of the pair's.
function onePacket(s, a) {
  const own = packetsOf(s, a),
    { A, gamma } = app.run.info,
    r = decoderRound(current()),
    p = own[0];
  if (!p) return "";
  const mean = own.reduce((x, y) => x + y.share * y.target, 0);
  return el(
    "p",
    { id: "hand-critic" },
    `Then the critic. The first packet of ${actionName(a)} in ${stateName(s)} led to ${stateName(p.t)}, where ${actionName(p.b)} follows: r + γQ = ${show(p.reward, 3)} + ${show(gamma, 3)} × ${show(p.q)} = `,
    el("b", {}, show(p.target)),
    `. The mean of its ${plural(own.length, "packet")} is ${show(mean)}; the network returned `,
    el("b", {}, show(r.nextQ[s * A + a])),
    ".",
  );
}
export function toggleByHand() {
  hand.on = !hand.on;
  if (hand.on) Object.assign(app.view, { step: "actor", net: "decoder" });
  render();
}
