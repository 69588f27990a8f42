// Scales and places, and nothing that needs a page.

// A scale turns a place from 0 to 1 into a value with to, and back with from.
export const linear = (low, high) => ({ to: (t) => low + (high - low) * t, from: (v) => (v - low) / (high - low) });
// The ends of a logarithmic scale may move, so they are functions.
export const logarithmic = (low, high) => ({
  to: (t) => low() * (high() / low()) ** t,
  from: (v) => Math.log(Math.max(low(), v) / low()) / Math.log(high() / low()),
});
// horizon is a scale of γ: equal steps are equal factors of 1/(1−γ).
export const horizon = { to: (t) => 1 - 1 / 1000 ** t, from: (v) => -Math.log(1 - v) / Math.log(1000) };

// shrunk returns 1 − ρ for a token of squared length x2 (equation 28), without cancellation.
export function shrunk(x2, H) {
  const score = x2 / (H * H + x2);
  return score / (1 + Math.sqrt(1 - score));
}

// apart moves places, which ascend, at least gap from each other and left of end;
// a place for which there is no room is null.
export function apart(x, gap, end) {
  const places = [...x];
  for (let i = 1; i < places.length; i++) places[i] = Math.max(places[i], places[i - 1] + gap);
  let most = end;
  for (let i = places.length - 1; i >= 0; i--) {
    places[i] = Math.min(places[i], most);
    most = places[i] - gap;
  }
  const least = x.length ? Math.min(x[0], end - gap) : 0;
  let last = -Infinity;
  return places.map((p) => {
    if (p < least - gap || p - last < gap - 0.01) return null;
    last = p;
    return p;
  });
}
