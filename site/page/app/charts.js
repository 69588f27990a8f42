// The same over the rounds, as charts.

function chart({ series, T, label, floor, marker, size = [520, 360], colors = palette() }) {
  const [W, H] = size,
    left = 52,
    right = 12,
    top = 10,
    bottom = 34;
  let lo = Infinity,
    hi = -Infinity;
  for (const s of series)
    for (const v of s.values)
      if (v > 0 && Number.isFinite(v)) {
        lo = Math.min(lo, Math.max(v, floor));
        hi = Math.max(hi, v);
      }
  if (!(hi > 0)) {
    lo = 0.1;
    hi = 1;
  }
  let a = Math.floor(Math.log10(lo)),
    b = Math.ceil(Math.log10(hi));
  if (a === b) a--;
  const x = (k) => left + ((W - left - right) * k) / Math.max(1, T),
    y = (v) => top + (H - top - bottom) * (1 - (Math.log10(Math.max(v, 10 ** a)) - a) / (b - a));
  const svg = el("svg", {
    viewBox: `0 0 ${W} ${H}`,
    role: "img",
    "aria-label": label,
    "font-family": "system-ui, DejaVu Sans, sans-serif",
    "font-size": 12,
  });
  const step = Math.max(1, Math.ceil((b - a) / 7));
  for (let e = a; e <= b; e += step)
    svg.append(
      el("line", { x1: left, x2: W - right, y1: y(10 ** e), y2: y(10 ** e), stroke: colors.line }),
      el(
        "text",
        { x: left - 6, y: y(10 ** e) + 4, "text-anchor": "end", fill: colors.soft },
        e < 0 ? "10⁻" + sup(-e) : "10" + sup(e),
      ),
    );
  const ticks = Math.max(1, Math.ceil(T / 8));
  for (let k = 0; k <= T; k += ticks)
    svg.append(el("text", { x: x(k), y: H - 16, "text-anchor": "middle", fill: colors.soft }, String(k)));
  svg.append(
    el("text", { x: (W + left) / 2, y: H - 1, "text-anchor": "middle", fill: colors.soft }, "round"),
  );
  for (const p of run.phases.slice(1))
    svg.append(
      el(
        "line",
        {
          x1: x(p.start),
          x2: x(p.start),
          y1: top,
          y2: H - bottom,
          stroke: colors.soft,
          "stroke-dasharray": "1 3",
        },
        el("title", {}, `problem edited before round ${p.start}`),
      ),
    );
  if (marker !== undefined)
    svg.append(
      el("line", {
        x1: x(marker),
        x2: x(marker),
        y1: top,
        y2: H - bottom,
        stroke: colors.grey,
        "stroke-width": 1,
      }),
    );
  for (const s of series) {
    let d = "";
    s.values.forEach((v, i) => {
      if (Number.isFinite(v)) d += `${d ? "L" : "M"}${x(i + s.from).toFixed(1)} ${y(v).toFixed(1)}`;
    });
    if (d)
      svg.append(
        el(
          "path",
          {
            d,
            fill: "none",
            stroke: colors[s.color],
            "stroke-width": s.thin ? 1.4 : 2.2,
            "stroke-dasharray": s.dash,
            "stroke-linejoin": "round",
          },
          el("title", {}, s.name),
        ),
      );
  }
  return svg;
}
function lossSeries() {
  const series = [];
  for (const name of Object.keys(CONTROLLERS)) {
    const list = run.rounds[name];
    if (!shown.has(name) || !list?.length) continue;
    series.push({ ...CONTROLLERS[name], from: 0, values: [run.phases[0].gap, ...list.map((r) => r.loss)] });
  }
  if (run.rounds.decoder?.length)
    series.push({
      name: "Bound on the decoder’s loss",
      color: "warm",
      dash: "5 3",
      thin: true,
      from: 1,
      values: run.rounds.decoder.map((r) => r.bound),
    });
  return series;
}
function residualSeries() {
  const d = run.rounds.decoder || [];
  const pair = (color, name, of, measured, bound) => [
    { name, color, dash: "", from: 0, values: d.map((r) => r[measured]) },
    {
      name: `bound on ${of}`,
      color,
      dash: "5 3",
      thin: true,
      from: 0,
      values: d.map((r) => r[bound]),
    },
  ];
  return [
    ...pair("accent", "ζ, actor", "ζ", "zeta", "zetaBound"),
    ...pair("warm", "δ, critic", "δ", "delta", "deltaBound"),
    ...pair("violet", "routing part of δ", "routing", "route", "routeBound"),
  ];
}
function legend(series) {
  const c = palette();
  return el(
    "p",
    { class: "keys" },
    series.map((s) => el("span", {}, keyLine(c[s.color], s.dash), s.name)),
  );
}
const keyLine = (color, dash) =>
  el(
    "svg",
    { viewBox: "0 0 28 10", width: 28, height: 10, "aria-hidden": "true" },
    el("line", { x1: 0, x2: 28, y1: 5, y2: 5, stroke: color, "stroke-width": 2.4, "stroke-dasharray": dash }),
  );
function renderCharts() {
  const T = run.settings.T,
    loss = lossSeries(),
    residual = residualSeries();
  const last = decoderRound(Math.max(0, pos.k - 1));
  const keys = (list) => legend(list.filter((x) => !x.thin || x.color === "warm"));
  $("loss-chart").replaceChildren(
    chart({
      series: loss,
      T,
      floor: 1e-12,
      marker: pos.k,
      label: `Loss over ${T} rounds on a logarithmic axis. At round ${pos.k} the decoder’s is ${show(last?.loss)}, its bound ${show(last?.bound)}.`,
    }),
    keys(loss),
  );
  $("residual-chart").replaceChildren(
    chart({
      series: residual,
      T,
      floor: 1e-18,
      marker: pos.k,
      label: `Residuals of the decoder over ${T} rounds, all below their bounds shown dashed.`,
    }),
    legend(residual.filter((s) => !s.thin)),
    el("p", { class: "cap" }, "Dashed lines are the certificate’s bounds."),
  );
}
