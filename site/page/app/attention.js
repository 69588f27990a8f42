// What the pictures of attention are made of: bars and short numbers in a table, and lines to its rows.

import { $, el, palette, percent, pt, show } from "./base.js";

// bar draws v on a scale from −limit to limit, or from 0 to limit.
export function bar(v, limit, colour, both) {
  const t = Math.max(-1, Math.min(1, v / (limit || 1))) || 0, // of no number at all, too
    x = both ? (t < 0 ? 50 + 50 * t : 50) : 0,
    w = Math.abs(t) * (both ? 50 : 100);
  return el(
    "svg",
    { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    el("rect", { x: 0, y: 0, width: 100, height: 10, class: "track" }),
    el("rect", { x, y: 1, width: w, height: 8, class: "fill", fill: colour }),
    both ? el("line", { x1: 50, x2: 50, y1: 0, y2: 10, class: "zero" }) : null,
  );
}

// Numbers of the table are short; under the pointer they have all their digits.
export const fixed = (x) => (Number.isFinite(x) ? x.toFixed(2).replace(/^-0[.]00$/, "0.00").replace("-", "−") : show(x));
// signed is fixed with a sign, and with its power of ten where two digits would say nothing.
export const signed = (x) =>
  (x >= 0 ? "+" : "") + (x !== 0 && Math.abs(x) < 0.005 ? show(x, 2) : fixed(x));
// became says what a network made of an action's probability.
export const became = (action, before, after) =>
  percent(before) === percent(after)
    ? `kept ${action} at ${percent(after)}`
    : `turned ${action} from ${percent(before)} into ${percent(after)}`;
export const share = (x) =>
  x >= 0.0005 ? (100 * x).toFixed(1) + " %" : x === 0 ? "0" : show(x, 2).replace(/^(\d)\.\d·/, "$1·");

// lines draws the query, called by two words, and its attention to the rows of the
// table beside it: a list of weights for each head.
function lines(heads, heights, name, colour) {
  const box = $("step-lines"),
    H = Math.max(80, heights.at(-1) + 20),
    c = palette(),
    y0 = (heights[0] + heights.at(-1)) / 2;
  box.replaceChildren(
    el(
      "svg",
      {
        viewBox: `0 0 120 ${H}`,
        width: 120,
        height: H,
        role: "img",
        "aria-label": `Attention of the query of ${name.join(" ")}`,
      },
      heads.map((weights, h) => {
        const dy = 5 * (h - (heads.length - 1) / 2); // heads lie side by side
        return weights.map((w, i) =>
          el("path", {
            class: "ray",
            d: `M44 ${y0 + dy}C80 ${y0 + dy} 80 ${heights[i] + dy} 116 ${heights[i] + dy}`,
            fill: "none",
            stroke: w < 0.005 ? c.line : colour,
            "stroke-width": (heads.length > 1 ? 0.4 + 4 * w : 1 + 9 * w).toFixed(2),
          }),
        );
      }),
      el("circle", { cx: 26, cy: y0, r: 24, fill: c.card, stroke: c.warm, "stroke-width": 2.5 }),
      el("text", { x: 26, y: y0 - 2, "text-anchor": "middle", "font-size": pt(11), fill: c.ink }, name[0]),
      el("text", { x: 26, y: y0 + 12, "text-anchor": "middle", "font-size": pt(12), fill: c.ink }, name[1]),
    ),
  );
}
// placeLines measures the table's rows and draws lines to their middles.
export function placeLines(heads, name, colour = palette().accent) {
  const top = $("step-lines").getBoundingClientRect().top,
    rows = [...$("step-table").querySelectorAll("tbody tr")].slice(0, heads[0].length),
    heights = rows.map((r) => r.getBoundingClientRect()).map((b) => (b.top + b.bottom) / 2 - top);
  if (heights.length) lines(heads, heights, name, colour);
}
