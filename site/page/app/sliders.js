// Sliders for what changes most. Dragging runs the problem again: the first rounds at once, all of them
// when the slider is let go.

import { $, act, el, show } from "./base.js";
import { app, go, render, restart } from "./state.js";
import { SETTINGS } from "./settings.js";
import { term } from "./glossary.js";
import { latest } from "./strip.js";
import { horizon, linear, logarithmic } from "./scales.js";

const AT_ONCE = 10; // rounds
const highest = () => 2000 / app.run.info.certificate.B;
// Above 2000/B no decoder is certified.
const SLIDERS = {
  eta: { ...logarithmic(() => highest() / 1e5, highest), round: (v) => Number(v.toPrecision(2)) },
  gamma: { ...horizon, round: (v) => (v < 0.9 ? Math.round(v * 100) / 100 : Math.round(v * 1000) / 1000) },
  m: { ...logarithmic(() => 1, () => 64), round: Math.round },
  phi: { ...linear(0, 0.5), round: (v) => Math.round(v * 1000) / 1000 },
};
// slideTo moves a slider to the place of a value.
export function slideTo(key, value) {
  const input = $("slide-" + key);
  input.value = 1000 * SLIDERS[key].from(value);
  input.dispatchEvent(new Event("input"));
  input.dispatchEvent(new Event("change"));
}
const valueOf = (key) => (key === "gamma" ? app.run.info.gamma : app.run.settings[key]);

export function renderSliders() {
  for (const [key, s] of Object.entries(SLIDERS)) {
    const input = $("slide-" + key);
    if (document.activeElement !== input) input.value = Math.round(1000 * s.from(valueOf(key)));
    $("slid-" + key).textContent = show(valueOf(key), 3);
  }
}
export function buildSliders() {
  for (const [key, s] of Object.entries(SLIDERS)) {
    const f = SETTINGS[key];
    let first = true, // of a drag: Undo takes the whole of it back
      held = null; // the round that was on show when it began
    const set = latest(([t, last]) =>
      act(async () => {
        const { run, pos } = app,
          value = Math.min(key === "eta" ? highest() : f.max, Math.max(f.min, s.round(s.to(t)))),
          same = value === valueOf(key),
          k = (held ??= pos.k),
          file = run.settings.preset === "file" && key === "gamma" ? { ...run.file, gamma: value } : run.file,
          options = { what: `with another ${f.name.toLowerCase()}`, cap: run.cap, quiet: !first };
        if (last) held = null;
        if (same) {
          if (last) await go(k, 0);
        } else {
          first = false;
          await restart({ ...run.settings, [key]: value }, file, run.edits, {
            ...options,
            k: last ? k : Math.min(k, AT_ONCE),
          });
        }
        first ||= last;
        render();
      }),
    );
    const input = el("input", {
      type: "range",
      id: "slide-" + key,
      min: 0,
      max: 1000,
      step: 1,
      "aria-label": f.name,
      oninput: (e) => {
        app.dragging = true;
        set([e.target.value / 1000, false]);
      },
      onchange: (e) => {
        app.dragging = false;
        set([e.target.value / 1000, true]);
      },
    });
    $("sliders").append(
      el("div", { class: "slide" }, term(f.term), input, el("output", { id: "slid-" + key, for: "slide-" + key })),
    );
  }
  $("slide-eta").after(
    el(
      "button",
      {
        type: "button",
        id: "eta-auto",
        title: "The step that suits the problem, as --eta auto says",
        onclick: () => act(auto),
      },
      "auto",
    ),
  );
}
// auto runs the problem with the step size that suits it.
async function auto() {
  const { run, pos } = app;
  await restart({ ...run.settings, eta: 0 }, run.file, run.edits, {
    k: pos.k,
    what: `with η = ${show(run.settings.eta)}`,
    cap: run.cap,
  });
}
