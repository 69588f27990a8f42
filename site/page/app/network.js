// The whole network on one screen: each head a card, each matrix without its columns and rows of zeros,
// each weight that is not zero by its symbol; and the fingerprint of all of them.

import { $, all, el, palette, percent, plural, show } from "./base.js";
import { app, current, decoderRound, render } from "./state.js";
import { actionName, stateName } from "./selection.js";

const HEAD = { q: "query", k: "key", v: "value", o: "output" };
/** @type {[string, string, string, Record<string, string>][]} */
const CARDS = [
  ["block.0.head.0.", "Block 1, actor head", "softmax(log π + ηQ)", HEAD],
  ["block.0.head.1.", "Block 1, lookup head", "finds Q(s′, a′) for each packet", HEAD],
  ["block.0.map.", "Block 1, ReLU map", "r + γQ on packets", { w1: "in", w2: "out" }],
  ["block.1.head.0.", "Block 2, predecessor head", "the mean of a pair’s packets", HEAD],
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
// name strips the index of a field's label: memory.state[3] is of the field memory.state.
const name = (label) => label.replace(/\[.*$/, "");
// wired lists a card's weights: of which matrix each is, on which slot of the head, and from or to
// which field of a token.
function wired(prefix, info) {
  const slots = prefix.endsWith("map.") ? info.hidden : info.slots;
  return info.legend
    .filter((l) => l.matrix.startsWith(prefix))
    .map((l) => {
      const part = l.matrix.slice(prefix.length),
        leaves = part === "o" || part === "w2",
        slot = leaves ? l.from : l.to,
        field = leaves ? l.to : l.from,
        names = [name(info.token[field].label), name(slots[slot].label)];
      if (leaves) names.reverse();
      return { ...l, prefix, part, slot, field, row: name(slots[slot].label), col: name(info.token[field].label), names };
    });
}
// cell is a weight, or a diagonal or a column of equal ones, by its symbol.
function cell(l) {
  const colour = palette()[COLOUR[l.symbol] || "accent"];
  return el(
    "button",
    {
      type: "button",
      class: "weight",
      title: `${l.matrix}: ${l.symbol} = ${show(l.value)}; ${l.why}`,
      "data-card": l.prefix,
      "data-slot": l.slot,
      "data-part": l.part,
      onpointerenter: () => light(l),
      onfocus: () => light(l),
    },
    el(
      "svg",
      { viewBox: "0 0 24 24", preserveAspectRatio: "none", "aria-hidden": "true" },
      l.toLen > 1
        ? el("path", { d: l.fromLen > 1 ? "M1 1L23 23" : "M12 1V23", stroke: colour, "stroke-width": 4 })
        : el("circle", { cx: 12, cy: 12, r: 8, fill: colour }),
    ),
    el("span", {}, l.symbol, l.toLen > 1 ? el("small", {}, `×${l.toLen}`) : null),
  );
}
// card is a table with a row for each slot of the head and, for each of its matrices, the columns that are not zero.
function card([prefix, title, why, parts], info) {
  const links = wired(prefix, info),
    distinct = (key, list) => [...new Map(list.map((l) => [l[key], l])).values()].sort((x, y) => x[key] - y[key]),
    groups = Object.keys(parts).map((part) => distinct("field", links.filter((l) => l.part === part)));
  return el(
    "div",
    { class: "card" },
    el("h3", {}, title, el("small", {}, why)),
    el(
      "div",
      { class: "parts" },
      el(
        "table",
        { class: "weights" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("td"),
            Object.values(parts).map((words, i) => el("th", { scope: "colgroup", colspan: groups[i].length }, words)),
          ),
          el(
            "tr",
            {},
            el("td"),
            groups.flatMap((g) => g.map((l, i) => el("th", { scope: "col", class: i ? "field" : "field edge" }, l.col))),
          ),
        ),
        el(
          "tbody",
          {},
          distinct("slot", links).map(({ slot, row }) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, row.replace(/^\w+[.]/, "")),
              groups.flatMap((g) =>
                g.map(({ part, field }, i) =>
                  el(
                    "td",
                    { class: i ? false : "edge" },
                    links.filter((l) => l.part === part && l.field === field && l.slot === slot).map(cell),
                  ),
                ),
              ),
            ),
          ),
        ),
      ),
      prefix.endsWith("map.")
        ? el("svg", { id: "network-map", "aria-hidden": "true" }, el("use", { href: "#scene", width: "100%", height: "100%" }))
        : null,
    ),
  );
}

// light says where a weight leads, and lights its way: the weights on its slot, those that carry on what its
// scores choose, and the arrow on the map.
function light(l) {
  const { state: s, action: a } = app.view,
    { A } = app.run.info,
    r = decoderRound(current()),
    arrow = `${actionName(a)} in ${stateName(s)}`;
  app.view.lit = s;
  app.view.led = true;
  $("route").replaceChildren(
    el("b", {}, `${l.symbol} = ${show(l.value)}`),
    ` takes ${l.names[0]} to ${l.names[1]}: ${l.why}. `,
    l.prefix === "block.0.head.0."
      ? `Score = κ·[same state] + ν + log π + ηQ; its softmax is π̂, the arrow: ${arrow} gets ${percent(r.nextPi[s * A + a])}.`
      : `Looked-up Q → r + γQ → mean of packets: Q of ${arrow} becomes ${show(r.nextQ[s * A + a])}.`,
  );
  for (const { classList, dataset: d } of all(".weight"))
    classList.toggle(
      "lit",
      d.card === l.prefix && (d.slot === String(l.slot) || ("qk".includes(l.part) && "vo".includes(d.part))),
    );
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
    `They take ${plural(n.values, "value")}. Columns and rows of zeros are left out; a stripe stands for a diagonal of equal weights. The fourth head is idle, all zero. Read out are ${app.run.settings.phi ? "π̂ = (1 − φ) × policy.action + φ/A" : "π̂ = policy.action"} and Q = average.`;
  $("cards").replaceChildren(...CARDS.map((c) => card(c, info)));
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
