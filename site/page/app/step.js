// One step of the network seen as attention: a state's query over the memories of
// its actions, or a pair's query over its packets.

import { $, act, el, palette, show, stillness } from "./base.js";
import { app, current, decoderRound, phaseAt, render } from "./state.js";
import { actionName, select, stateName } from "./selection.js";
import { term } from "./glossary.js";
import { bar, became, fixed, share, signed } from "./attention.js";
import { inspect } from "./microscope.js";
import { engine } from "./engine.js";
import { drawCritic, firstPacket } from "./critic.js";
import { byHand, drawByHand, toggleByHand } from "./byhand.js";
import { drawStrip } from "./strip.js";
import { toggle } from "./result.js";
import { buildNets, drawTrained, renderNets } from "./trained.js";

const tab = () => app.view.step;
export function showStep(which) {
  app.view.step = which;
  render();
}

// The least that a full bar of ηQ stands for: below it differences are next to nothing.
const LEAST_GAIN = 0.05;
// One row of the actor's table, from the decoder's context and its returned policy.
function actorRows(s) {
  const { A } = app.run.info,
    { eta } = app.run.settings,
    r = decoderRound(current()),
    rows = [];
  let mean = 0;
  for (let a = 0; a < A; a++) mean += (eta * r.q[s * A + a]) / A;
  for (let a = 0; a < A; a++) {
    const i = s * A + a;
    rows.push({
      a,
      pi: r.pi[i],
      log: Math.log(r.pi[i]),
      gain: eta * r.q[i] - mean,
      next: r.nextPi[i],
      exact: r.exactPi[i],
    });
  }
  return { rows, mean };
}
const distance = (rows, x, y) => rows.reduce((sum, r) => sum + Math.abs(r[x] - r[y]), 0);

// The learned actor's answer to the decoder's context, once it is there.
const other = { key: "", rows: null };
async function compare(k) {
  const key = [app.run.id, app.run.edits.length, k].join();
  if (other.key === key || app.playing) return;
  other.key = key;
  other.rows = null;
  let rows;
  try {
    rows = await engine.call("compare", k);
  } catch {
    return; // the chart says why there is none
  }
  if (other.key !== key) return; // a later round has been asked for
  other.rows = rows;
  render();
}

function actorHead(learned) {
  return el(
    "thead",
    {},
    el(
      "tr",
      {},
      el("th", { scope: "col" }, "memory"),
      el("th", { scope: "col" }, term("logpi", "log π"), el("small", {}, "habit")),
      el(
        "th",
        { scope: "col" },
        "+ ",
        term("eta", "η"),
        term("q", "Q"),
        el("small", {}, "above mean"),
      ),
      el("th", { scope: "col" }, "softmax → ", term("pihat", "π̂"), el("small", {}, "new policy")),
      el("th", { scope: "col" }, term("pmd", "exact PMD"), el("small", {}, "reference")),
      learned ? el("th", { scope: "col" }, "trained", el("small", {}, "same context")) : null,
    ),
  );
}
function actorTable(s) {
  const { rows, mean } = actorRows(s),
    { A } = app.run.info,
    c = palette(),
    learned = app.shown.has("learned") && other.rows?.length === app.run.info.S * A ? other.rows : null;
  const least = Math.max(1, ...rows.map((r) => (Number.isFinite(r.log) ? -r.log : 0))),
    most = Math.max(LEAST_GAIN, ...rows.map((r) => Math.abs(r.gain)));
  const cell = (text, graphic, why) => el("td", { title: why }, el("span", { class: "n" }, text), graphic);
  const line = (r) =>
    el(
      "tr",
      { onclick: () => select(s, r.a), class: r.a === app.view.action ? "own" : "" },
      el("th", { scope: "row" }, `${actionName(r.a)}`),
      cell(
        fixed(r.log),
        bar(r.log, least, c.warm, true),
        `log π(${actionName(r.a)} | ${stateName(s)}) = log ${show(r.pi)}`,
      ),
      cell(
        signed(r.gain),
        bar(r.gain, most, c.accent, true),
        `ηQ = ${show(r.gain + mean)}; the mean ${show(mean)} is taken off, which changes no softmax`,
      ),
      cell(share(r.next), bar(r.next, 1, c.accent, false), `new probability ${show(r.next, 8)}`),
      cell(share(r.exact), bar(r.exact, 1, c.grey, false), `exact PMD ${show(r.exact, 8)}`),
      learned
        ? cell(
            share(learned[s * A + r.a]),
            bar(learned[s * A + r.a], 1, c.green, false),
            `the trained network on the same context: ${show(learned[s * A + r.a], 6)}`,
          )
        : null,
    );
  return el(
    "table",
    { class: "attend" },
    actorHead(learned),
    el("tbody", {}, rows.map(line)),
  );
}

function drawActor() {
  const s = app.view.state,
    { rows } = actorRows(s),
    gap = distance(rows, "next", "exact");
  $("step-table").replaceChildren(actorTable(s));
  const best = rows.reduce((x, y) => (y.next > x.next ? y : x));
  $("step-said").replaceChildren(
    `In ${stateName(s)} the network ${became(actionName(best.a), best.pi, best.next)}. `,
    el(
      "strong",
      {},
      gap === 0 ? "The row equals exact PMD to the last bit" : `The row differs from exact PMD by ${show(gap, 2)}`,
    ),
    app.run.settings.phi ? ", the mixture φ included." : ".",
    phaseAt(app.pos.k).grid?.tiles[s] === "#" ? " This place is a wall: no move leads here, so its row changes nothing." : "",
  );
  if (app.shown.has("learned")) compare(current());
}
let drawn = "";
export function renderStep() {
  const { pos } = app,
    key = `${app.run.id}|${pos.k}|${pos.stage}`;
  if (key !== drawn) app.view.step = pos.stage < 2 ? "actor" : "critic";
  // While it plays, a redraw would begin the animation anew before there is anything to see.
  const fresh = key !== drawn && !stillness() && !app.playing && (pos.stage === 1 || pos.stage === 3);
  if (key !== drawn || app.playing) $("step-body").classList.remove("fresh");
  drawn = key;
  $("step-title").textContent = tab() === "actor" ? "Attention = new policy" : "Attention → new values";
  if (fresh) {
    void $("step-body").offsetWidth; // animations begin anew
    $("step-body").classList.add("fresh");
  }
  renderNets();
  drawStrip();
  $("step-hand").setAttribute("aria-pressed", String(byHand()));
  $("step-lines").hidden = byHand() || tab() === "actor" && app.view.net === "decoder";
  if (byHand()) drawByHand();
  else if (tab() === "critic") drawCritic();
  else if (app.view.net === "learned") drawTrained();
  else drawActor();
}
// showNet shows the attention of the fixed decoder or of the trained network.
async function showNet(net) {
  if (net === "learned" && !app.shown.has(net)) await toggle(net);
  if (byHand()) toggleByHand();
  app.view.net = net;
  render();
}
function lookCloser() {
  const { A } = app.run.info,
    { state: s, action: a, net } = app.view;
  if (tab() === "critic") return inspect("critic", "1.0", "weight", s * A + a, firstPacket(s * A + a));
  return net === "learned"
    ? inspect(net, "n0", "weight", a, 0, a)
    : inspect("actor", "0.0", "score", s, s * A + a);
}
export function buildStep() {
  buildNets(showNet);
  $("step-hand").addEventListener("click", () => act(toggleByHand));
  $("step-look").addEventListener("click", () => act(lookCloser));
}
