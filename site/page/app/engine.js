// The worker that runs the engine, a program of WebAssembly, and calls to it.

import { $, bytesOf, message } from "./base.js";

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
// scriptOf returns what a script beside the page hands to the function of that name: a page opened from
// a file may fetch nothing else.
export function scriptOf(file, name) {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`${file} could not be loaded; it lies beside this page.`)),
      script = document.createElement("script");
    Object.assign(self, { [name]: resolve }); // called by the script, before its load event
    Object.assign(script, { src: file, onload: fail, onerror: fail });
    document.head.append(script);
  });
}

class Engine {
  compute = 0; // milliseconds in the worker
  bytes = 0; // of the program's memory
  #pending = new Map();
  #worker = null;
  #next = 0;
  #ready = null;
  #program; // a promise of the compiled module
  constructor(program) {
    this.#program = program;
    program.catch(() => {}); // whoever starts it is told
  }
  // start hands the program, once it is there, to a new worker.
  start() {
    return (this.#ready = this.#begin());
  }
  // cancel ends what the worker does and starts another one, which has no run.
  cancel(why) {
    this.#worker.terminate();
    this.#fail(Object.assign(new Error(why), { cancelled: true }));
    return this.start();
  }
  // exchange goes on with another program as soon as nothing is being computed, and calls restore with a
  // function that calls it before all who wait.
  async exchange(program, restore) {
    await program;
    this.#program = program;
    await (this.#ready = (async () => {
      while (this.#pending.size) await new Promise((r) => setTimeout(r, 5));
      this.#worker.terminate();
      await this.#begin();
      await restore((op, ...args) => this.#send(op, args));
    })());
  }
  async call(op, ...args) {
    await this.#ready;
    return this.#send(op, args);
  }
  #send(op, args) {
    return new Promise((resolve, reject) => {
      this.#pending.set(++this.#next, { resolve, reject });
      this.#worker.postMessage({ id: this.#next, op, args });
    });
  }
  async #begin() {
    const module = await this.#program,
      url = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" })),
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
  #settle(data) {
    const call = this.#pending.get(data.id);
    this.#pending.delete(data.id);
    this.compute += data.ms;
    this.bytes = data.bytes;
    if (data.error) call.reject(new Error(data.error));
    else call.resolve(data.value);
  }
  #fail(error) {
    for (const call of this.#pending.values()) call.reject(error);
    this.#pending.clear();
  }
}

const held = $("wasm").textContent, // where the page holds a program: the full one
  taker = (file, name) => scriptOf(file, name).then(inText);
$("wasm").textContent = "";
export const engine = new Engine(
  held ? inText(held) : fetched().catch(() => taker("engine.js", "policyAttentionEngine")),
);
// full brings the engine that reads files of all formats and runs the trained network, once. restore gives
// it the run of the one before.
let full = held ? Promise.resolve() : null;
export const fullEngine = (restore) =>
  (full ||= engine.exchange(taker("full.js", "policyAttentionFull"), restore).catch((e) => {
    full = null;
    throw e;
  }));
