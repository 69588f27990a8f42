// The worker: Go's runtime support (wasm_exec.js) comes before this text. It is
// sent the program once, a compiled module, then calls {id, op, args}, and answers
// each with {id, value} or {id, error}.

let memory = null; // of the program
self.onmessage = async ({ data }) => {
  if (data.module) {
    try {
      const go = new Go();
      const instance = await WebAssembly.instantiate(/** @type {WebAssembly.Module} */ (data.module), go.importObject);
      memory = instance.exports.mem;
      go.run(instance).then(() => self.postMessage({ stopped: true }));
      self.postMessage({ ready: true });
    } catch (e) {
      self.postMessage({ stopped: true, error: String(e) });
    }
    return;
  }
  const { id, op, args } = data;
  const start = performance.now();
  let value;
  try {
    value = engine[op](...args);
  } catch (e) {
    value = { error: String(e) };
  }
  const used = { ms: performance.now() - start, bytes: memory.buffer.byteLength };
  self.postMessage(value && value.error ? { id, ...used, error: value.error } : { id, ...used, value });
};
