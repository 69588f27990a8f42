// Files: loading and saving a problem, exporting the run.

import { $, act, el } from "./base.js";
import { app, phaseAt, restart } from "./state.js";
import { picture } from "./picture.js";

const MAX_FILE = 4e6;
async function loadFile(file) {
  if (!file) return;
  if (file.size > MAX_FILE)
    throw new Error(
      `${file.name} is ${Math.round(file.size / 1e6)} MB; a problem of 64 states and 16 actions has less than ${MAX_FILE / 1e6}. Nothing was changed.`,
    );
  let x;
  try {
    x = JSON.parse(await file.text());
  } catch (e) {
    throw new Error(`${file.name} is not JSON: ${e.message.slice(0, 80)}. Nothing was changed.`);
  }
  const problem = readProblem(x);
  const settings = {
    ...app.run.settings,
    preset: "file",
    S: problem.states,
    A: problem.actions,
    gamma: problem.gamma,
    rmax: 0,
  };
  await restart(settings, problem, [], { what: "of the problem before" }).catch((e) => {
    throw new Error(`${e.message}. Nothing was changed.`);
  });
}
// readProblem turns the project's JSON of an MDP into tables; the library checks them.
function readProblem(x) {
  const bad = (why) => new Error(`This is not the JSON of an MDP: ${why}. Nothing was changed.`);
  if (!x || typeof x !== "object" || Array.isArray(x)) throw bad("want an object with gamma, P and r");
  for (const key of Object.keys(x))
    if (!["gamma", "P", "r", "pi0"].includes(key))
      throw bad(`there is an unknown field “${key.slice(0, 40)}”`);
  if (typeof x.gamma !== "number") throw bad("gamma is missing or not a number");
  const states = Array.isArray(x.r) ? x.r.length : 0,
    actions = states && Array.isArray(x.r[0]) ? x.r[0].length : 0;
  if (states < 1 || actions < 2 || states > 64 || actions > 16)
    throw bad(`r is ${states} by ${actions}, the page takes 1 to 64 states and 2 to 16 actions`);
  const table = (name, rows, n, m) => {
    if (!Array.isArray(rows) || rows.length !== n)
      throw bad(`${name} has ${rows?.length ?? "no"} rows, want ${n}`);
    return rows.flatMap((row) => {
      if (!Array.isArray(row) || row.length !== m || row.some((v) => typeof v !== "number"))
        throw bad(`a row of ${name} is not ${m} numbers`);
      return row;
    });
  };
  const r = table("r", x.r, states, actions);
  if (!Array.isArray(x.P) || x.P.length !== states) throw bad(`P does not have ${states} states`);
  const p = x.P.flatMap((rows, s) => table(`P[${s}]`, rows, actions, states));
  const pi0 =
    x.pi0 === undefined || x.pi0 === null
      ? Array(states * actions).fill(1 / actions)
      : table("pi0", x.pi0, states, actions);
  return {
    states,
    actions,
    gamma: x.gamma,
    p: Float64Array.from(p),
    r: Float64Array.from(r),
    pi0: Float64Array.from(pi0),
  };
}
const rowsOf = (x, m) =>
  Array.from({ length: x.length / m }, (_, i) => Array.from(x.subarray(i * m, (i + 1) * m)));
function problemJSON() {
  const { S, A, gamma } = app.run.info,
    phase = phaseAt(app.pos.k),
    rows = rowsOf(phase.p, S);
  return (
    JSON.stringify({
      gamma,
      P: Array.from({ length: S }, (_, s) => rows.slice(s * A, (s + 1) * A)),
      r: rowsOf(phase.r, A),
      pi0: rowsOf(phase.pi0, A),
    }) + "\n"
  );
}
// A notebook may show this page in a frame that is not allowed to save files.
export const sandboxed = self.origin === "null" && location.protocol.startsWith("http");
function download(name, blob) {
  if (sandboxed)
    throw new Error("The frame around this page may not save files; open the page by itself for that.");
  const a = el("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
const SCALARS = [
  "zeta",
  "zetaBound",
  "delta",
  "deltaBound",
  "route",
  "routeBound",
  "sampling",
  "defect",
  "loss",
  "bound",
  "initial",
  "critic",
  "greedy",
  "last",
];
function trajectoryCSV() {
  const lines = [["controller", "round", ...SCALARS, "start_loss"].join(",")];
  for (const name of app.shown)
    (app.run.rounds[name] || []).forEach((r, k) =>
      lines.push([name, k, ...SCALARS.map((s) => r[s]), phaseAt(k).gap].join(",")),
    );
  return lines.join("\n") + "\n";
}
function trajectoryJSON() {
  const { S, A } = app.run.info,
    controllers = {};
  for (const name of app.shown)
    controllers[name] = (app.run.rounds[name] || []).map((r, k) => ({
      round: k,
      ...Object.fromEntries(SCALARS.map((s) => [s, r[s]])),
      pi: rowsOf(r.pi, A),
      q: rowsOf(r.q, A),
      next_pi: rowsOf(r.nextPi, A),
      next_q: rowsOf(r.nextQ, A),
    }));
  return JSON.stringify({
    settings: { ...app.run.settings, S, A },
    edits: app.run.edits,
    states: S,
    actions: A,
    gamma: app.run.info.gamma,
    certificate: app.run.info.certificate,
    problem: JSON.parse(problemJSON()),
    e0: phaseAt(0).e0,
    gap: phaseAt(0).gap,
    controllers,
  });
}
async function exportAs(kind) {
  $("export").open = false;
  const base = `policyattention-${app.run.settings.preset}-seed${app.run.settings.seed}`;
  if (kind === "csv") download(base + ".csv", new Blob([trajectoryCSV()], { type: "text/csv" }));
  if (kind === "json") download(base + ".json", new Blob([trajectoryJSON()], { type: "application/json" }));
  if (kind === "svg") download(base + ".svg", new Blob([picture()], { type: "image/svg+xml" }));
  if (kind === "png") {
    const url = URL.createObjectURL(new Blob([picture()], { type: "image/svg+xml" })),
      image = new Image();
    image.src = url;
    await image.decode();
    const canvas = el("canvas", { width: 2320, height: 1328 });
    canvas.getContext("2d").drawImage(image, 0, 0, 2320, 1328);
    URL.revokeObjectURL(url);
    download(base + ".png", await new Promise((r) => canvas.toBlob(r, "image/png")));
  }
}

export function buildFiles() {
  for (const b of document.querySelectorAll("[data-export]"))
    b.addEventListener("click", () => act(() => exportAs(b.dataset.export)));
  $("load").addEventListener("change", ({ target }) => {
    const file = target.files[0];
    target.value = ""; // so that the same file can be chosen again
    act(() => loadFile(file));
  });
  addEventListener("dragover", (e) => e.preventDefault());
  addEventListener("drop", (e) => {
    e.preventDefault(); // else the browser would open the file in place of the page
    act(() => loadFile(e.dataTransfer.files[0]));
  });
  $("save").addEventListener("click", () =>
    act(() => download("mdp.json", new Blob([problemJSON()], { type: "application/json" }))),
  );
}
