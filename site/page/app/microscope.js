// The microscope: every matrix of the pass.

const STATIONS = [
  ["tokens", "Tokens"],
  ["0.0", "Block 1: actor head"],
  ["0.1", "Block 1: lookup head"],
  ["map", "Block 1: ReLU map"],
  ["1.0", "Block 2: predecessor head"],
  ["1.1", "Block 2: idle head"],
  ["end", "Read-out"],
];
const HEAD_PARTS = [
  ["query", "Queries"],
  ["key", "Keys"],
  ["score", "Scores"],
  ["weight", "Attention weights"],
  ["value", "Values"],
  ["mixed", "Mixed values"],
  ["written", "Output projection"],
  ["q", "Query weights"],
  ["k", "Key weights"],
  ["v", "Value weights"],
  ["o", "Output weights"],
];
const PARTS = {
  tokens: [["tokens", "Tokens"]],
  map: [
    ["attended", "After attention"],
    ["pre", "Before the ReLU"],
    ["post", "After the ReLU"],
    ["output", "After block 1"],
    ["w1", "Weights into the ReLU"],
    ["w2", "Weights out of it"],
  ],
  end: [
    ["attended1", "After block 2"],
    ["output", "Last tokens"],
    ["results", "Read-outs"],
  ],
};
const partsOf = (station) => PARTS[station] || HEAD_PARTS;
const WHY = {
  tokens: "One row a token, one column a named coordinate: this is all the network sees.",
  query: "What each token asks for: W_Q times the token. Only the role’s own fields reach it.",
  key: "What each token offers: W_K times the token.",
  score:
    "Inner products of queries (rows) and keys (columns); a token sees itself and what came before, nothing later.",
  weight: "The softmax of each row of scores. Every row sums to one.",
  value: "What a token hands over when it is attended to: W_V times the token.",
  mixed: "Each row is the mean of the values, weighted by that token’s attention.",
  written: "W_O times the mixed values: what the head adds to each token.",
  attended: "Tokens with what both heads wrote added to them.",
  pre: "Two units a token, reward plus γ times the value looked up, shut by −B everywhere but on packets.",
  post: "Negative numbers cut to zero: only packets pass.",
  output: "Tokens as they leave, with what the ReLU map wrote added.",
  attended1: "Tokens with what block 2 wrote added; it has no ReLU map.",
  results: "The affine read-out of the queries: rows of π̂ for an actor call, the new Q for a critic call.",
  q: "W_Q, frozen: rows are slots of the query, columns coordinates of a token.",
  k: "W_K, frozen: rows are slots of the key, columns coordinates of a token.",
  v: "W_V, frozen: rows are slots of the value, columns coordinates of a token.",
  o: "W_O, frozen: rows are coordinates of a token, columns slots of the mixed value.",
  w1: "W₁, frozen: rows are the two ReLU units, columns coordinates of a token.",
  w2: "W₂, frozen: rows are coordinates of a token, columns the two ReLU units.",
};
const isWeight = (part) => ["q", "k", "v", "o", "w1", "w2"].includes(part);
function matrixName(station, part) {
  if (station === "tokens") return "tokens";
  if (station === "map") return (isWeight(part) ? "block.0.map." : "block.0.") + part;
  if (station === "end") return part === "attended1" ? "block.1.attended" : part;
  const [b, h] = station.split(".");
  return `block.${b}.head.${h}.${part}`;
}

const scope = {
  cache: new Map(),
  trace: null,
  key: "",
  heat: null,
  busy: false,
  again: false,
  rowFirst: 0,
  colFirst: 0,
};
const WINDOW = 320;

async function fetchMatrix(name, from = 0, to = 1e9) {
  const id = `${scope.key}|${name}|${from}|${to}`;
  if (!scope.cache.has(id)) {
    if (scope.cache.size > 60) scope.cache.clear();
    const k = Math.min(pos.k, run.settings.T - 1),
      last = name.split(".").pop();
    scope.cache.set(
      id,
      isWeight(last)
        ? engine.call("weight", name)
        : engine.call("matrix", k, view.call === "critic", name, from, to),
    );
  }
  return scope.cache.get(id);
}

