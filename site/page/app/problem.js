// Rewards and transitions, and changing them.

let rewards,
  transitions,
  edited = null, // the cell in the editor
  noted = null; // the table whose cell is described
function renderProblem() {
  const { S, A } = run.info,
    phase = phaseAt(pos.k),
    B = run.info.certificate.RMax;
  const note = (heat, text, speak) => {
    noted = heat;
    $("cell-note").textContent = text;
    if (speak) $("live").textContent = text;
  };
  rewards ||= new Heat($("rewards"), {
    hover: (i, j, speak) =>
      note(rewards, `r(s=${i}, a=${j}) = ${show(rewards.data[i * rewards.cols + j], 6)}`, speak),
    pick: (i, j) => openEditor({ transition: false, s: i, a: j, t: 0 }),
  });
  transitions ||= new Heat($("transitions"), {
    hover: (i, j, speak) =>
      note(
        transitions,
        `P(s′=${j} | s=${Math.floor(i / run.info.A)}, a=${i % run.info.A}) = ${show(transitions.data[i * transitions.cols + j], 6)}`,
        speak,
      ),
    pick: (i, j) => openEditor({ transition: true, s: Math.floor(i / run.info.A), a: i % run.info.A, t: j }),
  });
  rewards.set({
    rows: S,
    cols: A,
    data: phase.r,
    scale: B,
    heads: [(i) => i, (j) => j],
    maxCell: 34,
    label: `Rewards, ${S} states by ${A} actions. Enter changes a cell.`,
  });
  transitions.set({
    rows: S * A,
    cols: S,
    data: phase.p,
    scale: 1,
    heads: [(i) => (i % A ? "" : i / A), (j) => j],
    maxCell: 34,
    label: `Transition probabilities, ${S * A} pairs by ${S} successors. Enter changes a cell.`,
  });
  if (noted?.cursor) noted.hover(...noted.cursor, false);
}
function openEditor(e) {
  edited = e;
  const phase = phaseAt(pos.k),
    { S, A } = run.info;
  $("editor-name").textContent = e.transition ? `P(s′=${e.t} | s=${e.s}, a=${e.a})` : `r(s=${e.s}, a=${e.a})`;
  $("editor-value").value = e.transition ? phase.p[(e.s * A + e.a) * S + e.t] : phase.r[e.s * A + e.a];
  $("editor-why").textContent =
    (e.transition
      ? "The row’s other probabilities are rescaled to the rest."
      : `The decoder was built for |r| ≤ ${show(run.info.certificate.RMax)}.`) +
    (pos.k >= run.settings.T
      ? " The run is over, so it is made anew from round 0 with the change" +
        (run.edits.some((x) => x.k) ? "; earlier changes on the way are dropped." : ".")
      : pos.k
        ? " The change takes effect from the round on show; later rounds are run anew."
        : "");
  $("editor").hidden = false;
  $("editor-value").focus();
  $("editor-value").select();
}
function closeEditor() {
  $("editor").hidden = true;
  (edited.transition ? $("transitions") : $("rewards")).focus({ preventScroll: true });
}
// editRound is the round before which an edit takes effect: a run that is over is made anew.
const editRound = () => (pos.k < run.settings.T ? pos.k : 0);
async function applyEdit() {
  const text = $("editor-value").value,
    value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new Error("The new value must be a number; nothing was changed.");
  const was = playing,
    e = { ...edited, value, k: editRound() };
  playing = 0;
  let phase;
  try {
    phase = await engine.call("edit", e.k, e);
  } finally {
    if (was) setTimeout(play);
  }
  run.edits = run.edits.filter((x) => x.k <= e.k);
  run.edits.push(e);
  takePhase(phase);
  closeEditor();
  await go(pos.k, 0);
  remember();
}
