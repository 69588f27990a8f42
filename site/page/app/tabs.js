// On a phone one part of the page is seen at a time.

import { $, all, el } from "./base.js";
import { render } from "./state.js";

const TABS = [
  ["see", "Problem"],
  ["result", "Result"],
  ["step", "Attention"],
  ["evidence", "Evidence"],
  ["microscope", "Matrices"],
  ["setup", "Settings"],
];
// Each section says with data-tab to which tab it belongs.
export function showTab(id) {
  const tab = $(id)?.closest("[data-tab]")?.dataset.tab || id;
  document.body.dataset.tab = tab;
  for (const x of all("[data-tab]")) x.classList.toggle("elsewhere", x.dataset.tab !== tab);
  for (const b of $("tabs").children) b.setAttribute("aria-pressed", String(b.dataset.to === tab));
  render();
}
export function buildTabs() {
  for (const [id, name] of TABS)
    $("tabs").append(
      el("button", { type: "button", "data-to": id, onclick: () => (showTab(id), scrollTo(0, 0)) }, name),
    );
  showTab("see");
}
