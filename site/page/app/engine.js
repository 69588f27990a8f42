// The worker and calls to it.

const engine = {
  pending: new Map(),
  next: 0,
  compute: 0,
  async start() {
    const text = $("wasm").textContent,
      bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i); // the low byte, see build.go
    $("wasm").textContent = "";
    const url = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
    this.worker = new Worker(url);
    await new Promise((resolve, reject) => {
      this.worker.onerror = (e) => reject(new Error(e.message || "the worker did not start"));
      this.worker.onmessage = ({ data }) => {
        if (data.ready) resolve();
        else if (data.stopped) {
          reject(new Error(data.error));
          this.fail("the engine has stopped; reload the page");
        } else {
          const call = this.pending.get(data.id);
          this.pending.delete(data.id);
          this.compute += data.ms;
          if (data.error) call.reject(new Error(data.error));
          else call.resolve(data.value);
        }
      };
      this.worker.postMessage({ wasm: bytes.buffer }, [bytes.buffer]);
    });
    URL.revokeObjectURL(url);
  },
  fail(why) {
    message(why);
    for (const call of this.pending.values()) call.reject(new Error(why));
    this.pending.clear();
  },
  call(op, ...args) {
    return new Promise((resolve, reject) => {
      this.pending.set(++this.next, { resolve, reject });
      this.worker.postMessage({ id: this.next, op, args });
    });
  },
};
