// The residuals and the loss under their bounds, as numbers.

// gauge marks a value and its bound on a logarithmic scale.
function gauge(value, bound, lowest) {
  const at = (x) =>
    x <= 0 ? 0 : Math.max(0, Math.min(1, Math.log(x / lowest) / Math.log((bound * 1.6) / lowest))) * 300;
  const c = palette();
  return el(
    "svg",
    { class: "gauge", viewBox: "0 0 300 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    el("rect", { x: 0, y: 3, width: 300, height: 4, fill: c.wash }),
    el("rect", { x: 0, y: 3, width: at(value), height: 4, fill: c.accent }),
    el("rect", { x: at(bound) - 2, y: 0, width: 3, height: 10, fill: c.warm }),
  );
}
function terms(rows) {
  return el(
    "table",
    { class: "terms" },
    el(
      "tbody",
      {},
      rows.map(([name, value, sum]) =>
        el("tr", { class: sum ? "sum" : false }, el("th", { scope: "row" }, name), el("td", {}, show(value))),
      ),
    ),
  );
}
function renderReadings() {
  const k = Math.min(pos.k, run.settings.T - 1),
    r = decoderRound(pos.k >= run.settings.T || pos.stage > 0 ? k : Math.max(0, k - 1)),
    first = pos.k === 0 && pos.stage === 0;
  if (!r) return;
  const at = pos.k >= run.settings.T || pos.stage > 0 ? k : Math.max(0, k - 1),
    phase = phaseAt(at);
  const oracle = run.rounds.exact?.[at];
  const c = run.info.certificate,
    h = at + 1 - phase.start;
  const exactly = (x) => (x < 1e-12 ? " That is rounding alone." : "");
  $("readings").replaceChildren(
    el(
      "div",
      { class: "reading" },
      el("h3", {}, `Actor residual ζ${sub(at)}`),
      el("b", {}, show(r.zeta)),
      el("p", { class: "of" }, `certificate: at most ${show(r.zetaBound)}`),
      gauge(r.zeta, r.zetaBound, 1e-17),
      el(
        "p",
        { class: "why" },
        "The largest L₁ distance between a row of the decoder’s policy and exact PMD on the same π and Q." +
          exactly(r.zeta),
      ),
    ),
    el(
      "div",
      { class: "reading" },
      el("h3", {}, `Critic residual δ${sub(at)}`),
      el("b", {}, show(r.delta)),
      el("p", { class: "of" }, `certificate: at most ${show(r.deltaBound)}`),
      gauge(r.delta, r.deltaBound, 1e-17),
      el(
        "p",
        { class: "why" },
        run.settings.expected
          ? "The largest error of the new Q against the exact one-step backup; packets carry exact weights, so routing is all of it."
          : "The largest error of the new Q against the exact one-step backup; almost all of it is sampling, which more packets shrink.",
      ),
      terms([
        ["routing, measured", r.route],
        ["routing, bound", r.routeBound],
        ["sampling, measured", r.sampling],
        [
          `sampling, bound (${Math.round(100 * (1 - c.alpha))} % of runs)`,
          run.settings.expected ? 0 : c.deltaStat,
        ],
      ]),
    ),
    el(
      "div",
      { class: "reading" },
      el("h3", {}, `Loss of the returned policy π̂${sub(at + 1)}`),
      el("b", {}, show(r.loss)),
      el(
        "p",
        { class: "of" },
        `${show((100 * r.loss) / phase.gap, 3)} % of the start’s ${show(phase.gap)}` +
          (oracle ? `; exact PMD has ${show(oracle.loss)}` : ""),
      ),
      gauge(r.loss, r.bound, 1e-6),
      el(
        "p",
        { class: "why" },
        "How far the values of the policy lie below optimal at worst, and what the returned-policy theorem allows.",
      ),
      terms([
        [`initial error, 2γ${sup(h)}E₀/(1−γ)`, r.initial],
        [`critic, from δ before round ${at}`, r.critic],
        ["greedy defects ḡ before the last", r.greedy],
        ["last greedy defect", r.last],
        ["bound", r.bound, true],
      ]),
    ),
  );
  if (first)
    $("readings").prepend(
      el("p", { class: "why" }, "Round 0 has not run yet; these are the numbers it will give."),
    );
  if (phase.start > 0)
    $("readings").append(
      el(
        "p",
        { class: "why" },
        `The problem was last changed before round ${phase.start}; the theorem is accounted from there.`,
      ),
    );
}
const sup = (n) => String(n).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
