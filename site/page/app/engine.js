// The worker and calls to it.

import { $, bytesOf, message } from "./base.js";

const pending = new Map();
let worker = null,
  wasm = null, // its bytes, for another worker
  next = 0;

export const engine = {
  compute: 0, // milliseconds in the worker
  // start hands the engine in the page to a new worker.
  async start() {
    if (!wasm) {
      wasm = bytesOf($("wasm").textContent);
      $("wasm").textContent = "";
    }
    const url = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
    worker = new Worker(url);
    await new Promise((resolve, reject) => {
      worker.onerror = (e) => reject(new Error(e.message || "the worker did not start"));
      worker.onmessage = ({ data }) => {
        if (data.ready) return resolve();
        if (!data.stopped) return settle(data);
        reject(new Error(data.error));
        fail("the engine has stopped; reload the page");
      };
      worker.postMessage({ wasm });
    });
    URL.revokeObjectURL(url);
  },
  // cancel ends what the worker does, at once, and starts another one, which has no run.
  async cancel(why) {
    worker.terminate();
    for (const call of pending.values()) call.reject(Object.assign(new Error(why), { cancelled: true }));
    pending.clear();
    await engine.start();
  },
  call(op, ...args) {
    return new Promise((resolve, reject) => {
      pending.set(++next, { resolve, reject });
      worker.postMessage({ id: next, op, args });
    });
  },
};
function settle(data) {
  const call = pending.get(data.id);
  pending.delete(data.id);
  engine.compute += data.ms;
  if (data.error) call.reject(new Error(data.error));
  else call.resolve(data.value);
}
function fail(why) {
  message(why);
  for (const call of pending.values()) call.reject(new Error(why));
  pending.clear();
}
