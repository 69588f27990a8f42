// Matrices on canvas: zero is paper, positive blue, negative orange.

import { mix, palette, pt, textOn } from "./base.js";
import { apart } from "./scales.js";

// scratch holds one pixel a cell, to be drawn larger.
const scratch = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const DEFAULTS = {
  rowGroups: null, // [{name, from, to}] beside the rows
  colGroups: null, // above the columns
  heads: null, // [name of row i, name of column j]
  titles: null, // what the rows are, what the columns are
  colour: null, // data that colours the cells in place of data itself
  marks: null, // Set of edited cells
  mark: -1, // row that is followed
  rowFirst: 0,
  colFirst: 0,
  maxCell: 40,
  minCell: 0,
  maxHeight: 620,
  leastHeight: 3,
  text: false,
};

// Heat draws a matrix, each cell relative to the scale. It can be read with
// pointer and keyboard.
export class Heat {
  cursor = null; // [row, column]
  left = 0; // where cells begin, and how large they are
  top = 0;
  w = 0;
  h = 0;
  size = "";
  limit = 1; // the value of full colour
  // What set gives, DEFAULTS among it.
  rows = 0;
  cols = 0;
  data; scale; rowGroups; colGroups; heads; titles; colour; marks; mark; rowFirst; colFirst; maxCell; minCell;
  maxHeight; leastHeight; text;
  canvas; label; hover; pick;
  /** @param {{ label?: string, hover?: Function, pick?: Function }} options */
  constructor(canvas, options) {
    const { hover } = options;
    Object.assign(this, { canvas, ...options });
    if (!hover) {
      canvas.setAttribute("role", "img");
      return;
    }
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "matrix");
    canvas.addEventListener("pointermove", (e) => {
      const c = this.at(e);
      if (c && e.pointerType === "mouse") this.move(...c, false);
    });
    canvas.addEventListener("click", (e) => {
      const c = this.at(e);
      if (!c) return;
      this.move(...c, false);
      this.pick?.(...c);
    });
    canvas.addEventListener("keydown", (e) => this.key(e));
  }
  at(e) {
    const box = this.canvas.getBoundingClientRect(),
      j = Math.floor((e.clientX - box.left - this.left) / this.w),
      i = Math.floor((e.clientY - box.top - this.top) / this.h);
    return i >= 0 && j >= 0 && i < this.rows && j < this.cols ? [i, j] : null;
  }
  key(e) {
    const d = STEPS[e.key],
      [i, j] = this.cursor || [0, 0],
      within = (x, n) => Math.max(0, Math.min(n - 1, x));
    if (!this.rows || e.shiftKey || e.ctrlKey || e.metaKey || e.altKey) return;
    if (d) this.move(within(i + d[0], this.rows), within(j + d[1], this.cols), true);
    else if (e.key === "Enter") {
      this.move(i, j, true);
      this.pick?.(i, j);
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }
  move(i, j, speak) {
    if (!this.rows) return; // nothing is drawn yet
    if (this.cursor && this.cursor[0] === i && this.cursor[1] === j) return;
    this.cursor = [i, j];
    this.draw();
    if (speak) this.reveal(i, j);
    this.hover(i, j, speak);
  }
  // reveal scrolls the box around the canvas to a cell.
  reveal(i, j) {
    const box = this.canvas.parentElement,
      x = this.left + j * this.w,
      y = this.top + i * this.h;
    box.scrollTop = Math.max(y + 2 * this.h - box.clientHeight, Math.min(box.scrollTop, y - this.h));
    box.scrollLeft = Math.max(x + 2 * this.w - box.clientWidth, Math.min(box.scrollLeft, x - this.w));
  }
  set(x) {
    Object.assign(this, DEFAULTS, x);
    if (this.cursor && (this.cursor[0] >= this.rows || this.cursor[1] >= this.cols)) this.cursor = null;
    this.canvas.setAttribute("aria-label", x.label || this.label);
    this.draw();
  }
  draw() {
    if (!this.rows || !this.cols) return;
    const g = this.canvas.getContext("2d");
    this.layout(g);
    this.paint(g);
    this.lattice(g);
    if (this.text) this.numbers(g);
    if (this.heads) this.drawHeads(g);
    if (this.rowGroups) this.rowLabels(g);
    if (this.colGroups) this.colLabels(g);
    this.drawMarks(g);
    this.drawMark(g);
    if (this.cursor) this.frame(g, ...this.cursor, 1, 1, palette().ink);
  }
  layout(g) {
    const { canvas, rows, cols } = this,
      width = Math.max(40, (canvas.parentElement || canvas).clientWidth),
      title = this.titles ? 15 : 0;
    this.left = this.rowGroups ? 74 : this.heads ? 26 + title : 0;
    this.top = this.colGroups ? 108 : this.heads ? 16 + title : 0;
    this.w = Math.max(this.minCell, Math.min(this.maxCell, (width - this.left - 1) / cols));
    const least = this.heads || this.text ? 15 : this.leastHeight;
    this.h = Math.max(least, Math.min(this.w, 26, this.maxHeight / rows));
    const W = Math.ceil(this.left + this.w * cols) + 1,
      H = Math.ceil(this.top + this.h * rows) + 1,
      ratio = Math.min(3, devicePixelRatio || 1),
      size = [W, H, ratio].join();
    if (this.size !== size) {
      // Only when it changes: a new size costs a new canvas and a new layout.
      this.size = size;
      canvas.width = W * ratio;
      canvas.height = H * ratio;
      canvas.style.width = W + "px";
      canvas.style.height = H + "px";
    }
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, W, H);
  }
  // rgb is the colour of cell n.
  rgb(n) {
    const colours = palette(),
      ramp = (colours.ramp ||= [colours.accent, colours.warm].map((c) =>
        Array.from({ length: 33 }, (_, i) => mix(colours.card, c, i / 32)),
      )),
      v = (this.colour || this.data)[n],
      t = Math.min(1, Math.abs(v) / this.limit);
    return ramp[v < 0 ? 1 : 0][v === 0 ? 0 : Math.max(2, Math.round(Math.sqrt(t) * 32))] || ramp[0][0];
  }
  paint(g) {
    const { rows, cols } = this;
    let top = 0;
    for (const v of this.colour || this.data) if (Number.isFinite(v) && Math.abs(v) > top) top = Math.abs(v);
    this.limit = this.scale || top || 1;
    scratch.canvas.width = cols;
    scratch.canvas.height = rows;
    const image = scratch.createImageData(cols, rows);
    for (let n = 0; n < rows * cols; n++) {
      const c = this.rgb(n);
      for (let i = 0; i < 3; i++) image.data[4 * n + i] = c[i];
      image.data[4 * n + 3] = 255;
    }
    scratch.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(scratch.canvas, this.left, this.top, this.w * cols, this.h * rows);
  }
  lattice(g) {
    const { left, top, w, h, rows, cols } = this;
    g.strokeStyle = palette().line;
    g.lineWidth = 1;
    g.strokeRect(left + 0.5, top + 0.5, w * cols - 0.5, h * rows - 0.5);
    if (w < 9 || h < 9) return;
    g.beginPath();
    for (let j = 1; j < cols; j++) {
      g.moveTo(left + j * w, top);
      g.lineTo(left + j * w, top + h * rows);
    }
    for (let i = 1; i < rows; i++) {
      g.moveTo(left, top + i * h);
      g.lineTo(left + w * cols, top + i * h);
    }
    g.stroke();
  }
  numbers(g) {
    const { left, top, w, h, rows, cols, data } = this;
    if (w < 34) return;
    font(g, Math.min(12, Math.max(11, w / 3.4)));
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (let i = 0; i < rows; i++)
      for (let j = 0; j < cols; j++) {
        g.fillStyle = textOn(this.rgb(i * cols + j));
        g.fillText(short(data[i * cols + j]), left + (j + 0.5) * w, top + (i + 0.55) * h);
      }
  }
  drawHeads(g) {
    const { left, top, w, h, rows, cols } = this,
      every = (step) => Math.max(1, Math.ceil(14 / step));
    font(g, 11);
    g.fillStyle = palette().soft;
    g.textBaseline = "middle";
    g.textAlign = "right";
    for (let i = 0; i < rows; i += every(h)) g.fillText(this.heads[0](i), left - 4, top + (i + 0.5) * h);
    g.textAlign = "center";
    for (let j = 0; j < cols; j += every(w)) g.fillText(this.heads[1](j), left + (j + 0.5) * w, top - 8);
    if (!this.titles) return;
    g.textAlign = "left";
    g.fillText(this.titles[1], left, 8);
    g.save();
    g.translate(8, top);
    g.rotate(-Math.PI / 2);
    g.textAlign = "right";
    g.fillText(this.titles[0], 0, 0);
    g.restore();
  }
  rowLabels(g) {
    font(g, 11);
    g.fillStyle = g.strokeStyle = palette().soft;
    g.textAlign = "right";
    g.textBaseline = "middle";
    let last = -99;
    for (const r of this.rowGroups) {
      const a = this.top + Math.max(0, r.from - this.rowFirst) * this.h,
        b = this.top + Math.min(this.rows, r.to - this.rowFirst) * this.h;
      if (b <= a || r.to <= this.rowFirst) continue;
      line(g, this.left - 6, a + 0.5, this.left, a + 0.5);
      const y = Math.min(this.top + this.rows * this.h - 6, (a + b) / 2);
      if (y - last < 12) continue;
      last = y;
      g.fillText(r.name, this.left - 8, y);
    }
  }
  // colLabels names every group of columns: where they lie closer than text is
  // high, labels move apart and lines lead to their columns.
  colLabels(g) {
    const spans = [];
    for (const c of this.colGroups) {
      const a = Math.max(0, c.from - this.colFirst),
        b = Math.min(this.cols, c.to - this.colFirst);
      if (b > a && c.to > this.colFirst)
        spans.push({ name: c.name, a: this.left + a * this.w, x: this.left + ((a + b) / 2) * this.w });
    }
    const places = apart(
      spans.map((s) => s.x),
      13,
      this.left + this.cols * this.w - 7,
    );
    font(g, 11);
    g.fillStyle = g.strokeStyle = palette().soft;
    g.textAlign = "left";
    g.textBaseline = "middle";
    spans.forEach((s, i) => {
      line(g, s.a + 0.5, this.top - 4, s.a + 0.5, this.top);
      if (places[i] === null) return;
      line(g, s.x, this.top - 3, places[i], this.top - 14);
      g.save();
      g.translate(places[i], this.top - 17);
      g.rotate(-Math.PI / 2);
      g.fillText(s.name, 0, 0);
      g.restore();
    });
  }
  frame(g, i, j, h, w, colour) {
    const inset = this.h < 8 ? -1 : 1; // around cells too small to hold it
    g.strokeStyle = colour;
    g.lineWidth = 2;
    g.strokeRect(
      this.left + j * this.w + inset,
      this.top + i * this.h + inset,
      w * this.w - 2 * inset,
      h * this.h - 2 * inset,
    );
  }
  // drawMarks puts a dot into each edited cell.
  drawMarks(g) {
    if (!this.marks) return;
    g.fillStyle = palette().warm;
    g.strokeStyle = palette().card;
    for (const n of this.marks) {
      const i = Math.floor(n / this.cols),
        j = n % this.cols;
      g.beginPath();
      g.arc(
        this.left + (j + 1) * this.w - Math.min(5, this.w / 3),
        this.top + i * this.h + Math.min(5, this.h / 3),
        Math.min(3.5, this.w / 3),
        0,
        7,
      );
      g.fill();
      g.stroke();
    }
  }
  drawMark(g) {
    const i = this.mark - this.rowFirst,
      { left, w, h, cols } = this;
    if (this.mark < this.rowFirst || i >= this.rows) return;
    const warm = palette().warm;
    if (h >= 8) return this.frame(g, i, 0, 1, cols, warm);
    // The row is too low for a frame: a line above, one below, and an arrow head.
    const y = this.top + i * h;
    g.fillStyle = warm;
    g.fillRect(left, y - 2, w * cols, 1.5);
    g.fillRect(left, y + h + 0.5, w * cols, 1.5);
    g.beginPath();
    g.moveTo(left - 2, y + h / 2);
    g.lineTo(left - 10, y + h / 2 - 5);
    g.lineTo(left - 10, y + h / 2 + 5);
    g.fill();
  }
}
const font = (g, n) => (g.font = `${pt(n)}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`);
function line(g, x1, y1, x2, y2) {
  g.beginPath();
  g.moveTo(x1, y1);
  g.lineTo(x2, y2);
  g.stroke();
}
// short writes a number into a cell.
function short(v) {
  if (Math.abs(v) < 0.005) return v === 0 ? "0" : "·";
  return v.toFixed(Math.abs(v) >= 10 ? 1 : 2).replace("-", "−");
}
