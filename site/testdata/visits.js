// What visitors do, and what must come of it: most of these were found broken. The names of the page's
// scripts are in scope here, and the fields of app; see TestVisits.
(() => {
  const drop = (problem) => {
    const data = new DataTransfer();
    data.items.add(new File([JSON.stringify(problem)], "x.json"));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  },
  load = (r, pi0) => drop({ gamma: .9, P: [[[.8, .2], [.1, .9]], [[.5, .5], [.3, .7]]], r, pi0 }),
  // then runs to the end once something is so.
  then = async (ready) => {
    while (!ready() || acting) await new Promise(r => setTimeout(r, 20));
    await go(run.settings.T, 0);
  },
  set = (id, value) => {
    $(id).value = value;
    $(id).dispatchEvent(new Event("change"));
  },
  pause = ms => new Promise(r => setTimeout(r, ms)),
  says = (id, ...words) => words.every(w => $(id).textContent.includes(w)),
  wall = (tile = "#") => change({ kind: "tile", s: 17, tile }),
  lines = id => [...document.querySelectorAll(id + " path")].map(x => x.getAttribute("d")),
  broken = id => lines(id).filter(d => d.match(/M/g).length === 2).length,
  there = k => pos.k === k && !work,
  press = (x, key, more) =>
    x.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more })),
  until = async (ready) => {
    while (!ready()) await pause(5);
  },
  at = (k, stage) => until(() => there(k) && pos.stage === stage),
  sum = x => x.reduce((y, v) => y + v, 0),
  shut = () => all(".hand tbody td").filter(x => x.textContent === "?").length,
  // rays says whether they are as wide as the attention weights of the pass; widths have two decimals.
  rays = async () => {
    const down = x => x.sort((y, z) => z - y),
      w = (await engine.call("matrix", 4, "actor", 0, "block.0.head.0.weight", 112, 113)).data,
      drawn = down(all("#strip .ray").map(r => Number(r.getAttribute("stroke-width")))),
      want = down([...w].filter(v => v >= 1e-4).map(v => Math.max(.6, 14 * v)));
    return drawn.length === want.length && want.every((v, i) => Math.abs(v - drawn[i]) < .006);
  },
  small = () => run.rounds.decoder?.length === 40 && run.rounds.decoder[39].loss < 1e-6 * run.phases[0].gap,
  learns = () => shown.has("learned") && $("message").hidden &&
    (x => x >= 0 && x <= 1)(run.rounds.learned[4].loss / run.phases[0].gap),
  fileThere = () => then(() => run.settings.preset === "file"),
  scrolled = () => $("microscope").getBoundingClientRect().top,
  place = "preset=maze&m=16&at=12.1&k=4&stage=1";
  return [
    {
      name: "a run that cannot end is refused",
      hash: "S=64&A=16&expected=1&T=200",
      act: () => {},
      holds: () => says("message-text", "would take about", "1,048,576 packets") && run.settings.preset === "maze",
    },
    {
      name: "LayerNorm on the maze",
      hash: "preset=maze&m=2&T=8",
      act: () => ($("show-normalized").click(), then(() => run.settings.phi === .01)),
      holds: () => run.rounds.normalized.length === 8,
    },
    {
      name: "Random during the run",
      hash: "preset=maze&T=60",
      act: () => (play(() => "10"), set("set-preset", "random"), then(() => run.settings.preset === "random")),
      holds: () => run.rounds.decoder.length >= 40 && $("message").hidden,
    },
    {
      name: "rewards of a million",
      hash: "expected=1",
      act: () => (load([[1e6, 0], [0, 2e6]]), fileThere()),
      holds: () => small(),
    },
    {
      name: "rewards of a millionth",
      hash: "expected=1",
      act: () => (load([[1e-6, 0], [0, 2e-6]]), fileThere()),
      holds: () => small(),
    },
    {
      name: "a start without an action",
      hash: "",
      act: () => (load([[1, 0], [0, .2]], [[0, 1], [.5, .5]])),
      holds: () => says("message-text", "π₀ gives 1 action probability 0"),
    },
    {
      name: "one key on γ",
      hash: "preset=maze",
      act: () => ($("slide-gamma").stepDown(), $("slide-gamma").dispatchEvent(new Event("change"))),
      holds: () => run.info.gamma < .91 && run.info.gamma > .88,
    },
    {
      name: "2B is 20",
      hash: "preset=maze&k=20",
      act: () => {},
      holds: () => says("readings", "2B = 20."),
    },
    {
      name: "a cap that is read is called so",
      hash: "",
      act: () => (load([[1, 0], [0, 2]])),
      holds: () => says("caps", "read from your file") && !says("evidence", "before any problem was seen"),
    },
    {
      name: "a cell of another problem",
      hash: place + "&view=actor/0.0/score/12",
      act: async () => {
        $("step-look").click();
        for (let i = 0; i < 500 && !says("cell", "s=12"); i++) await pause(10);
        set("set-preset", "ring");
      },
      holds: () => run.settings.preset === "ring" && $("cell").textContent === "No cell is picked yet.",
    },
    {
      name: "matrices begin where something is",
      hash: place,
      act: () => $("step-look").click(),
      holds: () => scope.rowFirst === 100 && [...scope.now.data.subarray(0, 4)].some(v => v),
    },
    {
      name: "a link to a matrix",
      hash: "preset=maze&k=4&view=critic/1.0/weight/2",
      act: () => {},
      holds: () => scrolled() < 200 && scrolled() > -10,
    },
    {
      name: "forty toggles",
      hash: "preset=maze",
      act: async () => { for (let i = 0; i < 40; i++) await wall(i % 2 ? "." : "#") },
      holds: () => location.hash.includes("edits") && location.hash.split("~").length === 1,
    },
    {
      name: "Back undoes",
      hash: "preset=maze",
      act: async () => {
        await pause(1000); // the address is written
        await wall();
        while (!location.hash.includes("edits")) await pause(20);
        window.history.back();
      },
      holds: () => run.edits.length === 0 && !location.hash.includes("edits"),
    },
    {
      name: "the lake's big map",
      hash: "preset=frozen-lake-8x8",
      act: () => {},
      holds: () => [...document.querySelectorAll("#scene text")].every(x => x.textContent.length < 2),
    },
    {
      name: "a wall's policy",
      hash: "preset=maze&m=16&at=3.1&k=4&stage=1",
      act: () => {},
      holds: () => says("step-said", "a wall"),
    },
    {
      name: "a click on the chart",
      hash: "preset=maze&k=20",
      act: () => {
        const b = $("loss-chart").getBoundingClientRect(),
          at = { clientX: b.x + b.width * .4, clientY: b.y + 50, bubbles: true };
        $("loss-chart").dispatchEvent(new PointerEvent("pointermove", at));
        $("loss-chart").dispatchEvent(new MouseEvent("click", at));
      },
      holds: () => pos.k === 15 && $("loss-now").textContent.startsWith("After 15 rounds"),
    },
    {
      name: "a probability of zero",
      hash: "preset=maze&m=16&at=12.1&eta=5&gamma=0.99&k=12&stage=1",
      act: () => {},
      holds: () => there(12) && says("step-table", "−∞") && location.hash.includes("k=12"),
    },
    {
      name: "lines break where the problem changes",
      hash: "preset=maze&m=16&k=40&edits=12:t:17:w",
      act: () => {},
      holds: () => there(40) && broken("#loss-chart") === 2 && broken("#residual-chart") === 6 && $("bound-key").hidden,
    },
    {
      name: "zero has a place of its own",
      hash: "preset=lock-up&eta=20&gamma=0.5&k=40",
      act: () => {},
      holds: () => there(40) && decoderRound(39).loss === 0 && !$("bound-key").hidden &&
        [...document.querySelectorAll("#loss-chart text")].some(x =>
          x.textContent === "0" && x.getAttribute("text-anchor") === "end"),
    },
    {
      name: "rounding is no sampling error",
      hash: "expected=1&k=2",
      act: () => {},
      holds: () => there(2) && says("readings", "(rounding)") && !says("readings", "almost all of it is sampling"),
    },
    {
      name: "the bare address is the usual start",
      hash: "preset=ring&k=4&show=exact.idle&view=critic/1.0/weight/2",
      act: () => then(() => pos.k === 4).then(() => { location.hash = "" }),
      holds: () => run.settings.preset === "maze" && pos.k === 0 && !shown.has("idle") && view.call === "actor" &&
        $("set-S").disabled,
    },
    {
      name: "no digits left",
      hash: "H=1e15&show=normalized&T=4",
      act: () => (stop(), go(4, 0)),
      holds: () => $("show-normalized").parentElement.title.includes("Stopped"),
    },
    {
      name: "long work ends when asked",
      hash: "S=16&A=16&m=64&T=200&k=200",
      act: async () => {
        while ($("work").hidden || document.querySelectorAll("#loss-chart path").length < 2) await pause(5);
        $("work-cancel").click();
      },
      holds: () => !work && $("work").hidden && pos.k > 0 && pos.k < 200 && says("message-text", "Stopped after"),
    },
    {
      name: "the bound is followed to 2B",
      hash: "preset=random&expected=1&tol=1e-9&T=100&eta=4&k=100",
      act: () => {},
      holds: () => {
        const c = run.info.certificate, { eta } = run.settings, { S } = run.info,
          near = (x, y) => Math.abs(x / y - 1) < 1e-6,
          R = (S - 1) * Math.exp(-c.kappa + 2 * eta * c.B) + S * Math.exp(-(c.kappa + c.nu) + eta * c.B);
        return there(100) && near(R, c.RAct) && near(2 * R / (1 + R), c.zeta) &&
          $("formulas").children.length === 5 && lines("#bound-chart").length === 5;
      },
    },
    {
      name: "rays are the row of attention weights",
      hash: place,
      act: () => {},
      holds: async () => says("home", "All but") && await rays(),
    },
    {
      name: "a small κ sends attention away",
      hash: place,
      act: async () => {
        await at(4, 1);
        $("kappa-slider").value = 580;
        for (const kind of ["input", "change"]) $("kappa-slider").dispatchEvent(new Event(kind));
      },
      holds: async () => run.settings.kappa > 1 && run.settings.kappa < 10 && says("home", "leaks") && !acting &&
        all("#strip .ray").length > 20 && await rays(),
    },
    {
      name: "weights are counted, and a wall changes none",
      hash: "preset=maze&m=16",
      act: async () => {
        const numbers = [], names = ["0.map.w1", "0.map.w2"], first = run.info.fingerprint;
        for (const head of ["0.head.0.", "0.head.1.", "1.head.0.", "1.head.1."])
          for (const x of "qkvo") names.push(head + x);
        for (const name of names)
          numbers.push(...(await engine.call("weight", "actor", "block." + name)).data);
        const set = numbers.filter(v => v);
        if ([set.length, numbers.length, new Set(set).size].join() !== "204,97008,10") throw new Error(set.length);
        await wall();
        if (run.info.fingerprint !== first) throw new Error("new weights");
      },
      holds: () =>
        says("network-title", "204 of its 97,008 weights") && says("fingerprint", "unchanged through 2 problems"),
    },
    {
      name: "new weights say why",
      hash: "preset=maze",
      act: () => (slideTo("gamma", .95)),
      holds: () => says("fingerprint", "γ is in W₁"),
    },
    {
      name: "by hand, column by column",
      hash: place,
      act: async () => {
        await at(4, 1);
        $("step-hand").click();
        for (let left = 24; left >= 0; left -= 4) {
          while (shut() !== left || !$("hand-next") || left && $("hand-critic")) await pause(5);
          $("hand-next").click();
        }
        all(".hand input").forEach((x, a) => {
          x.value = 100 * decoderRound(4).nextPi[48 + a];
          x.dispatchEvent(new Event("input"));
        });
      },
      holds: () => says("hand-told", "Right") && says("hand-critic", "the network returned"),
    },
    {
      name: "from by hand to the trained network",
      hash: place,
      act: async () => {
        await at(4, 1);
        $("step-hand").click();
        await until(shut);
        $("net-learned").click();
      },
      holds: () => document.querySelector(".trained .strip") && $("step-hand").getAttribute("aria-pressed") === "false",
    },
    {
      name: "own packets are no leakage",
      hash: "m=16&k=2",
      act: () => document.querySelector("[name=call][value=critic]").click(),
      holds: () => says("path", "10 other packets of its own") && /own 62/.test($("path").textContent) &&
        /own together (0|[\d.]+·10⁻|0\.0)/.test($("path").textContent),
    },
    {
      name: "no discount",
      hash: "gamma=0&T=1",
      act: () => (go(1, 0)),
      holds: () => there(1) &&
        ["readings", "loss-now", "figures"].every(x => !/not a number|1 rounds|NaN/.test($(x).textContent)),
    },
    {
      name: "the trained network on another size",
      hash: "S=5&A=7&gamma=0.5&eta=3&show=learned&T=5",
      act: () => (go(5, 0)),
      holds: () => learns(),
    },
    {
      name: "the trained network on the maze",
      hash: "preset=maze&show=exact.learned&T=5",
      act: () => (go(5, 0)),
      holds: () => learns(),
    },
    {
      name: "arrows step whatever has the focus, scrolling keys scroll",
      hash: "T=9",
      act: async () => {
        press($("share"), "ArrowRight");
        await at(0, 1);
        press($("share"), "ArrowRight", { shiftKey: true });
        await at(1, 0);
        press($("share"), "ArrowLeft");
      },
      holds: () => there(0) && pos.stage === 3 &&
        [" ", "Home", "ArrowDown", "ArrowUp", "PageDown"].every(key => press(document.body, key)),
    },
    {
      name: "the menu closes",
      hash: "T=9",
      act: async () => {
        $("export").firstElementChild.click();
        await until(() => $("export").open);
        press(document.querySelector("[data-export=csv]"), "Escape");
        await until(() => !$("export").open && document.activeElement.tagName === "SUMMARY");
        $("export").firstElementChild.click();
        await until(() => $("export").open);
        document.querySelector("h1").click();
      },
      holds: () => !$("export").open,
    },
    {
      name: "a symbol says what it is",
      hash: "T=9",
      act: async () => {
        document.querySelector('.lead [data-term="eta"]').click();
        await until(() => !$("term").hidden && says("term", "step size"));
        press(document.activeElement, "Escape");
      },
      holds: () => $("term").hidden,
    },
    {
      name: "buttons step",
      hash: "T=60",
      act: async () => {
        for (const [button, k, stage] of [["forth", 0, 1], ["forth", 0, 2], ["forth", 0, 3], ["forth", 1, 0],
          ["back", 0, 3], ["round-on", 1, 0], ["first", 0, 0], ["back", 0, 0]]) {
          $(button).click();
          await at(k, stage);
        }
      },
      holds: () => there(0),
    },
    {
      name: "every speed plays and stops",
      hash: "T=60",
      act: async () => {
        for (const speed of ["stage", "2", "5", "10"]) {
          set("speed", speed);
          $("play").click();
          await until(() => playing && says("play", "Stop") && pos.k + pos.stage);
          $("play").click();
          await until(() => !playing && says("play", "Play"));
        }
        set("speed", "max");
        $("play").click();
        await until(() => there(60) && !playing);
        set("speed", "10");
        $("play").click(); // from the end it starts again
        await until(() => playing && pos.k > 0 && pos.k < 60);
      },
      holds: () => there(60) && !playing,
    },
    {
      name: "the place asked for last is shown, none after a stop",
      hash: "T=60",
      act: async () => {
        for (const [ask, want] of [[() => [go(50, 0), go(2, 0)], 2], [() => [go(1, 0), go(55, 0)], 55],
          [() => [go(3, 0), go(60, 0), stop()], 0], [() => [go(60, 0), $("forth").click()], 0]]) {
          pos.k = pos.stage = 0;
          await Promise.all(ask());
          if (pos.k !== want) throw new Error(pos.k + " in place of " + want);
        }
      },
      holds: () => !work,
    },
    {
      name: "ρ is that of the tokens",
      hash: "preset=maze&m=2&T=3&phi=0.01&show=normalized&k=2",
      act: () => {},
      holds: () => there(2) && lines("#carrier-chart").length === 2 && says("carrier-said", "H = 1.00·10⁶"),
    },
    {
      name: "every matrix of every call has numbers and words",
      hash: "k=5&stage=1&phi=0.01",
      act: async () => {
        await until(() => there(5));
        for (const call of ["actor", "critic", "normed", "learned"]) {
          document.querySelector(`[name=call][value=${call}]`).click();
          await until(() => view.call === call);
          for (const [station] of stationsOf(call))
            for (const [part] of partsOf(station)) {
              lookAt(station, part);
              await new Promise(requestAnimationFrame);
              await until(() => !scope.busy && !scope.again);
              const n = scope.now, name = [call, station, part].join(" ");
              if (view.part !== part || !n || n.rows * n.cols !== n.data.length || !n.data.length)
                throw new Error("no matrix " + name);
              await describe(Math.min(3, n.rows - 1), Math.min(2, n.cols - 1), false);
              if (!$("cell").querySelector("b")) throw new Error("no words for " + name);
            }
        }
      },
      // The critic's attention sums to one, and LayerNorm changes π̂ by what H = 10⁶ allows.
      holds: async () => {
        const row = (await engine.call("matrix", 5, "critic", 0, "block.1.head.0.weight", 190, 191)).data,
          [x, y] = await Promise.all(["actor", "normed"].map(c => engine.call("matrix", 5, c, 0, "results", 0, 9))),
          off = Math.max(...x.data.map((v, i) => Math.abs(v - y.data[i])));
        return Math.abs(sum(row) - 1) < 1e-12 && off > 0 && off < 1e-6;
      },
    },
    {
      name: "the trained network's heads, in the panel, in the microscope and in a link",
      hash: "preset=maze&k=3&stage=1&at=12.1",
      act: async () => {
        await until(() => there(3) && !acting);
        $("net-learned").click();
        await until(() => all(".trained .strip rect").length === 4 * 4 * 4 && all("#step-lines .ray").length === 16);
        const policy = await engine.call("compare", 3),
          m = await engine.call("matrix", 3, "learned", 12, "block.2.weight", 0, 99),
          results = (await engine.call("matrix", 3, "learned", 12, "results", 0, 9)).data,
          row = i => m.data.subarray(i * m.cols, (i + 1) * m.cols);
        for (let a = 0; a < 4; a++) if (policy[48 + a] !== results[4 * a + 3]) throw new Error("not the actor's row");
        for (let i = 0; i < 16; i++) if (Math.abs(sum(row(i)) - 1) > 1e-12) throw new Error(sum(row(i)));
        if (m.rows !== 16 || !/block 1, head 1.*%/.test(all(".trained .strip title")[0].textContent))
          throw new Error("no heads");
        $("step-look").click();
        await until(() => view.call === "learned" && view.station === "n0" && view.part === "weight" && !scope.busy &&
          says("path", "Block 4") && says("cell", "Score") && /net=learned.*view=learned/.test(location.hash));
        const link = location.hash;
        location.hash = "";
        await until(() => view.net === "decoder" && !acting);
        location.hash = link;
      },
      holds: () => view.net === "learned" && view.call === "learned" && document.querySelector(".trained .strip"),
    },
    {
      name: "hostile links change nothing",
      hash: "seed=3&k=40",
      act: async () => {
        await until(() => there(40) && !acting);
        const state = () => JSON.stringify([run.settings, run.edits, pos.k, run.rounds.decoder[39].loss]),
          was = state();
        for (const [hash, want] of [
          ["S=1000000", "States S"], ["S=NaN", "States S"], ["eta=1e999", "Step η"], ["m=-3", "Packets m"],
          ["gamma=1", "Discount γ"], ["preset=<script>alert(1)</script>", "preset"], ["what=1", "unknown"],
          ["edits=0:r:99:0:1", "edit"], ["edits=0:r:1:1:NaN", "edit"], ["edits=0:r:7:2:1e9", "r_max"],
          ["edits=0:p:1:1:1:7", "probability"], ["k=1e9", "round"], ["show=__proto__", "controller"],
          ["view=actor/9.9/x/0", "matrix"], ["view=learned/0.0/score/0", "matrix"], ["net=other", "network"],
          ["preset=file&mdp=AAAA", "MDP"], ["preset=file&S=2&A=2&mdp=" + "A".repeat(176), "MDP"],
          ["T=0", "Rounds T"], ["seed=1e300", "Seed"], ["tol=" + "9".repeat(300000), "too long"],
          ["edits=0:p:9:0:0:0.5", "a change at"], ["edits=0:t:1:w", "map"],
          ["preset=maze&edits=0:t:1:x", "cannot be read"], ["edits=3:i:0:0:0.5", "cannot be read"],
          ["edits=0:i:0:0:2", "probability"], ["edits=41:r:0:0:1", "round"], ["edits=0:v:64:1", "state"],
          ["preset=lock-up&edits=0:p:0:0:0:0.5", "one state"],
        ]) {
          message("");
          location.hash = hash;
          await until(() => $("message-text").textContent && !acting);
          if (!says("message-text", want)) throw new Error(hash + ": " + $("message-text").textContent);
          if (state() !== was) throw new Error(hash + " changed the run");
        }
      },
      holds: () => !acting,
    },
    {
      name: "every preset runs, and a link to it means what the menu does",
      hash: "preset=ring",
      act: async () => {
        for (const preset of ["frozen-lake", "frozen-lake-8x8", "sparse-transitions", "sparse-rewards", "strong-mixing",
          "lock-up", "maze"]) {
          const there = () => run.settings.preset === preset && !acting && !work;
          location.hash = "preset=" + preset;
          await until(there);
          const linked = JSON.stringify(run.settings);
          set("set-preset", "random");
          await until(() => run.settings.preset === "random" && !acting && !work);
          set("set-preset", preset);
          await then(there);
          if (preset !== "maze" && JSON.stringify(run.settings) !== linked) throw new Error(linked);
          if ($("message-text").textContent) throw new Error($("message-text").textContent);
        }
      },
      holds: () => all("#scene > g").length === 25, // after a graph in the map's place
    },
    {
      name: "changes survive other settings, go with another size, and come back",
      hash: "T=20",
      act: async () => {
        const both = () => run.edits.length === 2 && !acting && !work;
        await go(5, 0);
        await change({ kind: "reward", s: 3, a: 0, value: -0.5 });
        await go(10, 0);
        await change({ kind: "reward", s: 2, a: 1, value: 0.5 });
        slideTo("eta", 1);
        await until(() => run.settings.eta === 1 && both());
        set("set-seed", 7);
        await until(() => run.settings.seed === 7 && both());
        await go(12, 0);
        await until(() => heats.rewards.marks?.size === 2);
        set("set-S", 4);
        await until(() => run.info.S === 4 && says("message-text", "dropped with it") && !acting);
        $("undo").click();
        await until(() => run.info.S === 8 && both() && !$("reset-edits").disabled);
        $("reset-edits").click();
        await until(() => run.edits.length === 0 && !$("undo").disabled && !acting);
        $("undo").click();
      },
      holds: () => run.edits.length === 2,
    },
    {
      name: "a wall turns the policy above it",
      hash: "preset=maze&m=16&k=40&at=17.1",
      act: async () => {
        const down = () => decoderRound(39).nextPi[12 * 4 + 1];
        await until(() => there(40) && !acting);
        if (down() < 0.2) throw new Error(down());
        document.querySelector('#place-tiles [data-tile="#"]').click();
        await until(() => run.edits.length === 1 && run.rounds.decoder.length === 40 && !work && !acting);
        if (down() > 0.01) throw new Error(down());
      },
      holds: () => run.phases.at(-1).grid.tiles[17] === "#",
    },
    {
      name: "an error is closed, and goes with the next success",
      hash: "preset=random",
      act: async () => {
        const wrong = async () => {
          set("set-S", "99");
          await until(() => !$("message").hidden && says("message-text", "States S") && !acting);
        };
        await wrong();
        $("message-close").click();
        await until(() => $("message").hidden && !acting);
        await wrong();
        set("set-seed", 5);
      },
      holds: () => run.settings.seed === 5 && $("message").hidden,
    },
    {
      name: "one state, sixteen states and actions, and links to them",
      hash: "T=3&m=1",
      act: async () => {
        const each = f => Array.from({ length: 16 }, (_, i) => f(i)), shares = w => w.map(v => v / sum(w)),
          numbers = () => run.rounds.decoder.map(r => [r.loss, ...r.nextPi].join()).join(),
          idle = preset => until(() => run.settings.preset === preset && !acting && !work);
        for (const [most, problem] of [ // the most characters of its link
          [300, { gamma: .5, P: [[[1], [1]]], r: [[.25, 1]] }],
          [9000, { gamma: .9, r: each(s => each(a => (s - a) / 16)),
            P: each(s => each(a => each(t => t === (s + a) % 16 ? .75 : t === (s + a + 1) % 16 ? .25 : 0))) }],
          [43500, { gamma: .9, r: each(s => each(a => Math.sin(s + 17 * a))),
            P: each(s => each(a => shares(each(t => 2 + Math.sin(1 + s + 17 * a + 331 * t))))) }],
        ]) {
          drop(problem);
          await then(() => run.settings.preset === "file" && run.info.S === problem.r.length);
          await until(() => location.hash.includes("mdp=") && location.hash.includes("k=3"));
          const link = location.hash, before = numbers();
          if (link.length > most) throw new Error("a link of " + link.length);
          location.hash = "T=3&m=1";
          await idle("random");
          location.hash = link;
          await idle("file");
          if (pos.k !== 3 || numbers() !== before) throw new Error("the link gives other numbers");
          slideTo("gamma", .75);
          await until(() => run.info.gamma === .75 && !acting && !work);
          location.hash = "T=3&m=1";
          await idle("random");
        }
      },
      holds: () => $("message").hidden,
    },
  ];
})()
