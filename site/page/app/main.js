// Drawing and events.

let frame = 0,
  charted = 0;
function render() {
  if (!frame)
    frame = requestAnimationFrame(() => {
      frame = 0;
      if (!run || !decoderRound(0)) return;
      renderChain();
      renderReadings();
      const now = performance.now();
      if (!playing || now - charted > 120) {
        // charts take the longest to draw
        charted = now;
        renderCharts();
        renderControllers();
      }
      if (!playing) {
        renderProblem();
        renderScope();
        remember();
      }
      $("figures").textContent =
        `${run.rounds.decoder.length} rounds took ${show(engine.compute / 1000, 3)} s of compute in a worker. Everything is computed on this machine.`;
    });
}
// act runs a handler and shows what went wrong.
async function act(f) {
  try {
    return await f();
  } catch (e) {
    message(e.message);
  }
}

async function boot() {
  const began = performance.now();
  learned.builtIn = JSON.parse($("learned").textContent);
  document.body.classList.toggle("framed", self !== top);
  buildChain();
  buildSettings();
  try {
    await engine.start();
  } catch (e) {
    message("The page could not start: " + e.message + ".");
    return;
  }
  const on = (id, event, f) => $(id).addEventListener(event, (e) => act(() => f(e)));
  on("play", "click", play);
  on("first", "click", () => {
    stop();
    return go(0, 0);
  });
  on("back", "click", () => {
    stop();
    return go(pos.k, pos.stage - 1);
  });
  on("forth", "click", () => {
    stop();
    return go(pos.k, pos.stage + 1);
  });
  on("round-on", "click", () => {
    stop();
    return go(pos.k + 1, 0);
  });
  on("scrub", "input", () => {
    stop();
    return go(Number($("scrub").value), 0);
  });
  on("share", "click", async () => {
    history.replaceState(null, "", address());
    if (sandboxed)
      // no clipboard, no address bar, and a query that is the server's own
      return message("This link holds the whole state: " + location.href.replace(/\?[^#]*/, ""));
    try {
      await navigator.clipboard.writeText(location.href);
      message("The link is copied; it holds the whole state, seed and edits included.");
    } catch {
      message("The address bar holds the whole state now; copy it from there.");
    }
  });
  for (const b of document.querySelectorAll("[data-export]"))
    b.addEventListener("click", () => act(() => exportAs(b.dataset.export)));
  on("load", "change", (e) => loadFile(e.target));
  on("save", "click", () => download("mdp.json", new Blob([problemJSON()], { type: "application/json" })));
  on("editor-set", "click", applyEdit);
  on("editor-value", "keydown", (e) => {
    if (e.key === "Enter") return applyEdit();
    if (e.key === "Escape") closeEditor();
  });
  on("editor-cancel", "click", closeEditor);
  for (const input of document.querySelectorAll("[name=call]"))
    input.addEventListener("change", () => {
      view.call = input.value;
      view.follow = 0;
      scope.jump = false;
      if (scope.heat) scope.heat.cursor = null;
      lookAt(view.call === "actor" ? "0.0" : "1.0", "weight");
    });
  on("follow", "change", () => {
    view.follow = Number($("follow").value);
    lookAt(view.station, view.part);
  });
  document.addEventListener("keydown", (e) => {
    if (
      e.target.closest("input, select, button, summary, canvas, .scroll") ||
      e.ctrlKey ||
      e.metaKey ||
      e.altKey
    )
      return;
    const key = { " ": "play", ArrowRight: "forth", ArrowLeft: "back", ArrowDown: "round-on", Home: "first" }[
      e.key
    ];
    if (key) {
      e.preventDefault();
      $(key).click();
    }
  });
  // The address of the event: by now location may hold the one that remember wrote.
  addEventListener("hashchange", (e) => act(() => openAddress(new URL(e.newURL).hash)));
  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(render, 120);
  });
  if (!(await openAddress(location.hash)))
    await open({
      settings: defaults(),
      file: null,
      edits: [],
      k: 0,
      stage: 0,
      shown: ["decoder", "exact"],
      view: null,
    });
  await new Promise(requestAnimationFrame); // the first picture is drawn
  document.body.dataset.ready = String(Math.round(performance.now()));
  document.body.dataset.boot = String(Math.round(performance.now() - began));
}
