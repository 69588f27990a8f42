// The result: the loss over the rounds, beside exact PMD’s and the last run’s.

import { $, act, atMost, el, message, palette, percent, plural, show } from "./base.js";
import { CONTROLLERS, app, changes, decoderRound, go, losses, phaseAt, reach, render, restart, stop } from "./state.js";
import { chart, keyLine, roundAt } from "./chart.js";
import { loadLearned, weights } from "./learned.js";

// twiceB is the largest loss there can be; a bound above it is vacuous.
export const twiceB = () => 2 * app.run.info.certificate.B;

// boundsOf returns the bounds on the decoder’s loss from round 1 on, where they say something.
const boundsOf = (run) => (run.rounds.decoder || []).map((r) => (r.bound <= twiceB() ? r.bound : NaN));
export function lossSeries(ghost = true) {
  const { run, shown } = app,
    series = [];
  if (ghost && app.ghost)
    series.push({
      name: `Last run, ${app.ghost.what}`,
      color: "grey",
      dash: "",
      width: 5,
      faint: 0.35,
      whole: true,
      from: 0,
      values: app.ghost.values,
    });
  const bounds = boundsOf(run);
  if (bounds.some(Number.isFinite))
    series.push({
      name: "Bound on the decoder’s loss",
      color: "warm",
      dash: "5 3",
      width: 1.5,
      from: 1,
      values: bounds,
    });
  app.pins.forEach((x, i) =>
    series.push({ name: x.label, color: ["green", "violet", "grey", "warm"][i], dash: "3 2", width: 2, whole: true, from: 0, values: x.values }),
  );
  for (const name of ["decoder", "learned", "normalized", "idle", "exact"]) {
    if (!shown.has(name) || !losses(name).length) continue;
    const width = name === "decoder" ? 4 : 2;
    series.push({ ...CONTROLLERS[name], width, dot: name === "decoder", from: 0, values: losses(name) });
  }
  return series;
}

// The start of the axis: losses so far below the largest are rounding, and shown there.
const floorOf = (series) =>
  1e-13 * Math.max(1e-300, ...series.flatMap((s) => s.values).filter(Number.isFinite));

export function renderResult() {
  const box = $("loss-chart"),
    { run, pos } = app;
  renderControllers();
  const pins = app.pins.map((x) => x.label).join("|") + palette().ink;
  if (pins !== pinned || !$("pins").firstChild) renderPins();
  pinned = pins;
  if (!box.clientWidth) return; // in a tab that is not on show
  const series = lossSeries();
  box.replaceChildren(
    chart({
      series,
      T: run.settings.T,
      floor: floorOf(series),
      unit: "loss, log scale",
      now: pos.k,
      edits: changes(),
      size: [Math.max(260, box.clientWidth), Math.max(150, Math.min(320, box.clientHeight))],
      label: lossWords(),
    }),
  );
  $("loss-now").replaceChildren(...(pointed === null ? lossNow() : lossThere(pointed)));
}
// pin keeps the decoder's losses of the run on show to compare other runs with.
async function pin() {
  const { run, pins } = app,
    { eta, m, phi, kappa } = run.settings;
  if (pins.length >= 4) throw new Error("Four runs are pinned; take one away first.");
  await reach(run.settings.T);
  const label = [`η ${show(eta, 3)}`, `γ ${show(run.info.gamma, 3)}`, `m ${m}`, phi ? `φ ${show(phi, 3)}` : "", kappa ? `κ ${show(kappa, 3)}` : ""]
    .filter(Boolean)
    .join(", ");
  pins.push({ label, values: Array.from(losses()) });
  render();
}
function renderPins() {
  const c = palette();
  $("pins").replaceChildren(
    el("button", { type: "button", id: "pin", onclick: () => act(pin), title: "Keep this curve to compare others with" }, "Pin this run"),
    ...app.pins.map((x, i) =>
      el(
        "button",
        {
          type: "button",
          class: "pinned",
          "aria-label": `Take away the run pinned with ${x.label}`,
          onclick: () => {
            app.pins.splice(i, 1);
            render();
          },
        },
        keyLine(c[["green", "violet", "grey", "warm"][i]], "3 2"),
        ` ${x.label} ×`,
      ),
    ),
  );
}
let pinned = "";
let pointed = null; // the round under the pointer
// lossThere says the losses after k rounds, of all lines.
function lossThere(k) {
  const said = lossSeries()
    .map((s) => [s.name, s.values[k - s.from]])
    .filter(([, v]) => Number.isFinite(v))
    .map(([name, v]) => `${name} ${show(v, 3)}`);
  return [el("b", {}, `After ${plural(k, "round")}`), ": " + said.join(", ") + "."];
}
function buildChart() {
  const box = $("loss-chart"),
    at = (e) => box.firstChild && roundAt(box.firstChild, e, app.run.settings.T);
  box.addEventListener("pointermove", (e) => {
    pointed = at(e);
    render();
  });
  box.addEventListener("pointerleave", () => {
    pointed = null;
    render();
  });
  box.addEventListener("click", (e) =>
    act(() => {
      stop();
      return go(at(e), 0);
    }),
  );
}
// at returns a controller's loss after the rounds on show.
const at = (name) => losses(name)[app.pos.k];
function lossNow() {
  const { gap, start } = phaseAt(app.pos.k);
  if (start > 0 && app.pos.k === start)
    return [
      el("b", {}, show(at("decoder"), 3)),
      " in the problem as it was; in the changed one the same policy loses ",
      el("b", {}, show(gap, 3)),
      ".",
    ];
  const mine = at("decoder"),
    exact = app.shown.has("exact") ? at("exact") : undefined,
    words = [el("b", {}, show(mine, 3))];
  if (gap > 0) words.push(` = ${percent(mine / gap)} of the start’s. `);
  else words.push(". The start is the best already. ");
  if (exact !== undefined) words.push(`Exact PMD: ${show(exact, 3)}. `);
  const r = app.pos.k > 0 && decoderRound(app.pos.k - 1);
  if (r && r.bound <= twiceB()) words.push(`Guaranteed: at most ${atMost(r.bound, 3)}.`);
  return words;
}
function lossWords() {
  const all = losses();
  return `Loss over the rounds, logarithmic: from ${show(all[0], 3)} at the start to ${show(all[app.pos.k], 3)} after round ${app.pos.k} of ${app.run.settings.T}`;
}

