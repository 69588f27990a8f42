// The residuals and the loss under their bounds, as numbers and over the rounds.

import { $, act, atMost, el, palette, percent, show, sub, sup } from "./base.js";
import { app, changes, decoderRound, go, phaseAt, stop } from "./state.js";
import { chart, legend, roundAt } from "./chart.js";
import { term } from "./glossary.js";
import { twiceB } from "./result.js";

// gauge marks a value and its bound on a logarithmic scale.
function gauge(value, bound, lowest) {
  const at = (x) =>
    // Where a bound is infinite there is no place.
    x <= 0 ? 0 : Math.max(0, Math.min(1, Math.log(x / lowest) / Math.log((bound * 1.6) / lowest))) * 300 || 0;
  const c = palette();
  return el(
    "svg",
    { class: "gauge", viewBox: "0 0 300 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    el("rect", { x: 0, y: 3, width: 300, height: 4, fill: c.wash }),
    el("rect", { x: 0, y: 3, width: at(value), height: 4, fill: c.accent }),
    bound > 0 ? el("rect", { x: at(bound) - 2, y: 0, width: 3, height: 10, fill: c.warm }) : null,
  );
}
function terms(rows) {
  const line = ([name, value, sum]) =>
    el("tr", { class: sum ? "sum" : false }, el("th", { scope: "row" }, name), el("td", {}, value));
  return el("table", { class: "terms" }, el("tbody", {}, rows.map(line)));
}
const reading = (title, value, of, gaugeNode, why, rows) =>
  el(
    "div",
    { class: "reading" },
    el("h3", {}, title),
    el("b", {}, show(value)),
    el("p", { class: "of" }, of),
    el("div", { class: "row" }, gaugeNode, el("small", { class: "why" }, "log scale")),
    el("p", { class: "why" }, why),
    rows ? terms(rows) : null,
  );

// Below this a difference of values is the rounding of float64, not chance or leakage.
const ROUNDING = 1e-11;
const orRounding = (x) => (x > 0 && x < ROUNDING ? `${show(x, 3)} (rounding)` : show(x));
const certified = (x) => `certificate: at most ${atMost(x)}`;

function actorReading(r, at) {
  const why =
    "The largest L₁ distance between a row of the decoder’s policy and exact PMD on the same π and Q.";
  return reading(
    ["Actor residual ", term("zeta", "ζ" + sub(at))],
    r.zeta,
    certified(r.zetaBound),
    gauge(r.zeta, r.zetaBound, 1e-17),
    why + (r.zeta < 1e-12 ? " That is rounding alone." : ""),
  );
}
function criticReading(r, at) {
  const { certificate: c } = app.run.info,
    { expected } = app.run.settings;
  const why = expected
    ? "The largest error of the new Q against the exact one-step backup; packets carry exact weights, so no chance is in it."
    : r.sampling > ROUNDING
      ? "The largest error of the new Q against the exact one-step backup; almost all of it is sampling, which more packets shrink."
      : "The largest error of the new Q against the exact one-step backup; here sampling cannot go wrong, so little is left.";
  return reading(
    ["Critic residual ", term("delta", "δ" + sub(at))],
    r.delta,
    certified(r.deltaBound),
    gauge(r.delta, r.deltaBound, 1e-17),
    why,
    [
      ["routing, measured", orRounding(r.route)],
      ["routing, bound", atMost(r.routeBound)],
      ["sampling, measured", orRounding(r.sampling)],
      [
        `sampling, bound (${Math.round(100 * (1 - c.alpha))} % of runs)`,
        expected ? "0, but for rounding" : atMost(c.deltaStat) + (c.deltaStat > 2 * c.B ? ", vacuous" : ""),
      ],
    ],
  );
}
function lossReading(r, at) {
  const phase = phaseAt(at),
    h = at + 1 - phase.start,
    oracle = app.run.rounds.exact?.[at],
    ofStart =
      phase.gap > 0
        ? `${percent(r.loss / phase.gap)} of the start’s ${show(phase.gap)}`
        : "the start was the best already",
    empty = r.bound > twiceB();
  return reading(
    [term("loss", "Loss"), ` of the returned policy π̂${sub(at + 1)}`],
    r.loss,
    ofStart + (oracle ? `; exact PMD has ${show(oracle.loss)}` : ""),
    gauge(r.loss, r.bound, 1e-6),
    "How far the values of the policy lie below optimal at worst, and what the returned-policy theorem allows." +
      (empty ? ` Its ${atMost(r.bound, 3)} is vacuous: no loss exceeds 2B = ${show(twiceB(), 4)}.` : ""),
    [
      [`initial error, 2γ${sup(h)}E₀/(1−γ)`, show(r.initial)],
      [at > 0 ? `critic, from δ before round ${at}` : "critic, none before round 0", show(r.critic)],
      ["greedy defects ḡ before the last", show(r.greedy)],
      ["last greedy defect", show(r.last)],
      ["bound", atMost(r.bound), true],
    ],
  );
}

// shownRound is the round whose residuals are on show: the last one that was taken.
const shownRound = () => {
  const { pos, run } = app;
  return pos.k >= run.settings.T ? run.settings.T - 1 : pos.stage > 0 ? pos.k : Math.max(0, pos.k - 1);
};
export function renderEvidence() {
  const at = shownRound(),
    r = decoderRound(at),
    notes = [];
  if (!r) return;
  if (app.pos.k === 0 && app.pos.stage === 0)
    notes.push("Round 0 has not run yet; these are the numbers it will give.");
  const phase = phaseAt(at);
  if (phase.start > 0)
    notes.push(
      `The problem was last changed before round ${phase.start}; the theorem is accounted from there.`,
    );
  $("readings").replaceChildren(
    ...notes.map((n) => el("p", { class: "why" }, n)),
    actorReading(r, at),
    criticReading(r, at),
    lossReading(r, at),
  );
}
export function residualSeries() {
  const d = app.run.rounds.decoder || [];
  const pair = (color, name, of, measured, bound) => [
    { name, color, dash: "", from: 0, rounds: true, values: d.map((r) => r[measured]) },
    { name: `bound on ${of}`, color, dash: "5 3", width: 1.4, from: 0, rounds: true, values: d.map((r) => r[bound]) },
  ];
  return [
    ...pair("accent", "ζ, actor", "ζ", "zeta", "zetaBound"),
    ...pair("warm", "δ, critic", "δ", "delta", "deltaBound"),
    ...pair("violet", "routing part of δ", "routing", "route", "routeBound"),
  ];
}
export function renderResiduals() {
  const box = $("residual-chart");
  if (!box.clientWidth) return;
  const series = residualSeries();
  box.replaceChildren(
    chart({
      series,
      T: app.run.settings.T,
      floor: 1e-18,
      now: app.pos.k,
      edits: changes(),
      size: [Math.max(260, box.clientWidth), 280],
      label: "Residuals of the decoder and their bounds over the rounds, logarithmic",
    }),
    legend(series),
  );
}

// renderBound draws the bound on the loss, also where it is above 2B and says nothing.
export function renderBound() {
  const box = $("bound-chart"),
    { run, pos } = app,
    rounds = run.rounds.decoder || [];
  if (!box.clientWidth) return;
  const series = [
    { name: "2B", color: "grey", dash: "2 3", whole: true, from: 0, values: Array(run.settings.T + 1).fill(twiceB()) },
    { name: "bound on the loss", color: "warm", dash: "5 3", from: 1, values: rounds.map((r) => r.bound) },
    { name: "loss", color: "accent", width: 3, dot: true, from: 0, values: [phaseAt(0).gap, ...rounds.map((r) => r.loss)] },
  ];
  box.replaceChildren(
    chart({
      series,
      T: run.settings.T,
      floor: 1e-9,
      now: pos.k,
      edits: changes(),
      size: [Math.max(260, box.clientWidth), 280],
      label: `Bound on the loss over the rounds: ${crossing() ? `from round ${crossing()} on it is below 2B` : "it stays above 2B"}`,
    }),
    legend(series),
  );
}
// crossing returns the first round whose bound on the loss says something, 0 if none does.
export const crossing = () => (app.run.rounds.decoder || []).findIndex((r) => r.bound <= twiceB()) + 1;
export function buildBound() {
  const box = $("bound-chart");
  box.addEventListener("click", (e) =>
    act(() => {
      stop();
      return box.firstChild && go(roundAt(box.firstChild, e, app.run.settings.T), 0);
    }),
  );
}
// formulas prints R and λ with the numbers in them (equations 24 to 26).
function formulas() {
  const { S, certificate: c } = app.run.info,
    { eta } = app.run.settings,
    n = (x) => show(x, 3),
    eB = eta * c.B;
  return [
    ["R of the actor", `(S−1)·e^(−κ+2ηB) + S·e^(−(κ+ν)+ηB) = ${S - 1}·e^(−${n(c.kappa)}+${n(2 * eB)}) + ${S}·e^(−${n(c.kappa + c.nu)}+${n(eB)})`, c.RAct],
    ["ζ at most", `2R/(1+R) = 2·${n(c.RAct)}/(1+${n(c.RAct)})`, (2 * c.RAct) / (1 + c.RAct)],
    ["R₁, λ₁ of the lookup", `(S+A−2)e^−τ₁ + (S−1)(A−1)e^−2τ₁ + M·e^−3τ₁ with τ₁ = ${n(c.tau1)}; λ₁ = R₁/(1+R₁)`, c.lambda1],
    ["R₂, λ₂ of the predecessor", `the same with τ₂ = ${n(c.tau2)}, over m = ${c.m} packets; λ₂ = R₂/(1+R₂)`, c.lambda2],
    ["δ from routing at most", `2B(γλ₁ + λ₂) = ${n(2 * c.B)}·(${n(app.run.info.gamma)}·${n(c.lambda1)} + ${n(c.lambda2)})`, c.deltaRoute],
  ];
}

// The certificate, term by term.
export function renderCertificate() {
  const { run } = app,
    c = run.info.certificate;
  /** @type {[string, string, number, string, typeof show?][]} */
  const rows = [
    ["kappa", "κ, actor’s margin", c.kappa, "2ηB + log(2S/r_ε) with r_ε = ε_r/(2 − ε_r): other states keep a share below ε_r."],
    ["nu", "ν, memories over queries", c.nu, "A query prefers every memory to other queries."],
    [
      "tau",
      "τ₁, lookup margin",
      c.tau1,
      "A packet prefers the memory of its successor: one wrong coordinate costs τ₁.",
    ],
    [
      "tau",
      "τ₂, predecessor margin",
      c.tau2,
      "A critic query prefers its own packets: one wrong coordinate costs τ₂.",
    ],
    ["rmax", "R_max, declared", c.RMax, "No reward may exceed it; a larger one needs other weights."],
    ["B", "B = R_max/(1−γ)", c.B, "No value exceeds it.", atMost],
    [
      "zeta",
      "ζ at most",
      c.zeta,
      "2R/(1+R) with the leaked mass R of the actor" + (run.settings.phi ? ", plus the mixture." : "."),
      atMost,
    ],
    [
      "delta",
      "δ from routing at most",
      c.deltaRoute,
      "2B(γλ₁ + λ₂) with the masses leaked by the two critic heads.",
      atMost,
    ],
    [
      "alpha",
      "δ from sampling at most",
      c.deltaStat,
      `With probability ${1 - c.alpha} in all ${run.settings.T} rounds together.`,
      atMost,
    ],
    ["S", "width of a token", run.info.width, "6S + 6A + 14 named coordinates."],
    ["A", "head dimension", run.info.headDim, "S + A + 3."],
  ];
  const read = run.settings.preset === "file" && !run.settings.rmax;
  $("caps").textContent = read
    ? "They were read from your file; a reward cap in the settings declares them."
    : "They were declared before any problem was seen.";
  document.querySelector(".declared").textContent = read ? "the first round, from caps that your file holds" : "any problem was seen";
  $("formulas").replaceChildren(
    ...formulas().map(([name, how, v]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, atMost(v, 3)), el("dd", { class: "why" }, how)),
    ),
  );
  $("certificate").replaceChildren(
    ...rows.map(([id, name, v, why, written = show]) =>
      el("div", {}, el("dt", {}, term(id, name)), el("dd", {}, written(v, 5)), el("dd", { class: "why" }, why)),
    ),
  );
}
