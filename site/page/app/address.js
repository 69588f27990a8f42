// The address, which holds the whole state.

import { $, message } from "./base.js";
import { CONTROLLERS, app, begin, go } from "./state.js";
import { SETTINGS, SUITS, check, defaults, fillSettings } from "./settings.js";
import { CALLS, partsOf, stationsOf } from "./scope.js";
import { packPins, packProblem, unpackPins, unpackProblem } from "./pack.js";
import { loadLearned } from "./learned.js";
import { toggle } from "./result.js";

// An edit as text: round, kind, place, and what it becomes, parted by colons.
const KINDS = { r: "reward", p: "transition", v: "place", t: "tile", i: "start" };
const LETTER = Object.fromEntries(Object.entries(KINDS).map(([x, kind]) => [kind, x]));
const TILES = { f: ".", i: "~", w: "#", g: "G", h: "H", s: "S" };
const TILE_LETTER = Object.fromEntries(Object.entries(TILES).map(([x, tile]) => [tile, x]));
const FIELDS = {
  reward: ["s", "a", "value"],
  transition: ["s", "a", "t", "value"],
  place: ["s", "value"],
  tile: ["s", "tile"],
  start: ["s", "a", "value"],
};

const editText = (e) =>
  [e.k, LETTER[e.kind], ...FIELDS[e.kind].map((f) => (f === "tile" ? TILE_LETTER[e.tile] : e[f]))].join(":");
// whole returns a whole number from 0 to max, or throws which part of a link is none.
function whole(text, name, max) {
  const v = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
  if (!(v <= max)) throw new Error(`The link’s ${name} is “${String(text).slice(0, 40)}”.`);
  return v;
}
function readEdit(text, settings) {
  const bad = () => new Error(`The link’s edit “${text.slice(0, 40)}” cannot be read.`),
    [k, letter, ...rest] = text.split(":"),
    kind = Object.hasOwn(KINDS, letter) && KINDS[letter];
  if (!kind || rest.length !== FIELDS[kind].length) throw bad();
  const e = { k: whole(k, "edit’s round", settings.T), kind, s: 0, a: 0, t: 0, value: 0, tile: "" };
  if (kind === "start" && e.k !== 0) throw bad();
  const most = { s: 63, a: 15, t: 63 },
    names = { s: "state", a: "action", t: "successor" };
  FIELDS[kind].forEach((f, i) => {
    if (f === "tile") {
      if (!Object.hasOwn(TILES, rest[i])) throw bad();
      e.tile = TILES[rest[i]];
    } else if (f === "value") {
      e.value = Number(rest[i]);
      if (rest[i].trim() === "" || !Number.isFinite(e.value)) throw bad();
    } else e[f] = whole(rest[i], "edit’s " + names[f], most[f]);
  });
  return e;
}

// stateNow is what open needs to show again what is there now.
export function stateNow() {
  const { run, pos, view, shown } = app,
    { settings, file, edits, cap } = run,
    { call, station, part, follow, net, state, action } = view;
  return {
    settings,
    file,
    edits: [...edits],
    cap,
    k: pos.k,
    stage: pos.stage,
    shown: [...shown],
    view: { call, station, part, follow },
    pins: [...app.pins],
    net,
    at: [state, action],
  };
}
// address returns the hash that stands for all there is to see.
export async function address() {
  const { run, pos, view, shown } = app,
    p = new URLSearchParams(),
    d = usualOf(run.settings.preset);
  for (const key of Object.keys(SETTINGS))
    if (run.settings[key] !== d[key]) p.set(key, run.settings[key] === true ? "1" : run.settings[key]);
  if (run.settings.preset === "file") p.set("mdp", await packProblem(run.file));
  if (run.edits.length) p.set("edits", lastOnly(run.edits).map(editText).join("~"));
  if (run.cap !== run.settings.rmax) p.set("cap", String(run.cap));
  if (pos.k) p.set("k", String(pos.k));
  if (pos.stage) p.set("stage", String(pos.stage));
  const also = [...shown].filter((n) => n !== "decoder").sort();
  if (also.join(".") !== "exact") p.set("show", also.join("."));
  if (app.pins.length) p.set("pins", packPins(app.pins));
  if (view.state || view.action) p.set("at", `${view.state}.${view.action}`);
  if (view.net !== "decoder") p.set("net", view.net);
  if (view.call !== "actor" || view.station !== "0.0" || view.part !== "score" || view.follow)
    p.set("view", [view.call, view.station, view.part, view.follow].join("/"));
  return "#" + (p.toString() || "preset=random");
}
// lastOnly leaves out changes that a later one of the same thing before the same round undoes.
const sameThing = (x, y) => ["k", "kind", "s", "a", "t"].every((f) => x[f] === y[f]);
const lastOnly = (edits) => edits.filter((e, i) => !edits.slice(i + 1).some((later) => sameThing(e, later)));
let timer = 0,
  problem = null; // what the address stood for when it was last written
export function remember() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    if (!app.run || app.playing || app.work) return;
    const { run } = app,
      hash = await address();
    if (app.run !== run) return;
    const now = JSON.stringify([run.settings, run.edits]),
      changed = problem !== null && problem !== now;
    problem = now;
    // Back takes back changes of the problem and of settings, not moves through the rounds.
    if (hash !== location.hash) history[changed ? "pushState" : "replaceState"](null, "", hash);
  }, 250);
}

