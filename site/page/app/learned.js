// Weights of a trained actor: where they come from, and what is checked.

import { el } from "./base.js";
import { engine } from "./engine.js";
import { app, reach, render } from "./state.js";

// weights are those that the engine holds, and builtIn those that this copy of
// the page can fetch. Weights for any problem have size "any".
export const weights = { label: "", size: "", digest: "", range: null, builtIn: [] };
const sizeOf = (x) => `S=${x.states}, A=${x.actions}`;
// fetchLearned loads the weights that were built for this problem's size, unless
// such weights are here. If they are not in the page they come in a script, for a
// page opened from a file may fetch nothing else. They are what the page was
// built with, or are not taken.
export async function fetchLearned() {
  const size = sizeOf({ states: app.run.info.S, actions: app.run.info.A });
  if (weights.size === size) return;
  const found = weights.builtIn.find((x) => sizeOf(x) === size);
  if (!found)
    throw new Error(
      `There are no trained weights for ${size}` +
        (weights.builtIn.length
          ? `; this copy has ${weights.builtIn.map(sizeOf).join("; ")}.`
          : " in this copy of the page; a .safetensors file of an actor can be loaded instead."),
    );
  const bytes = base64(found.weights || (await scriptOf(found.file)));
  const digest = await engine.call("digest", bytes);
  if (digest !== found.sha256)
    throw new Error(
      `${found.file} does not hold the weights that this page was built with: their SHA-256 begins with ` +
        `${digest.slice(0, 12)}, want ${found.sha256.slice(0, 12)}. They were not loaded.`,
    );
  await learn(bytes.buffer, digest);
}
function scriptOf(file) {
  return new Promise((resolve, reject) => {
    const fail = () =>
      reject(new Error(`The weights ${file} could not be loaded; they lie beside this page.`));
    self.policyAttentionWeights = resolve; // called by the script, before its load event
    document.head.append(el("script", { src: file, onload: fail, onerror: fail }));
  });
}
function base64(text) {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
export async function weightsFile(input) {
  const file = input.files[0];
  input.value = "";
  if (!file) return;
  if (file.size > 32e6)
    throw new Error(
      `${file.name} has ${Math.round(file.size / 1e6)} MB; an actor’s weights have less than 32.`,
    );
  const buffer = await file.arrayBuffer();
  await learn(buffer, await engine.call("digest", new Uint8Array(buffer)));
  app.shown.add("learned");
  delete app.run.rounds.learned;
  delete app.run.errors.learned;
  await reach(Math.max(1, app.run.rounds.decoder?.length || 0));
  render();
  if (app.run.errors.learned) throw new Error("Trained network: " + app.run.errors.learned);
}
const bad = (why) => new Error("These are not weights of an actor of this project: " + why + ".");
// header returns the JSON at the head of a safetensors file, the configuration
// in it, and where the tensors' bytes begin.
function header(buffer) {
  if (buffer.byteLength < 8) throw bad("the file is too short");
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (!(length > 0 && length <= buffer.byteLength - 8)) throw bad("the header’s length is wrong");
  try {
    const head = JSON.parse(
      new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, length)),
    );
    return { head, config: JSON.parse(head.__metadata__.config), start: 8 + length };
  } catch {
    throw bad("the header is not the JSON it should be");
  }
}
function tensorsOf(buffer, head, start) {
  const tensors = {};
  for (const [name, t] of Object.entries(head)) {
    if (name === "__metadata__") continue;
    const [from, to] = t?.data_offsets || [],
      fits =
        Number.isInteger(from) && Number.isInteger(to) && from >= 0 && to >= from && (to - from) % 4 === 0;
    if (t?.dtype !== "F32" || !fits || start + to > buffer.byteLength)
      throw bad(`tensor “${name.slice(0, 40)}” lies outside the file or is not float32`);
    tensors[name] = new Float32Array(buffer.slice(start + from, start + to));
  }
  return tensors;
}
function shapeOf(config) {
  const { objective, recipe, sizes, slots } = config;
  if (objective === "critic") throw bad("they are a critic’s");
  if (!recipe || !Array.isArray(sizes) || sizes.length !== 1 || slots !== sizes[0])
    throw bad("they are not for one number of states");
  const shape = {
    states: slots,
    actions: config.actions,
    layers: config.layers,
    heads: config.heads,
    width: config.width,
    hidden: config.hidden,
    logPolicy: recipe.policy === "log",
    priorReadout: recipe.readout === "prior",
  };
  for (const v of Object.values(shape))
    if (typeof v !== "boolean" && !(Number.isInteger(v) && v > 0 && v < 1e6))
      throw bad("the configuration has no valid shape");
  return shape;
}
// learn reads the project's safetensors form of an actor. What it was trained on
// is γ = .9, rewards in [−1, 1], and the step sizes of its recipe.
async function learn(buffer, digest) {
  const { head, config, start } = header(buffer),
    shape = shapeOf(config);
  await engine.call("learn", shape, tensorsOf(buffer, head, start));
  Object.assign(weights, {
    size: sizeOf(shape),
    digest,
    range: { eta: [config.recipe.eta_min, config.recipe.eta_max], gamma: 0.9, reward: 1 },
    label: `${config.objective} actor, recipe ${config.recipe.name}, S=${shape.states}, step ${head.__metadata__.step}, SHA-256 ${digest.slice(0, 12)}…`,
  });
  delete app.run.rounds.learned;
  delete app.run.errors.learned;
}
