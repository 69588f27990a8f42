// Files: loading and saving a problem, exporting the run.

import { $, act, all, el, message, plural, show } from "./base.js";
import { engine, fullEngine } from "./engine.js";
import { app, go, phaseAt, restart, restore, stop, aside } from "./state.js";
import { picture } from "./picture.js";

// decodeFile reads a problem from a file of any format.
async function decodeFile(name, bytes) {
  await fullEngine(restore);
  return engine.call("decode", name, bytes, $("layout").value);
}
const MAX_FILE = 4e6;
async function loadFile(file) {
  if (!file) return;
  if (file.size > MAX_FILE)
    throw new Error(
      `${file.name} is ${Math.round(file.size / 1e6)} MB; a problem of 64 states and 16 actions has less than ${MAX_FILE / 1e6}. Nothing was changed.`,
    );
  await take(file.name, new Uint8Array(await file.arrayBuffer()));
}
// take runs the problem in a file's bytes.
async function take(name, bytes) {
  const said = (e) => new Error(`${e.message.replace(/^mdp(file)?: /, "").replace(/[.]$/, "")}. Nothing was changed.`);
  try {
    const problem = await decodeFile(name, bytes);
    await restart(
      { ...app.run.settings, preset: "file", S: problem.states, A: problem.actions, gamma: problem.gamma, rmax: 0, eta: 0 },
      problem,
      [],
      { what: "of the problem before" },
    );
    $("yours-said").textContent = [
      `${name}: ${plural(problem.states, "state")}, ${plural(problem.actions, "action")}, γ = ${show(problem.gamma)}.`,
      `η = ${show(app.run.settings.eta)} suits it, as --eta auto says.`,
      ...problem.notes.map((n) => n.replace(/[.]?$/, ".")),
      never(problem),
    ].join(" ");
    if (never(problem)) message(never(problem), "notice");
  } catch (e) {
    throw said(e);
  }
}
// never says that a start without an action never takes it.
function never({ pi0, r }) {
  const n = pi0.filter((v, i) => v === 0 && r[i] !== -Infinity).length;
  return n
    ? `π₀ gives ${plural(n, "action")} probability 0: log 0 + ηQ stays −∞, so they are never taken, whatever they are worth.`
    : "";
}
// check says while one types what is wrong with the text.
const EXAMPLE = `# gamma: 0.9
state,action,next,probability,reward
home,walk,shop,1,0
home,stay,home,1,1
shop,walk,home,0.9,3
shop,walk,shop,0.1,0
shop,stay,shop,1,0.5`;
const nameOf = (text) => (/^\s*[{[]/.test(text) ? "pasted.json" : /^\s*(discount|states)\s*:/m.test(text) ? "pasted.MDP" : "pasted.csv");
const pasted = () => [nameOf($("yours").value), new TextEncoder().encode($("yours").value)];
async function check() {
  if (!$("yours").value.trim()) return ($("yours-said").textContent = "");
  try {
    const p = await decodeFile(...pasted());
    $("yours-said").textContent = `It can be read: ${plural(p.states, "state")}, ${plural(p.actions, "action")}, γ = ${show(p.gamma)}.`;
  } catch (e) {
    $("yours-said").textContent = e.message;
  }
}
function buildYours() {
  let timer = 0;
  $("yours").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => aside(check), 400);
  });
  $("yours-example").addEventListener("click", () =>
    act(() => {
      $("yours").value = EXAMPLE;
      return check();
    }),
  );
  $("yours-run").addEventListener("click", () => act(() => take(...pasted())));
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
    e0: phaseAt(0).gap, // Q_0 is Q^{π₀}
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
    const canvas = el("canvas", { width: 2320, height: 1328 });
    await paintPicture(canvas);
    download(base + ".png", await new Promise((r) => canvas.toBlob(r, "image/png")));
  }
  if (kind === "webm") download(base + ".webm", await film());
}
async function paintPicture(canvas) {
  const url = URL.createObjectURL(new Blob([picture()], { type: "image/svg+xml" })),
    image = new Image();
  image.src = url;
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
}
// film records the picture from round to round, about six seconds in all.
async function film() {
  if (!self.MediaRecorder?.isTypeSupported("video/webm")) throw new Error("This browser records no WebM.");
  const canvas = el("canvas", { width: 1160, height: 664 }),
    { T } = app.run.settings,
    k = app.pos.k,
    parts = [];
  stop();
  await go(0, 0);
  await paintPicture(canvas);
  const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: "video/webm" }),
    over = new Promise((r) => (recorder.onstop = r));
  recorder.ondataavailable = (e) => parts.push(e.data);
  recorder.start();
  for (let i = 0; i <= T; i += Math.ceil(T / 60)) {
    await go(i, 0);
    await new Promise(requestAnimationFrame); // the map is drawn
    await paintPicture(canvas);
    await new Promise((r) => setTimeout(r, 100));
  }
  recorder.stop();
  await over;
  await go(k, 0);
  return new Blob(parts, { type: "video/webm" });
}

export function buildFiles() {
  buildYours();
  for (const b of all("[data-export]"))
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