// The page's own start: what an address without a hash shows.
const usual = () => ({
  settings: { ...defaults(), preset: "maze", ...SUITS.maze },
  file: null,
  edits: [],
  k: 0,
  stage: 0,
  shown: ["decoder", "exact"],
  view: { call: "actor", station: "0.0", part: "score", follow: 0 },
  net: "decoder",
  at: [12, 1],
});
const KNOWN = new Set([...Object.keys(SETTINGS), "mdp", "edits", "cap", "k", "stage", "show", "pins", "view", "at", "net"]);

function readSettings(p) {
  for (const key of p.keys())
    if (!KNOWN.has(key)) throw new Error(`The link has an unknown entry “${key.slice(0, 40)}”.`);
  const preset = p.has("preset") ? check("preset", p.get("preset")) : defaults().preset,
    settings = { ...usualOf(preset), preset };
  for (const key of Object.keys(SETTINGS))
    if (p.has(key) && !(key === "gamma" && settings.preset === "file"))
      // that of a file is its own
      settings[key] =
        key === "S" && settings.preset === "file" && p.get(key) === "1" ? 1 : check(key, p.get(key));
  return settings;
}
function readNet(text) {
  if (text !== "decoder" && text !== "learned")
    throw new Error(`The link names a network “${text.slice(0, 40)}”.`);
  return text;
}
function readView(text) {
  const [call, station, part, follow] = text.split("/");
  if (
    !CALLS.includes(call) ||
    !stationsOf(call).some((s) => s[0] === station) ||
    !partsOf(station).some((x) => x[0] === part)
  )
    throw new Error("The link names a matrix that is not there.");
  return { call, station, part, follow: whole(follow || "0", "query", 1023) };
}
// usualOf returns what a link to a preset means that names no other settings: what the menu starts.
const usualOf = (preset) => ({ ...defaults(), ...SUITS[preset] });
// readAddress returns the state in a hash or throws what is wrong with it.
async function readAddress(hash) {
  if (hash.length > 2e5) throw new Error("The link is too long.");
  const p = new URLSearchParams(hash.replace(/^#/, "")),
    state = usual();
  if ([...p.keys()].length === 0) return state;
  state.at = [0, 0];
  const settings = (state.settings = readSettings(p));
  if (settings.preset === "file") state.file = await unpackProblem(p.get("mdp") || "", settings);
  if (state.file) settings.gamma = state.file.gamma;
  if (p.has("edits")) {
    const list = p.get("edits").split("~");
    if (list.length > 500) throw new Error("The link has more than 500 edits.");
    state.edits = list.map((text) => readEdit(text, settings));
  }
  if (p.has("cap")) state.cap = check("rmax", p.get("cap"));
  if (p.has("k")) state.k = whole(p.get("k"), "round", settings.T);
  if (p.has("stage")) state.stage = whole(p.get("stage"), "stage", 3);
  if (p.has("at")) {
    const [s, a] = p.get("at").split(".");
    state.at = [whole(s, "state", 63), whole(a || "0", "action", 15)];
  }
  if (p.has("show")) {
    state.shown = [
      "decoder",
      ...p
        .get("show")
        .split(".")
        .filter((n) => n),
    ];
    for (const n of state.shown)
      if (!Object.hasOwn(CONTROLLERS, n)) throw new Error(`The link names a controller “${n.slice(0, 40)}”.`);
  }
  if (p.has("pins")) state.pins = unpackPins(p.get("pins"));
  if (p.has("view")) state.view = readView(p.get("view"));
  if (p.has("net")) state.net = readNet(p.get("net"));
  return state;
}
// withLearned loads the trained network that a link looks into; without its weights
// the fixed one is shown.
async function withLearned() {
  try {
    await loadLearned();
  } catch (e) {
    message(e.message);
    Object.assign(app.view, usual().view, { net: "decoder" });
  }
}
// queriesOf returns how many queries there are to follow in a call.
function queriesOf(call) {
  const { S, A } = app.run.info;
  return { critic: S * A, learned: A }[call] || S;
}
// open shows a state. It returns as soon as there is something to see; what is
// still to be computed then comes on its own.
export async function open(state) {
  await begin(state.settings, state.file, state.edits, false, state.cap);
  app.shown = new Set(state.shown.filter((n) => n !== "learned"));
  app.ghost = null;
  app.pins = state.pins || [];
  Object.assign(app.view, state.view, { net: state.net });
  app.view.follow = Math.min(state.view.follow, queriesOf(app.view.call) - 1);
  if (state.net === "learned" || state.view.call === "learned") await withLearned();
  [app.view.state, app.view.action] = [
    Math.min(state.at[0], app.run.info.S - 1),
    Math.min(state.at[1], app.run.info.A - 1),
  ];
  fillSettings();
  await go(0, 0);
  if (state.shown.includes("learned")) await toggle("learned").catch((e) => message(e.message));
  if (state.k || state.stage) {
    const far = go(Math.min(state.k, state.settings.T), state.stage).catch((e) => message(e.message));
    await Promise.race([far, new Promise((r) => setTimeout(r, 300))]);
  }
}
export async function openAddress(hash) {
  try {
    const state = await readAddress(hash);
    message(""); // what an earlier link was told
    await open(state);
    if (new URLSearchParams(hash.slice(1)).has("view")) $("microscope").scrollIntoView();
    return true;
  } catch (e) {
    message(
      `${e.message.replace(/[.]?$/, ".")} ${app.run ? "Nothing was changed." : "The page shows its usual start instead."}`,
    );
    return false;
  }
}
export const openUsual = () => open(usual());
