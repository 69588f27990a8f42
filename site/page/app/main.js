// The page: it puts the views together, starts the engine, and plays once by itself.
// Every number comes from the worker.

import { $, act, acting, all, around, atMost, forgetColours, message, plural, show, stillness } from "./base.js";
import { engine } from "./engine.js";
import {
  STAGES,
  app,
  cancel,
  current,
  decoderRound,
  draw,
  effort,
  ended,
  go,
  onRender,
  onStart,
  phaseAt,
  play,
  reach,
  stop,
  aside,
} from "./state.js";
import { address, openAddress, openUsual, remember } from "./address.js";
import { buildFiles, sandboxed } from "./files.js";
import { buildGlossary } from "./glossary.js";
import { buildMicroscope, lookAt, renderScope } from "./microscope.js";
import { partsOf, scope, stationsOf } from "./scope.js";
import { buildNumbers, heats, openEditor, renderNumbers } from "./numbers.js";
import { buildProblem, change, renderProblem } from "./problem.js";
import { select } from "./selection.js";
import { buildResult, renderResult } from "./result.js";
import { buildSettings, fillSettings } from "./settings.js";
import { buildStep, renderStep } from "./step.js";
import { buildAsked } from "./asked.js";
import { buildStrip } from "./strip.js";
import { renderNetwork, renderPrint } from "./network.js";
import { buildTabs, showTab } from "./tabs.js";
import { buildLesson, inLesson, lessonAsked, lessonLength, startLesson, turn } from "./lesson.js";
import { buildSliders, renderSliders, slideTo } from "./sliders.js";
import { describe } from "./explain.js";
import { weights } from "./learned.js";
import { buildBound, renderBound, renderCertificate, renderEvidence, renderResiduals } from "./evidence.js";
import { renderCarrier } from "./carrier.js";

function renderTransport() {
  const { run, pos, playing } = app,
    { T } = run.settings;
  $("scrub").max = T;
  $("scrub").value = pos.k;
  $("scrub-out").textContent = `${pos.k} of ${T}`;
  $("play").textContent = playing ? "Stop" : ended() ? "Play again" : "Play";
  $("play").setAttribute("aria-pressed", String(!!playing));
  [...$("chain").children].forEach((x, i) => {
    x.classList.toggle("now", i === pos.stage && !ended());
    if (i === pos.stage && !ended()) x.setAttribute("aria-current", "step");
    else x.removeAttribute("aria-current");
  });
  $("figures").textContent =
    `${plural(run.rounds.decoder.length, "round")} took ${show(engine.compute / 1000, 3)} s of compute in a worker. Everything is computed on this machine.`;
}
function renderWork(now) {
  const { work } = app,
    slow = work && now - work.since > 300;
  $("work").hidden = !slow;
  if (slow) {
    $("work-bar").max = work.of;
    $("work-bar").value = work.k;
    const { run } = app,
      each = work.k ? (now - work.since) / 1000 / work.k : effort(run.settings, run.info),
      left = Math.round(each * (work.of - work.k));
    $("work-text").textContent =
      `Computing round ${work.k} of ${work.of}` + (left > 2 ? `, about ${plural(left, "second")} left` : "");
  }
}
// Views below the first are drawn while playing only now and then.
const onScreen = new Set(), // sections
  watch = new IntersectionObserver((entries) => {
    for (const e of entries) e.isIntersecting ? onScreen.add(e.target) : onScreen.delete(e.target);
  });
let drawn = 0;
function renderRest(now) {
  const busy = app.playing || app.work || app.dragging,
    seen = (id) => !busy || onScreen.has($(id));
  if (busy && now - drawn < 120) return;
  drawn = now;
  if (seen("evidence")) {
    renderEvidence();
    renderResiduals();
    renderBound();
  }
  renderPrint();
  if (seen("network")) renderNetwork();
  if (busy) return;
  renderNumbers();
  renderCertificate();
  renderCarrier();
  renderScope();
  remember();
}