function renderControllers() {
  const c = palette();
  for (const [name, x] of Object.entries(CONTROLLERS)) {
    const box = $("show-" + name),
      r = app.run.rounds[name]?.[Math.max(0, app.pos.k - 1)];
    box.checked = app.shown.has(name);
    box.closest(".controller").hidden = name === "idle" && !box.checked && app.run.settings.preset !== "lock-up";
    box.parentElement.querySelector(".line").replaceChildren(keyLine(c[x.color], x.dash));
    box.parentElement.title = app.run.errors[name]
      ? "Stopped: " + app.run.errors[name]
      : r && app.shown.has(name)
        ? `loss ${show(r.loss, 3)}, ζ ${show(r.zeta, 3)}`
        : name === "learned"
          ? weights.label || x.why
          : x.why;
    box.parentElement.querySelector(".stopped").textContent =
      app.shown.has(name) && app.run.errors[name]
        ? `, stopped after ${plural(app.run.rounds[name]?.length || 0, "round")}`
        : "";
  }
  $("bound-key").hidden = !boundsOf(app.run).some(Number.isFinite);
  $("bound-key").firstChild.replaceChildren(keyLine(c.warm, "5 3"));
  $("ghost-key").hidden = !app.ghost;
  if (app.ghost) $("ghost-key").lastChild.textContent = `last run, ${app.ghost.what}`;
}
// whyStopped says why a controller went no further, and what would help.
function whyStopped(name) {
  const { run } = app,
    stopped = `${CONTROLLERS[name].name} stopped after ${plural(run.rounds[name]?.length || 0, "round")}: `,
    why = run.errors[name];
  if (name === "normalized" && /equal to -.*want a probability/.test(why))
    return `${stopped}rounding with H = ${show(run.settings.H)} left a probability below zero. ${run.settings.phi > 0 ? "Try" : "A mixture keeps every probability above zero: try φ = 0.01, or"} a smaller H.`;
  return `${stopped}${why.replace(/[.]$/, "")}.`;
}
// mixed runs the LayerNorm form with a floor under its policies, without which rounding stops it.
async function mixed() {
  const { run, pos, shown } = app;
  shown.add("normalized");
  await restart({ ...run.settings, phi: 0.01 }, run.file, run.edits, { k: pos.k, what: "without the mixture", cap: run.cap });
  message("LayerNorm needs a floor under its policies, so φ = 0.01 of the uniform policy is mixed in.", "notice");
}
export async function toggle(name) {
  const { run, shown } = app;
  try {
    if (shown.has(name)) shown.delete(name);
    else {
      if (name === "learned") await loadLearned();
      if (name === "normalized" && !run.settings.phi) return await mixed();
      shown.add(name);
      delete run.errors[name];
      await reach(Math.min(run.settings.T, Math.max(app.pos.k + 1, run.rounds.decoder?.length || 0)));
      if (run.errors[name]) throw new Error(whyStopped(name));
    }
  } finally {
    render(); // boxes say again what is so
  }
}
export function buildResult() {
  for (const [name, x] of Object.entries(CONTROLLERS)) {
    const box = el("input", {
      type: "checkbox",
      id: "show-" + name,
      disabled: name === "decoder",
      onchange: () => act(() => toggle(name)),
    });
    $("controllers").append(
      el(
        "div",
        { class: "controller" },
        box,
        el(
          "label",
          { for: "show-" + name },
          el("span", { class: "line" }),
          el("span", {}, x.name, el("span", { class: "stopped" })),
        ),
      ),
    );
  }
  $("controllers").append(
    el("span", { id: "bound-key", hidden: true }, el("span", { class: "line" }), "decoder’s bound"),
    el("span", { id: "ghost-key", hidden: true }, el("span", { class: "ghost" }), el("span", {})),
  );
  buildChart();
  new ResizeObserver(() => render()).observe($("loss-chart"));
}
