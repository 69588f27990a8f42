// Every symbol of the page in words: under the pointer, on a tap, and in a list.

import { $, all, around, el } from "./base.js";

const TERMS = {
  pi: ["π", "policy", "The probability of each action in each state. Each row sums to one."],
  pihat: ["π̂", "returned policy", "The policy that the network’s actor returns: the next round’s π."],
  pi0: ["π₀", "starting policy", "The policy of round 0. It is given with the problem."],
  logpi: [
    "log π",
    "log-policy",
    "The logarithm of the present policy. Each memory token carries its own; in the score it is what keeps habits.",
  ],
  q: [
    "Q",
    "action values",
    "What the critic holds: the discounted sum of rewards after taking an action in a state.",
  ],
  qstar: [
    "Q*",
    "optimal values",
    "The action values of the best policy there is. They are used for scoring alone; the network never sees them.",
  ],
  v: ["V", "state value", "The mean of Q over the actions of the policy. It shades the map."],
  eta: ["η", "step size", "How much the values weigh against the present policy in one round."],
  gamma: [
    "γ",
    "discount",
    "What a reward is worth one round later, as a share. At .9 a reward ten rounds away counts a third.",
  ],
  pmd: [
    "PMD",
    "policy mirror descent",
    "The known algorithm: the new policy is softmax(log π + ηQ). The paper’s point is that softmax attention computes this.",
  ],
  softmax: [
    "softmax",
    "softmax",
    "Exponentials divided by their sum: scores become shares that sum to one. It is how attention weighs tokens.",
  ],
  s: ["s", "state", "A place of the map or a node of the graph."],
  a: ["a", "action", "What can be done in a state; on a map a move."],
  snext: ["s′", "successor", "The state that an action led to."],
  p: ["P", "transitions", "P(s′ | s, a): the probability that action a in state s leads to s′."],
  reward: ["r", "reward", "What action a in state s pays at once."],
  S: ["S", "number of states", "How many states the problem has."],
  A: ["A", "number of actions", "How many actions each state has."],
  packet: [
    "packet",
    "transition packet",
    "One token (s, a, r, s′, a′) that the environment draws for the critic, with a′ from the policy just returned.",
  ],
  m: [
    "m",
    "packets a pair",
    "How many transitions are drawn for each state and action in a round. The noise falls as 1/√m.",
  ],
  k: ["k", "round", "One turn of actor, environment and critic."],
  T: ["T", "horizon", "How many rounds a run has."],
  loss: [
    "‖Q* − Q^π̂‖∞",
    "loss",
    "How much worse than the best the returned policy is, in the state and action where it is worst.",
  ],
  zeta: [
    "ζ",
    "actor residual",
    "The largest L₁ distance between a row of the returned policy and exact PMD on the same π and Q; at most 2.",
  ],
  delta: [
    "δ",
    "critic residual",
    "The largest distance between the new values and the exact one-step backup of Q under the returned policy.",
  ],
  gbar: [
    "ḡ",
    "greedy defect",
    "How much the returned policy falls short of the greedy one, judged by the critic’s Q, at successors.",
  ],
  E0: ["E₀", "initial error", "How far the first Q lies from Q*."],
  B: [
    "B",
    "largest value",
    "R_max / (1 − γ). No value exceeds it, so no loss exceeds 2B; a bound above 2B says nothing.",
  ],
  rmax: [
    "R_max",
    "reward cap",
    "The largest reward the decoder was made for. It is declared before the weights are written.",
  ],
  kappa: ["κ", "actor’s margin", "By how much a query prefers memories of its own state."],
  nu: ["ν", "role margin", "By how much a query prefers memories to other queries."],
  tau: ["τ₁, τ₂", "critic’s margins", "By how much the look-up and the averaging prefer the right tokens."],
  eps: [
    "ε_r",
    "routing tolerance",
    "How much attention to wrong tokens is accepted. The margins follow from it.",
  ],
  phi: [
    "φ",
    "mixture",
    "The share of the uniform policy that the read-out mixes in, so that no action dies out.",
  ],
  H: ["H", "carrier", "The scale that makes LayerNorm harmless in the normalized compilation."],
  alpha: ["α", "confidence", "The sampling bound may fail with probability α = .05 in a run."],
  lambda: [
    "λ₁, λ₂",
    "leaked masses",
    "The shares of attention that the critic’s two heads give to wrong tokens at most.",
  ],
  lockup: [
    "lock-up",
    "lock-up",
    "A run that stands still because good actions have next to no probability: small one-step errors do not make a good controller.",
  ],
  vacuous: [
    "vacuous",
    "vacuous bound",
    "A bound above 2B, the largest loss there can be. It is true and says nothing.",
  ],
};

// term returns a symbol that explains itself.
export function term(id, text = TERMS[id][0]) {
  return el("button", { type: "button", class: "term", "data-term": id, "aria-expanded": "false" }, text);
}

let open = null,
  timer = 0;
function explain(button) {
  const [symbol, name, words] = TERMS[button.dataset.term],
    box = $("term");
  clearTimeout(timer);
  open?.setAttribute("aria-expanded", "false");
  open = button;
  button.setAttribute("aria-expanded", "true");
  box.replaceChildren(el("b", {}, symbol === name ? symbol : `${symbol}, ${name}`), el("p", {}, words));
  box.hidden = false;
  const at = button.getBoundingClientRect(),
    size = box.getBoundingClientRect();
  box.style.left = Math.max(8, Math.min(innerWidth - size.width - 8, at.left)) + "px";
  box.style.top =
    (at.bottom + size.height + 8 > innerHeight ? Math.max(8, at.top - size.height - 6) : at.bottom + 6) +
    "px";
}
function closeTerm() {
  clearTimeout(timer);
  open?.setAttribute("aria-expanded", "false");
  open = null;
  $("term").hidden = true;
}
export function buildGlossary() {
  const target = (e) => around(e, ".term");
  for (const place of all("[data-gloss]"))
    place.replaceWith(term(place.dataset.gloss, [...place.childNodes]));
  document.addEventListener("click", (e) => {
    const b = target(e);
    if (b && b !== open) explain(b);
    else if (!around(e, "#term")) closeTerm();
  });
  document.addEventListener("pointerover", (e) => {
    const b = target(e);
    if (!b || e.pointerType !== "mouse") return;
    clearTimeout(timer);
    timer = setTimeout(() => b.isConnected && explain(b), 250);
    b.addEventListener("pointerleave", () => (clearTimeout(timer), (timer = setTimeout(closeTerm, 200))), {
      once: true,
    });
  });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !open) return;
    const b = open;
    closeTerm();
    if (b.isConnected) b.focus();
  });
  addEventListener("scroll", closeTerm, { passive: true });
  $("glossary").replaceChildren(
    ...Object.values(TERMS).map(([symbol, name, words]) =>
      el("div", {}, el("dt", {}, symbol === name ? symbol : `${symbol}, ${name}`), el("dd", {}, words)),
    ),
  );
}
