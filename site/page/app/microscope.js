// The microscope: every matrix of the pass.

import { $, act, all, el, show, stillness } from "./base.js";
import { app, render, aside } from "./state.js";
import { Heat } from "./heat.js";
import { keyOf, traced } from "./trace.js";
import { describe, describePath, matrix } from "./explain.js";
import { showTab } from "./tabs.js";
import { loadLearned } from "./learned.js";
import { firstOf, isWeight, matrixName, partsOf, scope, stationsOf } from "./scope.js";
import { trainedAxes, trainedWhy } from "./trainedscope.js";

const WHY = {
  tokens: "One row a token, one column a named coordinate: this is all the network sees.",
  query: "What each token asks for: W_Q times the token. Only the role’s own fields reach it.",
  key: "What each token offers: W_K times the token.",
  score:
    "Inner products of queries (rows) and keys (columns); a token sees itself and what came before, nothing later.",
  weight: "The softmax of each row of scores. Every row sums to one.",
  value: "What a token hands over when it is attended to: W_V times the token.",
  mixed: "Each row is the mean of the values, weighted by that token’s attention.",
  written: "W_O times the mixed values: what the head adds to each token.",
  attended: "Tokens with what both heads wrote added to them.",
  pre: "Two units a token, reward plus γ times the value looked up, shut by −B everywhere but on packets.",
  post: "Negative numbers cut to zero: only packets pass.",
  output: "Tokens as they leave, with what the ReLU map wrote added.",
  attended1: "Tokens with what block 2 wrote added; it has no ReLU map.",
  results: "The affine read-out of the queries: rows of π̂ for an actor call, the new Q for a critic call.",
  q: "W_Q, frozen: rows are slots of the query, columns coordinates of a token.",
  k: "W_K, frozen: rows are slots of the key, columns coordinates of a token.",
  v: "W_V, frozen: rows are slots of the value, columns coordinates of a token.",
  o: "W_O, frozen: rows are coordinates of a token, columns slots of the mixed value.",
  w1: "W₁, frozen: rows are the two ReLU units, columns coordinates of a token.",
  w2: "W₂, frozen: rows are coordinates of a token, columns the two ReLU units.",
};
// With LayerNorm some matrices are others.
const NORMED = {
  payloads: "What a token says, as without LayerNorm: one column a named coordinate.",
  tokens:
    "C·c + J·x: a carrier of size H on top of the payload x, turned by J, so that LayerNorm acts as x ↦ ρx. Two columns more.",
  q: "W_Q·Jᵀ: it reads tokens that J has turned, so nearly all of its entries are there.",
  k: "W_K·Jᵀ: it reads tokens that J has turned.",
  v: "W_V·Jᵀ, the actions centred, e_a − 1/A: the read-out adds 1/A back.",
  o: "J·W_O: it writes into tokens that J has turned.",
  output: "The last LayerNorm’s tokens, which the read-out sees.",
};
const WINDOW = 320; // rows and columns that are drawn at once

