// What the microscope says about a cell and about the followed query.

import { $, el, percent, plural, show } from "./base.js";
import { app, current, decoderRound } from "./state.js";
import { isWeight, matrixName, scope } from "./scope.js";
import { describeTrained, trainedPath } from "./trainedscope.js";
import { traced, traceMatrix, traceRow, weightMatrix } from "./trace.js";

// matrix returns a matrix of the call that is looked at, or of the weights.
export const matrix = (name, from, to) =>
  isWeight(name.split(".").pop()) ? weightMatrix(app.view.call, name) : traceMatrix(app.view.call, name, from, to);
// rowOf returns one row of a matrix of the call.
async function rowOf(name, i) {
  if (/score|weight$/.test(name)) return traceRow(app.view.call, name, i);
  const m = await matrix(name);
  return m.data.subarray(i * m.cols, (i + 1) * m.cols);
}
const linksInto = (name, row) =>
  app.run.info.legend
    .filter((l) => l.matrix === name && row >= l.to && row < l.to + l.toLen)
    .map((l) => ({ ...l, col: l.fromLen === 1 ? l.from : l.from + row - l.to }));
// sumOf explains entry row of matrix·x by the links of the legend.
function sumOf(name, row, x, labels) {
  const list = linksInto(name, row);
  if (!list.length) return ["No weight leads here, so it is zero for every token."];
  return list.map((l) => `${l.symbol} × ${labels[l.col].label} ${show(x[l.col])}: ${l.why}`);
}
const top = (list, k) =>
  list
    .map((v, x) => [v, x])
    .sort((p, q) => Math.abs(q[0]) - Math.abs(p[0]))
    .slice(0, k)
    .filter(([v]) => v !== 0);
const MASKED = ["Hidden by the causal mask: a token sees nothing later than itself.", []];

// Each part of the pass: [what a cell means, how it came about].
const projected = async ({ part, head, input, row, col, info }) => [
  info.slots[col].note + ".",
  sumOf(head + part[0], col, await rowOf(input, row), info.token),
];
const attended =
  (block) =>
  async ({ row, col, info }) => {
    const x = await rowOf(block ? "block.0.output" : "tokens", row),
      lines = [`came in as ${show(x[col])}`];
    for (const y of [0, 1]) {
      const v = (await rowOf(`block.${block}.head.${y}.written`, row))[col];
      if (v) lines.push(`plus ${show(v)} from head ${y + 1}`);
    }
    return [info.token[col].note + ".", lines];
  };
const PARTS = {
  tokens: async ({ col, info }) => [
    info.token[col].note + ".",
    ["Written into the context; no weight is involved."],
  ],
  query: projected,
  key: projected,
  value: projected,
  async score({ head, row, col, info }) {
    if (col > row) return MASKED;
    const [q, k] = [await rowOf(head + "query", row), await rowOf(head + "key", col)],
      lines = info.slots.flatMap((s, x) =>
        q[x] * k[x] ? [`${s.label}: ${show(q[x])} × ${show(k[x])}`] : [],
      );
    return [
      "How well the key of the column answers the query of the row.",
      lines.length ? lines : ["No slot of query and key is non-zero in both."],
    ];
  },
  async weight({ head, row, col, value }) {
    if (col > row) return MASKED;
    const s = await rowOf(head + "score", row);
    return [
      `${percent(value)} of this token’s attention.`,
      [
        `Score ${show(s[col])}; the row’s largest is ${show(Math.max(...s.subarray(0, row + 1)))}. The weight is e^score over the row’s sum.`,
      ],
    ];
  },
  async mixed({ head, row, col }) {
    const w = Array.from(await rowOf(head + "weight", row)),
      v = await matrix(head + "value"),
      { names } = await traced(app.view.call);
    const shares = w.map((x, t) => x * v.data[t * v.cols + col]);
    return [
      "The attention-weighted mean of the values in this slot.",
      top(shares, 3).map(([x, t]) => `${show(x)} from ${names[t]}`),
    ];
  },
  written: async ({ head, row, col, info }) => [
    info.token[col].note + ".",
    sumOf(head + "o", col, await rowOf(head + "mixed", row), info.slots),
  ],
  attended: attended(0),
  attended1: attended(1),
  pre: async ({ row, col, info }) => [
    info.hidden[col].note + ".",
    sumOf("block.0.map.w1", col, await rowOf("block.0.attended", row), info.token),
  ],
  post: async ({ row, col, info }) => [
    info.hidden[col].note + ".",
    [`max(0, ${show((await rowOf("block.0.pre", row))[col])})`],
  ],
  async output({ station, row, col, info }) {
    const meaning = info.token[col].note + ".";
    if (station === "end") return [meaning, ["What the read-out sees."]];
    const lines = [`came in as ${show((await rowOf("block.0.attended", row))[col])}`];
    if (linksInto("block.0.map.w2", col).length)
      lines.push(...sumOf("block.0.map.w2", col, await rowOf("block.0.post", row), info.hidden));
    return [meaning, lines];
  },
  async results({ row, col, cols }) {
    const r = decoderRound(current()),
      actor = app.view.call === "actor",
      policy = app.run.settings.phi
        ? "(1−φ) times the policy’s coordinate, plus φ/A."
        : "The policy’s coordinate of the last token.";
    return [
      actor ? "Probability in the returned policy π̂." : "The new value Q of this pair.",
      [
        actor ? policy : "The average coordinate of the last token.",
        `The streaming pass that runs the loop gave ${show((actor ? r.nextPi : r.nextQ)[row * cols + col], 8)}.`,
      ],
    ];
  },
};
// describeNormed holds a cell of the call with LayerNorm against the one without.
async function describeNormed({ station, part, row, col, value, info }) {
  if (part === "payloads") return PARTS.tokens({ col, info });
  const slots = ["query", "key", "value", "mixed"].includes(part);
  if (!slots && !["score", "weight", "results"].includes(part))
    return ["One coordinate of a space that J has turned: by itself it means nothing.", []];
  const m = await traceMatrix("actor", matrixName(station, part), row, row + 1),
    plain = m.data[col];
  return [
    slots ? info.slots[col].note + "." : part === "results" ? "Probability in the returned policy π̂." : "",
    [`Without LayerNorm ${show(plain, 6)}; the difference is ${show(value - plain, 2)}.`],
  ];
}
// A cell of a weight matrix is explained by its link in the legend.
async function frozen({ station, part, row, col }) {
  const l = linksInto(matrixName(station, part), row).find((x) => x.col === col);
  return l ? [l.why + ".", [`written as ${l.symbol}`]] : ["Zero: nothing flows here.", []];
}

