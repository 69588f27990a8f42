// What the microscope knows of the trained network: where one can look, and what a
// cell means. Package anymdp says what its tokens are.

import { $, el, percent, show } from "./base.js";
import { app, current, decoderRound } from "./state.js";
import { stateName } from "./selection.js";
import { traceMatrix, traceRow } from "./trace.js";

export const BLOCKS = 4,
  HEADS = 4;
const WIDTH = 64,
  HIDDEN = 128;
const blocks = Array.from({ length: BLOCKS }, (_, b) => b);
export const TRAINED_STATIONS = [
  ["in", "Tokens"],
  ...blocks.map((b) => ["n" + b, `Block ${b + 1}`]),
  ["out", "Read-out"],
];
const BLOCK_PARTS = [
  ["weight", "Attention, heads by tokens"],
  ["query", "Queries"],
  ["key", "Keys"],
  ["value", "Values"],
  ["mixed", "Mixed values"],
  ["attended", "After attention"],
  ["units", "ReLU units"],
  ["output", "After the block"],
];
export const TRAINED_PARTS = {
  in: [["tokens", "Tokens"]],
  ...Object.fromEntries(blocks.map((b) => ["n" + b, BLOCK_PARTS])),
  out: [["results", "Read-outs"]],
};
export const trainedName = (station, part) =>
  station[0] === "n" ? `block.${station.slice(1)}.${part}` : part;
const WHY = {
  tokens: "One row an action, four numbers each. They are ratios, so the scale of rewards, η and γ is gone.",
  weight: "Every head weighs the actions of this state for every one of them; each row sums to one.",
  query: "What each token asks for, the heads’ sixteen numbers side by side.",
  key: "What each token offers, the heads’ sixteen numbers side by side.",
  value: "What each token hands over, the heads’ sixteen numbers side by side.",
  mixed: "Means of the values, weighted by each head’s attention.",
  attended: "The tokens with what the heads wrote added.",
  units: "Two units for each number of a token, cut at zero.",
  output: "The tokens as they leave the block.",
  results: "What the network writes for each action, and the probability it becomes.",
};
export const trainedWhy = (part) =>
  `${WHY[part]} The trained network sees one state at a time: this is ${stateName(app.view.state)}.`;

const FEATURES = [
  ["update", "ηQ less the best action’s, over this action’s unit d, and over κ = 100"],
  ["habit", "log π less the likeliest action’s, over this action’s scale, and over κ = 100"],
  ["update in habit’s scale", "ηQ less the best action’s, over this action’s scale, and over κ = 100"],
  ["carrier", "always one: it keeps LayerNorm’s divisor steady, as the paper’s carrier does"],
];
const RESULTS = [
  ["o₀", "The output for a read-out that does not add log π; it is not used here."],
  ["o₁", "The update: κ times the action’s unit times this is added to log π."],
  ["logit", "log π + κ d o₁, with d how far ηQ is from the best, plus its least such distance above 0."],
  ["π̂", "The softmax of the logits."],
];
const NTH = ["1st", "2nd", "3rd", "4th"];
const numbered = (n, name) => Array.from({ length: n }, (_, i) => name(i));
const ofHead = (i) => `head ${Math.floor((HEADS * i) / WIDTH) + 1}[${i % (WIDTH / HEADS)}]`;
// trainedAxes returns the names of a matrix's rows and columns.
export function trainedAxes(part, tokens) {
  const asks = NTH.flatMap((nth) => tokens.map((t) => `${nth} head (${t} asks)`)),
    inHeads = [tokens, numbered(WIDTH, ofHead)];
  return (
    {
      tokens: [tokens, FEATURES.map(([name]) => name)],
      weight: [asks, tokens],
      query: inHeads,
      key: inHeads,
      value: inHeads,
      mixed: inHeads,
      units: [tokens, numbered(HIDDEN, (i) => `unit[${i}]`)],
      results: [tokens, RESULTS.map(([name]) => name)],
    }[part] || [tokens, numbered(WIDTH, (i) => `channel[${i}]`)]
  );
}

const matrix = (name) => traceMatrix("learned", name);
const dot = (x, y) => x.reduce((sum, v, i) => sum + v * y[i], 0);
// Each part of the pass: [what a cell means, how it came about].
const learnedNumber = async () => ["A number that training made; it has no name.", []];
const PARTS = {
  tokens: async ({ col }) => [FEATURES[col][1] + ".", ["From π and Q of this state; no weight is involved."]],
  async weight({ row, col, value }) {
    const { A } = app.run.info,
      { station } = app.view,
      [h, q] = [Math.floor(row / A), row % A],
      size = WIDTH / HEADS,
      slice = async (part, i) =>
        (await traceRow("learned", trainedName(station, part), i)).subarray(h * size, (h + 1) * size),
      score = dot(await slice("query", q), await slice("key", col)) / Math.sqrt(size);
    return [
      `${percent(value)} of this token’s attention in this head.`,
      [
        `Score ${show(score)}: the query times the key, over √${size}. The weight is its softmax over the row.`,
      ],
    ];
  },
  results: async ({ row, col }) => {
    const exact = decoderRound(current()).exactPi[app.view.state * app.run.info.A + row];
    return [RESULTS[col][1], col === 3 ? [`Exact PMD gives ${show(exact, 8)}.`] : []];
  },
  async attended({ row, col, value }) {
    const { station } = app.view;
    if (station === "n0") return learnedNumber();
    const before = await traceRow("learned", `block.${Number(station[1]) - 1}.output`, row);
    return [
      "A number that training made.",
      [`came in as ${show(before[col])}`, `plus ${show(value - before[col])} from the heads`],
    ];
  },
};
export const describeTrained = (of) => (PARTS[of.part] || learnedNumber)(of);

// trainedPath follows one action's token through the blocks.
export async function trainedPath() {
  const { A } = app.run.info,
    q = app.view.follow,
    actions = Array.from({ length: A }, (_, a) => a),
    steps = [];
  for (const b of blocks) {
    const { data } = await matrix(`block.${b}.weight`),
      favourite = (h) => {
        const at = (a) => data[(h * A + q) * A + a],
          best = actions.reduce((x, a) => (at(a) > at(x) ? a : x), 0);
        return `action ${best} ${percent(at(best), 3)}`;
      };
    steps.push(
      el("li", {}, `Block ${b + 1}: its heads look most at `, numbered(HEADS, favourite).join("; "), "."),
    );
  }
  const [, update, logit, p] = await traceRow("learned", "results", q);
  $("path").replaceChildren(
    el(
      "ol",
      {},
      el("li", {}, el("b", {}, `Action ${q}`), ` of ${stateName(app.view.state)} is a token of four ratios.`),
      steps,
      el("li", {}, `The network writes ${show(update)}; with log π that is the logit ${show(logit)}.`),
      el("li", {}, `Softmax over the actions: ${percent(p, 4)}.`),
    ),
  );
}
