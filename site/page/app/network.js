// The whole network on one screen: each head a card, each matrix without its columns and rows of zeros,
// each weight that is not zero by its symbol; and the fingerprint of all of them.

import { $, all, el, palette, percent, plural, show } from "./base.js";
import { app, current, decoderRound, render } from "./state.js";
import { actionName, stateName } from "./selection.js";

const CARDS = [
  ["block.0.head.0.", "Block 1, actor head", "softmax(log π + ηQ)", { q: "query", k: "key", v: "value", o: "output" }],
  ["block.0.head.1.", "Block 1, lookup head", "finds Q(s′, a′) for each packet", { q: "query", k: "key", v: "value", o: "output" }],
  ["block.0.map.", "Block 1, ReLU map", "r + γQ on packets", { w1: "into the ReLU", w2: "out of it" }],
  ["block.1.head.0.", "Block 2, predecessor head", "the mean of a pair’s packets", { q: "query", k: "key", v: "value", o: "output" }],
];
// countsOf counts the weights that are not zero, all weights, and the values that occur.
export function countsOf({ legend, width: d, headDim: h }) {
  return {
    nonzero: legend.reduce((n, l) => n + l.toLen, 0),
    all: 16 * d * h + 4 * d,
    values: new Set(legend.map((l) => l.value)).size,
  };
}
const COLOUR = { κ: "warm", ν: "warm", "τ₁": "violet", "τ₂": "violet", γ: "green", "−γ": "green", B: "green", "−B": "green" };
// cell is a weight, or a diagonal of equal ones, by its symbol.
function cell(l, labels) {
  const c = palette();
  return el(
    "button",
    {
      type: "button",
      class: "weight",
      "data-matrix": l.matrix,
      title: `${l.matrix}: ${l.symbol} = ${show(l.value)}; ${l.why}`,
      onpointerenter: () => light(l, labels),
      onfocus: () => light(l, labels),
    },
    el(
      "svg",
      { viewBox: "0 0 22 22", width: 22, height: 22, "aria-hidden": "true" },
      l.toLen > 1
        ? el("line", { x1: 2, y1: 2, x2: 20, y2: 20, stroke: c[COLOUR[l.symbol]] || c.accent, "stroke-width": 4 })
        : el("circle", { cx: 11, cy: 11, r: 5, fill: c[COLOUR[l.symbol]] || c.accent }),
    ),
    el("span", {}, l.symbol, l.toLen > 1 ? el("small", {}, `×${l.toLen}`) : null),
  );
}
// name strips the index of a field's label: memory.state[3] is of the field memory.state.
const name = (labels, at) => labels[at].label.replace(/\[.*$/, "");
function matrix(prefix, part, title, info) {
  const links = info.legend.filter((l) => l.matrix === prefix + part);
  if (!links.length) return null;
  const labels = {
      from: part === "o" ? info.slots : part === "w2" ? info.hidden : info.token,
      to: part === "o" || part === "w2" ? info.token : part === "w1" ? info.hidden : info.slots,
    },
    cols = [...new Set(links.map((l) => l.from))].sort((x, y) => x - y),
    lines = [...new Set(links.map((l) => l.to))].sort((x, y) => x - y);
  return el(
    "table",
    { class: "weights" },
    el("caption", {}, title),
    el(
      "thead",
      {},
      el("tr", {}, el("td"), cols.map((x) => el("th", { scope: "col" }, name(labels.from, x)))),
    ),
    el(
      "tbody",
      {},
      lines.map((y) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, name(labels.to, y)),
          cols.map((x) => el("td", {}, links.filter((l) => l.from === x && l.to === y).map((l) => cell(l, labels)))),
        ),
      ),
    ),
  );
}

