// The critic's call as attention: packets look up a value, a ReLU adds the
// reward, and a pair's query averages its own packets.

import { $, atMost, el, palette, plural, show } from "./base.js";
import { app, current, decoderRound } from "./state.js";
import { actionName, stateName } from "./selection.js";
import { term } from "./glossary.js";
import { bar, placeLines } from "./attention.js";

const MOST = 6; // packets that are listed

// firstPacket is the token of the first packet from a pair.
export function firstPacket(pair) {
  const { packets } = decoderRound(current()),
    { S, A } = app.run.info;
  for (let i = 0; i < packets.length; i += 6)
    if (packets[i] * A + packets[i + 1] === pair) return S * A + i / 6;
  return 0;
}
// packetsOf lists the packets of a pair: successor, its action, reward, share, target.
export function packetsOf(s, a) {
  const r = decoderRound(current()),
    { A, gamma } = app.run.info,
    own = [];
  for (let i = 0; i < r.packets.length; i += 6) {
    const [s0, a0, t, b, reward, logWeight] = r.packets.subarray(i, i + 6);
    if (s0 !== s || a0 !== a) continue;
    const q = r.q[t * A + b];
    own.push({ t, b, reward, q, target: reward + gamma * q, share: Math.exp(logWeight) });
  }
  const sum = own.reduce((x, p) => x + p.share, 0);
  for (const p of own) p.share /= sum;
  return own;
}

export function drawCritic() {
  const { state: s, action: a } = app.view,
    { A } = app.run.info,
    r = decoderRound(current()),
    own = packetsOf(s, a),
    list = own.slice(0, MOST),
    name = `${actionName(a)} in ${stateName(s)}`;
  $("step-table").replaceChildren(table(list));
  placeLines([list.map((p) => p.share)], ["Q", `${s},${actionName(a).replace("action ", "")}`]);
  const made = r.nextQ[s * A + a],
    exact = r.exactQ[s * A + a],
    more = own.length - list.length;
  $("step-said").replaceChildren(
    more > 0 ? `${plural(more, "more packet")} not shown. ` : "",
    `Their average is the new value of ${name}: `,
    el("strong", {}, `${show(made)}; the exact backup gives ${show(exact)}`),
    `, so this one differs by ${show(Math.abs(made - exact), 2)}, the worst by δ = ${show(r.delta, 2)}. `,
    r.sampling > 1e-12
      ? `Of δ, attention to wrong tokens accounts for at most ${atMost(r.route, 2)}; the rest is chance in ${plural(app.run.info.certificate.m, "packet")} a pair, and more packets shrink it.`
      : "Packets carry exact weights or the moves are certain, so there is no chance in it.",
  );
}
function packetsHead() {
  return el(
    "thead",
    {},
    el(
      "tr",
      {},
      el("th", { scope: "col" }, term("packet", "packet")),
      el("th", { scope: "col" }, "led to", el("small", {}, "drawn by chance")),
      el("th", { scope: "col" }, "looked up ", term("q", "Q"), el("small", {}, "by attention")),
      el(
        "th",
        { scope: "col" },
        term("reward", "r"),
        " + ",
        term("gamma", "γ"),
        "Q",
        el("small", {}, "by the ReLU"),
      ),
      el("th", { scope: "col" }, "target"),
      el("th", { scope: "col" }, "weight", el("small", {}, "attention")),
    ),
  );
}
function table(list) {
  const { gamma } = app.run.info,
    most = Math.max(1e-9, ...list.map((p) => Math.abs(p.target))),
    c = palette();
  const line = (p, i) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, String(i)),
      el("td", {}, `${p.t}, there ${actionName(p.b)}`),
      el("td", { class: "n" }, show(p.q, 4)),
      el("td", { class: "n" }, `${show(p.reward, 3)} + ${show(gamma, 3)}·${show(p.q, 3)}`),
      el(
        "td",
        {},
        bar(Math.abs(p.target), most, p.target < 0 ? c.warm : c.accent, false),
        el("span", { class: "n" }, show(p.target, 4)),
      ),
      el("td", { class: "n" }, show(p.share, 3)),
    );
  return el(
    "table",
    { class: "attend packets" },
    packetsHead(),
    el("tbody", {}, list.map(line)),
  );
}
