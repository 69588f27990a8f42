// What scripts find that the page's own text does not hold, and what the engine's answers are made of.

/** Go's runtime support, wasm_exec.js. */
declare class Go {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}
/** What a program of WebAssembly offers: each operation returns its result or {error}. */
declare var engine: Record<string, (...args: unknown[]) => any>;

interface Settings {
  preset: string;
  S: number;
  A: number;
  seed: number;
  gamma: number;
  eta: number; // 0 asks for the step that suits the problem
  m: number;
  expected: boolean;
  phi: number;
  tol: number;
  H: number;
  T: number;
  rmax: number;
  kappa: number;
  tau1: number;
  tau2: number;
}
interface Problem {
  states: number;
  actions: number;
  gamma: number;
  p: Float64Array; // [S·A, S]
  r: Float64Array; // [S, A], −∞ for an action that does not exist
  pi0: Float64Array; // [S, A]
  notes?: string[];
}
interface Edit {
  k: number; // the round before which the problem changes
  kind: string; // "reward", "transition", "place", "tile" or "start"
  s: number;
  a: number;
  t: number;
  value: number;
  tile: string;
}
interface Phase {
  index: number;
  start: number; // its first round
  grid: { width: number; height: number; tiles: string; entering: boolean } | null;
  gap: number;
  greedy: number[]; // [S]
  p: Float64Array; // [S·A, S]
  r: Float64Array; // [S, A]
  pi0: Float64Array; // [S, A]
}
interface Round extends Record<"zeta" | "zetaBound" | "delta" | "deltaBound" | "route" | "routeBound", number>,
    Record<"sampling" | "defect" | "loss" | "initial" | "critic" | "greedy" | "last" | "bound", number> {
  phase: number;
  pi: Float64Array; // all tables are [S, A]
  q: Float64Array;
  nextPi: Float64Array;
  nextQ: Float64Array;
  exactPi?: Float64Array; // of the decoder
  exactQ?: Float64Array;
  packets?: Float64Array; // [n, 6]: s, a, s′, a′, r, log weight
}
interface Named {
  label: string;
  note: string;
}
interface Link {
  matrix: string;
  symbol: string;
  why: string;
  value: number;
  to: number;
  toLen: number;
  from: number;
  fromLen: number;
}
interface Info {
  S: number;
  A: number;
  gamma: number;
  eta: number;
  width: number;
  headDim: number;
  token: Named[];
  slots: Named[];
  hidden: Named[];
  fingerprint: string;
  legend: Link[];
  certificate: Record<string, number>;
  phase: Phase;
}
interface Run {
  settings: Settings;
  file: Problem | null;
  info: Info;
  phases: Phase[];
  edits: Edit[];
  rounds: Record<string, Round[]>; // by controller
  errors: Record<string, string>; // why a controller has no further round
  id: number;
  cap: number; // the settings’ rmax without the changes
}
