// All tokens of the actor's call as one strip: the memories of each state, in the colours of their
// places, then the queries; and the attention that the query of the selected state pays to them, read
// from the pass itself.

import { $, act, atMost, el, palette, percent, plural, pt, shade, show } from "./base.js";
import { app, context, current, decoderRound, render, restart, aside } from "./state.js";
import { actionName, select, stateName } from "./selection.js";
import { term } from "./glossary.js";
import { engine } from "./engine.js";

const HEIGHT = 76, // of the strip, without the words under it
  CELLS = 16, // of it the tokens
  WIDEST = 14, // of a ray that carries all of the attention
  LEAST = 1e-4; // of the attention that is drawn as a ray: less is thinner than a hair
// The rows of attention that were fetched, by what they depend on.
const rows = new Map();
const keyOf = (s) => [app.run.id, app.run.edits.length, current(), s].join();
let asking = "";
// rowOf returns the attention of the query of state s, once it is there.
function rowOf(s) {
  const key = keyOf(s),
    large = app.run.info.S * app.run.info.A > 300;
  if (!rows.has(key) && asking !== key && !(large && (app.playing || app.work))) {
    asking = key;
    aside(async () => {
      const w = await engine.call("attention", current(), s);
      if (rows.size > 60) rows.clear();
      rows.set(key, w);
      render();
    });
  }
  return rows.get(key);
}
// home sums the attention that stays with the memories of state s.
export const home = (w, s, A) => w.subarray(s * A, s * A + A).reduce((x, y) => x + y, 0);

// placeColours colours states by their values, as the map does.
function placeColours() {
  const { pi, q } = context(),
    { S, A } = app.run.info,
    v = Array.from({ length: S }, (_, s) => q.subarray(s * A, s * A + A).reduce((x, y, a) => x + y * pi[s * A + a], 0)),
    top = Math.max(1e-300, ...v.map(Math.abs));
  return v.map((x) => `rgb(${shade(Math.sign(x) * Math.sqrt(Math.abs(x) / top) * 0.85)})`);
}

// geometry says where tokens lie: groups of A memories with gaps between them, then the queries.
function geometry(W) {
  const { S, A } = app.run.info,
    gap = S * A < 200 ? 3 : 1,
    apart = 18,
    cell = Math.max(0.5, (W - gap * S - apart) / (S * A + S));
  return {
    cell,
    memory: (i) => i * cell + Math.floor(i / A) * gap,
    query: (s) => S * A * cell + S * gap + apart + s * cell,
  };
}
// ray is an arc over the strip from x1 to x2.
const ray = (x1, x2, y, w, stroke) =>
  el("path", {
    class: "ray",
    d: `M${x1.toFixed(1)} ${y}C${x1.toFixed(1)} ${y - Math.min(y + 8, 30 + Math.abs(x1 - x2) / 3)} ${x2.toFixed(1)} ${y - Math.min(y + 8, 30 + Math.abs(x1 - x2) / 3)} ${x2.toFixed(1)} ${y}`,
    fill: "none",
    stroke,
    "stroke-width": Math.max(0.6, WIDEST * w).toFixed(2),
    "stroke-opacity": 0.85,
  });

