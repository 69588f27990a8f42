// What a visitor can set, and the forms to set it with.

import { $, act, el, message, show } from "./base.js";
import { MOST_REWARD, app, play, replay, restart } from "./state.js";
import { term } from "./glossary.js";

export const PRESETS = {
  maze: "Maze 5×5",
  "frozen-lake": "FrozenLake 4×4",
  "frozen-lake-8x8": "FrozenLake 8×8",
  random: "Random",
  "sparse-transitions": "Sparse transitions",
  "sparse-rewards": "Sparse rewards",
  ring: "Ring",
  "strong-mixing": "Strong mixing",
  "lock-up": "Lock-up witness",
  file: "Loaded from a file",
};
// What suits a preset, where it is not the usual.
export const SUITS = {
  maze: { m: 16 },
  "frozen-lake": { gamma: 0.95, eta: 10 },
  "frozen-lake-8x8": { gamma: 0.95, eta: 20, T: 60 },
};
export const SETTINGS = {
  preset: { name: "Problem", choices: PRESETS, start: "random", place: "knobs" },
  // Those that slide have no field.
  eta: { name: "Step", term: "eta", min: 1e-12, max: 1e12, start: 0.8, slides: true },
  gamma: { name: "Discount", term: "gamma", min: 0, max: 0.999, start: 0.9, slides: true },
  m: { name: "Packets", term: "m", min: 1, max: 64, whole: true, start: 6, slides: true },
  S: { name: "States", term: "S", min: 2, max: 64, whole: true, start: 8 },
  A: { name: "Actions", term: "A", min: 2, max: 16, whole: true, start: 3 },
  seed: { name: "Seed", min: 0, max: 2 ** 53 - 1, whole: true, start: 1 },
  T: { name: "Rounds", term: "T", min: 1, max: 200, whole: true, start: 40 },
  expected: { name: "Exact expectations instead of samples", flag: true, start: false },
  phi: { name: "Mixture", term: "phi", min: 0, max: 1, start: 0, slides: true },
  tol: { name: "Tolerance", term: "eps", min: 1e-12, max: 1.9, start: 0.001 },
  rmax: { name: "Reward cap", term: "rmax", min: 0, max: MOST_REWARD, start: 0, auto: "by the problem" },
  kappa: { name: "Margin κ", term: "kappa", min: 0, max: 1e6, start: 0, auto: "by ε_r" },
  tau1: { name: "Margin τ₁", term: "tau", min: 0, max: 1e6, start: 0, auto: "by ε_r" },
  tau2: { name: "Margin τ₂", term: "tau", min: 0, max: 1e6, start: 0, auto: "by ε_r" },
  H: { name: "Carrier", term: "H", min: 1, max: 1e15, start: 1e6 },
};
const FIELDS = Object.entries(SETTINGS).filter(([, f]) => !f.slides);
const FAMILIES = ["random", "sparse-transitions", "sparse-rewards", "ring", "strong-mixing"];
// What a link means that does not name a setting.
export const defaults = () => Object.fromEntries(Object.entries(SETTINGS).map(([k, f]) => [k, f.start]));

// fullName names a setting with its symbol: “Step η”.
const SYMBOLS = {
  eta: "η",
  gamma: "γ",
  m: "m",
  S: "S",
  A: "A",
  T: "T",
  phi: "φ",
  eps: "ε_r",
  rmax: "R_max",
  H: "H",
};
const fullName = (key) => [SETTINGS[key].name, SYMBOLS[SETTINGS[key].term]].filter(Boolean).join(" ");

// check returns the setting's value for a text, or throws what is wrong with it.
export function check(key, text) {
  const f = SETTINGS[key];
  if (f.choices) {
    if (!Object.hasOwn(f.choices, text))
      throw new Error(`${f.name} “${String(text).slice(0, 40)}” is not one of the presets.`);
    return text;
  }
  if (f.flag) {
    if (!["0", "1", "true", "false"].includes(String(text))) throw new Error(`“${f.name}” takes 0 or 1.`);
    return text === true || text === "1" || text === "true";
  }
  if (f.auto && String(text).trim() === "") return 0;
  const value = String(text).trim() === "" || String(text).length > 40 ? NaN : Number(text);
  if (!(value >= f.min && value <= f.max) || (f.whole && !Number.isInteger(value)))
    throw new Error(
      `${fullName(key)} must be a ${f.whole ? "whole " : ""}number from ${show(f.min)} to ${show(f.max)}; ${String(text).trim() ? `“${String(text).slice(0, 40)}” is not` : "it is empty"}.`,
    );
  return value;
}

