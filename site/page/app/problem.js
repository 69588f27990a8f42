// The problem as one sees it: a map or a graph, and what can be changed in it.

import { $, act, el, message, plural, show } from "./base.js";
import { app, context, edit, phaseAt, render, replay, restart, undo } from "./state.js";
import { actionName, select, stateName } from "./selection.js";
import { drawMap, TILES } from "./map.js";
import { drawGraph } from "./graph.js";

// values returns V(s) = Σ π(a|s) Q(s,a) of what is on show.
function values() {
  const { pi, q } = context(),
    { S, A } = app.run.info;
  return Array.from({ length: S }, (_, s) => {
    let v = 0;
    for (let a = 0; a < A; a++) v += pi[s * A + a] * q[s * A + a];
    return v;
  });
}
function scene() {
  const draw = phaseAt(app.pos.k).grid ? drawMap : drawGraph;
  $("scene-key").replaceChildren(...draw($("scene"), values(), paint));
}
// paint changes places one after the other, while the pointer goes on.
let painted = Promise.resolve();
const paint = (s, tile) => {
  painted = painted.then(() => act(() => change({ kind: "tile", s, tile })));
};

// Moving through the scene with the keyboard.
function keys(e) {
  const d = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
  if (e.key === "Enter") {
    e.preventDefault();
    $("place-reward").focus();
    return;
  }
  if (!d || e.shiftKey) return;
  e.preventDefault();
  e.stopPropagation();
  const grid = phaseAt(app.pos.k).grid,
    { S } = app.run.info,
    s = app.view.state;
  let to = (s + d[0] + d[1] + S) % S;
  if (grid) {
    const x = (s % grid.width) + d[0],
      y = Math.floor(s / grid.width) + d[1];
    if (x < 0 || y < 0 || x >= grid.width || y >= grid.height) return;
    to = y * grid.width + x;
  }
  select(to);
  $("live").textContent = `${stateName(to)}: value ${show(values()[to], 3)}. ${policyWords(to)}`;
}
function policyWords(s) {
  const { pi } = context(),
    { A } = app.run.info;
  return (
    Array.from({ length: A }, (_, a) => `${actionName(a)} ${show(100 * pi[s * A + a], 2)} %`).join(", ") + "."
  );
}

// editRound is the round before which a change takes effect: a run that is over is made anew.
const editRound = () => (app.pos.k < app.run.settings.T ? app.pos.k : 0);
export async function change(e) {
  const over = app.pos.k >= app.run.settings.T;
  await edit({ a: 0, t: 0, value: 0, tile: "", k: e.kind === "start" ? 0 : editRound(), ...e });
  if (over && !app.playing) await replay();
}

function placeEditor() {
  const { state: s } = app.view,
    { A } = app.run.info,
    phase = phaseAt(app.pos.k),
    r = phase.r.subarray(s * A, s * A + A),
    same = r.every((v) => v === r[0]);
  $("place-name").textContent = phase.grid
    ? `Place ${s}: row ${Math.floor(s / phase.grid.width)}, column ${s % phase.grid.width}`
    : `State ${s}`;
  if (document.activeElement !== $("place-reward")) $("place-reward").value = same ? r[0] : "";
  $("place-reward").placeholder = same ? "" : "mixed";
  $("place-tiles").hidden = !phase.grid;
  if (phase.grid)
    for (const b of $("place-tiles").children) {
      const tile = phase.grid.tiles[s] === "S" ? (phase.grid.entering ? "~" : ".") : phase.grid.tiles[s];
      b.setAttribute("aria-pressed", String(b.dataset.tile === tile));
    }
  const n = app.run.edits.length;
  $("undo").disabled = !app.history.length;
  $("reset-edits").disabled = !n;
  $("edit-count").textContent = n ? `${plural(n, "change")}, marked with a dot` : "";
}

export function renderProblem() {
  scene();
  placeEditor();
}

async function setReward() {
  const text = $("place-reward").value,
    value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new Error("The reward must be a number; nothing was changed.");
  await change({ kind: "place", s: app.view.state, value });
}

export function buildProblem() {
  for (const [tile, name, why] of TILES)
    $("place-tiles").append(
      el(
        "button",
        {
          type: "button",
          "data-tile": tile,
          title: why,
          onclick: () => act(() => change({ kind: "tile", s: app.view.state, tile })),
        },
        name,
      ),
    );
  $("place-reward").addEventListener("change", () => act(setReward));
  $("scene").addEventListener("keydown", keys);
  $("undo").addEventListener("click", () => act(undoLast));
  $("reset-edits").addEventListener("click", () =>
    act(async () => {
      const { run, pos } = app;
      await restart({ ...run.settings, rmax: run.cap }, run.file, [], { // without the cap that a change needed
        k: pos.k < run.settings.T ? pos.k : 0,
        what: "before the reset",
      });
    }),
  );
  new ResizeObserver(() => render()).observe($("scene-box"));
}
async function undoLast() {
  await undo();
  message("The run before the last change is back.", "notice");
}
