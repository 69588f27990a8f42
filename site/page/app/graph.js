// Any other problem as a graph: nodes hold the policy, edges are transitions
// under it, of more than 16 states only those of the state that is selected.

import { el, palette, pt, shade, show, textOn } from "./base.js";
import { app, context, phaseAt } from "./state.js";
import { editedStates, hover, select } from "./selection.js";

const CIRCLE = 16; // states that are drawn on a circle; more stand in rows

/** layout returns the middles of S nodes in a square, and their radius.
 * @returns {{ at: [number, number][], node: number }} */
function layout(S, size) {
  const m = size / 2;
  if (S === 1) return { at: [[m, m]], node: 46 };
  if (S > CIRCLE) {
    const cols = Math.ceil(Math.sqrt(S)),
      cell = size / cols;
    return {
      at: Array.from({ length: S }, (_, s) => [
        ((s % cols) + 0.5) * cell,
        (Math.floor(s / cols) + 0.5) * cell,
      ]),
      node: Math.min(30, cell * 0.38),
    };
  }
  const radius = m - 60,
    turn = (s) => (2 * Math.PI * s) / S - Math.PI / 2;
  return {
    at: Array.from({ length: S }, (_, s) => [m + radius * Math.cos(turn(s)), m + radius * Math.sin(turn(s))]),
    node: Math.min(30, Math.max(20, (Math.PI * radius) / S - 5)),
  };
}

// drawGraph draws into svg and returns what goes under it.
export function drawGraph(svg, v) {
  const { S } = app.run.info,
    box = svg.parentElement,
    size = Math.floor(Math.min(box.clientWidth || 300, Math.max(250, box.clientHeight))),
    { at, node } = layout(S, size);
  svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
  svg.setAttribute("width", size);
  svg.setAttribute("height", size);
  const mean = v.reduce((x, y) => x + y, 0) / S,
    reach = Math.max(1e-12, ...v.map((x) => Math.abs(x - mean))),
    edited = editedStates();
  svg.replaceChildren(
    el("g", {}, edges(at, node, size)),
    el(
      "g",
      {},
      at.map((p, s) => drawNode(p, s, node, S > 1 ? (v[s] - mean) / reach : 0, v[s], edited.has(s))),
    ),
  );
  return [
    el("span", {}, el("span", { class: "swatch low" }), `value below the mean ${show(mean, 3)}`),
    el("span", {}, el("span", { class: "swatch high" }), "above"),
    el("span", {}, "bars = policy, lines = where it leads"),
  ];
}

// flow returns P^π(t|s) = Σ π(a|s) P(t|s,a).
function flow(s, t) {
  const { pi } = context(),
    { S, A } = app.run.info,
    { p } = phaseAt(app.pos.k);
  let sum = 0;
  for (let a = 0; a < A; a++) sum += pi[s * A + a] * p[(s * A + a) * S + t];
  return sum;
}
function edges(at, node, size) {
  const { S } = app.run.info,
    colours = palette(),
    drawn = [];
  for (let s = 0; s < S; s++)
    for (let t = 0; t < S; t++) {
      const share = flow(s, t),
        own = s === app.view.state;
      if (share < (own ? 0.01 : S > CIRCLE ? Infinity : 0.12)) continue;
      const line = s === t ? loop(at[s], node, size) : bow(at[s], at[t], node);
      drawn.push([
        own,
        el("path", {
          d: line,
          fill: "none",
          stroke: own ? colours.accent : colours.line,
          "stroke-width": (0.8 + 5 * share).toFixed(1),
          "stroke-linecap": "round",
        }),
      ]);
    }
  return drawn.sort((x, y) => x[0] - y[0]).map((x) => x[1]);
}
// bow is a curve from one node's rim to another's, to the right of the way, with a head.
function bow([x1, y1], [x2, y2], node) {
  const length = Math.hypot(x2 - x1, y2 - y1),
    [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length],
    bend = Math.min(26, length * 0.12),
    [mx, my] = [(x1 + x2) / 2 - uy * bend, (y1 + y2) / 2 + ux * bend],
    back = Math.hypot(x2 - mx, y2 - my),
    [ex, ey] = [x2 - ((x2 - mx) / back) * (node + 4), y2 - ((y2 - my) / back) * (node + 4)],
    [hx, hy] = [((ex - mx) / back) * 9, ((ey - my) / back) * 9];
  const n = (x) => x.toFixed(1);
  return `M${n(x1 + ux * node)} ${n(y1 + uy * node)}Q${n(mx)} ${n(my)} ${n(ex)} ${n(ey)}M${n(ex - hx - hy * 0.6)} ${n(ey - hy + hx * 0.6)}L${n(ex)} ${n(ey)}L${n(ex - hx + hy * 0.6)} ${n(ey - hy - hx * 0.6)}`;
}
// loop is a small circle outwards of a node.
function loop([x, y], node, size) {
  const d = Math.hypot(x - size / 2, y - size / 2) || 1,
    [ux, uy] = d > 1 ? [(x - size / 2) / d, (y - size / 2) / d] : [0, -1],
    r = node * 0.45,
    [cx, cy] = [x + ux * (node + r * 0.7), y + uy * (node + r * 0.7)];
  return `M${cx - r} ${cy}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
}
function drawNode([x, y], s, node, t, v, edited) {
  const colours = palette(),
    rgb = shade(t * 0.85, colours),
    ink = textOn(rgb),
    { A } = app.run.info,
    { pi } = context(),
    wide = Math.min(7, (node * 1.4) / A),
    left = x - (wide * A) / 2;
  return el(
    "g",
    { onclick: () => select(s), onpointerenter: () => hover(s) },
    el("title", {}, `state ${s}, value ${show(v)}`),
    el("circle", {
      cx: x,
      cy: y,
      r: node,
      fill: `rgb(${rgb})`,
      stroke: s === app.view.state ? colours.warm : colours.grey,
      "stroke-width": s === app.view.state ? 3.5 : 1,
    }),
    el(
      "text",
      { x, y: y - node * 0.28, "text-anchor": "middle", "font-size": pt(node < 24 ? 11 : 12), fill: ink },
      String(s),
    ),
    Array.from({ length: A }, (_, a) => {
      const h = Math.max(1, node * 0.8 * pi[s * A + a]);
      return el("rect", {
        x: left + a * wide,
        y: y + node * 0.62 - h,
        width: Math.max(1, wide - 1),
        height: h,
        fill: ink,
      });
    }),
    edited
      ? el("circle", {
          cx: x + node * 0.72,
          cy: y - node * 0.72,
          r: 4.5,
          fill: colours.warm,
          stroke: colours.card,
        })
      : null,
  );
}
