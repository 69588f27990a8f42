// What the engine sends, unpacked. A value that crosses into JavaScript costs it more
// than arithmetic does, so numbers come as one array and records as one text.

// records reads lines of fields parted by tabs.
export const records = (text, ...names) =>
  text
    .split("\n")
    .filter((line) => line)
    .map((line) => Object.fromEntries(line.split("\t").map((v, i) => [names[i], v])));

// The numbers that a round begins with, in the order of wasm/main.go.
const NUMBERS = [
  "zeta",
  "zetaBound",
  "delta",
  "deltaBound",
  "route",
  "routeBound",
  "sampling",
  "defect",
  "loss",
  "initial",
  "critic",
  "greedy",
  "last",
  "bound",
];
const TABLES = ["pi", "q", "nextPi", "nextQ"];
const DECODER_TABLES = [...TABLES, "exactPi", "exactQ"];

// unpackRounds returns the rounds of a message by controller.
export function unpackRounds({ names, data, phase }, size) {
  const rounds = {};
  let at = 0;
  const next = (n) => data.subarray(at, (at += n));
  for (const name of names) {
    /** @type {any} */
    const r = (rounds[name] = { phase });
    next(NUMBERS.length).forEach((v, i) => (r[NUMBERS[i]] = v));
    for (const table of name === "decoder" ? DECODER_TABLES : TABLES) r[table] = next(size);
    if (name === "decoder") r.packets = next(6 * next(1)[0]);
  }
  return rounds;
}
