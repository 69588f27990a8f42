import assert from "node:assert/strict";
import test from "node:test";

import { packPins, packProblem, unpackPins, unpackProblem } from "../app/pack.js";
import { apart, horizon, linear, logarithmic, shrunk } from "../app/scales.js";
import { records, unpackRounds } from "../app/wire.js";
import { atMost, percent, plural, show, sub, sup } from "../app/words.js";

test("numbers in words", () => {
  for (const [x, digits, want] of [
    [0, 4, "0"], [-0, 4, "0"], [1 / 3, 4, "0.3333"], [-2.5, 4, "−2.5"], [123456, 4, "1.23·10⁵"],
    [-1.5e-7, 3, "−1.5·10⁻⁷"], [Infinity, 4, "∞"], [-Infinity, 4, "−∞"], [NaN, 4, "not a number"],
    [undefined, 4, "–"], [99999, 4, "100000"],
  ])
    assert.equal(show(x, digits), want);
  assert.equal(percent(0.12345), "12.3 %");
  assert.equal(plural(1, "round") + plural(2, "round"), "1 round2 rounds");
  assert.equal(sub(10) + sup(-12), "₁₀⁻¹²");
});

test("bounds are rounded up", () => {
  for (const [x, digits, want] of [
    [2.7501e-4, 4, "2.76·10⁻⁴"], [2.75e-4, 4, "2.75·10⁻⁴"], [2.75e-4, 3, "2.8·10⁻⁴"], [9.999e-4, 3, "0.001"],
    [12.25, 3, "12.3"], [11.2, 3, "11.2"], [99.96, 3, "100"], [0, 3, "0"], [1e-30, 3, "1.0·10⁻³⁰"],
    [10.000000000000002, 5, "10"],
  ])
    assert.equal(atMost(x, digits), want);
});

test("scales go there and back", () => {
  const scales = [linear(-1, 3), logarithmic(() => 0.1, () => 50), horizon];
  for (const s of scales)
    for (const t of [0, 0.25, 0.9]) assert.ok(Math.abs(s.from(s.to(t)) - t) < 1e-12);
  assert.equal(logarithmic(() => 1, () => 64).from(0), 0);
});

test("LayerNorm's shrinking without cancellation", () => {
  assert.ok(Math.abs(shrunk(9, 4) - (1 - 1 / Math.sqrt(1 + 9 / 16))) < 1e-15);
  assert.ok(Math.abs(shrunk(1, 1e8) / 5e-17 - 1) < 1e-12); // half of |x|²/H²
});

test("labels move apart, and go where there is no room", () => {
  assert.deepEqual(apart([0, 1, 30], 10, 100), [0, 10, 30]);
  assert.deepEqual(apart([85, 86, 97], 10, 100), [80, 90, 100]);
  assert.ok(apart([1, 1, 1, 1], 10, 20).includes(null));
});

test("rounds come as one array", () => {
  const head = Array.from({ length: 14 }, (_, i) => i),
    packets = [0, 0, 0, 1, 0.5, 0],
    data = new Float64Array([...head, ...Array(12).fill(7), 1, ...packets, ...head, ...Array(8).fill(9)]),
    rounds = unpackRounds({ names: ["decoder", "exact"], data, phase: 2 }, 2);
  assert.equal(rounds.decoder.bound, 13);
  assert.deepEqual([...rounds.decoder.packets], packets);
  assert.deepEqual([...rounds.exact.nextQ], [9, 9]);
  assert.equal(rounds.exact.phase, 2);
  assert.deepEqual(records("a\tb\nc\td\n", "x", "y"), [{ x: "a", y: "b" }, { x: "c", y: "d" }]);
});

test("problems and pins survive a link", async () => {
  for (const noise of [0, 1e-17, Math.PI]) {
    const p = Float64Array.from({ length: 2 * 3 * 2 }, (_, i) => (i % 2 ? 0.25 : 0.75) + noise / (i + 1)),
      problem = { gamma: 0.9, p, r: Float64Array.of(1, -1, 0.1, 2, 3, 4), pi0: new Float64Array(6).fill(1 / 3) },
      again = await unpackProblem(await packProblem(problem), { S: 2, A: 3 });
    assert.deepEqual(again, { states: 2, actions: 3, ...problem });
  }
  await assert.rejects(unpackProblem("AAAA", { S: 2, A: 3 }), /MDP/);
  const pins = [{ label: "η 0.8, m 16", values: [1, 0.5, 0.25] }];
  assert.deepEqual(unpackPins(packPins(pins)), pins);
  assert.throws(() => unpackPins("A.B.C"), /pinned runs/);
});