// light says where a weight leads, to the arrow that it makes on the map.
function light(l, labels) {
  const { state: s, action: a } = app.view,
    { A } = app.run.info,
    r = decoderRound(current()),
    from = name(labels.from, l.from),
    to = name(labels.to, l.to),
    actor = l.matrix.startsWith("block.0.head.0."),
    arrow = `${actionName(a)} in ${stateName(s)}`;
  app.view.lit = s;
  $("route").replaceChildren(
    el("b", {}, `${l.symbol} = ${show(l.value)}`),
    ` takes ${from} to ${to}: ${l.why}. `,
    actor
      ? `Score = κ·[same state] + ν + log π + ηQ; its softmax is π̂, the arrow: ${arrow} gets ${percent(r.nextPi[s * A + a])}.`
      : `Looked-up Q → r + γQ → mean of packets: Q of ${arrow} becomes ${show(r.nextQ[s * A + a])}.`,
  );
  for (const x of all(".weight"))
    x.classList.toggle("lit", x.dataset.matrix.slice(0, -1) === l.matrix.slice(0, -1));
  render();
}

let built = "";
export function renderNetwork() {
  const { info } = app.run;
  if (built === info.fingerprint) return;
  built = info.fingerprint;
  const n = countsOf(info);
  $("network-title").textContent =
    `The whole network: ${n.nonzero} of its ${n.all.toLocaleString("en")} weights are not zero`;
  $("network-why").textContent =
    `They take ${plural(n.values, "value")}. Columns and rows of zeros are left out; a stripe stands for a diagonal of equal weights. The fourth head is idle: all of it is zero.`;
  $("cards").replaceChildren(
    ...CARDS.map(([prefix, title, why, parts]) =>
      el(
        "div",
        { class: "card" },
        el("h3", {}, title),
        el("p", { class: "why" }, why),
        el(
          "div",
          { class: "parts" },
          Object.entries(parts).map(([part, words]) => matrix(prefix, part, words, info)),
        ),
      ),
    ),
    el(
      "div",
      { class: "card" },
      el("h3", {}, "Read-outs"),
      el(
        "p",
        { class: "why" },
        app.run.settings.phi ? "π̂ = (1 − φ) × policy.action + φ/A; " : "π̂ = policy.action; ",
        "Q = average.",
      ),
    ),
  );
}

// The fingerprint: since when the weights are the same, and why they are new if they are.
const print = { hash: "", at: "", seen: new Set(), why: "", settings: null };
const WRITTEN = {
  gamma: "γ is in W₁ and in B",
  eta: "the cap on η is in κ",
  rmax: "R_max is in κ and B",
  m: "the packets are in τ₁ and τ₂",
  T: "the rounds are in τ₁ and τ₂",
  tol: "ε_r is in κ and τ",
  kappa: "κ was set",
  tau1: "τ₁ was set",
  tau2: "τ₂ was set",
  phi: "φ is in the read-out",
};
export function renderPrint() {
  const { info, settings, id, phases, edits } = app.run;
  if (print.hash && print.hash !== info.fingerprint) {
    const [old, now] = [print.settings, settings],
      size = print.S !== info.S || print.A !== info.A,
      changed = Object.keys(WRITTEN).filter((k) => old[k] !== now[k]).map((k) => WRITTEN[k]);
    print.why = size ? "another size has another network" : changed.join(", ") || "the problem’s rewards need another cap";
    print.seen.clear();
  }
  const at = [id, edits.length].join();
  if (print.at !== at) for (const { p, r, pi0 } of phases) print.seen.add([p, r, pi0].join("|"));
  Object.assign(print, { at, hash: info.fingerprint, settings, S: info.S, A: info.A });
  const many = print.seen.size > 1 ? `, unchanged through ${print.seen.size} problems` : "";
  for (const place of all(".fingerprint"))
    place.replaceChildren(
      print.why ? "New weights " : "Weights ",
      el("code", { title: `SHA-256 ${info.fingerprint}` }, info.fingerprint.slice(0, 8)),
      print.why ? ` (${print.why})` : "",
      settings.preset === "file" ? ", their caps read from your file" : "",
      many,
      ".",
    );
}