function inputFor(key, f) {
  const id = "set-" + key;
  if (f.choices)
    return el(
      "select",
      { id },
      Object.entries(f.choices).map(([v, n]) => el("option", { value: v, hidden: v === "file" }, n)),
    );
  if (f.flag) return el("input", { id, type: "checkbox" });
  return el("input", {
    id,
    type: "number",
    min: f.min,
    max: f.max,
    step: f.whole ? 1 : "any",
    placeholder: f.auto || "",
    inputmode: "decimal",
  });
}
export function buildSettings() {
  // No form element: a sandboxed frame may not submit one.
  for (const [key, f] of FIELDS) {
    const input = inputFor(key, f),
      label = el("label", { for: "set-" + key }, f.name);
    input.addEventListener("change", () => act(() => settingsChanged(key)));
    const symbol = f.term && SYMBOLS[f.term] ? term(f.term) : null;
    $(f.place || "settings").append(
      f.flag
        ? el("div", { class: "field check" }, input, label)
        : el(
            "div",
            { class: "field" },
            el("span", { class: "name" }, label, symbol ? " " : "", symbol),
            input,
          ),
    );
  }
}
export function fillSettings() {
  const { run } = app,
    fixed = !FAMILIES.includes(run.settings.preset);
  for (const [key, f] of FIELDS) {
    const input = $("set-" + key),
      v = run.settings[key];
    input.removeAttribute("aria-invalid");
    if (f.flag) input.checked = v;
    else input.value = f.auto && v === 0 ? "" : v;
  }
  for (const key of ["S", "A"]) {
    $("set-" + key).disabled = fixed;
    $("set-" + key).value = run.info[key];
  }
  $("set-seed").disabled = false;
  $("set-preset").querySelector("[value=file]").hidden = !run.file;
  $("shell").textContent =
    `policyattention solve --mdp mdp.json --eta ${run.settings.eta} --rounds ${run.settings.T} --tol 0`;
}
// nextSettings returns what the form's entry for key makes of the settings, and the file.
function nextSettings(key) {
  const { run } = app,
    input = $("set-" + key),
    next = { ...run.settings },
    { file } = run;
  next[key] = check(key, SETTINGS[key].flag ? input.checked : input.value);
  if (key === "preset") {
    const { S, A, gamma, eta, m, T } = SETTINGS;
    Object.assign(
      next,
      { S: S.start, A: A.start, gamma: gamma.start, eta: eta.start, m: m.start, T: T.start, rmax: 0 },
      SUITS[next.preset],
    );
    if (FAMILIES.includes(next.preset) && FAMILIES.includes(run.settings.preset))
      Object.assign(next, { S: run.info.S, A: run.info.A });
    if (next.preset === "file") {
      if (!file) throw new Error("Load an MDP first.");
      Object.assign(next, { S: file.states, A: file.actions, gamma: file.gamma });
    }
  }
  if (key === "S" || key === "A") next.rmax = run.cap; // the changes that needed more are dropped
  return { next, file };
}
const RUN = { seed: "with seed ", T: "with T = " };
async function settingsChanged(key) {
  const input = $("set-" + key),
    { run, playing } = app,
    over = app.pos.k >= run.settings.T;
  try {
    const { next, file } = nextSettings(key),
      shape = ["preset", "S", "A"].includes(key),
      what = RUN[key] ? RUN[key] + show(run.settings[key]) : "before the change";
    if (next.preset === "lock-up") app.shown.add("idle");
    await restart(next, file, shape ? [] : run.edits, { what, k: shape || over ? 0 : app.pos.k });
    if (shape && run.edits.length)
      message("The changes belonged to the previous problem and were dropped with it; Undo restores it.", "notice");
    if (over) await replay();
    else if (playing) setTimeout(play);
  } catch (e) {
    input.setAttribute("aria-invalid", "true");
    setTimeout(() => app.run && fillSettings(), 2500);
    throw e;
  }
}
