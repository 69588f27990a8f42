// One sheet with both charts, π and Q, for export.

import { $, atMost, el, mix, palette, show } from "./base.js";
import { app, changes, decoderRound } from "./state.js";
import { chart } from "./chart.js";
import { lossSeries } from "./result.js";
import { PRESETS } from "./settings.js";

const COLOURS = {
  card: "#ffffff",
  ink: "#1d2226",
  soft: "#565f66",
  line: "#ddd9d0",
  accent: "#1f5a8c",
  warm: "#b4531a",
  green: "#2f6f4f",
  violet: "#6d4a8f",
  grey: "#6d6a64",
  wash: "#f1eee7",
};
const W = 1160,
  H = 664;

// placed is a chart with its title and its key, x pixels from the left.
function placed(x, title, series, T, floor) {
  const figure = chart({ series, T, floor, edits: changes(), label: title, colours: COLOURS, size: [540, 312] });
  figure.setAttribute("x", x);
  figure.setAttribute("y", 110);
  const key = series.flatMap((s, i) => {
    const [left, y] = [x + 20 + (i % 2) * 265, 436 + Math.floor(i / 2) * 16];
    return [
      el("line", {
        x1: left,
        x2: left + 28,
        y1: y,
        y2: y,
        stroke: COLOURS[s.color],
        "stroke-width": 2,
        "stroke-dasharray": s.dash || null,
      }),
      el("text", { x: left + 34, y: y + 4, fill: COLOURS.soft, "font-size": 11 }, s.name),
    ];
  });
  return [el("text", { x: x + 10, y: 100, fill: COLOURS.ink }, title), figure, ...key];
}
function table(data, x, name, scale, S, A) {
  const high = Math.min(24, 120 / S, 500 / A),
    wide = Math.min(24, 500 / A),
    parts = [el("text", { x, y: 502, fill: COLOURS.ink }, name)];
  for (let n = 0; n < S * A; n++) {
    const v = data[n],
      rgb = mix(
        COLOURS.card,
        v < 0 ? COLOURS.warm : COLOURS.accent,
        Math.sqrt(Math.min(1, Math.abs(v) / scale)),
      );
    parts.push(
      el("rect", {
        x: x + (n % A) * wide,
        y: 512 + Math.floor(n / A) * high,
        width: wide - 0.5,
        height: high - 0.5,
        fill: `rgb(${rgb})`,
        stroke: COLOURS.line,
        "stroke-width": 0.5,
      }),
    );
  }
  return parts;
}
// scene is the map or the graph as it is on show, with its arrows.
const STYLE = { "tile-goal": { stroke: "none" }, "tile-word": { stroke: "none" }, "tile-hole": { "fill-opacity": 0.28 }, "tile-ice": { fill: "none", "stroke-opacity": 0.3 } };
function scene(x, y, size) {
  const drawn = $("scene").cloneNode(true),
    box = { x, y, width: size, height: size };
  for (const name of ["id", "tabindex", "role", "aria-label", "aria-roledescription"]) drawn.removeAttribute(name);
  for (const [name, v] of Object.entries(box)) drawn.setAttribute(name, v);
  for (const [name, attributes] of Object.entries(STYLE)) // the page's style sheet does not come along
    for (const x of drawn.getElementsByClassName(name))
      for (const [a, v] of Object.entries(attributes)) x.setAttribute(a, v);
  return [el("rect", { ...box, fill: palette().card }), drawn];
}
// picture returns the sheet as the text of an SVG file.
export function picture() {
  const { info, settings } = app.run,
    { S, A } = info,
    { T } = settings,
    r = decoderRound(Math.max(0, Math.min(app.pos.k, T) - 1)),
    title = `PolicyAttention: ${PRESETS[settings.preset]}, S = ${S}, A = ${A}, after ${app.pos.k} of ${T} rounds`,
    words = `weights ${info.fingerprint.slice(0, 8)}, seed ${settings.seed}, γ = ${info.gamma}, η = ${settings.eta}, m = ${settings.m}, φ = ${settings.phi}; loss ${show(r.loss)}, bound ${atMost(r.bound)}; ζ ${show(r.zeta)}, δ ${show(r.delta)}`;
  const svg = el(
    "svg",
    {
      viewBox: `0 0 ${W} ${H}`,
      width: W,
      height: H,
      "font-family": "system-ui, DejaVu Sans, sans-serif",
      "font-size": 13,
    },
    el("rect", { width: W, height: H, fill: COLOURS.card }),
    el("text", { x: 30, y: 40, "font-size": 20, fill: COLOURS.ink }, title),
    el("text", { x: 30, y: 64, fill: COLOURS.soft }, words),
    scene(30, 100, 380),
    placed(590, "Loss of the returned policy", lossSeries(), T, 1e-12),
    table(r.nextPi, 30, "Returned policy π̂", 1, S, A),
    table(r.nextQ, 600, "Values Q", Math.max(...Array.from(r.nextQ, Math.abs)) || 1, S, A),
  );
  return new XMLSerializer().serializeToString(svg);
}
