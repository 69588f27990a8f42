// Workers that run a program of WebAssembly, and calls to them.

import { $, bytesOf, message } from "./base.js";

// Program is a worker that runs one program; what it exports is called by name.
class Program {
  compute = 0; // milliseconds in the worker
  #pending = new Map();
  #worker = null;
  #next = 0;
  #ready = null;
  // run hands the compiled program, once it is there, to a new worker.
  run(program) {
    return (this.#ready = this.#begin(program));
  }
  async #begin(program) {
    const module = await program;
    const url = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" })),
      worker = (this.#worker = new Worker(url));
    await new Promise((resolve, reject) => {
      worker.onerror = (e) => reject(new Error(e.message || "the worker did not start"));
      worker.onmessage = ({ data }) => {
        if (data.ready) return resolve();
        if (!data.stopped) return this.#settle(data);
        reject(new Error(data.error));
        this.#fail(new Error("the engine has stopped; reload the page"));
        message("The engine has stopped; reload the page.");
      };
      worker.postMessage({ module });
    });
    URL.revokeObjectURL(url);
  }
  // end stops the worker at once; calls that wait fail with why.
  end(why) {
    this.#worker.terminate();
    this.#fail(Object.assign(new Error(why), { cancelled: true }));
  }
  async call(op, ...args) {
    await this.#ready;
    return new Promise((resolve, reject) => {
      this.#pending.set(++this.#next, { resolve, reject });
      this.#worker.postMessage({ id: this.#next, op, args });
    });
  }
  #settle(data) {
    const call = this.#pending.get(data.id);
    this.#pending.delete(data.id);
    this.compute += data.ms;
    if (data.error) call.reject(new Error(data.error));
    else call.resolve(data.value);
  }
  #fail(error) {
    for (const call of this.#pending.values()) call.reject(error);
    this.#pending.clear();
  }
}

// compiled is the program in a stream of its compressed bytes, compiled while they come.
const compiled = (stream) =>
  WebAssembly.compileStreaming(
    new Response(stream.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "application/wasm" } }),
  );
const inText = (text) => compiled(new Blob([bytesOf(text)]).stream());
// fetched is the engine as a file beside the page. A page from a file may fetch nothing, but load a script.
async function fetched() {
  if (!location.protocol.startsWith("http")) throw new Error("This page comes from a file.");
  const answer = await fetch("engine.wasm.gz");
  if (!answer.ok) throw new Error(answer.statusText);
  return compiled(answer.body);
}
const held = $("wasm").textContent, // where the page holds the engine
  program = held
    ? inText(held)
    : fetched().catch(async () => inText(await scriptOf("engine.js", "policyAttentionEngine")));
program.catch(() => {}); // whoever starts it is told
$("wasm").textContent = "";
export const engine = Object.assign(new Program(), {
  start: () => engine.run(program),
  // cancel ends what the worker does and starts another one, which has no run.
  cancel(why) {
    engine.end(why);
    return engine.start();
  },
});

// The reader of all formats, fetched when a file needs it.
let reader = null;
const load = async () => {
  const program = new Program();
  await program.run(scriptOf("formats.js", "policyAttentionFormats").then(inText));
  return program;
};
// decodeFile reads a problem from a file of any format: {states, actions, gamma, p, r, pi0, notes}.
export async function decodeFile(name, bytes, layout = "") {
  reader ||= load().catch((e) => {
    reader = null;
    throw e;
  });
  return (await reader).call("decode", name, bytes, layout);
}
// scriptOf returns what a script beside the page hands to the function of that name: a page opened from
// a file may fetch nothing else.
export function scriptOf(file, name) {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`${file} could not be loaded; it lies beside this page.`)),
      script = document.createElement("script");
    self[name] = resolve; // called by the script, before its load event
    Object.assign(script, { src: file, onload: fail, onerror: fail });
    document.head.append(script);
  });
}