function groupNames(labels, rows) {
  // Runs of labels with one stem are a group: "memory.state[3]" and "packet 7 (…)" end in their own part.
  const groups = [];
  labels.forEach((label, i) => {
    const name = rows
      ? label
          .replace(/ \(.*| \d+ \(.*/s, "")
          .replace("critic ", "")
          .replace("actor ", "")
      : label.replace(/\[.*/, "");
    if (groups.length && groups[groups.length - 1].name === name) groups[groups.length - 1].to = i + 1;
    else groups.push({ name, from: i, to: i + 1 });
  });
  return groups;
}

function axes(part) {
  const { token, slots, hidden, A } = run.info,
    names = (list) => list.map((x) => x.label),
    t = scope.trace;
  const results = view.call === "actor" ? Array.from({ length: A }, (_, a) => `π̂(a=${a})`) : ["Q"];
  switch (part) {
    case "query":
    case "key":
    case "value":
    case "mixed":
      return [t.names, names(slots)];
    case "score":
    case "weight":
      return [t.names, t.names];
    case "pre":
    case "post":
      return [t.names, names(hidden)];
    case "results":
      return [t.reads.map((i) => t.names[i]), results];
    case "q":
    case "k":
    case "v":
      return [names(slots), names(token)];
    case "o":
      return [names(token), names(slots)];
    case "w1":
      return [names(hidden), names(token)];
    case "w2":
      return [names(token), names(hidden)];
  }
  return [t.names, names(token)];
}

async function renderScope() {
  if (playing) return;
  if (scope.busy) {
    scope.again = true;
    return;
  }
  scope.busy = true;
  try {
    const mine = run,
      k = Math.min(pos.k, run.settings.T - 1),
      key = `${run.id}|${run.phases.length}|${k}|${view.call}`;
    if (scope.key !== key) {
      scope.trace = await engine.call("trace", k, view.call === "critic");
      if (run !== mine) return;
      scope.key = key;
      scope.cache.clear();
    }
    const t = scope.trace,
      part = view.part,
      [rowNames, colNames] = axes(part),
      square = part === "score" || part === "weight";
    view.follow = Math.min(view.follow, t.reads.length - 1);
    if (
      $("follow").children.length !== t.reads.length ||
      $("follow").dataset.key !== view.call + t.names[t.reads[0]]
    ) {
      $("follow").replaceChildren(...t.reads.map((i, n) => el("option", { value: n }, t.names[i])));
      $("follow").dataset.key = view.call + t.names[t.reads[0]];
    }
    $("follow").value = view.follow;
    for (const input of document.querySelectorAll("[name=call]")) input.checked = input.value === view.call;
    const buttons = (box, list, now, pick) => {
      if (box.dataset.list !== list.map((x) => x[0]).join()) {
        box.dataset.list = list.map((x) => x[0]).join();
        box.replaceChildren(
          ...list.map(([id, name]) =>
            el("button", { type: "button", "data-id": id, onclick: () => pick(id) }, name),
          ),
        );
      }
      for (const b of box.children) b.setAttribute("aria-pressed", String(b.dataset.id === now));
    };
    buttons($("stations"), STATIONS, view.station, (id) => lookAt(id));
    $("parts").hidden = partsOf(view.station).length < 2;
    buttons($("parts"), partsOf(view.station), part, (id) => lookAt(view.station, id));
    $("matrix-why").textContent =
      WHY[part] +
      (view.station === "1.1" ? " The paper counts two heads a block; this one has nothing left to do." : "");
    const marked = part === "results" ? view.follow : isWeight(part) ? -1 : t.reads[view.follow];
    const R = Math.min(rowNames.length, WINDOW),
      C = Math.min(colNames.length, WINDOW);
    scope.rowFirst = Math.max(0, Math.min(scope.rowFirst, rowNames.length - R));
    scope.colFirst = Math.max(0, Math.min(scope.colFirst, colNames.length - C));
    const m = square
      ? await fetchMatrix(matrixName(view.station, part), scope.rowFirst, scope.rowFirst + R)
      : await fetchMatrix(matrixName(view.station, part));
    if (run !== mine) return;
    const data = new Float64Array(R * C),
      skip = square ? 0 : scope.rowFirst;
    for (let i = 0; i < R; i++)
      data.set(
        m.data.subarray((i + skip) * m.cols + scope.colFirst, (i + skip) * m.cols + scope.colFirst + C),
        i * C,
      );
    scope.now = { data, rows: R, cols: C, rowNames, colNames };
    scope.heat ||= new Heat($("matrix"), {
      label: "Matrix",
      hover: (i, j, speak) => act(() => describe(i, j, speak)),
      pick: (i, j) => pickCell(i),
    });
    if (scope.jump) {
      scope.heat.cursor = [
        Math.max(0, Math.min(R - 1, view.row - scope.rowFirst)),
        Math.max(0, Math.min(C - 1, view.col - scope.colFirst)),
      ];
      scope.jump = false;
    }
    scope.heat.set({
      rows: R,
      cols: C,
      data,
      mark: marked,
      rowFirst: scope.rowFirst,
      colFirst: scope.colFirst,
      minCell: C > 40 ? 2 : 10,
      maxCell: C > 40 ? 14 : 34,
      rowGroups: groupNames(rowNames, !isWeight(part)),
      colGroups: groupNames(colNames, square),
      text: false,
      label: `${partsOf(view.station).find((p) => p[0] === part)[1]}, ${rowNames.length} by ${colNames.length}. Arrow keys move from cell to cell.`,
    });
    $("ramp-low").textContent = show(-scope.heat.limit, 3);
    $("ramp-high").textContent = show(scope.heat.limit, 3);
    pager(rowNames.length, colNames.length, R, C);
    await describePath();
    if (scope.heat.cursor) await describe(...scope.heat.cursor, false);
  } catch (e) {
    $("matrix-why").textContent = e.message;
    $("cell").replaceChildren(el("p", { class: "why" }, "There is no matrix to look into."));
    $("path").replaceChildren();
    scope.key = "";
    scope.heat?.set({ rows: 1, cols: 1, data: new Float64Array(1) });
  } finally {
    scope.busy = false;
    if (scope.again) {
      scope.again = false;
      renderScope();
    }
  }
}
function pager(rows, cols, R, C) {
  const box = $("pager");
  box.hidden = rows <= R && cols <= C;
  if (box.hidden) return;
  const step = (key, d) => () => {
    scope[key] += d;
    renderScope();
  };
  const one = (key, n, size, what) =>
    n <= size
      ? []
      : [
          el("button", { type: "button", onclick: step(key, -size), "aria-label": `Earlier ${what}` }, "‹"),
          el("span", {}, `${what} ${scope[key]}–${scope[key] + size - 1} of ${n}`),
          el("button", { type: "button", onclick: step(key, size), "aria-label": `Later ${what}` }, "›"),
        ];
  box.replaceChildren(...one("rowFirst", rows, R, "rows"), ...one("colFirst", cols, C, "columns"));
}
function lookAt(station, part) {
  view.station = station;
  const list = partsOf(station);
  view.part = list.some((p) => p[0] === part)
    ? part
    : list.some((p) => p[0] === view.part)
      ? view.part
      : list[0][0];
  if (!part && list === HEAD_PARTS) view.part = "weight";
  // Long calls are looked at where their queries are.
  scope.rowFirst = 0;
  scope.colFirst = 0;
  if (scope.trace && !isWeight(view.part) && view.part !== "results")
    scope.rowFirst = Math.max(0, scope.trace.reads[view.follow] - WINDOW + 40);
  renderScope();
  remember();
}
// inspect brings the microscope to a matrix, with a query to follow.
function inspect(call, station, part, follow) {
  if (view.call !== call && scope.heat) scope.heat.cursor = null;
  view.call = call;
  view.follow = follow;
  scope.jump = false;
  lookAt(station, part);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  $("microscope").scrollIntoView({ behavior: still ? "auto" : "smooth" });
}
function pickCell(i) {
  const n = scope.trace.reads.indexOf(scope.rowFirst + i);
  if (n >= 0 && !isWeight(view.part) && view.part !== "results") {
    view.follow = n;
    renderScope();
    remember();
  }
}
