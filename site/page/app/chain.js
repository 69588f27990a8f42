// One round as the chain of context, actor, environment and critic.

const cards = {};
// What a cell of each table is, and where the microscope shows how it came about.
const TABLES = {
  pi: { cell: (s, a) => `π(a=${a} | s=${s})`, look: (s, a) => ["actor", "tokens", "tokens", s] },
  q: {
    cell: (s, a) => `Q(s=${s}, a=${a})`,
    look: (s, a) => ["critic", "tokens", "tokens", s * run.info.A + a],
  },
  nextPi: { cell: (s, a) => `π̂(a=${a} | s=${s})`, look: (s) => ["actor", "0.0", "weight", s] },
  counts: {
    cell: (row, t) =>
      `share of s′=${t} among the packets of s=${Math.floor(row / run.info.A)}, a=${row % run.info.A}`,
    look: (row) => ["critic", "1.0", "weight", row],
  },
  nextQ: {
    cell: (s, a) => `Q of the next round at s=${s}, a=${a}`,
    look: (s, a) => ["critic", "1.0", "weight", s * run.info.A + a],
  },
};
function chainNote(text) {
  $("chain-note").replaceChildren(
    text || "Point at a cell to read it, pick it to see how it came about.",
    el("span", {}, "below zero ", el("span", { class: "ramp" }), " above zero"),
  );
}
function buildChain() {
  chainNote();
  const heat = (name, caption) => {
    const canvas = el("canvas");
    cards[name] = new Heat(canvas, {
      label: caption,
      hover: (i, j, speak) => {
        const text = `${TABLES[name].cell(i, j)} is ${show(cards[name].data[i * cards[name].cols + j])}.`;
        chainNote(text);
        if (speak) $("live").textContent = text;
      },
      pick: (i, j) => inspect(...TABLES[name].look(i, j)),
    });
    return el("div", {}, el("p", { class: "cap" }, caption), el("div", {}, canvas));
  };
  const body = [
    [el("div", { class: "two" }, heat("pi", "π"), heat("q", "Q"))],
    [heat("nextPi", "π̂, the returned policy"), el("p", { class: "cap num", id: "card-actor" })],
    [heat("counts", "successors drawn, (s,a) × s′"), el("p", { class: "cap num", id: "card-env" })],
    [
      heat("nextQ", "Q of the next round"),
      el("p", { class: "cap num", id: "card-critic" }),
      el("p", { class: "cap" }, "With π̂ it is the next round’s context."),
    ],
  ];
  STAGES.forEach((s, i) => {
    $("stages").append(
      el(
        "div",
        { class: "stagecard", id: "stage-" + i },
        el(
          "button",
          { type: "button", onclick: () => act(() => go(Math.min(pos.k, run.settings.T - 1), i)) },
          s.name,
        ),
        el("div", { class: "body" }, ...body[i]),
      ),
    );
  });
}

function renderChain() {
  const { S, A } = run.info,
    T = run.settings.T;
  const r = decoderRound(Math.min(pos.k, T - 1));
  if (!r) return;
  const end = pos.k >= T;
  const pi = end ? r.nextPi : r.pi,
    q = end ? r.nextQ : r.q,
    B = run.info.certificate.B;
  const size = { rows: S, cols: A, maxCell: 34 };
  let reachQ = 0;
  for (const v of r.q) reachQ = Math.max(reachQ, Math.abs(v));
  for (const v of r.nextQ) reachQ = Math.max(reachQ, Math.abs(v));
  const words = (what) => `${what}, ${S} states by ${A} actions`;
  cards.pi.set({ ...size, data: pi, scale: 1, label: words("Policy π") });
  cards.q.set({ ...size, data: q, scale: reachQ || B, label: words("Values Q") });
  cards.nextPi.set({
    ...size,
    data: r.nextPi,
    scale: 1,
    maxCell: 44,
    text: true,
    label: words("Returned policy"),
  });
  const counts = new Float64Array(S * A * S);
  for (let i = 0; i < r.packets.length; i += 6)
    counts[(r.packets[i] * A + r.packets[i + 1]) * S + r.packets[i + 2]] += Math.exp(r.packets[i + 5]);
  const pairs = new Float64Array(S * A); // packets of each pair, by weight
  counts.forEach((n, i) => (pairs[Math.floor(i / S)] += n));
  counts.forEach((n, i) => (counts[i] = n / (pairs[Math.floor(i / S)] || 1)));
  cards.counts.set({
    rows: S * A,
    cols: S,
    data: counts,
    scale: 1,
    maxCell: 34,
    maxHeight: 208,
    leastHeight: 1,
    label: `Successors drawn from each of ${S * A} pairs`,
  });
  cards.nextQ.set({
    ...size,
    data: r.nextQ,
    scale: reachQ || B,
    maxCell: 44,
    text: true,
    label: words("Next values Q"),
  });
  $("card-actor").textContent = `ζ = ${show(r.zeta, 3)}, at most ${show(r.zetaBound, 3)}`;
  $("card-env").textContent = run.settings.expected
    ? `${r.packets.length / 6} packets with exact weights`
    : `${r.packets.length / 6} packets, m = ${run.info.certificate.m} a pair`;
  $("card-critic").textContent = `δ = ${show(r.delta, 3)}, at most ${show(r.deltaBound, 3)}`;
  STAGES.forEach((s, i) => {
    $("stage-" + i).classList.toggle("now", i === pos.stage);
    $("stage-" + i).classList.toggle("later", !end && i > pos.stage);
    $("stage-" + i).firstChild.setAttribute("aria-current", i === pos.stage ? "step" : "false");
  });
  $("chain-title").textContent = end ? `After ${T} rounds` : `Round ${pos.k} of ${T}`;
  $("stage-why").textContent = end
    ? `The returned policy π̂${sub(T)} is final: the last critic call could change no policy, so the bound does not charge it.`
    : STAGES[pos.stage].why;
  $("scrub").max = T;
  $("scrub").value = pos.k;
  $("scrub-out").textContent = `${pos.k} of ${T}`;
  $("play").textContent = playing ? "Stop" : "Play";
  $("play").setAttribute("aria-pressed", String(!!playing));
}