function tokenTitle(i, w, s) {
  const { S, A } = app.run.info,
    said =
      i < S * A
        ? `memory: ${actionName(i % A)} in ${stateName(Math.floor(i / A))}`
        : `query of ${stateName(i - S * A)}`;
  return i < w.length
    ? `${said}: ${percent(w[i])} of the attention of ${stateName(s)}’s query`
    : `${said}: later than ${stateName(s)}’s query, which cannot see it`;
}
// tokens returns a cell for each, built once for a size.
const built = { key: "", cells: [] };
function tokens(W, at, y) {
  const { S, A } = app.run.info,
    key = [W, S, A].join();
  if (built.key === key) return built.cells;
  built.key = key;
  built.cells = Array.from({ length: S * A + S }, (_, i) => {
    const memory = i < S * A,
      state = memory ? Math.floor(i / A) : i - S * A;
    return el("rect", {
      x: (memory ? at.memory(i) : at.query(state)).toFixed(2),
      y: memory ? y : y + 2,
      width: Math.max(0.5, at.cell - (at.cell > 4 ? 1 : 0)).toFixed(2),
      height: memory ? CELLS : CELLS - 4,
      rx: memory ? 0 : 4,
      onclick: () => select(state, memory ? i % A : app.view.action),
      // Written when it is asked for: there are hundreds of tokens.
      onpointerenter: (e) => {
        const w = rowOf(app.view.state);
        if (w) e.target.replaceChildren(el("title", {}, tokenTitle(i, w, app.view.state)));
      },
    });
  });
  return built.cells;
}
// drawStrip draws the tokens and the rays of the selected state's query.
export function drawStrip() {
  const box = $("strip"),
    W = box.clientWidth;
  $("strip-box").hidden = app.view.step !== "actor" || app.view.net !== "decoder";
  if ($("strip-box").hidden || !W) return;
  const { S, A } = app.run.info,
    s = app.view.state,
    c = palette(),
    at = geometry(W),
    colours = placeColours(),
    w = rowOf(s),
    y = HEIGHT - CELLS - 17,
    lit = app.view.lit ?? s,
    rays = [],
    parts = tokens(W, at, y);
  parts.forEach((rect, i) => {
    const state = i < S * A ? Math.floor(i / A) : i - S * A,
      own = i === S * A + s;
    rect.setAttribute("fill", i < S * A ? colours[state] : c.card);
    rect.setAttribute("stroke", own || state === lit ? c.warm : c.line);
    rect.setAttribute("stroke-width", own ? 2.5 : state === lit ? 1.6 : at.cell > 3 ? 0.8 : 0);
  });
  w?.forEach((v, i) => {
    if (v < LEAST) return;
    const mine = i < S * A && Math.floor(i / A) === s,
      x = (i < S * A ? at.memory(i) : at.query(i - S * A)) + at.cell / 2;
    rays.push([mine, ray(at.query(s) + at.cell / 2, x, y, v, mine ? c.accent : c.warm)]);
  });
  rays.sort((a, b) => a[0] - b[0]);
  const text = (x, anchor, words) =>
    el("text", { x, y: HEIGHT - 4, "text-anchor": anchor, "font-size": pt(12), fill: c.soft }, words);
  box.replaceChildren(
    el(
      "svg",
      {
        viewBox: `0 0 ${W} ${HEIGHT}`,
        width: W,
        height: HEIGHT,
        role: "img",
        "aria-label": `Attention of the query of ${stateName(s)} over ${S * A} memories and ${S} queries`,
      },
      rays.map((x) => x[1]),
      parts,
      text(0, "start", `${S} × ${A} memories` + (W > pt(460) ? " (log π, Q), coloured as their places" : "")),
      text(W, "end", plural(S, "query").replace("ys", "ies")),
    ),
  );
  box.dataset.drawn = w ? keyOf(s) : ""; // whose attention is on show: none while it is fetched
  drawHome(w, s);
}
function drawHome(w, s) {
  const { A } = app.run.info,
    r = decoderRound(current()),
    c = app.run.info.certificate,
    slider = $("kappa-slider");
  if (document.activeElement !== slider) slider.value = toSlider(c.kappa);
  const stays = w ? home(w, s, A) : NaN;
  $("home-kappa").replaceChildren(term("kappa", "κ"), ` = ${show(c.kappa, 3)}`);
  $("home").replaceChildren(
    el("b", {}, w ? (stays > 0.9995 && stays < 1 ? `All but ${show(1 - stays, 2)}` : percent(stays)) : "…"),
    " of the attention stays at home, with its own memories",
    ...(stays < 0.99 ? [", ", el("span", { class: "leaks" }, `${percent(1 - stays)} leaks`)] : []),
    ". ",
    term("zeta"),
    ` = ${show(r.zeta, 2)}, certified ≤ ${atMost(r.zetaBound, 2)}.`,
  );
}

// The slider runs over κ from 0.1 to what the tolerance asks for; small margins get most of its length.
const LOW = 0.1;
// widest is κ by the tolerance (the paper's Appendix B).
function widest() {
  const { settings, info } = app.run;
  return 2 * settings.eta * info.certificate.B + Math.log((2 * info.S * (2 - settings.tol)) / settings.tol);
}
const toSlider = (kappa) => Math.round(1000 * Math.min(1, Math.log(kappa / LOW) / Math.log(widest() / LOW)));
const fromSlider = (t) => (t >= 1000 ? 0 : Number((LOW * (widest() / LOW) ** (t / 1000)).toPrecision(3)));

// latest runs f for the last of the values that come in while it is busy.
export function latest(f) {
  let busy = false,
    next = null;
  return async (x) => {
    next = { x };
    if (busy) return;
    busy = true;
    try {
      while (next) {
        const { x: now } = next;
        next = null;
        await f(now);
      }
    } finally {
      busy = false;
    }
  };
}
export function buildStrip() {
  let first = true;
  const move = latest((t) =>
    act(async () => {
      const { run, pos } = app,
        k = pos.k,
        stage = pos.stage;
      await restart({ ...run.settings, kappa: fromSlider(t) }, run.file, run.edits, {
        k,
        what: "with another κ",
        cap: run.cap,
        quiet: !first,
      });
      app.pos.stage = stage;
      first = false;
      render();
    }),
  );
  $("kappa-slider").addEventListener("input", (e) => {
    app.dragging = true;
    move(Number(e.target.value));
  });
  $("kappa-slider").addEventListener("change", () => {
    app.dragging = false;
    first = true;
    render();
  });
  new ResizeObserver(() => render()).observe($("strip"));
}
