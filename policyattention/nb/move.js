function (id, data) {
  const script = document.currentScript, before = script && script.previousElementSibling
  const root = before && before.id === id ? before : document.getElementById(id)
  const make = (name, attributes, parent) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name)
    for (const k in attributes) e.setAttribute(k, attributes[k])
    if (parent) parent.appendChild(e)
    return e
  }
  const W = 940, H = 400, names = data.frames.flatMap(f => f.series.map(s => s.name.length))
  const box = {left: 84, right: W - 24 - 9.2 * Math.max(...names), top: 34, bottom: H - 52}
  const scale = (lo, hi, log, from, to) => {
    const f = log ? Math.log10 : x => x
    let a = f(lo), b = f(hi)
    if (a === b) { a -= .5; b += .5 }
    return x => from + (to - from) * (f(x) - a) / (b - a)
  }
  const [x0, x1, y0, y1] = data.range
  const px = scale(x0, x1, data.logX, box.left, box.right), py = scale(y0, y1, data.logY, box.bottom, box.top)
  const ticks = (lo, hi, log) => {
    if (log) {
      const first = Math.ceil(Math.log10(lo) - 1e-9), last = Math.floor(Math.log10(hi) + 1e-9)
      const step = Math.max(1, Math.ceil((last - first) / 6)), t = []
      for (let e = first; e <= last; e += step) t.push(+("1e" + e))
      if (t.length > 1) return t
    }
    const raw = (hi - lo || 1) / 5, unit = 10 ** Math.floor(Math.log10(raw))
    const step = [1, 2, 5, 10].map(k => k * unit).find(k => k >= raw), t = []
    for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + 1e-9 * step; k++) t.push(+(k * step).toPrecision(12))
    return t
  }
  const dark = colour => "#" + [1, 3, 5].map(i => Math.floor(.55 * parseInt(colour.slice(i, i + 2), 16)).toString(16).padStart(2, "0")).join("")
  const short = x => x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6) ? x.toExponential().replace("e+", "e") : String(x)
  const text = (x, y, value, attributes, parent) => {
    make("text", {x, y, "font-family": "Liberation Sans, Arial, Helvetica, sans-serif", "font-size": 17, fill: "#111", ...attributes}, parent).textContent = value
  }
  const draw = (svg, frame) => {
    svg.replaceChildren()
    make("rect", {width: W, height: H, fill: "#fff"}, svg)
    text((box.left + box.right) / 2, 20, frame.title, {"text-anchor": "middle", "font-size": 18}, svg)
    text((box.left + box.right) / 2, H - 8, data.x, {"text-anchor": "middle"}, svg)
    text(0, 0, data.y, {"text-anchor": "middle", transform: `translate(16 ${(box.top + box.bottom) / 2}) rotate(-90)`}, svg)
    for (const t of ticks(y0, y1, data.logY)) {
      make("line", {x1: box.left, x2: box.right, y1: py(t), y2: py(t), stroke: "#e0e0e0"}, svg)
      text(box.left - 8, py(t) + 5, short(t), {"text-anchor": "end"}, svg)
    }
    for (const t of ticks(x0, x1, data.logX)) {
      make("line", {x1: px(t), x2: px(t), y1: box.bottom, y2: box.bottom + 6, stroke: "#111"}, svg)
      text(px(t), box.bottom + 24, short(t), {"text-anchor": "middle"}, svg)
    }
    make("path", {d: `M${box.left},${box.top}V${box.bottom}H${box.right}`, fill: "none", stroke: "#111"}, svg)
    const ends = []
    frame.series.forEach((s, i) => {
      const colour = data.colours[i % data.colours.length], dash = s.dashed ? [4, 3] : data.dashes[i % data.dashes.length]
      const at = (s.x || []).map((x, j) => [px(x), py(s.y[j])])
      if (s.dots) for (const [cx, cy] of at) make("circle", {cx, cy, r: 4.5, fill: colour}, svg)
      else make("polyline", {points: at.map(p => p.map(v => v.toFixed(1)).join()).join(" "), fill: "none", stroke: colour, "stroke-width": 2.2, "stroke-dasharray": (dash || []).map(d => 1.3 * d).join(" ")}, svg)
      if (at.length && s.name) ends.push({y: at.reduce((a, b) => b[0] >= a[0] ? b : a)[1], colour, name: s.name})
    })
    ends.sort((a, b) => b.y - a.y)
    ends.forEach((e, i) => { if (i) e.y = Math.min(e.y, ends[i - 1].y - 20) })
    for (let i = ends.length - 1, ceiling = box.top; i >= 0; i--) { ends[i].y = Math.max(ends[i].y, ceiling); ceiling = ends[i].y + 20 }
    for (const e of ends) text(box.right + 10, e.y + 5, e.name, {fill: dark(e.colour)}, svg)
  }
  const svg = make("svg", {viewBox: `0 0 ${W} ${H}`, width: W, style: "max-width:100%;height:auto", role: "img"})
  const notes = document.createElement("div"), set = data.sliders.map(s => s.start), panel = document.createElement("div")
  const update = () => {
    const frame = data.frames[set.reduce((n, k, i) => n * data.sliders[i].values.length + k, 0)]
    draw(svg, frame)
    svg.setAttribute("aria-label", [frame.title, ...data.sliders.map((s, i) => s.name + " = " + s.values[set[i]])].join(", "))
    notes.replaceChildren(...(frame.notes || []).map(n => { const p = document.createElement("p"); p.textContent = n.replaceAll("`", ""); return p }))
  }
  data.sliders.forEach((s, i) => {
    const label = document.createElement("label"), input = document.createElement("input"), value = document.createElement("output")
    label.style.cssText = "display:inline-flex;align-items:center;gap:.6em;margin:.3em 2em .3em 0"
    Object.assign(input, {type: "range", min: 0, max: s.values.length - 1, step: 1, value: s.start})
    input.style.width = "20em"
    // JupyterLab takes no keys for itself from here but Enter, with which a cell is run.
    addEventListener("keydown", e => {
      if (e.target === input) input.toggleAttribute("data-lm-suppress-shortcuts", e.key !== "Enter")
    }, true)
    value.style.minWidth = "4em"
    const say = () => { value.textContent = short(s.values[set[i]]); input.setAttribute("aria-valuetext", s.name + " = " + short(s.values[set[i]])) }
    input.oninput = () => { set[i] = +input.value; say(); update() }
    say()
    label.append(s.name, input, value)
    panel.append(label)
  })
  root.replaceChildren(svg, panel, notes)
  update()
}
