"use strict";
// The page: state, drawing and files. Every number comes from the worker. The files of this
// folder are one script, put together by site/build.go in the order given there, because
// a page opened from a file may not load modules.

const $ = (id) => document.getElementById(id);
const css = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();
const sub = (n) => String(n).replace(/\d/g, (d) => "₀₁₂₃₄₅₆₇₈₉"[d]);

// el builds an element; children are nodes or text, never markup.
function el(tag, attributes = {}, ...children) {
  const node = document.createElementNS(
    SVG_TAGS.has(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml",
    tag,
  );
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (v !== false && v != null) node.setAttribute(k, v === true ? "" : v);
  }
  node.append(...children.flat());
  return node;
}
const SVG_TAGS = new Set(["svg", "g", "path", "line", "rect", "text", "circle", "title"]);

// show writes a number the way a person reads it.
function show(x, digits = 4) {
  if (x === undefined || x === null) return "–";
  if (x === Infinity) return "∞";
  if (Number.isNaN(x)) return "not a number";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e-3 && size < 1e5) return String(Number(x.toPrecision(digits))).replace("-", "−");
  const [m, e] = x.toExponential(digits - 2).split("e");
  return (
    m +
    "·10" +
    e.replace("+", "").replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(c)])
  ).replace(/^-/, "−");
}

let messageTimer;
function message(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
  clearTimeout(messageTimer);
  if (text) messageTimer = setTimeout(() => message(""), 12000);
}