const explainer = (call, part) =>
  ({ learned: describeTrained, normed: describeNormed })[call] || PARTS[part] || frozen;
// describe shows what cell (i, j) of the window on show is, and reads it to
// screen readers if speak is set. What a redraw overtakes is read after it.
export async function describe(i, j, speak) {
  scope.unsaid ||= speak;
  const n = scope.now,
    { id } = scope,
    { view } = app,
    { station, part } = view,
    [b, h] = station.split("."),
    row = i + scope.rowFirst,
    col = j + scope.colFirst,
    value = n.data[i * n.cols + j];
  view.row = row;
  view.col = col;
  const [meaning, lines] = await explainer(view.call, part)({
    part,
    station,
    row,
    col,
    value,
    cols: n.cols,
    info: app.run.info,
    head: `block.${b}.head.${h}.`,
    input: b === "1" || station === "end" ? "block.0.output" : "tokens",
  });
  if (scope.id !== id) return;
  $("cell").replaceChildren(
    el("p", {}, n.rowNames[row]),
    el("p", { class: "cap" }, (part === "score" || part === "weight" ? "towards " : "") + n.colNames[col]),
    el("b", {}, show(value, 6)),
    el("p", {}, meaning),
    el(
      "ul",
      { class: "why" },
      lines.map((l) => el("li", {}, l)),
    ),
  );
  if (scope.unsaid) $("live").textContent = `${n.rowNames[row]}, ${n.colNames[col]}: ${show(value, 5)}. ${meaning}`;
  scope.unsaid = false;
}

const MOST = 6; // tokens that are listed
// shares splits the attention of the followed query into its own tokens, the
// memories of its state or the packets of its pair, and all others.
function shares(w, own) {
  let mine = 0;
  for (const i of own) mine += w[i];
  let other = 0;
  w.forEach((v, i) => (other += own.has(i) ? 0 : v));
  return { mine, other };
}
// ownTokens returns the indices of tokens that the query should attend to.
function ownTokens(follow) {
  const { S, A } = app.run.info,
    own = new Set();
  if (app.view.call !== "critic") for (let a = 0; a < A; a++) own.add(follow * A + a);
  else {
    const { packets } = decoderRound(current());
    for (let i = 0; i < packets.length; i += 6)
      if (packets[i] * A + packets[i + 1] === follow) own.add(S * A + i / 6);
  }
  return own;
}
async function lookedUp(p, names) {
  const look = await rowOf("block.0.head.1.weight", p),
    post = await rowOf("block.0.post", p);
  let found = 0;
  look.forEach((v, n) => (found = v > look[found] ? n : found));
  return `The first of these had looked up ${names[found]} with ${percent(look[found], 4)} of its attention, and the ReLU map made its target ${show(post[0] - post[1])}.`;
}
// describePath follows one query from what it asks to what is read out.
export async function describePath() {
  if (app.view.call === "learned") return trainedPath();
  const { view } = app,
    t = await traced(view.call),
    i = t.reads[view.follow],
    head = view.call === "critic" ? "block.1.head.0." : "block.0.head.0.",
    { slots } = app.run.info;
  const [q, w, mixed, out] = [
    await rowOf(head + "query", i),
    await rowOf(head + "weight", i),
    await rowOf(head + "mixed", i),
    await rowOf("results", view.follow),
  ];
  // What LayerNorm leaves of zeros is left out.
  const nonzero = (x) => {
      const least = 1e-10 * Math.max(...x.map(Math.abs));
      return slots.flatMap((s, n) => (Math.abs(x[n]) > least ? [`${s.label} ${show(x[n])}`] : [])).join(", ");
    },
    own = ownTokens(view.follow),
    { mine, other } = shares(w.subarray(0, i + 1), own),
    best = [...own].map((n) => [w[n], n]).sort((x, y) => y[0] - x[0]),
    listed = best.slice(0, MOST),
    what = view.call === "critic" ? "packet" : "memory",
    more = best.length - listed.length,
    rest = more
      ? `${plural(more, `other ${what}`).replace("memorys", "memories")} of its own ${percent(mine - listed.reduce((x, [v]) => x + v, 0))}; `
      : "";
  const steps = [
    el("li", {}, el("b", {}, t.names[i]), " asks with ", nonzero(q), "."),
    el(
      "li",
      {},
      "It attends to ",
      listed.map(([v, n]) => `${t.names[n]} ${percent(v)}; `).join(""),
      rest,
      `all tokens that are not its own together ${percent(other)}.`,
    ),
  ];
  if (view.call === "critic") steps.push(el("li", {}, await lookedUp(best[0][1], t.names)));
  steps.push(
    el("li", {}, `Mixed values: ${nonzero(mixed)}.`),
    el("li", {}, `Read out: ${Array.from(out, (v) => show(v)).join(", ")}.`),
  );
  $("path").replaceChildren(el("ol", {}, steps));
}
