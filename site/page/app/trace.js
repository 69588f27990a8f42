// Matrices of the calls, fetched when they are looked at.

import { engine } from "./engine.js";
import { app, current } from "./state.js";

const kept = new Map();
const MOST_KEPT = 80;

// keyOf names a call: two calls with one name have the same matrices. The trained
// actor's call is that of one state.
export const keyOf = (call) =>
  [app.run.id, app.run.edits.length, current(), call, call === "learned" ? app.view.state : ""].join("|");

function fetched(id, f) {
  if (!kept.has(id)) {
    if (kept.size > MOST_KEPT) kept.clear();
    const p = f();
    kept.set(id, p);
    p.catch(() => kept.delete(id));
  }
  return kept.get(id);
}
// traced returns the names of a call's tokens and which are read: of the decoder's
// "actor" or "critic" of the round on show, of "normed", which is the actor's with LayerNorm, or of
// "learned", whose tokens are actions.
export const traced = (call) => {
  const k = current(),
    actions = Array.from({ length: app.run.info.A }, (_, a) => a);
  if (call === "learned")
    return Promise.resolve({ names: actions.map((a) => `action ${a}`), reads: actions });
  return fetched(keyOf(call), () => engine.call("trace", k, call));
};
// traceMatrix returns rows from…to−1 of a matrix of a call.
export function traceMatrix(call, name, from = 0, to = 1e9) {
  const k = current(),
    s = app.view.state;
  return fetched(`${keyOf(call)}|${name}|${from}|${to}`, () =>
    engine.call("matrix", k, call, s, name, from, to),
  );
}
export async function traceRow(call, name, i) {
  return (await traceMatrix(call, name, i, i + 1)).data;
}
// weightMatrix returns a weight matrix of a call's network by its name.
export const weightMatrix = (call, name) =>
  fetched(`${app.run.id}|${call === "normed"}|${name}`, () => engine.call("weight", call, name));
