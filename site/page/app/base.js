// Small things that every view uses: elements, colours, messages, and numbers as text.

export * from "./words.js";

/** @type {(id: string) => any} */
export const $ = (id) => document.getElementById(id);
/** all lists the elements of a selector. @type {(selector: string) => any[]} */
export const all = (selector) => [...document.querySelectorAll(selector)];
/** around returns the element of a selector that an event happened in, if any. @type {(e: any, selector: string) => any} */
export const around = (e, selector) => e.target.closest?.(selector);
const SVG_TAGS = new Set(["svg", "g", "path", "line", "rect", "text", "circle", "title", "tspan", "polygon", "use"]);

/** el builds an element; children are nodes or text, never markup.
 * @returns {any} */
export function el(tag, attributes = {}, ...children) {
  const space = SVG_TAGS.has(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const node = document.createElementNS(space, tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (v !== false && v != null) node.setAttribute(k, v === true ? "" : v);
  }
  node.append(...children.flat(2).filter((x) => x !== null && x !== false && x !== undefined));
  return node;
}

// bytesOf reads base64.
export const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// pt is a size in pictures, in pixels where text has its usual 14: on a large screen both grow.
let unit = 1;
const measure = () => (unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 14);
measure();
addEventListener("resize", measure);
export const pt = (n) => n * unit;

const css = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();
const COLOURS = ["paper", "card", "ink", "soft", "line", "accent", "warm", "green", "violet", "grey", "wash"];
let theme = null;
// palette returns the colours of the scheme that is in use.
export const palette = () => (theme ||= Object.fromEntries(COLOURS.map((n) => [n, css(n)])));
// forgetColours is for when another scheme is in use.
export const forgetColours = () => {
  theme = null;
};

const parts = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
// mix returns the colour [r, g, b] a share t of the way from a to b.
export function mix(a, b, t) {
  const [x, y] = [parts(a), parts(b)];
  return x.map((v, i) => Math.round(v + (y[i] - v) * t));
}
// shade colours a value in −1…1: orange below zero, blue above, nothing at zero.
export const shade = (t, colours = palette()) =>
  mix(colours.card, t < 0 ? colours.warm : colours.accent, Math.min(1, Math.abs(t)));

const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
// textOn returns black or white, whichever reads better; its contrast is at least 4.5.
export const textOn = (rgb) => (luminance(rgb) > 0.179 ? "#000000" : "#ffffff");

export const stillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

let timer = 0;
// message shows a text. An error stays until something succeeds, a notice for a while.
export function message(text, kind = "error") {
  const box = $("message");
  $("message-text").textContent = text;
  box.hidden = !text;
  box.dataset.kind = kind;
  clearTimeout(timer);
  if (text && kind === "notice") timer = setTimeout(() => message(""), 12000);
}
export let acting = 0; // acts that go on
// act runs what a visitor asked for and shows what went wrong; success takes an
// error of before away.
export async function act(f) {
  acting++;
  try {
    const before = $("message-text").textContent,
      value = await f();
    if ($("message").dataset.kind === "error" && $("message-text").textContent === before) message("");
    return value;
  } catch (e) {
    message(e.message);
  } finally {
    acting--;
  }
}
