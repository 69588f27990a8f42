// Line charts over rounds with a logarithmic axis, made by hand.

import { el, palette, pt, sup } from "./base.js";

const ends = (series, floor) => {
  let lo = Infinity,
    hi = 0;
  for (const s of series)
    for (const v of s.values)
      if (v > 0 && Number.isFinite(v)) {
        lo = Math.min(lo, Math.max(v, floor));
        hi = Math.max(hi, v, floor);
      }
  if (!(hi > 0)) [lo, hi] = [0.1, 1];
  const b = Math.log10(hi) + 0.06;
  return [Math.min(Math.floor(Math.log10(lo) + 1e-9), Math.ceil(b) - 3), b]; // at least three powers of ten
};
const power = (e) => (e === 0 ? "1" : e === 1 ? "10" : e === -1 ? ".1" : e === -2 ? ".01" : "10" + sup(e));

// scaleOf returns the plane of a chart: its edges, and where rounds and values lie. A
// value of 0 has a place of its own below all powers of ten.
function scaleOf({ series, T, floor, unit, size: [W, H] }) {
  const [a, b] = ends(series, floor),
    zero = series.some((s) => s.values.includes(0)) ? 18 : 0,
    /** @type {any} */
    plane = { W, H, a, b, zero, left: pt(40), right: 14, top: pt(unit ? 20 : 10), bottom: pt(32) },
    low = H - plane.bottom - zero; // where the least power of ten is
  plane.x = (k) => plane.left + ((W - plane.left - plane.right) * k) / Math.max(1, T);
  plane.y = (v) =>
    v === 0 ? low + zero : low - ((low - plane.top) * (Math.log10(Math.max(v, 10 ** a)) - a)) / (b - a);
  return plane;
}
function axesOf({ left, right, W, H, a, b, zero, x, y }, T, unit, colours) {
  const parts = [],
    step = Math.max(1, Math.ceil((b - a) / 6)),
    tick = (v, text) =>
      parts.push(
        el("line", { x1: left, x2: W - right, y1: y(v), y2: y(v), stroke: colours.line }),
        el("text", { x: left - 6, y: y(v) + pt(4), "text-anchor": "end", fill: colours.soft }, text),
      );
  for (let e = Math.floor(b); e >= a; e -= step) tick(10 ** e, power(e));
  if (zero) tick(0, "0");
  if (unit) parts.push(el("text", { x: 2, y: pt(11), fill: colours.soft }, unit));
  const ticks = [1, 2, 5, 10, 20, 25, 50, 100].find((n) => T / n <= 8) || 200;
  for (let k = 0; k <= T; k += ticks)
    parts.push(el("text", { x: x(k), y: H - pt(18), "text-anchor": "middle", fill: colours.soft }, String(k)));
  parts.push(
    el("text", { x: (W + left) / 2, y: H - 3, "text-anchor": "middle", fill: colours.soft }, "round"),
  );
  return parts;
}
// lineOf draws values from…to; the rest of the series comes in another call. It breaks where the
// problem changes before a round of edits, but for lines that are whole: their run had its own
// changes. A point by itself is drawn as a stub.
function lineOf(s, { x, y }, edits, colours, from, to, opacity) {
  const next = s.rounds ? 1 : 0; // a round that changes the problem has its value in the new one
  let d = "",
    pen = "M";
  for (let i = from; i < Math.min(to, s.values.length); i++) {
    const v = s.values[i];
    if (!Number.isFinite(v)) {
      pen = "M";
      continue;
    }
    const ends = !s.whole && edits.includes(i + s.from + next),
      alone = pen === "M" && (ends || !Number.isFinite(s.values[i + 1]));
    d += `${pen}${x(i + s.from).toFixed(1)} ${y(v).toFixed(1)}${alone ? "h2" : ""}`;
    pen = ends ? "M" : "L";
  }
  return (
    d &&
    el(
      "path",
      {
        d,
        fill: "none",
        stroke: colours[s.color],
        "stroke-width": s.width || 2.2,
        "stroke-dasharray": s.dash || null,
        "stroke-linejoin": "round",
        opacity,
      },
      el("title", {}, s.name),
    )
  );
}
function marks(chart, plane, colours) {
  const { x, top, H, bottom } = plane,
    upright = (k, stroke, dash, title) =>
      el(
        "line",
        { x1: x(k), x2: x(k), y1: top, y2: H - bottom, stroke, "stroke-dasharray": dash },
        title ? el("title", {}, title) : null,
      );
  return [
    ...(chart.edits || []).map((k) => upright(k, colours.warm, "1 3", `problem changed before round ${k}`)),
    chart.now !== undefined ? upright(chart.now, colours.grey, null, "") : null,
  ];
}

// chart draws series {name, color, dash, width, from, values, whole, rounds} over rounds
// 0…T, with the unit of their values in a corner. Values are of what there is after so many
// rounds, or of the rounds themselves where rounds is set. Up to round now lines have their full
// strength, and beyond it a quarter, but for those that are whole.
export function chart(c) {
  const colours = c.colours || palette(),
    plane = scaleOf({ ...c, floor: c.floor || 1e-300 }),
    { W, H } = plane;
  const svg = el("svg", {
    viewBox: `0 0 ${W} ${H}`,
    width: W,
    height: H,
    role: "img",
    "aria-label": c.label,
    "font-family": "system-ui, DejaVu Sans, sans-serif",
    "font-size": pt(12),
  });
  svg.append(...axesOf(plane, c.T, c.unit, colours), ...marks(c, plane, colours).filter(Boolean));
  for (const s of c.series) {
    const cut = s.whole || c.now === undefined ? Infinity : c.now - s.from + 1;
    for (const path of [
      lineOf(s, plane, c.edits || [], colours, 0, cut, s.faint || 1),
      cut < Infinity && lineOf(s, plane, c.edits || [], colours, Math.max(0, cut - 1), Infinity, 0.25),
    ])
      if (path) svg.append(path);
  }
  for (const s of c.series)
    if (s.dot && Number.isFinite(s.values[c.now - s.from]))
      svg.append(
        el("circle", {
          cx: plane.x(c.now),
          cy: plane.y(s.values[c.now - s.from]),
          r: 5,
          fill: colours[s.color],
          stroke: colours.card,
          "stroke-width": 1.5,
        }),
      );
  svg.plane = plane; // where rounds lie
  return svg;
}
// roundAt returns the round of a chart that lies under the pointer.
export function roundAt(svg, event, T) {
  const box = svg.getBoundingClientRect(),
    { W, left, right } = svg.plane,
    x = ((event.clientX - box.left) * W) / box.width;
  return Math.max(0, Math.min(T, Math.round(((x - left) / (W - left - right)) * T)));
}
export const keyLine = (color, dash) =>
  el(
    "svg",
    { viewBox: "0 0 24 10", width: 24, height: 10, "aria-hidden": "true" },
    el("line", {
      x1: 0,
      x2: 24,
      y1: 5,
      y2: 5,
      stroke: color,
      "stroke-width": 2.4,
      "stroke-dasharray": dash || null,
    }),
  );
export function legend(series) {
  const c = palette();
  return el(
    "p",
    { class: "keys" },
    series.map((s) => el("span", {}, keyLine(c[s.color], s.dash), s.name)),
  );
}
