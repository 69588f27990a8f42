// How much LayerNorm shrinks the tokens of the round on show, over the size of the carrier.

import { $, el, palette, pt, show, sup } from "./base.js";
import { app, current, aside } from "./state.js";
import { engine } from "./engine.js";
import { shrunk } from "./scales.js";

const [LEAST, MOST] = [1, 8]; // powers of ten of H
const norms = { key: "", list: null }; // squared lengths of the actor call's tokens
function lengths() {
  const key = [app.run.id, app.run.edits.length, current()].join();
  if (norms.key !== key) {
    Object.assign(norms, { key, list: null });
    aside(async () => {
      const m = await engine.call("matrix", current(), "actor", 0, "tokens", 0, 1e6);
      if (norms.key !== key) return;
      norms.list = Array.from({ length: m.rows }, (_, i) =>
        m.data.subarray(i * m.cols, (i + 1) * m.cols).reduce((s, v) => s + v * v, 0),
      );
      draw();
    });
  }
  return norms.list;
}
function draw() {
  const box = $("carrier-chart"),
    list = lengths();
  if (!list || !box.clientWidth) return;
  const c = palette(),
    [W, Ht] = [Math.max(260, box.clientWidth), 240],
    [low, high] = [Math.min(...list), Math.max(...list)],
    { H } = app.run.settings,
    [top, bottom] = [0, -17],
    x = (h) => pt(44) + ((W - pt(60)) * (Math.log10(h) - LEAST)) / (MOST - LEAST),
    y = (v) => 12 + ((Ht - pt(50)) * (top - Math.max(bottom, Math.log10(v)))) / (top - bottom),
    text = (at, up, anchor, words) => el("text", { x: at, y: up, "text-anchor": anchor, fill: c.soft }, words),
    line = (x2, stroke) =>
      el("path", {
        d: Array.from({ length: 71 }, (_, i) => {
          const h = 10 ** (LEAST + (i * (MOST - LEAST)) / 70);
          return `${i ? "L" : "M"}${x(h).toFixed(1)} ${y(shrunk(x2, h)).toFixed(1)}`;
        }).join(""),
        fill: "none",
        stroke,
        "stroke-width": 2.4,
      });
  box.replaceChildren(
    el(
      "svg",
      { viewBox: `0 0 ${W} ${Ht}`, width: W, height: Ht, role: "img", "font-size": pt(12), "aria-label": "1 − ρ of the least and the largest token over H, both logarithmic" },
      [0, -4, -8, -12, -16].map((e) => [
        el("line", { x1: x(10 ** LEAST), x2: x(10 ** MOST), y1: y(10 ** e), y2: y(10 ** e), stroke: c.line }),
        text(x(10 ** LEAST) - 6, y(10 ** e) + 4, "end", e ? "10" + sup(e) : "1"),
      ]),
      Array.from({ length: MOST - LEAST + 1 }, (_, i) => text(x(10 ** (LEAST + i)), Ht - pt(20), "middle", "10" + sup(LEAST + i))),
      text(W / 2, Ht - pt(4), "middle", "H"),
      line(high, c.warm),
      line(low, c.violet),
      el("line", { x1: x(H), x2: x(H), y1: 12, y2: Ht - pt(38), stroke: c.grey, "stroke-dasharray": "4 3" }),
    ),
  );
  $("carrier-said").textContent =
    `With H = ${show(H)} (dashed) the longest token, |x| = ${show(Math.sqrt(high), 3)}, keeps ρ = 1 − ${show(shrunk(high, H), 3)}, the shortest, |x| = ${show(Math.sqrt(low), 3)}, 1 − ${show(shrunk(low, H), 3)}. From H = 3·10⁶ on, rounding takes returned policies too far from the simplex.`;
}
export function renderCarrier() {
  if (app.shown.has("normalized") || $("carrier").getBoundingClientRect().top < 2 * innerHeight) draw();
}
