// A problem that is a map: places, walls, goals, holes, ice; the policy as arrows.

import { el, palette, pt, shade, show, textOn } from "./base.js";
import { app, context, phaseAt } from "./state.js";
import { editedStates, hover, select } from "./selection.js";

export const TILES = [
  [".", "Floor", "Moves go where they say with probability .8, to either side with .1"],
  ["~", "Ice", "Moves go where they say, and to either side, with probability 1/3 each"],
  ["#", "Wall", "It cannot be entered"],
  ["G", "Goal", "The good end"],
  ["H", "Hole", "The bad end"],
];
/** @type {[number, number][]} */
const TOWARDS = [
  [-1, 0],
  [0, 1],
  [1, 0],
  [0, -1],
];
const built = { key: "", places: [], paint: null, brush: "" };
addEventListener("pointerup", () => (built.brush = ""));

// drawMap draws into svg and returns what goes under it.
// Whoever drags from a place paints what it is: paint is called with each place and its new tile.
export function drawMap(svg, v, paint) {
  built.paint = paint;
  const grid = phaseAt(app.pos.k).grid,
    box = svg.parentElement,
    c = Math.floor(Math.min((box.clientWidth || 300) / grid.width, Math.max(250, box.clientHeight) / grid.height)),
    key = [grid.tiles, grid.width, c, pt(1)].join();
  if (built.key !== key || built.places[0].group.parentNode !== svg) build(svg, grid, c, key);
  let top = 0;
  for (const x of v) top = Math.max(top, Math.abs(x));
  const { pi } = context(),
    edited = editedStates();
  built.places.forEach((place, s) => update(place, s, v[s], top || 1, pi, edited.has(s)));
  return [
    el("span", {}, el("span", { class: "swatch low" }), "value below zero"),
    el("span", {}, el("span", { class: "swatch high" }), `above, up to ${show(top, 3)}`),
    el("span", {}, "number: V(s)"),
    el("span", {}, "arrow length: probability"),
    el("span", {}, "drag a wall to paint more"),
  ];
}

function build(svg, grid, c, key) {
  const W = c * grid.width,
    H = c * grid.height;
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  svg.setAttribute("width", W);
  svg.setAttribute("height", H);
  built.key = key;
  built.size = c;
  built.places = Array.from(grid.tiles, (tile, s) =>
    place(tile, s, (s % grid.width) * c, Math.floor(s / grid.width) * c, c),
  );
  svg.replaceChildren(...built.places.map((p) => p.group));
}
function place(tile, s, x, y, c) {
  const { line } = palette(),
    walled = tile === "#";
  const rect = el("rect", { x: 0.5, y: 0.5, width: c - 1, height: c - 1, rx: 4, stroke: line });
  const arrows =
    walled || tile === "G" || tile === "H"
      ? []
      : TOWARDS.map(() =>
          el("path", { fill: "none", "stroke-linecap": "round", "stroke-linejoin": "round" }),
        );
  const value = el("text", { x: c - 5, y: c - 6, "text-anchor": "end", "font-size": pt(c > pt(60) ? 12 : 11) });
  const mark = el("circle", { cx: c - 9, cy: 10, r: 4 });
  const frame = el("rect", {
    x: 2,
    y: 2,
    width: c - 4,
    height: c - 4,
    rx: 4,
    fill: "none",
    "stroke-width": 3,
  });
  const art = el("g", {}, picture(tile, c));
  const group = el(
    "g",
    {
      transform: `translate(${x} ${y})`,
      onclick: () => select(s),
      onpointerdown: () => (built.brush = tile),
      onpointerenter: (e) => {
        hover(s);
        if (e.buttons === 1 && built.brush && tile !== built.brush && built.brush !== "S") built.paint(s, built.brush);
      },
    },
    rect,
    art,
    arrows,
    c >= pt(60) && !walled ? value : null,
    mark,
    frame,
  );
  return { group, rect, arrows, value, mark, frame, art, tile, c };
}
// picture is what a tile shows beside its colour.
function picture(tile, c) {
  const m = c / 2;
  if (tile === "G") {
    const star = Array.from({ length: 10 }, (_, i) => {
      const r = c * (i % 2 ? 0.12 : 0.28),
        t = (Math.PI * i) / 5 - Math.PI / 2;
      return `${(m + r * Math.cos(t)).toFixed(1)},${(m + r * Math.sin(t)).toFixed(1)}`;
    });
    return [el("polygon", { points: star.join(" "), class: "tile-goal" })];
  }
  if (tile === "H") return [el("circle", { cx: m, cy: m, r: c * 0.27, class: "tile-hole" })];
  if (tile === "~")
    return [0.24, 0.76].map((h) =>
      el("path", {
        class: "tile-ice",
        d: `M${c * 0.14} ${c * h}q${c * 0.09} ${-c * 0.07} ${c * 0.18} 0t${c * 0.18} 0t${c * 0.18} 0t${c * 0.18} 0`,
      }),
    );
  if (tile === "S")
    return [
      el("text", { x: 6, y: pt(13), "font-size": pt(c > pt(60) ? 12 : 10.5), class: "tile-word" }, c >= pt(60) ? "start" : "S"),
    ];
  return [];
}

function update(p, s, v, top, pi, edited) {
  const colours = palette(),
    rgb = p.tile === "#" ? null : shade(Math.sign(v) * Math.sqrt(Math.abs(v) / top) * 0.85, colours),
    ink = rgb ? textOn(rgb) : colours.ink,
    selected = app.view.state === s;
  p.rect.setAttribute("fill", rgb ? `rgb(${rgb})` : colours.grey);
  p.art.setAttribute("fill", ink);
  p.art.setAttribute("stroke", ink);
  p.value.textContent = Math.abs(v) < 5e-4 ? "0" : show(v, 2);
  p.value.setAttribute("fill", ink);
  p.mark.setAttribute("visibility", edited ? "visible" : "hidden");
  p.mark.setAttribute("fill", colours.warm);
  p.mark.setAttribute("stroke", colours.card);
  p.frame.setAttribute("stroke", selected ? colours.warm : "none");
  p.arrows.forEach((path, a) => {
    arrow(path, pi[s * 4 + a], TOWARDS[a], p.c, ink);
    path.classList.toggle("led", selected && app.view.led && a === app.view.action);
  });
}
// arrow draws a probability from the middle of a place outwards.
function arrow(path, share, [dx, dy], c, ink) {
  const m = c / 2,
    length = 0.46 * c * share,
    head = Math.min(length * 0.45, c * 0.1),
    x = m + dx * length,
    y = m + dy * length;
  path.setAttribute("visibility", share < 0.02 ? "hidden" : "visible");
  if (share < 0.02) return;
  const barb = (side) =>
    `${(x - dx * head + dy * head * side).toFixed(1)} ${(y - dy * head + dx * head * side).toFixed(1)}`;
  path.setAttribute(
    "d",
    `M${m} ${m}L${x.toFixed(1)} ${y.toFixed(1)}M${barb(0.75)}L${x.toFixed(1)} ${y.toFixed(1)}L${barb(-0.75)}`,
  );
  path.setAttribute("stroke", ink);
  path.setAttribute("stroke-width", (1.2 + 1.6 * share).toFixed(2));
}
