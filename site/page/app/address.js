// The address, which holds the whole state.

const b64 = {
  write: (x) => {
    let s = "";
    for (const byte of new Uint8Array(x.buffer)) s += String.fromCharCode(byte);
    return btoa(s).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  },
  read: (t) => {
    const s = atob(t.replace(/-/g, "+").replace(/_/g, "/")),
      bytes = Uint8Array.from(s, (c) => c.charCodeAt(0));
    if (bytes.length % 8) throw new Error();
    return new Float64Array(bytes.buffer);
  },
};
function address() {
  const p = new URLSearchParams(),
    d = defaults();
  for (const key of Object.keys(SETTINGS))
    if (run.settings[key] !== d[key]) p.set(key, run.settings[key] === true ? "1" : run.settings[key]);
  if (run.settings.preset === "file") {
    const f = run.file;
    p.set("mdp", b64.write(Float64Array.from([f.gamma, ...f.p, ...f.r, ...f.pi0])));
  }
  if (run.edits.length)
    p.set(
      "edits",
      run.edits
        .map((e) =>
          [e.k, e.transition ? "p" : "r", e.s, e.a, ...(e.transition ? [e.t] : []), e.value].join(":"),
        )
        .join("~"),
    );
  if (pos.k) p.set("k", pos.k);
  if (pos.stage) p.set("stage", pos.stage);
  const also = [...shown]
    .filter((n) => n !== "decoder")
    .sort()
    .join(".");
  if (also !== "exact") p.set("show", also);
  if (view.call !== "actor" || view.station !== "tokens")
    p.set("view", [view.call, view.station, view.part, view.follow].join("/"));
  return "#" + p.toString();
}
let remembered = 0;
function remember() {
  clearTimeout(remembered);
  remembered = setTimeout(() => {
    if (run && !playing) history.replaceState(null, "", address());
  }, 250);
}
// readAddress returns the state in a hash or throws what is wrong with it.
function readAddress(hash) {
  if (hash.length > 2e5) throw new Error("The link is too long.");
  const p = new URLSearchParams(hash.replace(/^#/, "")),
    settings = defaults(),
    state = { settings, file: null, edits: [], k: 0, stage: 0, shown: ["decoder", "exact"], view: null };
  const known = new Set([...Object.keys(SETTINGS), "mdp", "edits", "k", "stage", "show", "view"]);
  for (const key of p.keys())
    if (!known.has(key)) throw new Error(`The link has an unknown entry “${key.slice(0, 40)}”.`);
  for (const key of Object.keys(SETTINGS)) if (p.has(key)) settings[key] = check(key, p.get(key));
  const whole = (text, name, max) => {
    const v = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
    if (!(v <= max)) throw new Error(`The link’s ${name} is “${text.slice(0, 40)}”.`);
    return v;
  };
  if (settings.preset === "file") {
    let x;
    try {
      x = b64.read(p.get("mdp") || "");
    } catch {
      throw new Error("The link’s MDP cannot be read.");
    }
    const { S, A } = settings;
    if (x.length !== 1 + S * A * (S + 2)) {
      const s1 = 1,
        fits = x.length === 1 + s1 * A * (s1 + 2);
      throw new Error(
        fits
          ? "The link’s MDP has one state; load it from its file."
          : "The link’s MDP has another size than S and A say.",
      );
    }
    state.file = {
      states: S,
      actions: A,
      gamma: x[0],
      p: x.slice(1, 1 + S * A * S),
      r: x.slice(1 + S * A * S, 1 + S * A * (S + 1)),
      pi0: x.slice(1 + S * A * (S + 1)),
    };
  }
  if (p.has("edits")) {
    const list = p.get("edits").split("~");
    if (list.length > 500) throw new Error("The link has more than 500 edits.");
    state.edits = list.map((text) => {
      const [k, kind, ...rest] = text.split(":"),
        transition = kind === "p";
      if (
        (kind !== "r" && kind !== "p") ||
        rest.length !== (transition ? 4 : 3) ||
        rest.at(-1).trim() === "" ||
        !Number.isFinite(Number(rest.at(-1)))
      )
        throw new Error(`The link’s edit “${text.slice(0, 40)}” cannot be read.`);
      return {
        k: whole(k, "edit’s round", settings.T),
        transition,
        s: whole(rest[0], "edit’s state", 15),
        a: whole(rest[1], "edit’s action", 15),
        t: transition ? whole(rest[2], "edit’s successor", 15) : 0,
        value: Number(rest.at(-1)),
      };
    });
  }
  if (p.has("k")) state.k = whole(p.get("k"), "round", settings.T);
  if (p.has("stage")) state.stage = whole(p.get("stage"), "stage", 3);
  if (p.has("show")) {
    state.shown = [
      "decoder",
      ...p
        .get("show")
        .split(".")
        .filter((n) => n),
    ];
    for (const n of state.shown)
      if (!Object.hasOwn(CONTROLLERS, n)) throw new Error(`The link names a controller “${n.slice(0, 40)}”.`);
  }
  if (p.has("view")) {
    const [call, station, part, follow] = p.get("view").split("/");
    if (
      !["actor", "critic"].includes(call) ||
      !STATIONS.some((s) => s[0] === station) ||
      !partsOf(station).some((x) => x[0] === part)
    )
      throw new Error("The link names a matrix that is not there.");
    state.view = { call, station, part, follow: whole(follow || "0", "query", 255) };
  }
  return state;
}
async function open(state) {
  await begin(state.settings, state.file, state.edits);
  shown = new Set(state.shown.filter((n) => n !== "learned"));
  if (state.view) Object.assign(view, state.view);
  fillSettings();
  await go(Math.min(state.k, state.settings.T), state.stage);
  if (state.shown.includes("learned")) await act(() => toggle("learned"));
}
async function openAddress(hash) {
  try {
    await open(readAddress(hash));
    return true;
  } catch (e) {
    message(
      `${e.message.replace(/[.]?$/, ".")} ${run ? "Nothing was changed." : "The page shows its usual start instead."}`,
    );
    return false;
  }
}
