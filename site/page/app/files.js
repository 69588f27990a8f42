// Files: loading and saving a problem, exporting the run.

const MAX_FILE = 4e6;
async function loadFile(input) {
  const file = input.files[0];
  input.value = "";
  if (!file) return;
  if (file.size > MAX_FILE)
    throw new Error(
      `${file.name} has ${Math.round(file.size / 1e6)} MB; a problem of 16 states and 16 actions has less than ${MAX_FILE / 1e6}. Nothing was changed.`,
    );
  let x;
  try {
    x = JSON.parse(await file.text());
  } catch (e) {
    throw new Error(`${file.name} is not JSON: ${e.message.slice(0, 80)}. Nothing was changed.`);
  }
  const problem = readProblem(x);
  await restart({ ...run.settings, preset: "file", S: problem.states, A: problem.actions }, problem).catch(
    (e) => {
      throw new Error(`${e.message}. Nothing was changed.`);
    },
  );
}
// readProblem turns the project's JSON of an MDP into tables; the library checks them.
function readProblem(x) {
  const bad = (why) => new Error(`This is not the JSON of an MDP: ${why}. Nothing was changed.`);
  if (!x || typeof x !== "object" || Array.isArray(x)) throw bad("want an object with gamma, P and r");
  for (const key of Object.keys(x))
    if (!["gamma", "P", "r", "pi0"].includes(key))
      throw bad(`there is an unknown field “${key.slice(0, 40)}”`);
  if (typeof x.gamma !== "number") throw bad("gamma is missing or not a number");
  const states = Array.isArray(x.r) ? x.r.length : 0,
    actions = states && Array.isArray(x.r[0]) ? x.r[0].length : 0;
  if (states < 1 || actions < 2 || states > 16 || actions > 16)
    throw bad(`r is ${states} by ${actions}, the page takes 1 to 16 states and 2 to 16 actions`);
  const table = (name, rows, n, m) => {
    if (!Array.isArray(rows) || rows.length !== n)
      throw bad(`${name} has ${rows?.length ?? "no"} rows, want ${n}`);
    return rows.flatMap((row) => {
      if (!Array.isArray(row) || row.length !== m || row.some((v) => typeof v !== "number"))
        throw bad(`a row of ${name} is not ${m} numbers`);
      return row;
    });
  };
  const r = table("r", x.r, states, actions);
  if (!Array.isArray(x.P) || x.P.length !== states) throw bad(`P has not ${states} states`);
  const p = x.P.flatMap((rows, s) => table(`P[${s}]`, rows, actions, states));
  const pi0 =
    x.pi0 === undefined || x.pi0 === null
      ? Array(states * actions).fill(1 / actions)
      : table("pi0", x.pi0, states, actions);
  return {
    states,
    actions,
    gamma: x.gamma,
    p: Float64Array.from(p),
    r: Float64Array.from(r),
    pi0: Float64Array.from(pi0),
  };
}
const rowsOf = (x, m) =>
  Array.from({ length: x.length / m }, (_, i) => Array.from(x.subarray(i * m, (i + 1) * m)));
