// Where the microscope looks: the stations of a call, their matrices, and the window on show.

import { TRAINED_PARTS, TRAINED_STATIONS, trainedName } from "./trainedscope.js";

const STATIONS = [
  ["tokens", "Tokens"],
  ["0.0", "Block 1: actor head"],
  ["0.1", "Block 1: lookup head"],
  ["map", "Block 1: ReLU map"],
  ["1.0", "Block 2: predecessor head"],
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
  payload: [["payloads", "Payloads"]],
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
// The calls, and where one can look in the one with LayerNorm.
export const CALLS = ["actor", "critic", "normed", "learned"];
const NORMED_STATIONS = [["payload", "Payloads"], ["tokens", "Tokens"], STATIONS[1], ["end", "Read-out"]];
// stationsOf lists where one can look in a call, and partsOf what there is.
export const stationsOf = (call) => ({ learned: TRAINED_STATIONS, normed: NORMED_STATIONS })[call] || STATIONS;
export const partsOf = (station) => TRAINED_PARTS[station] || PARTS[station] || HEAD_PARTS;
export const firstOf = (call) => ({ critic: "1.0", learned: "n0" })[call] || "0.0";
export const isWeight = (part) => ["q", "k", "v", "o", "w1", "w2"].includes(part);
export function matrixName(station, part) {
  if (station in TRAINED_PARTS) return trainedName(station, part);
  if (station === "tokens" || station === "payload") return part;
  if (station === "map") return (isWeight(part) ? "block.0.map." : "block.0.") + part;
  if (station === "end") return part === "attended1" ? "block.1.attended" : part;
  const [b, h] = station.split(".");
  return `block.${b}.head.${h}.${part}`;
}

export const scope = {
  heat: null,
  now: null, // {data, rows, cols, rowNames, colNames}: the window on show
  id: "", // which window of which matrix that is
  busy: false,
  again: false,
  wanted: false, // it is on the screen, or was asked for
  unsaid: false, // a cell's description is still to be read to screen readers
  rowFirst: 0,
  colFirst: 0,
};
