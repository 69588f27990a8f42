// Matrices on canvas.

function mix(a, b, t) {
  const p = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
  const [x, y] = [p(a), p(b)];
  return x.map((v, i) => Math.round(v + (y[i] - v) * t));
}
let theme = null;
const palette = () =>
  (theme ||= Object.fromEntries(
    ["card", "ink", "soft", "line", "accent", "warm", "green", "violet", "grey", "wash"].map((n) => [
      n,
      css(n),
    ]),
  ));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  theme = null;
  render();
});

// scratch holds one pixel a cell, to be drawn larger.
const scratch = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

// Heat draws a matrix: zero is paper, positive blue, negative orange, each cell
// relative to the largest magnitude. It can be read with pointer and keyboard.
class Heat {
  constructor(canvas, { label, hover, pick } = {}) {
    Object.assign(this, { canvas, label, hover, pick, cursor: null });
    if (!hover) {
      canvas.setAttribute("role", "img");
      return;
    }
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "matrix");
    const at = (e) => {
      const box = canvas.getBoundingClientRect();
      const j = Math.floor((e.clientX - box.left - this.left) / this.w),
        i = Math.floor((e.clientY - box.top - this.top) / this.h);
      return i >= 0 && j >= 0 && i < this.rows && j < this.cols ? [i, j] : null;
    };
    canvas.addEventListener("pointermove", (e) => {
      const c = at(e);
      if (c && e.pointerType === "mouse") this.move(...c, false);
    });
    canvas.addEventListener("click", (e) => {
      const c = at(e);
      if (c) {
        this.move(...c, false);
        this.pick?.(...c);
      }
    });
    canvas.addEventListener("keydown", (e) => {
      const d = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
      const [i, j] = this.cursor || [0, 0];
      if (d)
        this.move(
          Math.max(0, Math.min(this.rows - 1, i + d[0])),
          Math.max(0, Math.min(this.cols - 1, j + d[1])),
          true,
        );
      else if (e.key === "Enter" || e.key === " ") {
        this.move(i, j, true);
        this.pick?.(i, j);
      } else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }
  move(i, j, speak) {
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
    Object.assign(
      this,
      {
        rowGroups: null,
        colGroups: null,
        mark: -1,
        rowFirst: 0,
        colFirst: 0,
        maxCell: 40,
        maxHeight: 620,
        leastHeight: 3,
        text: false,
        heads: null,
      },
      x,
    );
    if (this.cursor && (this.cursor[0] >= this.rows || this.cursor[1] >= this.cols)) this.cursor = null;
    this.canvas.setAttribute("aria-label", x.label || this.label);
    this.draw();
  }
  draw() {
    const { canvas, rows, cols, data } = this,
      colors = palette(),
      width = Math.max(40, (canvas.parentElement || canvas).clientWidth);
    if (!rows || !cols) return;
    this.left = this.rowGroups ? 74 : this.heads ? 26 : 0;
    this.top = this.colGroups ? 92 : this.heads ? 16 : 0;
    this.w = Math.min(this.maxCell, (width - this.left) / cols);
    if (this.minCell) this.w = Math.max(this.w, this.minCell);
    const least = this.heads || this.text ? 15 : this.leastHeight;
    this.h = Math.max(least, Math.min(this.w, 26, this.maxHeight / rows));
    const W = Math.ceil(this.left + this.w * cols) + 1,
      H = Math.ceil(this.top + this.h * rows) + 1,
      ratio = Math.min(3, devicePixelRatio || 1);
    const g = canvas.getContext("2d"),
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
    let top = 0;
    for (const v of data) if (Number.isFinite(v) && Math.abs(v) > top) top = Math.abs(v);
    top = this.limit = this.scale || top || 1;
    const ramp = (colors.ramp ||= [colors.accent, colors.warm].map((c) =>
      Array.from({ length: 33 }, (_, i) => mix(colors.card, c, i / 32)),
    ));
    scratch.canvas.width = cols;
    scratch.canvas.height = rows;
    const image = scratch.createImageData(cols, rows);
    for (let n = 0; n < rows * cols; n++) {
      const v = data[n],
        t = Math.min(1, Math.abs(v) / top);
      const c = ramp[v < 0 ? 1 : 0][v === 0 ? 0 : Math.max(2, Math.round(Math.sqrt(t) * 32))] || ramp[0][0];
      for (let i = 0; i < 3; i++) image.data[4 * n + i] = c[i];
      image.data[4 * n + 3] = 255;
    }
    scratch.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(scratch.canvas, this.left, this.top, this.w * cols, this.h * rows);
    g.strokeStyle = colors.line;
    g.lineWidth = 1;
    g.strokeRect(this.left + 0.5, this.top + 0.5, this.w * cols - 0.5, this.h * rows - 0.5);
    if (this.w >= 9 && this.h >= 9) {
      g.beginPath();
      for (let j = 1; j < cols; j++) {
        g.moveTo(this.left + j * this.w, this.top);
        g.lineTo(this.left + j * this.w, this.top + this.h * rows);
      }
      for (let i = 1; i < rows; i++) {
        g.moveTo(this.left, this.top + i * this.h);
        g.lineTo(this.left + this.w * cols, this.top + i * this.h);
      }
      g.stroke();
    }
    const font = (n) => (g.font = `${n}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`);
    if (this.text && this.w >= 30) {
      font(Math.min(12, this.w / 3.4));
      g.textAlign = "center";
      g.textBaseline = "middle";
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < cols; j++) {
          const v = data[i * cols + j];
          g.fillStyle = Math.sqrt(Math.abs(v) / top) > 0.6 ? colors.card : colors.ink;
          g.fillText(
            Math.abs(v) < 0.005
              ? v === 0
                ? "0"
                : "·"
              : v.toFixed(Math.abs(v) >= 10 ? 1 : 2).replace("-", "−"),
            this.left + (j + 0.5) * this.w,
            this.top + (i + 0.55) * this.h,
          );
        }
    }
    g.fillStyle = colors.soft;
    if (this.heads) {
      font(11);
      g.textBaseline = "middle";
      const every = (step) => Math.max(1, Math.ceil(14 / step));
      g.textAlign = "right";
      for (let i = 0; i < rows; i += every(this.h))
        g.fillText(this.heads[0](i), this.left - 4, this.top + (i + 0.5) * this.h);
      g.textAlign = "center";
      for (let j = 0; j < cols; j += every(this.w))
        g.fillText(this.heads[1](j), this.left + (j + 0.5) * this.w, 8);
    }
    font(11);
    if (this.rowGroups) {
      let last = -99;
      for (const r of this.rowGroups) {
        const a = this.top + Math.max(0, r.from - this.rowFirst) * this.h,
          b = this.top + Math.min(rows, r.to - this.rowFirst) * this.h;
        if (b <= a || r.to <= this.rowFirst) continue;
        g.strokeStyle = colors.soft;
        g.beginPath();
        g.moveTo(this.left - 6, a + 0.5);
        g.lineTo(this.left, a + 0.5);
        g.stroke();
        const y = Math.min(this.top + rows * this.h - 6, (a + b) / 2);
        if (y - last < 12) continue;
        last = y;
        g.textAlign = "right";
        g.textBaseline = "middle";
        g.fillText(r.name, this.left - 8, y);
      }
    }
    if (this.colGroups) {
      let last = -99;
      for (const c of this.colGroups) {
        const a = this.left + Math.max(0, c.from - this.colFirst) * this.w,
          b = this.left + Math.min(cols, c.to - this.colFirst) * this.w;
        if (b <= a || c.to <= this.colFirst) continue;
        g.strokeStyle = colors.soft;
        g.beginPath();
        g.moveTo(a + 0.5, this.top - 5);
        g.lineTo(a + 0.5, this.top);
        g.stroke();
        const x = (a + b) / 2;
        if (x - last < 12) continue;
        last = x;
        g.save();
        g.translate(x, this.top - 8);
        g.rotate(-Math.PI / 2);
        g.textAlign = "left";
        g.textBaseline = "middle";
        g.fillText(c.name, 0, 0);
        g.restore();
      }
    }
    const frame = (i, j, h, w, color) => {
      const inset = this.h < 8 ? -1 : 1; // around cells too small to hold it
      g.strokeStyle = color;
      g.lineWidth = 2;
      g.strokeRect(
        this.left + j * this.w + inset,
        this.top + i * this.h + inset,
        w * this.w - 2 * inset,
        h * this.h - 2 * inset,
      );
    };
    if (this.mark >= this.rowFirst && this.mark < this.rowFirst + rows && this.h < 8) {
      // The row is too low for a frame: a line above, one below, and an arrow head.
      const y = this.top + (this.mark - this.rowFirst) * this.h,
        x = this.left,
        wide = this.w * cols;
      g.fillStyle = colors.warm;
      g.fillRect(x, y - 2, wide, 1.5);
      g.fillRect(x, y + this.h + 0.5, wide, 1.5);
      g.beginPath();
      g.moveTo(x - 2, y + this.h / 2);
      g.lineTo(x - 10, y + this.h / 2 - 5);
      g.lineTo(x - 10, y + this.h / 2 + 5);
      g.fill();
    } else if (this.mark >= this.rowFirst && this.mark < this.rowFirst + rows)
      frame(this.mark - this.rowFirst, 0, 1, cols, colors.warm);
    if (this.cursor) frame(this.cursor[0], this.cursor[1], 1, 1, colors.ink);
  }
}
