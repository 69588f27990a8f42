// A problem as text in a link: its numbers as decimals or as the bytes of
// float64, deflated, whichever is shorter.

const base64 = {
  write(bytes) {
    let s = "";
    for (const byte of bytes) s += String.fromCharCode(byte);
    return btoa(s).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  },
  read: (t) => Uint8Array.from(atob(t.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0)),
};
// through runs bytes through a stream, and gives up where more than most come out.
async function through(bytes, stream, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(),
    parts = [];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    parts.push(value);
    if ((size += value.length) > most) {
      await reader.cancel();
      throw new Error();
    }
  }
}
const deflate = (bytes) => through(bytes, new CompressionStream("deflate-raw"), Infinity);
const inflate = (bytes, most) => through(bytes, new DecompressionStream("deflate-raw"), most);

// transpose gathers bytes of equal weight, which are alike from number to number.
function transpose(bytes, rows, cols) {
  const out = new Uint8Array(bytes.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < cols; j++) out[j * rows + i] = bytes[i * cols + j];
  return out;
}
const numbersOf = (f) => Float64Array.from([f.gamma, ...f.p, ...f.r, ...f.pi0]);

// The first letter says how: "d" decimals, "b" bytes.
let last = { file: null, text: "" };
export async function packProblem(file) {
  if (last.file === file) return last.text;
  const x = numbersOf(file),
    decimals = await deflate(new TextEncoder().encode(Array.from(x).join(","))),
    bytes = await deflate(transpose(new Uint8Array(x.buffer), x.length, 8)),
    text = decimals.length < bytes.length ? "d" + base64.write(decimals) : "b" + base64.write(bytes);
  last = { file, text };
  return text;
}
// numbersIn reads what packProblem wrote, and links of before it: plain float64.
async function numbersIn(text, count) {
  if (/^[db]/.test(text)) {
    try {
      const raw = await inflate(base64.read(text.slice(1)), 32 * count);
      const x =
        text[0] === "d"
          ? Float64Array.from(new TextDecoder().decode(raw).split(","), Number)
          : new Float64Array(transpose(raw, 8, raw.length / 8).buffer);
      if (x.length === count) return x;
    } catch {
      // not packed, then
    }
  }
  const bytes = base64.read(text);
  if (bytes.length % 8) throw new Error();
  return new Float64Array(bytes.buffer);
}
// unpackProblem returns the problem of a link of S states and A actions.
export async function unpackProblem(text, { S, A }) {
  const count = 1 + S * A * (S + 2);
  let x;
  try {
    x = await numbersIn(text, count);
  } catch {
    throw new Error("The link’s MDP cannot be read.");
  }
  if (x.length !== count) throw new Error("The size of the link’s MDP does not match S and A.");
  return {
    states: S,
    actions: A,
    gamma: x[0],
    p: x.slice(1, 1 + S * A * S),
    r: x.slice(1 + S * A * S, 1 + S * A * (S + 1)),
    pi0: x.slice(1 + S * A * (S + 1)),
  };
}

// Pins in a link: labels and losses in single precision, parted by dots.
const MOST_PINS = 4;
export const packPins = (pins) =>
  pins
    .map((x) => [
      base64.write(new TextEncoder().encode(x.label)),
      base64.write(new Uint8Array(Float32Array.from(x.values).buffer)),
    ])
    .flat()
    .join(".");
export function unpackPins(text) {
  const parts = text.split(".");
  try {
    if (parts.length % 2 || parts.length > 2 * MOST_PINS) throw new Error();
    return Array.from({ length: parts.length / 2 }, (_, i) => ({
      label: new TextDecoder().decode(base64.read(parts[2 * i])).slice(0, 80),
      values: Array.from(new Float32Array(base64.read(parts[2 * i + 1]).buffer)),
    }));
  } catch {
    throw new Error("The link’s pinned runs cannot be read.");
  }
}
