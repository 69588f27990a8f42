// A lesson in eight scenes of two to three minutes, each with an address of its own (?lesson=3), a thing
// to do, a question, and its answer.

import { $, act, all, atMost, el, show, stillness, sup } from "./base.js";
import { app, decoderRound, go, play, render, setting, stop } from "./state.js";
import { open, openAddress, stateNow } from "./address.js";
import { byHand, toggleByHand } from "./byhand.js";
import { crossing } from "./evidence.js";
import { change } from "./problem.js";
import { inspect } from "./microscope.js";
import { select } from "./selection.js";
import { showStep } from "./step.js";
import { showTab } from "./tabs.js";
import { toggle, twiceB } from "./result.js";

const MAZE = "#preset=maze&m=16&at=12.1";
// run plays to the end, quickly, or goes there where less motion is asked for.
async function run() {
  if (stillness()) return go(app.run.settings.T, 0);
  await go(0, 0);
  play(() => "10");
}
const atStage = async (hash, k, stage, which) => {
  await openAddress(hash);
  if (byHand()) toggleByHand();
  select(12, 1);
  showStep(which);
  await go(k, stage);
};

const SCENES = [
  {
    stage: ["step", "see"],
    title: "One step by hand",
    text: "Place 12 has a policy π and values Q. Add ηQ to log π, take e to the power of each score, divide by their sum: that is the new policy. Type your own guess first, then open the columns.",
    question: "Why does the best action not get all of the probability at once?",
    answer: () =>
      "Because log π is in the score too. One round multiplies odds by e^(η × difference of Q); what a habit of many rounds has built up takes rounds to undo. A larger η takes larger steps.",
    async run() {
      await atStage(MAZE, 1, 1, "actor");
      if (!byHand()) toggleByHand();
    },
  },
  {
    stage: ["step", "see"],
    title: "Attention does the same",
    text: "Every action of every place is a memory token with its log π and Q. The query of place 12 scores each of them, and softmax attention is the result. The rays are that row of attention weights. κ keeps the query from looking at other places: pull it down.",
    question: "What becomes of the policy when κ is 3?",
    answer: () =>
      `Memories of other places get attention, so their actions are mixed in; orange rays show it. Now κ = ${show(app.run.info.certificate.kappa, 3)} and ζ = ${show(decoderRound(Math.min(app.pos.k, app.run.settings.T - 1)).zeta, 2)}. At the κ that the certificate asks for, what leaks is too thin to draw.`,
    buttons: [
      ["κ = 3", () => setting({ kappa: 3 })],
      ["κ by the certificate", () => setting({ kappa: 0 })],
    ],
    run: () => atStage(MAZE, 4, 1, "actor"),
  },
  {
    stage: ["network"],
    title: "The weights, all of them",
    text: "Nothing is trained. These are the weights that are not zero, by their symbols. Point at one to see where it leads. Then change the maze: the fingerprint above them stays the same.",
    question: "Which weight knows where the goal is?",
    answer: () =>
      "None. The goal is in the packets, the sampled transitions that come with the context. Of the problem, the weights know its sizes, γ, and caps on rewards and η; change γ and the fingerprint changes.",
    buttons: [
      ["Put a wall at place 17", () => change({ kind: "tile", s: 17, tile: "#" })],
      ["γ = .95", () => setting({ gamma: 0.95 })],
    ],
    run: () => atStage(MAZE, 4, 1, "actor"),
  },
  {
    stage: ["step", "see", "result"],
    title: "The critic: three lookups",
    text: "Each packet looks up Q at its successor by attention, a ReLU adds the reward, and the query of a pair averages its packets. With few packets the average is noisy.",
    question: "Does the loss fall faster with 1 packet a pair or with 64?",
    answer: () =>
      "With 64, on the whole: noise in Q misleads the next policies. With one packet the curve may lie below exact PMD's for some rounds, by luck. The pale line is the run before.",
    buttons: [
      ["m = 1", async () => (await setting({ m: 1 }, 0), run())],
      ["m = 64", async () => (await setting({ m: 64 }, 0), run())],
    ],
    async run() {
      await atStage(MAZE, app.run.settings.T, 0, "critic");
      await go(4, 3);
    },
  },
  {
    stage: ["evidence", "certificate-box"],
    title: "What the certificate says, and when it is empty",
    text: "R and λ bound the attention that goes astray, before any problem is seen. The bound on the loss adds up what each round may add. No loss can exceed 2B, so a bound above that says nothing. Move through the rounds, or click in the chart, until the bound crosses 2B.",
    question: "From which round on does the bound say something here?",
    answer: () => {
      const k = crossing(),
        c = app.run.info.certificate;
      return `${k ? `From round ${k} on it is below 2B = ${show(twiceB())}` : `Not in these ${app.run.settings.T} rounds: it stays above 2B = ${show(twiceB())}`}. R of the actor is ${show(c.RAct, 2)}, so ζ ≤ 2R/(1 + R) = ${atMost((2 * c.RAct) / (1 + c.RAct), 2)}; λ₁ = ${show(c.lambda1, 2)}, λ₂ = ${show(c.lambda2, 2)}, so routing adds at most 2B(γλ₁ + λ₂) = ${atMost(c.deltaRoute, 2)} to δ.`;
    },
    async run() {
      await openAddress("#preset=random&expected=1&tol=1e-9&T=100&eta=4");
      await go(app.run.settings.T, 0);
      await go(5, 0);
    },
  },
  {
    stage: ["result", "see"],
    title: "Small errors are not enough",
    text: "One state, two actions; the good one starts with next to no probability. An actor that never moves is then almost exactly PMD in every round, and it never gets anywhere. Choose how little the good action starts with.",
    question: "How many more rounds does exact PMD need for each tenth of the mass?",
    answer: () =>
      `A constant number: a round adds η × the difference of Q to the log of the odds, here ${show(app.run.settings.eta)} × ${show(Math.abs(decoderRound(0).q[0] - decoderRound(0).q[1]), 3)}, and a tenth takes log 10 = 2.3 of it. So from 10⁻³⁰ it gets there too, late; the actor that never moves stays.`,
    buttons: [-1, -5, -10, -30].map((e) => [
      "10" + sup(e),
      async () => {
        const good = decoderRound(0).q[0] > decoderRound(0).q[1] ? 0 : 1;
        await change({ kind: "start", s: 0, a: good, value: 10 ** e });
        await run();
      },
    ]),
    async run() {
      await openAddress("#preset=lock-up&T=200&show=exact.idle");
      await run();
    },
  },
  {
    stage: ["step", "see"],
    title: "A trained network beside it",
    text: "A Transformer that learned the update from examples gets the same context. Its four heads in four blocks are drawn as the one head of the fixed decoder is.",
    question: "Is its attention the new policy, too?",
    answer: () =>
      "No. It spreads its attention almost evenly; what it returns is made by the read-out. Softmax attention is the update in the construction, and the read-out's softmax is in the trained network.",
    async run() {
      await openAddress(MAZE);
      if (byHand()) toggleByHand();
      if (!app.shown.has("learned")) await toggle("learned");
      app.view.net = "learned";
      await go(app.run.settings.T, 0);
      select(12, 1);
      showStep("actor");
      await go(4, 1);
    },
  },
  {
    stage: ["result", "see", "carrier"],
    title: "With LayerNorm",
    text: "The decoder compiled to the usual pre-LN form. A carrier of size H makes LayerNorm shrink each token by ρ = 1/⁠√(1 + |x|⁠²⁠/⁠H²), almost 1 for large H. The read-out mixes in φ = .01 of the uniform policy, so that no probability falls below its floor.",
    question: "What does the mixture cost?",
    answer: () =>
      "The loss stops falling: every action keeps φ/A of the probability, the bad ones too. And with a small H the shrinking is no longer the same for all tokens.",
    buttons: [
      ["H = 10⁶", async () => (await setting({ H: 1e6 }, 0), run())],
      ["H = 300", async () => (await setting({ H: 300 }, 0), run())],
      ["Its matrices", () => inspect("normed", "0.0", "score", 12, 49)],
    ],
    async run() {
      await openAddress("#preset=maze&m=6&phi=0.01&T=25&show=exact.normalized");
      await run();
    },
  },
];
export const lessonLength = SCENES.length;

