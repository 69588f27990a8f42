// Rewards, transitions and the starting policy as tables, and changing them.

import { $, act, show } from "./base.js";
import { app, phaseAt } from "./state.js";
import { Heat } from "./heat.js";
import { change } from "./problem.js";

let edited = null, // the cell in the editor
  noted = null; // the table whose cell is described

// The tables: what a cell is called, and which change it stands for.
const pair = (i) => [Math.floor(i / app.run.info.A), i % app.run.info.A];
const TABLES = {
  rewards: {
    name: (i, j) => `r(s=${i}, a=${j})`,
    change: (i, j) => ({ kind: "reward", s: i, a: j, t: 0 }),
    why: () =>
      `The decoder was built for |r| ≤ ${show(app.run.info.certificate.RMax)}; for more it is certified and built anew.`,
  },
  transitions: {
    name: (i, j) => `P(s′=${j} | s=${pair(i)[0]}, a=${pair(i)[1]})`,
    change: (i, j) => ({ kind: "transition", s: pair(i)[0], a: pair(i)[1], t: j }),
    why: () => "The row’s other probabilities are rescaled to the rest.",
  },
  start: {
    name: (i, j) => `π₀(a=${j} | s=${i})`,
    change: (i, j) => ({ kind: "start", s: i, a: j, t: 0 }),
    why: () => "The row’s other probabilities are rescaled to the rest, and the run begins anew.",
  },
};
export const heats = {};
const tableOf = { reward: "rewards", place: "rewards", transition: "transitions", start: "start" };

export function buildNumbers() {
  for (const [id, x] of Object.entries(TABLES)) {
    const heat = (heats[id] = new Heat($(id), {
      hover: (i, j, speak) => {
        noted = id;
        const text = `${x.name(i, j)} = ${show(heat.data[i * heat.cols + j], 6)}`;
        $("cell-note").textContent = text;
        if (speak) $("live").textContent = text;
      },
      pick: (i, j) => openEditor({ ...x.change(i, j), name: x.name(i, j) }),
    }));
  }
  $("editor-set").addEventListener("click", () => act(applyEdit));
  $("editor-value").addEventListener("keydown", (e) => {
    if (e.key === "Enter") act(applyEdit);
    if (e.key === "Escape") closeEditor();
  });
  $("editor-cancel").addEventListener("click", closeEditor);
}
// marked returns the edited cells of each table that hold from the round on show.
function marked() {
  const { S, A } = app.run.info,
    marks = { rewards: new Set(), transitions: new Set(), start: new Set() };
  for (const e of app.run.edits) {
    if (e.k > app.pos.k) continue;
    if (e.kind === "reward") marks.rewards.add(e.s * A + e.a);
    if (e.kind === "place") for (let a = 0; a < A; a++) marks.rewards.add(e.s * A + a);
    if (e.kind === "transition") marks.transitions.add((e.s * A + e.a) * S + e.t);
    if (e.kind === "start") marks.start.add(e.s * A + e.a);
    if (e.kind === "tile")
      for (let a = 0; a < A; a++)
        for (let t = 0; t < S; t++)
          if (phaseAt(app.pos.k).p[(e.s * A + a) * S + t] !== app.run.phases[0].p[(e.s * A + a) * S + t])
            marks.transitions.add((e.s * A + a) * S + t);
  }
  return marks;
}
const number = (i) => String(i);
export function renderNumbers() {
  const { S, A } = app.run.info,
    phase = phaseAt(app.pos.k),
    marks = marked();
  const small = { rows: S, cols: A, heads: [number, number], titles: ["s", "a"], maxCell: 34, text: A <= 6 };
  heats.rewards.set({
    ...small,
    data: phase.r,
    scale: app.run.info.certificate.RMax,
    marks: marks.rewards,
    label: `Rewards, ${S} states by ${A} actions. Enter changes a cell.`,
  });
  heats.start.set({
    ...small,
    data: phase.pi0,
    scale: 1,
    marks: marks.start,
    label: `Starting policy, ${S} states by ${A} actions. Enter changes a cell.`,
  });
  heats.transitions.set({
    rows: S * A,
    cols: S,
    data: phase.p,
    scale: 1,
    heads: [(i) => (i % A ? "" : String(i / A)), number],
    titles: ["s, and its actions", "s′"],
    maxCell: 34,
    marks: marks.transitions,
    label: `Transition probabilities, ${S * A} pairs by ${S} successors. Enter changes a cell.`,
  });
  if (noted && heats[noted].cursor) heats[noted].hover(...heats[noted].cursor, false);
}
// present returns the value that a change would replace.
function present(e) {
  const { S, A } = app.run.info,
    phase = phaseAt(app.pos.k);
  if (e.kind === "transition") return phase.p[(e.s * A + e.a) * S + e.t];
  return (e.kind === "start" ? phase.pi0 : phase.r)[e.s * A + e.a];
}
function when(e) {
  const { pos, run } = app;
  if (e.kind === "start") return "";
  if (pos.k >= run.settings.T) return " The run is over, so it is made anew from round 0 with the change.";
  const later = run.edits.some((x) => x.k > pos.k);
  if (!pos.k && !later) return "";
  return (
    " The change takes effect from the round on show" + (later ? "; changes of later rounds stay." : ".")
  );
}
export function openEditor(e) {
  edited = { ...e };
  delete edited.name;
  const x = TABLES[tableOf[e.kind]];
  $("editor-name").textContent = e.name || e.kind;
  $("editor-value").value = present(e);
  $("editor-why").textContent = x.why() + when(e);
  $("editor").hidden = false;
  $("editor-value").focus();
  $("editor-value").select();
}
function closeEditor() {
  $("editor").hidden = true;
  $(tableOf[edited.kind]).focus({ preventScroll: true });
}
async function applyEdit() {
  const text = $("editor-value").value,
    value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new Error("The new value must be a number; nothing was changed.");
  await change({ ...edited, value });
  closeEditor();
}
