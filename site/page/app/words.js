// Numbers as text, and nothing that needs a page.

export const sub = (n) => String(n).replace(/\d/g, (d) => "₀₁₂₃₄₅₆₇₈₉"[d]);
export const sup = (n) => String(n).replace(/[-\d]/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(d)]);
export const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// show writes a number the way a person reads it.
export function show(x, digits = 4) {
  if (x === undefined || x === null) return "–";
  if (x === Infinity) return "∞";
  if (x === -Infinity) return "−∞";
  if (Number.isNaN(x)) return "not a number";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e-3 && size < 1e5) return String(Number(x.toPrecision(digits))).replace("-", "−");
  const [m, e] = x.toExponential(Math.max(0, digits - 2)).split("e");
  return (m + "·10" + sup(e.replace("+", ""))).replace(/^-/, "−");
}
// atMost writes a bound: to few digits it is rounded up, so that it stays one.
export function atMost(x, digits = 4) {
  if (!Number.isFinite(x) || x <= 0) return show(x, digits);
  const kept = x >= 1e-3 && x < 1e5 ? digits : Math.max(1, digits - 1),
    short = Number(x.toPrecision(kept));
  if (Math.abs(short - x) <= 4e-16 * x) return show(short, digits); // but for its last bit it is short
  return show(short >= x ? short : short + 10 ** (Math.floor(Math.log10(short)) + 1 - kept), digits);
}
// percent writes a share.
export function percent(x, digits = 3) {
  return show(100 * x, digits) + " %";
}
