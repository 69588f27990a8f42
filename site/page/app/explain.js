// What the microscope says about a cell and about the followed query.

// rowOf returns one row of a matrix of the call.
async function rowOf(name, i) {
  if (/score|weight$/.test(name)) {
    const m = await fetchMatrix(name, i, i + 1);
    return m.data;
  }
  const m = await fetchMatrix(name);
  return m.data.subarray(i * m.cols, (i + 1) * m.cols);
}
const linksInto = (matrix, row) =>
  run.info.legend
    .filter((l) => l.matrix === matrix && row >= l.to && row < l.to + l.toLen)
    .map((l) => ({ ...l, col: l.fromLen === 1 ? l.from : l.from + row - l.to }));
// sumOf explains entry row of matrix·x by the links of the legend.
function sumOf(matrix, row, x, labels) {
  const list = linksInto(matrix, row);
  if (!list.length) return ["No weight leads here, so it is zero for every token."];
  return list.map((l) => `${l.symbol} × ${labels[l.col].label} ${show(x[l.col])}: ${l.why}`);
}
async function describe(i, j, speak) {
  const n = scope.now,
    part = view.part,
    station = view.station,
    [b, h] = station.split("."),
    { token, slots, hidden } = run.info;
  const row = i + scope.rowFirst,
    col = j + scope.colFirst,
    value = n.data[i * n.cols + j];
  view.row = row;
  view.col = col;
  const input = b === "1" || station === "end" ? "block.0.output" : "tokens",
    head = `block.${b}.head.${h}.`;
  let lines = [],
    meaning = "";
  const top = (list, k) =>
    list
      .map((v, x) => [v, x])
      .sort((p, q) => Math.abs(q[0]) - Math.abs(p[0]))
      .slice(0, k)
      .filter(([v]) => v !== 0);
  switch (part) {
    case "tokens":
      meaning = token[col].note + ".";
      lines = ["Written into the context; no weight is involved."];
      break;
    case "query":
    case "key":
    case "value":
      meaning = slots[col].note + ".";
      lines = sumOf(head + part[0], col, await rowOf(input, row), token);
      break;
    case "score": {
      if (col > row) {
        meaning = "Hidden by the causal mask: a token sees nothing later than itself.";
        break;
      }
      const [q, k] = [await rowOf(head + "query", row), await rowOf(head + "key", col)];
      meaning = "How well the key of the column answers the query of the row.";
      lines = slots.flatMap((s, x) => (q[x] * k[x] ? [`${s.label}: ${show(q[x])} × ${show(k[x])}`] : []));
      if (!lines.length) lines = ["No slot of query and key is non-zero in both."];
      break;
    }
    case "weight": {
      if (col > row) {
        meaning = "Hidden by the causal mask: a token sees nothing later than itself.";
        break;
      }
      const s = await rowOf(head + "score", row);
      meaning = `${show(100 * value, 3)} % of this token’s attention.`;
      lines = [
        `Score ${show(s[col])}; the row’s largest is ${show(Math.max(...s.subarray(0, row + 1)))}. The weight is e^score over the row’s sum.`,
      ];
      break;
    }
    case "mixed": {
      const w = Array.from(await rowOf(head + "weight", row)),
        v = await fetchMatrix(head + "value");
      meaning = "The attention-weighted mean of the values in this slot.";
      lines = top(
        w.map((x, t) => x * v.data[t * v.cols + col]),
        3,
      ).map(([x, t]) => `${show(x)} from ${scope.trace.names[t]}`);
      break;
    }
    case "written":
      meaning = token[col].note + ".";
      lines = sumOf(head + "o", col, await rowOf(head + "mixed", row), slots);
      break;
    case "attended":
    case "attended1": {
      const block = part === "attended" ? 0 : 1,
        x = await rowOf(block ? "block.0.output" : "tokens", row);
      meaning = token[col].note + ".";
      lines = [`came in as ${show(x[col])}`];
      for (const y of [0, 1]) {
        const v = (await rowOf(`block.${block}.head.${y}.written`, row))[col];
        if (v) lines.push(`plus ${show(v)} from head ${y + 1}`);
      }
      break;
    }
    case "pre":
      meaning = hidden[col].note + ".";
      lines = sumOf("block.0.map.w1", col, await rowOf("block.0.attended", row), token);
      break;
    case "post":
      meaning = hidden[col].note + ".";
      lines = [`max(0, ${show((await rowOf("block.0.pre", row))[col])})`];
      break;
    case "output": {
      meaning = token[col].note + ".";
      if (station === "end") {
        lines = ["What the read-out sees."];
        break;
      }
      lines = [`came in as ${show((await rowOf("block.0.attended", row))[col])}`];
      if (linksInto("block.0.map.w2", col).length)
        lines.push(...sumOf("block.0.map.w2", col, await rowOf("block.0.post", row), hidden));
      break;
    }
    case "results": {
      const r = decoderRound(Math.min(pos.k, run.settings.T - 1));
      meaning =
        view.call === "actor" ? "Probability in the returned policy π̂." : "The new value Q of this pair.";
      lines = [
        view.call === "actor"
          ? run.settings.phi
            ? "(1−φ) times the policy’s coordinate, plus φ/A."
            : "The policy’s coordinate of the last token."
          : "The average coordinate of the last token.",
        `The streaming pass that runs the loop gave ${show((view.call === "actor" ? r.nextPi : r.nextQ)[row * n.cols + col], 8)}.`,
      ];
      break;
    }
    default: {
      const l = linksInto(matrixName(station, part), row).find((x) => x.col === col);
      meaning = l ? l.why + "." : "Zero: nothing flows here.";
      if (l) lines = [`written as ${l.symbol}`];
    }
  }
  if (scope.now !== n) return;
  const where = `${n.rowNames[row]}, ${n.colNames[col]}`;
  $("cell").replaceChildren(
    el("p", {}, n.rowNames[row]),
    el("p", { class: "cap" }, (part === "score" || part === "weight" ? "towards " : "") + n.colNames[col]),
    el("b", {}, show(value, 6)),
    el("p", {}, meaning),
    el(
      "ul",
      { class: "why" },
      lines.map((l) => el("li", {}, l)),
    ),
  );
  if (speak) $("live").textContent = `${where}: ${show(value, 5)}. ${meaning}`;
}
async function describePath() {
  const t = scope.trace,
    i = t.reads[view.follow],
    head = view.call === "actor" ? "block.0.head.0." : "block.1.head.0.",
    { slots, A } = run.info;
  const [q, w, mixed, out] = [
    await rowOf(head + "query", i),
    await rowOf(head + "weight", i),
    await rowOf(head + "mixed", i),
    await rowOf("results", view.follow),
  ];
  const nonzero = (x) => slots.flatMap((s, n) => (x[n] ? [`${s.label} ${show(x[n])}`] : [])).join(", ");
  const best = Array.from(w.subarray(0, i + 1), (v, n) => [v, n])
    .sort((x, y) => y[0] - x[0])
    .slice(0, view.call === "actor" ? Math.min(A, 6) : 6);
  const rest = best.reduce((left, [v]) => left - v, 1);
  const steps = [
    el("li", {}, el("b", {}, t.names[i]), " asks with ", nonzero(q), "."),
    el(
      "li",
      {},
      "It attends to ",
      best.map(([v, n]) => `${t.names[n]} ${show(100 * v, 3)} %; `).join(""),
      `all other tokens together ${show(Math.max(0, 100 * rest), 3)} %.`,
    ),
  ];
  if (view.call === "critic") {
    const p = best[0][1],
      look = await rowOf("block.0.head.1.weight", p),
      post = await rowOf("block.0.post", p);
    let found = 0;
    look.forEach((v, n) => {
      if (v > look[found]) found = n;
    });
    steps.push(
      el(
        "li",
        {},
        `The first of these had looked up ${t.names[found]} with ${show(100 * look[found], 4)} % of its attention, and the ReLU map made its target ${show(post[0] - post[1])}.`,
      ),
    );
  }
  steps.push(
    el("li", {}, `Mixed values: ${nonzero(mixed)}.`),
    el("li", {}, `Read out: ${Array.from(out, (v) => show(v)).join(", ")}.`),
  );
  $("path").replaceChildren(el("ol", {}, steps));
}
