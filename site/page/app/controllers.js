// The controllers that are compared, and the weights of the learned one.

function renderControllers() {
  const c = palette();
  if (!$("controllers").children.length) {
    for (const [name, x] of Object.entries(CONTROLLERS)) {
      const box = el("input", {
        type: "checkbox",
        id: "show-" + name,
        disabled: name === "decoder",
        onchange: () => act(() => toggle(name)),
      });
      $("controllers").append(
        el(
          "div",
          { class: "controller" },
          box,
          el("span", { class: "line" }),
          el("label", { for: "show-" + name }, x.name),
          el("p", { class: "cap", id: "state-" + name }),
        ),
      );
    }
    $("controllers").append(
      el(
        "div",
        { class: "controller" },
        el(
          "label",
          { class: "file" },
          "Other weights (.safetensors)",
          el("input", {
            id: "weights",
            type: "file",
            accept: ".safetensors",
            onchange: (e) => act(() => weightsFile(e.target)),
          }),
        ),
      ),
    );
  }
  for (const [name, x] of Object.entries(CONTROLLERS)) {
    const box = $("show-" + name);
    box.checked = shown.has(name);
    box.parentElement.querySelector(".line").replaceChildren(keyLine(c[x.color], x.dash));
    const r = run.rounds[name]?.[Math.max(0, Math.min(pos.k, run.settings.T) - 1)];
    $("state-" + name).textContent = run.errors[name]
      ? "Stopped: " + run.errors[name]
      : r && shown.has(name)
        ? `loss ${show(r.loss)}, ζ ${show(r.zeta, 3)}`
        : x.why;
  }
}
async function toggle(name) {
  try {
    if (shown.has(name)) shown.delete(name);
    else {
      if (name === "learned") await fetchLearned();
      shown.add(name);
      delete run.errors[name];
      await reach(Math.min(run.settings.T, Math.max(pos.k + 1, run.rounds.decoder?.length || 0)));
      if (run.errors[name]) message(`${CONTROLLERS[name].name}: ${run.errors[name]}.`);
    }
  } finally {
    render(); // boxes say again what is so
    remember();
  }
}

const learned = { label: "", size: "", builtIn: [] };
const sizeOf = (x) => `S=${x.states}, A=${x.actions}`;
// fetchLearned loads the weights that were built for this problem's size, unless
// such weights are here. If they are not in the page they come in a script, for a
// page opened from a file may fetch nothing else. They are what the page was
// built with, or are not taken.
async function fetchLearned() {
  const size = sizeOf({ states: run.info.S, actions: run.info.A });
  if (learned.size === size) return;
  const found = learned.builtIn.find((x) => sizeOf(x) === size);
  if (!found)
    throw new Error(
      `There are no trained weights for ${size}` +
        (learned.builtIn.length
          ? `; this copy has ${learned.builtIn.map(sizeOf).join("; ")}.`
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
async function weightsFile(input) {
  const file = input.files[0];
  input.value = "";
  if (!file) return;
  if (file.size > 32e6)
    throw new Error(
      `${file.name} has ${Math.round(file.size / 1e6)} MB; an actor’s weights have less than 32.`,
    );
  const buffer = await file.arrayBuffer();
  await learn(buffer, await engine.call("digest", new Uint8Array(buffer)));
  shown.add("learned");
  delete run.rounds.learned;
  delete run.errors.learned;
  await reach(Math.max(1, run.rounds.decoder?.length || 0));
  if (run.errors.learned) message("Learned actor: " + run.errors.learned);
  render();
}
// learn reads the project's safetensors form of an actor.
async function learn(buffer, digest) {
  const bad = (why) => new Error("These are not weights of an actor of this project: " + why + ".");
  const bytes = new DataView(buffer);
  if (buffer.byteLength < 8) throw bad("the file is too short");
  const length = Number(bytes.getBigUint64(0, true));
  if (!(length > 0 && length <= buffer.byteLength - 8)) throw bad("the header’s length is wrong");
  let header, config;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, length)));
    config = JSON.parse(header.__metadata__.config);
  } catch {
    throw bad("the header is not the JSON it should be");
  }
  if (config.objective === "critic") throw bad("they are a critic’s");
  if (
    !config.recipe ||
    !Array.isArray(config.sizes) ||
    config.sizes.length !== 1 ||
    config.slots !== config.sizes[0]
  )
    throw bad("they are not for one number of states");
  const tensors = {};
  for (const [name, t] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [from, to] = t?.data_offsets || [];
    if (
      t.dtype !== "F32" ||
      !Number.isInteger(from) ||
      !Number.isInteger(to) ||
      from < 0 ||
      to < from ||
      (to - from) % 4 ||
      8 + length + to > buffer.byteLength
    )
      throw bad(`tensor “${name.slice(0, 40)}” lies outside the file or is not float32`);
    tensors[name] = new Float32Array(buffer.slice(8 + length + from, 8 + length + to));
  }
  const shape = {
    states: config.slots,
    actions: config.actions,
    layers: config.layers,
    heads: config.heads,
    width: config.width,
    hidden: config.hidden,
    logPolicy: config.recipe.policy === "log",
    priorReadout: config.recipe.readout === "prior",
  };
  for (const v of Object.values(shape))
    if (typeof v !== "boolean" && !(Number.isInteger(v) && v > 0 && v < 1e6))
      throw bad("the configuration has no valid shape");
  await engine.call("learn", shape, tensors);
  learned.size = sizeOf(shape);
  learned.label = `${config.objective} actor, recipe ${config.recipe.name}, S=${config.slots}, step ${header.__metadata__.step}, SHA-256 ${digest.slice(0, 12)}…`;
  CONTROLLERS.learned.why = learned.label;
  delete run.rounds.learned;
  delete run.errors.learned;
}