const lesson = { at: -1, before: null, history: [], ghost: null };
export const inLesson = () => lesson.at >= 0;
function addressOf(i) {
  const url = new URL(location.href);
  if (i < 0) url.searchParams.delete("lesson");
  else url.searchParams.set("lesson", i + 1);
  history.replaceState(null, "", url);
}
async function showScene(i) {
  const scene = SCENES[i];
  lesson.at = i;
  $("lesson-count").textContent = `${i + 1} of ${SCENES.length}`;
  $("lesson-title").textContent = scene.title;
  $("lesson-text").textContent = scene.text;
  $("lesson-question").textContent = scene.question;
  $("lesson-answer").hidden = true;
  $("lesson-ask").hidden = false;
  $("lesson").scrollTop = 0;
  $("lesson-back").disabled = i === 0;
  $("lesson-next").textContent = i === SCENES.length - 1 ? "Done" : "Next";
  $("lesson-buttons").replaceChildren(
    ...(scene.buttons || []).map(([label, f]) => el("button", { type: "button", onclick: () => act(f) }, label)),
  );
  for (const x of all("section")) x.classList.toggle("staged", scene.stage.includes(x.id));
  stop();
  showTab(scene.stage[0]);
  for (const x of all(".pointed")) x.classList.remove("pointed");
  await act(() => scene.run());
  if (lesson.at !== i) return;
  addressOf(i);
  $(scene.stage[0]).classList.add("pointed");
  scrollTo(0, 0);
}
export async function startLesson(i = 0) {
  stop();
  Object.assign(lesson, { before: stateNow(), history: [...app.history], ghost: app.ghost });
  $("lesson").hidden = false;
  document.body.classList.add("teaching");
  render();
  $("lesson-next").focus();
  await showScene(Math.max(0, Math.min(SCENES.length - 1, i)));
}
// endLesson brings back what was there before.
async function endLesson() {
  lesson.at = -1;
  stop();
  addressOf(-1);
  $("lesson").hidden = true;
  document.body.classList.remove("teaching");
  for (const x of all(".pointed")) x.classList.remove("pointed");
  if (byHand()) toggleByHand();
  await open(lesson.before);
  app.history.splice(0, Infinity, ...lesson.history); // Undo goes back to the visitor's own work
  app.ghost = lesson.ghost;
  $("lesson-start").focus();
}
// turn goes to the next scene or the one before.
export const turn = (d) =>
  act(() => {
    const to = lesson.at + d;
    return to < 0 ? null : to >= SCENES.length ? endLesson() : showScene(to);
  });
export function buildLesson() {
  $("lesson-start").addEventListener("click", () => act(() => startLesson()));
  $("lesson-back").addEventListener("click", () => turn(-1));
  $("lesson-next").addEventListener("click", () => turn(1));
  $("lesson-end").addEventListener("click", () => act(endLesson));
  $("lesson-ask").addEventListener("click", () => {
    $("lesson-answer").textContent = SCENES[lesson.at].answer();
    $("lesson-answer").hidden = false;
    $("lesson-answer").scrollIntoView({ block: "nearest" });
    $("lesson-ask").hidden = true;
  });
  $("lesson").addEventListener("keydown", (e) => {
    if (e.key === "Escape") act(endLesson);
  });
}
// lessonAsked returns the scene that the address names, or −1.
export function lessonAsked() {
  const n = Number(new URLSearchParams(location.search).get("lesson"));
  return Number.isInteger(n) && n >= 1 && n <= SCENES.length ? n - 1 : -1;
}
