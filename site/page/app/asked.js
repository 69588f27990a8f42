// What visitors ask, answered in a few lines where the question arises.

import { $, act, el } from "./base.js";
import { setting } from "./state.js";

/** @type {[string, string, [string, Partial<Settings>][]?][]} */
const ASKED = [
  [
    "What are the tokens?",
    "One memory for each state and action, which carries their names, log π and Q; one query for each state. The critic’s call adds the packets: sampled moves (s, a, r, s′, a′). There are no positions; a token says what it is.",
  ],
  [
    "What is trained?",
    "Nothing, in the fixed decoder: its weights follow from sizes and caps. “Trained” beside it is a network that learned the same update from examples.",
  ],
  [
    "Why does it know the maze?",
    "It does not. It is given π, Q and sampled moves, never the map. The map is drawn for you; Q* is only used to measure the loss.",
  ],
  [
    "What would break it?",
    "A small κ lets other places’ memories in; one packet a pair makes its values noisy; an action whose probability is 0 stays at 0.",
    [
      ["κ = 3", { kappa: 3 }],
      ["m = 1", { m: 1 }],
      ["As it was", { kappa: 0, m: 16 }],
    ],
  ],
];
export function buildAsked() {
  $("asked").append(
    ...ASKED.map(([question, answer, buttons = []]) =>
      el(
        "details",
        {},
        el("summary", {}, question),
        el("p", { class: "why" }, answer),
        el(
          "div",
          { class: "row" },
          buttons.map(([label, to]) => el("button", { type: "button", onclick: () => act(() => setting(to)) }, label)),
        ),
      ),
    ),
  );
}
