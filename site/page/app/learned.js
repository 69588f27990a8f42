// The trained actor for any problem: where its weights come from.

import { bytesOf } from "./base.js";
import { engine, fullEngine, scriptOf } from "./engine.js";
import { app, restore } from "./state.js";

// weights tells where this copy of the page has them, and once the engine holds
// them their label.
export const weights = { file: "", sha256: "", weights: "", label: "" };
let loading = null;
// loadLearned gives the engine the weights, once.
export const loadLearned = () =>
  (loading ||= load().catch((e) => {
    loading = null;
    throw e;
  }));
// load takes the weights from the page or, for a page opened from a file may fetch
// nothing else, from a script beside it. They are what the page was built with, or
// are not taken.
async function load() {
  const bytes = read(weights.weights || (await scriptOf(weights.file, "policyAttentionWeights"))),
    digest = await engine.call("digest", bytes);
  if (digest !== weights.sha256)
    throw new Error(
      `${weights.file} does not hold the weights that this page was built with: their SHA-256 begins with ` +
        `${digest.slice(0, 12)}, want ${weights.sha256.slice(0, 12)}. They were not loaded.`,
    );
  await fullEngine(restore);
  const tensors = tensorsOf(bytes.buffer);
  await engine.call("learn", tensors);
  app.tensors = tensors;
  weights.label = `one trained network for every problem, SHA-256 ${digest.slice(0, 12)}…, with an exact critic`;
}
function read(text) {
  try {
    return bytesOf(text);
  } catch {
    return new Uint8Array(); // it is no base64, and its digest not the wanted one
  }
}
// tensorsOf reads a safetensors file: the length of its header, the header, and
// the tensors' bytes. Its digest is known, so it is as it should be.
function tensorsOf(buffer) {
  const start = 8 + Number(new DataView(buffer).getBigUint64(0, true)),
    { __metadata__, ...tensors } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)));
  return Object.fromEntries(
    Object.entries(tensors).map(
      ([
        name,
        {
          data_offsets: [from, to],
        },
      ]) => [name, new Float32Array(buffer.slice(start + from, start + to))],
    ),
  );
}
