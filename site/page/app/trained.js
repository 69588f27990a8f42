// The trained network's attention, in the panel and beside the numbers of the fixed
// one's: the actions of a state are its tokens, and every head of every block weighs them.

import { $, act, el, mix, palette, percent, show } from "./base.js";
import { app, current, decoderRound, render, aside } from "./state.js";
import { actionName, select, stateName } from "./selection.js";
import { byHand } from "./byhand.js";
import { term } from "./glossary.js";
import { keyOf, traceMatrix } from "./trace.js";
import { bar, became, fixed, placeLines, share, signed } from "./attention.js";
import { BLOCKS, HEADS } from "./trainedscope.js";

// What the network made of the state on show, once it is there.
const look = { key: "", blocks: [], results: null, busy: false };
async function fetchLook() {
  if (look.busy) return;
  look.busy = true;
  try {
    const key = keyOf("learned"),
      names = Array.from({ length: BLOCKS }, (_, b) => `block.${b}.weight`),
      [results, ...blocks] = await Promise.all(
        ["results", ...names].map((name) => traceMatrix("learned", name).then((m) => m.data)),
      );
    Object.assign(look, { key, blocks, results });
  } finally {
    look.busy = false;
  }
  render();
}
// weight returns how head h of block b, for the token of action q, weighs that of a.
function weight(b, h, q, a) {
  const { A } = app.run.info;
  return look.blocks[b][(h * A + q) * A + a];
}
const heads = (f) => Array.from({ length: HEADS }, (_, h) => f(h));

// strip draws the heads of a block as a row of cells, darker for more attention.
function strip(b, q, a) {
  const c = palette();
  return el(
    "svg",
    {
      class: "strip",
      viewBox: `0 0 ${12 * HEADS} 16`,
      role: "img",
      "aria-label": `block ${b + 1}: ${heads((h) => percent(weight(b, h, q, a), 2)).join(", ")}`,
    },
    heads((h) =>
      el(
        "rect",
        {
          x: 12 * h + 0.5,
          y: 0.5,
          width: 11,
          height: 15,
          stroke: c.line,
          fill: `rgb(${mix(c.card, c.green, weight(b, h, q, a))})`,
        },
        el(
          "title",
          {},
          `block ${b + 1}, head ${h + 1}: ${actionName(q)} gives ${actionName(a)} ${percent(weight(b, h, q, a), 4)} of its attention`,
        ),
      ),
    ),
  );
}
let block = 0; // whose heads are drawn as lines
function head(b) {
  return el(
    "th",
    { scope: "col" },
    el(
      "button",
      {
        type: "button",
        class: "block",
        title: `Draw the lines of block ${b + 1}`,
        "aria-pressed": String(b === block),
        onclick: () => {
          block = b;
          render();
        },
      },
      el("span", { class: "wide" }, "block "),
      String(b + 1),
    ),
    el("small", {}, `${HEADS} heads`),
  );
}
function table(s, q) {
  const { A } = app.run.info,
    { eta } = app.run.settings,
    r = decoderRound(current()),
    c = palette(),
    actions = Array.from({ length: A }, (_, a) => a),
    mean = actions.reduce((sum, a) => sum + (eta * r.q[s * A + a]) / A, 0),
    column = (name, why) => el("th", { scope: "col" }, name, el("small", {}, why));
  const line = (a) => {
    const i = s * A + a,
      gain = eta * r.q[i] - mean;
    return el(
      "tr",
      { onclick: () => select(s, a), class: a === q ? "own" : "" },
      el("th", { scope: "row" }, actionName(a)),
      el("td", { title: `log π = log ${show(r.pi[i])}` }, fixed(Math.log(r.pi[i]))),
      el(
        "td",
        { title: `ηQ = ${show(gain + mean)}, less its mean ${show(mean)}` },
        signed(gain),
      ),
      look.blocks.map((_, b) => el("td", {}, strip(b, q, a))),
      ...[
        [look.results[4 * a + 3], c.green, "the trained network’s probability"],
        [r.exactPi[i], c.grey, "exact PMD"],
      ].map(([v, colour, why]) =>
        el(
          "td",
          { title: `${why} ${show(v, 8)}` },
          el("span", { class: "n" }, share(v)),
          bar(v, 1, colour, false),
        ),
      ),
    );
  };
  return el(
    "table",
    { class: "attend trained" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        column("token", "an action"),
        column(term("logpi", "log π"), "habit"),
        column([term("eta", "η"), term("q", "Q")], "less mean"),
        look.blocks.map((_, b) => head(b)),
        column(term("pihat", "π̂"), "trained"),
        column(term("pmd", "exact PMD"), "reference"),
      ),
    ),
    el("tbody", {}, actions.map(line)),
  );
}

export function drawTrained() {
  const { state: s, action: q } = app.view,
    { A } = app.run.info;
  if (look.key !== keyOf("learned")) {
    aside(fetchLook);
    if (look.results?.length !== 4 * A) return $("step-table").replaceChildren();
  }
  const r = decoderRound(current()),
    actions = Array.from({ length: A }, (_, a) => a),
    off = (x) => actions.reduce((sum, a) => sum + Math.abs(x(a) - r.exactPi[s * A + a]), 0);
  const most = Math.max(...look.blocks.flatMap((_, b) => heads((h) => Math.max(...actions.map((a) => weight(b, h, q, a))))));
  $("step-table").replaceChildren(table(s, q));
  placeLines(
    heads((h) => actions.map((a) => weight(block, h, q, a))),
    [actionName(q).replace("action ", "a = "), "asks"],
    palette().green,
  );
  $("step-said").replaceChildren(
    `In ${stateName(s)} the trained network ${became(actionName(q), r.pi[s * A + q], look.results[4 * q + 3])}. `,
    el(
      "strong",
      {},
      `The row differs from exact PMD by ${show(
        off((a) => look.results[4 * a + 3]),
        2,
      )}`,
    ),
    `, the fixed one’s by ${show(
      off((a) => r.nextPi[s * A + a]),
      2,
    )}. Nobody wrote these ${BLOCKS * HEADS} heads, so what they do is measured, not guaranteed: asked by ${actionName(q)}, none gives one action more than ${percent(most)} of its attention. Lines: block ${block + 1}.`,
  );
}

// renderNets says whose attention is on show, for an actor's call.
export function renderNets() {
  $("step-net").hidden = app.view.step !== "actor";
  for (const net of ["decoder", "learned"])
    $("net-" + net).setAttribute("aria-pressed", String(app.view.net === net && !byHand()));
}
export function buildNets(show) {
  for (const net of ["decoder", "learned"])
    $("net-" + net).addEventListener("click", () => act(() => show(net)));
}
