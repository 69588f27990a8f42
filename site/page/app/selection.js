// The state and the action that are selected, and what states and actions are called.

import { app, current, phaseAt, render } from "./state.js";

const ARROWS = ["←", "↓", "→", "↑"];
// actionName is an arrow on a map and a number elsewhere.
export const actionName = (a) => (phaseAt(app.pos.k).grid ? ARROWS[a] : `action ${a}`);
export const stateName = (s) => (phaseAt(app.pos.k).grid ? `place ${s}` : `state ${s}`);

export function select(s, a = app.view.action) {
  app.view.state = s;
  app.view.action = a;
  render();
}

// hover lights the tokens of a state while the pointer is over it.
export function hover(s) {
  app.view.lit = s;
  app.view.led = false;
  render();
}

// editedStates tells which states of the problem on show were changed.
export function editedStates() {
  const until = current();
  return new Set(app.run.edits.filter((e) => e.k <= until).map((e) => e.s));
}