function groupNames(labels, rows) {
  // Runs of labels with one stem are a group: "memory.state[3]" and "packet 7 (…)" end in their own part.
  const groups = [];
  labels.forEach((label, i) => {
    const name = rows
      ? label
          .replace(/ \(.*| \d+ \(.*/s, "")
          .replace("critic ", "")
          .replace("actor ", "")
      : label.replace(/\[.*/, "");
    if (groups.length && groups[groups.length - 1].name === name) groups[groups.length - 1].to = i + 1;
    else groups.push({ name, from: i, to: i + 1 });
  });
  return groups;
}

// axes returns the names of a matrix's rows and columns.
function axes(part, t) {
  if (app.view.call === "learned") return trainedAxes(part, t.names);
  const { token, slots, hidden, A } = app.run.info,
    names = (list) => list.map((x) => x.label),
    normed = app.view.call === "normed",
    results = app.view.call !== "critic" ? Array.from({ length: A }, (_, a) => `π̂(a=${a})`) : ["Q"];
  const [tokens, slot, unit] = [t.names, names(slots), names(hidden)],
    fields = normed ? Array.from({ length: token.length + 2 }, (_, i) => `y[${i}]`) : names(token);
  return (
    {
      payloads: [tokens, names(token)],
      query: [tokens, slot],
      key: [tokens, slot],
      value: [tokens, slot],
      mixed: [tokens, slot],
      score: [tokens, tokens],
      weight: [tokens, tokens],
      pre: [tokens, unit],
      post: [tokens, unit],
      results: [t.reads.map((i) => tokens[i]), results],
      q: [slot, fields],
      k: [slot, fields],
      v: [slot, fields],
      o: [fields, slot],
      w1: [unit, fields],
      w2: [fields, unit],
    }[part] || [tokens, fields]
  );
}
const square = (part) => part === "score" || part === "weight";
const ofTokens = (part) => !isWeight(part) && part !== "results";

function buttons(box, list, now, pick) {
  if (box.dataset.list !== list.map((x) => x[0]).join()) {
    box.dataset.list = list.map((x) => x[0]).join();
    box.replaceChildren(
      ...list.map(([id, name]) =>
        el("button", { type: "button", "data-id": id, onclick: () => pick(id) }, name),
      ),
    );
  }
  for (const b of box.children) b.setAttribute("aria-pressed", String(b.dataset.id === now));
}
function renderChoices(t) {
  const { view } = app,
    key = view.call + t.names[t.reads[0]] + t.reads.length;
  if ($("follow").dataset.key !== key) {
    $("follow").replaceChildren(...t.reads.map((i, n) => el("option", { value: n }, t.names[i])));
    $("follow").dataset.key = key;
  }
  $("follow").value = view.follow;
  for (const input of all("[name=call]")) input.checked = input.value === view.call;
  buttons($("stations"), stationsOf(view.call), view.station, (id) => lookAt(id));
  $("parts").hidden = partsOf(view.station).length < 2;
  buttons($("parts"), partsOf(view.station), view.part, (id) => lookAt(view.station, id));
  $("matrix-why").textContent =
    view.call === "learned"
      ? trainedWhy(view.part)
      : (view.call === "normed" && NORMED[view.part]) || WHY[view.part];
}
// windowed fetches the part of the matrix that is drawn.
async function windowed(rowNames, colNames) {
  if (scope.rowFirst >= rowNames.length) scope.rowFirst = ofTokens(app.view.part) ? firstRow() : 0;
  const { station, part } = app.view,
    R = Math.min(rowNames.length - scope.rowFirst, WINDOW),
    C = Math.min(colNames.length, WINDOW);
  scope.colFirst = Math.max(0, Math.min(scope.colFirst, colNames.length - C));
  const name = matrixName(station, part),
    m = square(part) ? await matrix(name, scope.rowFirst, scope.rowFirst + R) : await matrix(name),
    data = new Float64Array(R * C),
    skip = square(part) ? 0 : scope.rowFirst;
  for (let i = 0; i < R; i++) {
    const start = (i + skip) * m.cols + scope.colFirst;
    data.set(m.data.subarray(start, start + C), i * C);
  }
  return { data, rows: R, cols: C, rowNames, colNames };
}
// markOf returns the row of the followed query, or -1.
function markOf(part, t) {
  const { call, follow } = app.view;
  if (part === "results") return follow;
  return isWeight(part) || (call === "learned" && part === "weight") ? -1 : t.reads[follow];
}
function drawMatrix(t) {
  const { view } = app,
    { data, rows, cols, rowNames, colNames } = scope.now,
    part = view.part;
  if (scope.jump && !scope.again) { // what is overtaken may be another matrix
    scope.heat.cursor = [
      Math.max(0, Math.min(rows - 1, view.row - scope.rowFirst)),
      Math.max(0, Math.min(cols - 1, view.col - scope.colFirst)),
    ];
    scope.jump = false;
  }
  scope.heat.set({
    rows,
    cols,
    data,
    scale: part === "weight" ? 1 : 0,
    mark: markOf(part, t),
    rowFirst: scope.rowFirst,
    colFirst: scope.colFirst,
    minCell: cols > 40 ? (square(part) ? 2 : 7) : 10,
    maxCell: cols > 40 ? 14 : 34,
    rowGroups: groupNames(rowNames, !isWeight(part)),
    colGroups: groupNames(colNames, square(part)),
    label: `${partsOf(view.station).find((p) => p[0] === part)[1]}, ${rowNames.length} by ${colNames.length}. Arrow keys move from cell to cell.`,
  });
  $("ramp-low").textContent = part === "weight" ? "0" : show(-scope.heat.limit, 3);
  $("ramp-high").textContent = show(scope.heat.limit, 3);
  $("ramp").classList.toggle("upper", part === "weight");
}
async function draw() {
  const { view } = app,
    key = keyOf(view.call),
    t = await traced(view.call);
  if (key !== keyOf(view.call)) return;
  view.follow = Math.min(view.follow, t.reads.length - 1);
  scope.trace = t;
  renderChoices(t);
  const [rowNames, colNames] = axes(view.part, t),
    now = await windowed(rowNames, colNames);
  if (key !== keyOf(view.call)) return;
  scope.now = now;
  scope.id = [key, view.station, view.part, scope.rowFirst, scope.colFirst].join("|");
  drawMatrix(t);
  pager(rowNames.length, colNames.length, now.rows, now.cols);
  await describePath();
  if (scope.heat.cursor) await describe(...scope.heat.cursor, false);
  else $("cell").replaceChildren(el("p", { class: "why" }, "No cell is picked yet."));
}
export async function renderScope() {
  if (app.playing || app.work || !scope.wanted) return;
  if (scope.busy) {
    scope.again = true;
    return;
  }
  scope.busy = true;
  try {
    await draw();
  } catch (e) {
    $("matrix-why").textContent = e.message;
    $("cell").replaceChildren(el("p", { class: "why" }, "There is no matrix to look into."));
    $("path").replaceChildren();
    scope.heat.set({ rows: 1, cols: 1, data: new Float64Array(1) });
  } finally {
    scope.busy = false;
    if (scope.again) {
      scope.again = false;
      renderScope();
    }
  }
}
function pager(rows, cols, R, C) {
  const box = $("pager");
  box.hidden = rows <= R && cols <= C;
  if (box.hidden) return;
  const step = (key, n, d) => () => {
    scope[key] = Math.max(0, Math.min(n - 1, scope[key] + d));
    renderScope();
  };
  const one = (key, n, size, what) =>
    n <= size
      ? []
      : [
          el("button", { type: "button", onclick: step(key, n, -size), "aria-label": `Earlier ${what}` }, "‹"),
          el("span", {}, `${what} ${scope[key]}–${scope[key] + size - 1} of ${n}`),
          el("button", { type: "button", onclick: step(key, n, size), "aria-label": `Later ${what}` }, "›"),
        ];
  box.replaceChildren(...one("rowFirst", rows, R, "rows"), ...one("colFirst", cols, C, "columns"));
}
// firstRow is where there is something to see: memories ask nothing, and long calls are looked at where
// their queries are.
function firstRow() {
  const { call, part, station, follow } = app.view,
    { reads } = scope.trace,
    { S, A } = app.run.info,
    asks = call !== "learned" && ["score", "weight", "query", "mixed", "written"].includes(part),
    first = asks ? (call === "critic" && station === "0.1" ? S * A : reads[0]) : 0;
  return Math.max(first, (reads[follow] || 0) - WINDOW + 40);
}
export function lookAt(station, part) {
  const { view } = app;
  view.station = station;
  const list = partsOf(station),
    has = (p) => list.some((x) => x[0] === p);
  view.part = has(part) ? part : has(view.part) ? view.part : list[0][0];
  if (!part && has("weight")) view.part = "weight";
  scope.rowFirst = scope.trace && ofTokens(view.part) ? firstRow() : 0;
  scope.colFirst = 0;
  scope.wanted = true;
  render();
}
// inspect brings the microscope to a matrix, with a query to follow and a cell
// of its row, or of row, to describe, and takes the focus there.
export async function inspect(call, station, part, follow, col, row) {
  const { view } = app;
  view.call = call;
  view.follow = follow;
  const t = await traced(call);
  scope.trace = t;
  view.row = row ?? (part === "results" ? follow : t.reads[follow]);
  view.col = col;
  scope.jump = true;
  $("microscope").classList.add("staged"); // a lesson hides what its scene does not show
  showTab("microscope");
  lookAt(station, part);
  $("microscope").scrollIntoView({ behavior: stillness() ? "auto" : "smooth" });
  $("matrix").focus({ preventScroll: true });
}
function pickRow(i) {
  const row = scope.rowFirst + i,
    n = scope.trace.reads.indexOf(app.view.call === "learned" ? row % app.run.info.A : row);
  if (n >= 0 && ofTokens(app.view.part)) {
    app.view.follow = n;
    render();
  }
}
async function showCall(call) {
  const { view } = app;
  try {
    if (call === "learned") await loadLearned();
    view.call = call;
    view.follow = 0;
    scope.jump = false;
    scope.heat.cursor = null;
    $("cell").replaceChildren(el("p", { class: "why" }, "No cell is picked yet."));
  } finally {
    lookAt(firstOf(view.call), "weight");
  }
}
export function buildMicroscope() {
  const { view } = app;
  scope.heat = new Heat($("matrix"), {
    label: "Matrix",
    hover: (i, j, speak) => aside(() => describe(i, j, speak)),
    pick: pickRow,
  });
  for (const input of all("[name=call]"))
    input.addEventListener("change", () => act(() => showCall(input.value)));
  $("follow").addEventListener("change", () => {
    view.follow = Number($("follow").value);
    lookAt(view.station, view.part);
  });
  new IntersectionObserver(
    ([e]) => {
      scope.wanted = e.isIntersecting;
      if (scope.wanted) render();
    },
    { rootMargin: "300px" },
  ).observe($("microscope"));
}