function problemJSON() {
  const { S, A, gamma } = run.info,
    phase = phaseAt(pos.k),
    rows = rowsOf(phase.p, S);
  return (
    JSON.stringify({
      gamma,
      P: Array.from({ length: S }, (_, s) => rows.slice(s * A, (s + 1) * A)),
      r: rowsOf(phase.r, A),
      pi0: rowsOf(phase.pi0, A),
    }) + "\n"
  );
}
// A notebook may show this page in a frame that is not allowed to save files.
const sandboxed = self.origin === "null" && location.protocol.startsWith("http");
function download(name, blob) {
  if (sandboxed)
    throw new Error("The frame around this page may not save files; open the page by itself for that.");
  const a = el("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
const SCALARS = [
  "zeta",
  "zetaBound",
  "delta",
  "deltaBound",
  "route",
  "routeBound",
  "sampling",
  "defect",
  "loss",
  "bound",
  "initial",
  "critic",
  "greedy",
  "last",
];
function trajectoryCSV() {
  const lines = [["controller", "round", ...SCALARS].join(",")];
  for (const name of shown)
    (run.rounds[name] || []).forEach((r, k) => lines.push([name, k, ...SCALARS.map((s) => r[s])].join(",")));
  return lines.join("\n") + "\n";
}
function trajectoryJSON() {
  const { A } = run.info,
    controllers = {};
  for (const name of shown)
    controllers[name] = (run.rounds[name] || []).map((r, k) => ({
      round: k,
      ...Object.fromEntries(SCALARS.map((s) => [s, r[s]])),
      pi: rowsOf(r.pi, A),
      q: rowsOf(r.q, A),
      next_pi: rowsOf(r.nextPi, A),
      next_q: rowsOf(r.nextQ, A),
    }));
  return JSON.stringify({
    settings: run.settings,
    edits: run.edits,
    states: run.info.S,
    actions: A,
    gamma: run.info.gamma,
    certificate: run.info.certificate,
    problem: JSON.parse(problemJSON()),
    e0: run.phases[0].e0,
    gap: run.phases[0].gap,
    controllers,
  });
}
// picture puts both charts, π and Q on one white sheet.
function picture() {
  const colors = {
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
  const { S, A } = run.info,
    T = run.settings.T,
    W = 1160,
    H = 664;
  const svg = el(
    "svg",
    {
      viewBox: `0 0 ${W} ${H}`,
      width: W,
      height: H,
      "font-family": "system-ui, DejaVu Sans, sans-serif",
      "font-size": 13,
    },
    el("rect", { width: W, height: H, fill: colors.card }),
  );
  const r = decoderRound(Math.max(0, Math.min(pos.k, T) - 1));
  svg.append(
    el(
      "text",
      { x: 30, y: 40, "font-size": 20, fill: colors.ink },
      `PolicyAttention: ${PRESETS[run.settings.preset]}, S = ${S}, A = ${A}, after ${pos.k} of ${T} rounds`,
    ),
    el(
      "text",
      { x: 30, y: 64, fill: colors.soft },
      `seed ${run.settings.seed}, γ = ${run.info.gamma}, η = ${run.settings.eta}, m = ${run.settings.m}, φ = ${run.settings.phi}; loss ${show(r.loss)}, bound ${show(r.bound)}; ζ ${show(r.zeta)}, δ ${show(r.delta)}`,
    ),
  );
  const place = (chartSvg, x, title, series) => {
    for (const [a, v] of [
      ["x", x],
      ["y", 110],
      ["width", 540],
      ["height", 312],
    ])
      chartSvg.setAttribute(a, v);
    svg.append(el("text", { x: x + 10, y: 100, fill: colors.ink }, title), chartSvg);
    series.forEach((s, i) =>
      svg.append(
        el("line", {
          x1: x + 20 + (i % 3) * 175,
          x2: x + 48 + (i % 3) * 175,
          y1: 440 + Math.floor(i / 3) * 20,
          y2: 440 + Math.floor(i / 3) * 20,
          stroke: colors[s.color],
          "stroke-width": 2,
          "stroke-dasharray": s.dash,
        }),
        el(
          "text",
          { x: x + 54 + (i % 3) * 175, y: 444 + Math.floor(i / 3) * 20, fill: colors.soft, "font-size": 11 },
          s.name,
        ),
      ),
    );
  };
  const loss = lossSeries(),
    residual = residualSeries();
  place(
    chart({ series: loss, T, floor: 1e-12, label: "loss", colors, size: [520, 300] }),
    20,
    "Loss of the returned policy",
    loss,
  );
  place(
    chart({ series: residual, T, floor: 1e-18, label: "residuals", colors, size: [520, 300] }),
    590,
    "Residuals of the decoder and their bounds",
    residual,
  );
  const table = (data, x, name, scale) => {
    svg.append(el("text", { x, y: 502, fill: colors.ink }, name));
    const c = Math.min(24, 120 / S, 500 / A),
      wide = Math.min(24, 500 / A);
    for (let s = 0; s < S; s++)
      for (let a = 0; a < A; a++) {
        const v = data[s * A + a],
          rgb = mix(
            colors.card,
            v < 0 ? colors.warm : colors.accent,
            Math.sqrt(Math.min(1, Math.abs(v) / scale)),
          );
        svg.append(
          el("rect", {
            x: x + a * wide,
            y: 512 + s * c,
            width: wide - 0.5,
            height: c - 0.5,
            fill: `rgb(${rgb})`,
            stroke: colors.line,
            "stroke-width": 0.5,
          }),
        );
      }
  };
  table(r.nextPi, 30, "Returned policy π̂", 1);
  table(r.nextQ, 600, "Values Q", Math.max(...Array.from(r.nextQ, Math.abs)) || 1);
  return new XMLSerializer().serializeToString(svg);
}
async function exportAs(kind) {
  $("export").open = false;
  const base = `policyattention-${run.settings.preset}-seed${run.settings.seed}`;
  if (kind === "csv") download(base + ".csv", new Blob([trajectoryCSV()], { type: "text/csv" }));
  if (kind === "json") download(base + ".json", new Blob([trajectoryJSON()], { type: "application/json" }));
  if (kind === "svg") download(base + ".svg", new Blob([picture()], { type: "image/svg+xml" }));
  if (kind === "png") {
    const url = URL.createObjectURL(new Blob([picture()], { type: "image/svg+xml" })),
      image = new Image();
    image.src = url;
    await image.decode();
    const canvas = el("canvas", { width: 2320, height: 1328 });
    canvas.getContext("2d").drawImage(image, 0, 0, 2320, 1328);
    URL.revokeObjectURL(url);
    download(base + ".png", await new Promise((r) => canvas.toBlob(r, "image/png")));
  }
}
