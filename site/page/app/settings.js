// What a visitor can set, and the form to set it with.

const PRESETS = {
  random: "Random",
  "sparse-transitions": "Sparse transitions",
  "sparse-rewards": "Sparse rewards",
  ring: "Ring",
  "strong-mixing": "Strong mixing",
  "frozen-lake": "FrozenLake 4×4",
  "lock-up": "Lock-up witness",
  file: "Loaded from a file",
};
const SETTINGS = {
  preset: { name: "Preset", choices: PRESETS, start: "random", full: true },
  S: { name: "States S", min: 2, max: 16, whole: true, start: 8 },
  A: { name: "Actions A", min: 2, max: 16, whole: true, start: 3 },
  seed: { name: "Seed", min: 0, max: 2 ** 53 - 1, whole: true, start: 1 },
  gamma: { name: "Discount γ", min: 0, max: 0.999, start: 0.9 },
  eta: { name: "Step η", min: 0.001, max: 20, start: 0.8 },
  m: { name: "Packets m", min: 1, max: 64, whole: true, start: 6 },
  T: { name: "Rounds T", min: 1, max: 200, whole: true, start: 40 },
  expected: { name: "Exact expectations instead of samples", flag: true, start: false, full: true },
  phi: { name: "Mixture φ", min: 0, max: 1, start: 0, more: true },
  tol: { name: "Tolerance ε_r", min: 1e-12, max: 1.9, start: 0.001, more: true },
  kappa: { name: "Margin κ", min: 0, max: 1e6, start: 0, more: true, auto: true },
  tau1: { name: "Margin τ₁", min: 0, max: 1e6, start: 0, more: true, auto: true },
  tau2: { name: "Margin τ₂", min: 0, max: 1e6, start: 0, more: true, auto: true },
  H: { name: "Carrier H", min: 1, max: 1e15, start: 1e6, more: true },
};
const defaults = () => Object.fromEntries(Object.entries(SETTINGS).map(([k, f]) => [k, f.start]));

// check returns the setting's value for a text, or throws what is wrong with it.
function check(key, text) {
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
      `${f.name} is “${String(text).slice(0, 40)}”, want ${f.whole ? "a whole number" : "a number"} from ${show(f.min)} to ${show(f.max)}.`,
    );
  return value;
}

function buildSettings() {
  const form = $("settings"), // not a form element: a sandboxed frame may not submit one
    more = el("div"),
    box = el("details", { class: "more" }, el("summary", {}, "More: margins, mixture, carrier"), more);
  for (const [key, f] of Object.entries(SETTINGS)) {
    const id = "set-" + key;
    let input;
    if (f.choices)
      input = el(
        "select",
        { id },
        Object.entries(f.choices).map(([v, n]) => el("option", { value: v, hidden: v === "file" }, n)),
      );
    else if (f.flag) input = el("input", { id, type: "checkbox" });
    else
      input = el("input", {
        id,
        type: "number",
        min: f.auto ? 0 : f.min,
        max: f.max,
        step: f.whole ? 1 : "any",
        placeholder: f.auto ? "by ε_r" : "",
        inputmode: "decimal",
      });
    input.addEventListener("change", () => act(() => settingsChanged(key)));
    const label = f.flag
      ? el("label", { class: "check full" }, input, f.name)
      : el("label", { class: f.full ? "full" : "" }, f.name, input);
    (f.more ? more : form).append(label);
  }
  more.append(
    el(
      "p",
      { class: "why" },
      "Without entries, κ, τ₁ and τ₂ follow from ε_r. Smaller margins leak more attention; the bounds say how much. H is the scale of the normalized compilation, which needs φ above 0 to have a floor under its policies.",
    ),
  );
  form.append(box);
}
function fillSettings() {
  for (const [key, f] of Object.entries(SETTINGS)) {
    const input = $("set-" + key),
      v = run.settings[key];
    input.removeAttribute("aria-invalid");
    if (f.flag) input.checked = v;
    else input.value = f.auto && v === 0 ? "" : v;
  }
  const fixed = !["random", "sparse-transitions", "sparse-rewards", "ring", "strong-mixing"].includes(
    run.settings.preset,
  );
  for (const key of ["S", "A"]) {
    $("set-" + key).disabled = fixed;
    if (fixed) $("set-" + key).value = run.info[key];
  }
  $("set-gamma").disabled = run.settings.preset === "file";
  if (run.settings.preset === "file") $("set-gamma").value = run.info.gamma;
  $("set-preset").querySelector("[value=file]").hidden = !run.file;
  const c = run.info.certificate,
    rows = [
      ["κ, actor’s margin", c.kappa, "2ηB + log(2S/r_ε): other states keep a share below ε_r."],
      ["ν, memories over queries", c.nu, "A query prefers every memory to other queries."],
      [
        "τ₁, lookup margin",
        c.tau1,
        "A packet prefers the memory of its successor: one wrong coordinate costs τ₁.",
      ],
      [
        "τ₂, predecessor margin",
        c.tau2,
        "A critic query prefers its own packets: one wrong coordinate costs τ₂.",
      ],
      ["B = R_max/(1−γ)", c.B, "No value exceeds it."],
      [
        "ζ at most",
        c.zeta,
        "2R/(1+R) with the leaked mass R of the actor" + (run.settings.phi ? ", plus the mixture." : "."),
      ],
      [
        "δ from routing at most",
        c.deltaRoute,
        "2B(γλ₁ + λ₂) with the masses leaked by the two critic heads.",
      ],
      [
        `δ from sampling at most`,
        c.deltaStat,
        `With probability ${1 - c.alpha} in all ${run.settings.T} rounds together.`,
      ],
      ["width of a token", run.info.width, "6S + 6A + 14 named coordinates."],
      ["head dimension", run.info.headDim, "S + A + 3."],
    ];
  $("certificate").replaceChildren(
    ...rows.map(([n, v, why]) =>
      el("div", {}, el("dt", {}, n), el("dd", {}, show(v, 5)), el("dd", { class: "why" }, why)),
    ),
  );
}
async function settingsChanged(key) {
  const input = $("set-" + key),
    next = { ...run.settings };
  try {
    next[key] = check(key, SETTINGS[key].flag ? input.checked : input.value);
    if (key === "preset" && next.preset !== "file") {
      const d = SETTINGS;
      if (
        run.settings.preset === "file" ||
        run.settings.preset === "frozen-lake" ||
        run.settings.preset === "lock-up"
      ) {
        next.S = d.S.start;
        next.A = d.A.start;
      }
    }
    if (key === "preset" && next.preset === "file" && !run.file) throw new Error("Load an MDP first.");
    const kept = ["preset", "S", "A", "seed", "gamma"].includes(key)
      ? []
      : run.edits.map((e) => ({ ...e, k: 0 }));
    await restart(next, run.file, kept);
    if (key === "preset" && next.preset === "lock-up") {
      shown.add("idle");
      await go(0, 0);
    }
  } catch (e) {
    input.setAttribute("aria-invalid", "true");
    message(e.message);
    setTimeout(() => {
      if (run) fillSettings();
    }, 2500);
  }
}
async function restart(settings, file, edits = [], k = 0) {
  await begin(settings, file, edits);
  if (shown.has("learned"))
    await fetchLearned().catch((e) => {
      shown.delete("learned");
      message(e.message);
    });
  fillSettings();
  $("editor").hidden = true;
  await go(k, 0);
  remember();
}
