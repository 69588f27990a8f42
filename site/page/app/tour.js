// A tour in seven steps, each of which does something and points at it.

import { $, act, stillness } from "./base.js";
import { app, go, play, restart, stop } from "./state.js";
import { open, openAddress, stateNow } from "./address.js";
import { change } from "./problem.js";
import { select } from "./selection.js";
import { showStep } from "./step.js";
import { showTab } from "./tabs.js";
import { toggle } from "./result.js";

const MAZE = "#preset=maze&m=16&at=12.1";
// run plays to the end, quickly, or goes there where less motion is asked for.
async function run() {
  if (stillness()) return go(app.run.settings.T, 0);
  await go(0, 0);
  play(() => "10");
}
const STEPS = [
  {
    at: "step",
    title: "Attention that improves a policy",
    text: "A state asks a query. Each of its actions has a memory token, scored by log π + ηQ: habit plus what pays. The softmax of the scores is the attention, and the attention is the new policy. That is one round of policy mirror descent.",
    async run() {
      await openAddress(MAZE);
      select(12, 1);
      showStep("actor");
      await go(4, 1);
    },
  },
  {
    at: "result",
    title: "Nothing is trained",
    text: "The weights were written down from formulas before any problem was seen: only the sizes, the caps on rewards and step, and a tolerance were known. Yet the loss falls just as exact PMD’s does.",
    async run() {
      await openAddress(MAZE);
      await run();
    },
  },
  {
    at: "see",
    title: "Same weights, new answer",
    text: "A wall now closes the safe way, below the hole. The matrices are the same, number by number; the context is different, and so the arrows turn. Try it: pick a place and change it.",
    async run() {
      await openAddress(MAZE);
      await go(app.run.settings.T, 0);
      await change({ kind: "tile", s: 17, tile: "#" }); // and the run is shown anew
    },
  },
  {
    at: "result",
    title: "Packets and noise",
    text: "The critic averages transitions that are drawn afresh in each round. With one packet per state–action pair instead of sixteen the values are noisy, and the curve leaves that of exact PMD: below it for some rounds, by luck, and above it at the end. The pale line is the run before.",
    async run() {
      await openAddress(MAZE);
      await go(app.run.settings.T, 0);
      await restart({ ...app.run.settings, m: 1 }, null, [], { what: "with m = 16" });
      await run();
    },
  },
  {
    at: "evidence",
    title: "What the bound says, and where it says nothing",
    text: "Each error is measured against the exact operation on the same context and lies under its certificate. The bound on the loss adds them up. Early it exceeds twice the largest value: true, but vacuous, and the page says so.",
    async run() {
      await openAddress(MAZE);
      await go(10, 0);
    },
  },
  {
    at: "result",
    title: "Small errors are not enough",
    text: "Lock-up: the good action starts with next to no probability. An actor that never moves is then almost exact in every single round, and never gets anywhere. Fidelity in one step does not make a controller.",
    async run() {
      await openAddress("#preset=lock-up&show=exact.idle");
      await run();
    },
  },
  {
    at: "step",
    title: "A trained network beside it",
    text: "A Transformer that learned the update from examples, one network for every problem, is given the same context: its four heads in four blocks are drawn like the one head of the fixed decoder, and its loss is the green curve, on top of the others. It comes close; the fixed one comes with a certificate.",
    async run() {
      await openAddress(MAZE);
      if (!app.shown.has("learned")) await toggle("learned");
      app.view.net = "learned";
      await go(app.run.settings.T, 0); // so that there is all of its curve
      select(12, 1);
      showStep("actor");
      await go(4, 1);
    },
  },
];

const tour = { at: -1, before: null, history: [], ghost: null };
async function show(i) {
  const step = STEPS[i];
  tour.at = i;
  $("tour-count").textContent = `${i + 1} of ${STEPS.length}`;
  $("tour-title").textContent = step.title;
  $("tour-text").textContent = step.text;
  $("tour-back").disabled = i === 0;
  $("tour").classList.toggle("right", step.at === "see" || step.at === "evidence");
  $("tour-next").textContent = i === STEPS.length - 1 ? "Done" : "Next";
  stop();
  showTab(step.at);
  for (const x of document.querySelectorAll(".pointed")) x.classList.remove("pointed");
  await act(() => step.run());
  if (tour.at !== i) return;
  const target = $(step.at);
  target.classList.add("pointed");
  if (step.at === "evidence")
    target.scrollIntoView({ behavior: stillness() ? "auto" : "smooth", block: "start" });
  else scrollTo({ top: 0, behavior: stillness() ? "auto" : "smooth" });
}
async function startTour() {
  stop();
  tour.before = stateNow();
  Object.assign(tour, { history: [...app.history], ghost: app.ghost });
  $("tour").hidden = false;
  $("tour-next").focus();
  await show(0);
}
// endTour brings back what was there before.
async function endTour() {
  tour.at = -1;
  stop();
  $("tour").hidden = true;
  for (const x of document.querySelectorAll(".pointed")) x.classList.remove("pointed");
  await open(tour.before);
  app.history.splice(0, Infinity, ...tour.history); // Undo goes back to the visitor's own work
  app.ghost = tour.ghost;
  $("tour-start").focus();
}
export function buildTour() {
  $("tour-start").addEventListener("click", () => act(startTour));
  $("tour-back").addEventListener("click", () => act(() => show(tour.at - 1)));
  $("tour-next").addEventListener("click", () =>
    act(() => (tour.at < STEPS.length - 1 ? show(tour.at + 1) : endTour())),
  );
  $("tour-end").addEventListener("click", () => act(endTour));
  $("tour").addEventListener("keydown", (e) => {
    if (e.key === "Escape") act(endTour);
  });
}
export const tourLength = STEPS.length;