const on = (id, event, f) => $(id).addEventListener(event, (e) => act(() => f(e)));
const stopThen = (f) => () => {
  stop();
  return f();
};
function buildTransport() {
  const { pos } = app;
  on("play", "click", () => void play());
  on(
    "first",
    "click",
    stopThen(() => go(0, 0)),
  );
  on(
    "back",
    "click",
    stopThen(() => go(pos.k, pos.stage - 1)),
  );
  on(
    "forth",
    "click",
    stopThen(() => go(pos.k, pos.stage + 1)),
  );
  on(
    "round-on",
    "click",
    stopThen(() => go(pos.k + 1, 0)),
  );
  on(
    "scrub",
    "input",
    stopThen(() => go(Number($("scrub").value), 0)),
  );
  on("work-cancel", "click", cancel);
  STAGES.forEach((s, i) =>
    $("chain").children[i].addEventListener("click", () => act(stopThen(() => go(current(), i)))),
  );
}
async function linked() {
  const hash = await address();
  if (hash.length > 2e5) throw new Error("The problem is too large for a link; save it as JSON instead.");
  history.replaceState(null, "", hash);
}
// embed copies HTML that shows the page, as it is now, in another one.
async function embed() {
  await linked();
  const address = location.href.replace(/&/g, "&amp;").replace(/"/g, "&quot;"),
    html = `<iframe src="${address}" title="PolicyAttention" width="100%" height="820" style="border:0"></iframe>`;
  $("export").open = false;
  try {
    await navigator.clipboard.writeText(html);
    message("The HTML is copied; it shows this page as it is now.", "notice");
  } catch {
    message(html, "notice");
  }
}
async function share() {
  await linked();
  if (sandboxed)
    // no clipboard, no address bar, and a query that is the server's own
    return message("This link holds the whole state: " + location.href.replace(/\?[^#]*/, ""), "notice");
  try {
    await navigator.clipboard.writeText(location.href);
    message("The link is copied; it holds the whole state, seed and changes included.", "notice");
  } catch {
    message("The address bar holds the whole state now; copy it from there.", "notice");
  }
}
// → and ← step, also while a button has the focus; fields and matrices keep theirs.
function keys(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  if (e.target.closest("input, select, textarea, canvas, .scroll, [role=application]")) return;
  const key = { ArrowRight: e.shiftKey ? "round-on" : "forth", ArrowLeft: "back" }[e.key];
  if (!key) return;
  e.preventDefault();
  if (inLesson() && !e.shiftKey) turn(key === "back" ? -1 : 1);
  else $(key).click();
}
function buildMenu() {
  const menu = $("export");
  document.addEventListener("click", (e) => {
    if (!menu.contains(e.target) || around(e, "[data-export]")) menu.open = false;
  });
  menu.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.firstElementChild.focus();
  });
}
// repaint draws in other colours, at once: printing does not wait for a frame.
function repaint() {
  forgetColours();
  draw(performance.now());
}
// buildSchemes follows the system's colours, and shows all parts on paper, in light ones.
function buildSchemes() {
  const { classList } = document.documentElement,
    { dataset } = document.body;
  let tab = "";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("beforeprint", () => {
    classList.add("printing");
    tab = dataset.tab;
    delete dataset.tab;
    repaint();
  });
  addEventListener("afterprint", () => {
    classList.remove("printing");
    dataset.tab = tab;
    repaint();
  });
}
function build() {
  Object.assign(weights, JSON.parse($("learned").textContent));
  document.body.classList.toggle("framed", self !== top);
  for (const f of [
    buildTabs,
    buildProblem,
    buildResult,
    buildStep,
    buildStrip,
    buildAsked,
    buildNumbers,
    buildMicroscope,
    buildSettings,
    buildFiles,
    buildLesson,
    buildSliders,
    buildMenu,
    buildTransport,
    buildBound,
    buildGlossary,
  ])
    f();
  for (const f of [renderTransport, renderSliders, renderProblem]) onRender(f);
  onRender(renderResult, { progress: true });
  for (const f of [renderStep, renderRest]) onRender(f);
  onRender(renderWork, { always: true });
  for (const id of ["evidence", "network"]) watch.observe($(id));
  buildSchemes();
  onStart(fillIn);
  on("share", "click", share);
  on("embed", "click", embed);
  on("message-close", "click", () => message(""));
  document.addEventListener("keydown", keys);
  // The address of the event: by now location may hold the one that remember wrote.
  addEventListener("hashchange", (e) => {
    const { hash } = new URL(e.newURL);
    if (hash && $(hash.slice(1))) return; // a part of the page, not a state: the skip link
    stop();
    openAddress(hash);
  });
}
function fillIn() {
  $("editor").hidden = true;
  fillSettings();
}
// introduce plays once: the first round by its stages, then slowly on. Where less
// motion is asked for, the curve is there at once.
async function introduce() {
  if (location.hash || document.body.classList.contains("framed")) return;
  if (stillness()) {
    await reach(app.run.settings.T);
    return;
  }
  play(() => (app.pos.k < 1 ? "stage" : app.pos.k < 4 ? "2" : "5"));
}
async function boot() {
  const began = performance.now();
  build();
  try {
    await engine.start();
  } catch (e) {
    message("The page could not start: " + e.message + ".");
    return;
  }
  const asked = location.hash;
  if (!(await openAddress(asked)) || !decoderRound(0)) await openUsual();
  await new Promise(requestAnimationFrame); // the first picture is drawn
  document.body.dataset.ready = String(Math.round(performance.now()));
  document.body.dataset.boot = String(Math.round(performance.now() - began));
  if (lessonAsked() >= 0) await act(() => startLesson(lessonAsked()));
  else if (!asked) aside(introduce);
}
boot();

// What tests look at.
export {
  $,
  acting,
  address,
  app,
  atMost,
  change,
  current,
  decoderRound,
  describe,
  engine,
  go,
  heats,
  lookAt,
  message,
  openEditor,
  partsOf,
  phaseAt,
  play,
  scope,
  select,
  showTab,
  slideTo,
  stationsOf,
  stop,
  all,
  lessonLength,
};
