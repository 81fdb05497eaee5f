"use strict";
(() => {
  const PAGE = 25;     // rows of the table that are there at a time
  const PRINTED = 300; // the same on paper
  const READABLE = 0.6; // the least scale of a graph at first
  const OPENED = 500; // operations that a box of the graph opens
  const by = (id) => document.getElementById(id);
  const all = (query, root) => Array.from((root || document).querySelectorAll(query));
  const data = (id) => JSON.parse(by(id).textContent);
  const make = (tag, text, kind) => {
    const x = document.createElement(tag);
    if (text !== undefined && text !== null) x.textContent = text;
    if (kind) x.className = kind;
    return x;
  };
  const shown = (v, digits) => {
    if (v === null || v === undefined) return "\u2013";
    if (typeof v === "string") return v;
    if (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e6)) {
      return v.toExponential((digits || 3) - 1).replace("e+", "e");
    }
    return String(Number(v.toPrecision(digits || 4)));
  };
  const time = (v) => v === null ? "\u2013" : v < 1e-3 ? (v * 1e6).toFixed(0) + " \u00b5s"
    : (v * 1e3).toFixed(2) + " ms";
  // NaN is worst; what there is none of comes last either way.
  const weight = (v) => v === null || v === undefined ? null
    : typeof v === "string" ? (v === "-inf" ? -Infinity : v === "inf" ? 1e308 : Infinity) : v;

  // ---- light and dark
  const theme = by("theme");
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme || (prefers.matches ? "dark" : "light")) === "dark";
  const label = () => { theme.setAttribute("aria-pressed", String(dark())); };
  const keep = (value) => { try { localStorage.setItem("adtool-theme", value); } catch (e) { /* none */ } };
  try {
    const kept = localStorage.getItem("adtool-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch (e) { /* a page from disk may have no storage */ }
  theme.hidden = false;
  label();
  prefers.addEventListener("change", label);
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    keep(document.documentElement.dataset.theme);
    label();
  });

  // ---- findings: a link opens one
  const reveal = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const found = id && by(id);
    if (!found) return;
    const inside = found.closest("details");
    if (inside) inside.open = true;
    found.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  for (const kind of ["open", "close"]) {
    for (const button of all(`[data-${kind}]`)) {
      button.addEventListener("click", () => {
        for (const d of all("details", by(button.dataset[kind]))) d.open = kind === "open";
      });
    }
  }

  // ---- the table of launches
  const TAPE = 0, LAUNCH = 1, KERNEL = 2, INPUT = 3, OUTPUT = 4, CHECKED = 5, DIRECTIONS = 6, ABS = 7,
    REL = 8, AD = 9, REFERENCE = 10, VERDICT = 11, REASON = 12, PLACE = 13, CALL = 14, DIM = 15,
    ENTRY = 16, NORM = 17, DIGITS = 18;
  const RANK = ["nan", "fail", "nondeterministic", "rounding", "inconclusive", "kink", "skipped", "pass", ""];
  const COLUMNS = [
    { head: "Launch", sort: (r) => r[TAPE] * 1e7 + r[LAUNCH], numeric: true },
    { head: "Kernel", words: KERNEL },
    { head: "Input", words: INPUT },
    { head: "Output", words: OUTPUT },
    { head: "Checked", sort: (r) => r[CHECKED] === null ? null : (Number(r[CHECKED]) || 0) + r[DIRECTIONS], numeric: true },
    { head: "Abs error", sort: (r) => weight(r[ABS]), numeric: true },
    { head: "Rel error", sort: (r) => weight(r[REL]), numeric: true },
    { head: "Adjoint", sort: (r) => weight(r[AD]), numeric: true },
    { head: "Reference", sort: (r) => weight(r[REFERENCE]), numeric: true },
    { head: "|grad|", sort: (r) => weight(r[NORM]), numeric: true },
    { head: "Verdict", verdict: true },
  ];

  const tables = [];
  const table = (box) => {
    const key = box.dataset.run;
    const { words, rows, folds } = data(`${key}-rows`);
    // A row for all launches of a kernel, pair and verdict: the worst, and how many there are.
    const folded = folds.map(([number, share, checked, directions]) => {
      const r = [...rows[number]];
      [r.share, r[CHECKED], r[DIRECTIONS]] = [share, checked, directions];
      return r;
    });
    const lower = words.map((w) => w.toLowerCase());
    const form = box.querySelector("form"), head = box.querySelector("thead tr");
    const body = box.querySelector("tbody"), matches = box.querySelector("output");
    const where = box.querySelector(".where");
    const each = form.elements.each;
    each.parentNode.hidden = !folded.length;
    const base = () => each.checked || !folded.length ? rows : folded;
    const state = { column: -1, down: false, page: 0, all: base(), rows: base(), size: PAGE };
    const rank = words.map((w) => RANK.indexOf(w));

    const detail = (r) => {
      const cell = make("td");
      cell.colSpan = COLUMNS.length;
      const list = make("dl", null, "inline-facts");
      const add = (name, value) => {
        if (!value) return;
        const item = make("div");
        item.append(make("dt", name), make("dd", value));
        list.append(item);
      };
      if (r.share) add("The worst of them", `launch ${r[TAPE]}:${r[LAUNCH]}`);
      add("Kernel", words[r[KERNEL]]);
      add("Input", words[r[INPUT]]);
      add("Output", words[r[OUTPUT]]);
      add("Grid", words[r[DIM]]);
      add("Kernel at", words[r[PLACE]]);
      add("Launched at", words[r[CALL]]);
      add("Worst entry", words[r[ENTRY]]);
      add("Entries compared", r[CHECKED] === null ? "" : String(Number(r[CHECKED]) || 0));
      add("Random directions", r[DIRECTIONS] ? String(r[DIRECTIONS]) : "");
      add("Digits lost to rounding", r[DIGITS] === null ? "" : shown(r[DIGITS], 2));
      add("Reason", words[r[REASON]]);
      cell.append(list);
      const line = make("tr", null, "detail");
      line.append(cell);
      return line;
    };

    const row = (r) => {
      const line = make("tr");
      const first = make("th");
      first.scope = "row";
      const open = make("button", r.share || `${r[TAPE]}:${r[LAUNCH]}`, "open-row");
      open.type = "button";
      open.setAttribute("aria-expanded", "false");
      open.setAttribute("aria-label", `${r.share ? `${r.share} launches, worst` : "Launch"} ${r[TAPE]}:${r[LAUNCH]}, details`);
      open.addEventListener("click", () => {
        const isOpen = open.getAttribute("aria-expanded") === "true";
        open.setAttribute("aria-expanded", String(!isOpen));
        if (isOpen) line.nextSibling.remove(); else line.after(detail(r));
      });
      first.append(open);
      line.append(first);
      for (const k of [KERNEL, INPUT, OUTPUT]) {
        const cell = make("td", words[r[k]], "name");
        if (words[r[k]].length > 20) cell.title = words[r[k]];
        line.append(cell);
      }
      const checked = r[CHECKED] === null ? "\u2013" : typeof r[CHECKED] === "string" ? r[CHECKED]
        : `${r[CHECKED].toLocaleString("en")}${r[DIRECTIONS] ? "+" + r[DIRECTIONS] + "d" : ""}`;
      line.append(make("td", checked, "num"));
      for (const k of [ABS, REL]) line.append(make("td", shown(r[k], 2), "num"));
      for (const k of [AD, REFERENCE]) line.append(make("td", shown(r[k], 6), "num"));
      line.append(make("td", shown(r[NORM], 3), "num"));
      const verdict = words[r[VERDICT]];
      const last = make("td");
      last.append(make("span", verdict || "\u2013", verdict ? `chip v-${verdict}` : ""));
      line.append(last);
      return line;
    };

    const draw = () => {
      const size = state.size;
      const pages = Math.max(1, Math.ceil(state.rows.length / size));
      state.page = Math.min(Math.max(0, state.page), pages - 1);
      const begin = state.page * size, part = state.rows.slice(begin, begin + size);
      body.replaceChildren(...part.map(row));
      if (!part.length) {
        const line = make("tr"), cell = make("td", "No launch matches.", "none");
        cell.colSpan = COLUMNS.length;
        line.append(cell);
        body.append(line);
      }
      const n = (v) => v.toLocaleString("en");
      const total = state.all.length, noun = total === 1 ? "row" : "rows";
      matches.textContent = state.rows.length === total ? `${n(total)} ${noun}`
        : `${n(state.rows.length)} of ${n(total)} ${noun}`;
      where.textContent = part.length ? `${n(begin + 1)}\u2013${n(begin + part.length)} of ${n(state.rows.length)}` : "";
      const at = { first: state.page > 0, previous: state.page > 0, next: state.page < pages - 1, last: state.page < pages - 1 };
      for (const b of all("[data-page]", box)) b.disabled = !at[b.dataset.page];
      box.querySelector(".pager").hidden = pages < 2;
    };

    const value = (c) => c.words !== undefined ? (r) => lower[r[c.words]]
      : c.verdict ? (r) => rank[r[VERDICT]] : c.sort;

    const choose = () => {
      performance.mark("adtool-filter-begin");
      const sought = form.elements.words.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      const verdict = form.elements.verdict.value;
      const fits = sought.map((w) => lower.map((x) => x.includes(w)));
      const launch = sought.map((w) => /^\d*:\d*$/.test(w) ? w : null);
      const has = (r, i) => {
        if (launch[i]) {
          const [t, l] = launch[i].split(":");
          return (t === "" || +t === r[TAPE]) && (l === "" || +l === r[LAUNCH]);
        }
        const f = fits[i];
        return f[r[KERNEL]] || f[r[INPUT]] || f[r[OUTPUT]] || f[r[VERDICT]] || f[r[PLACE]] || f[r[CALL]] || f[r[REASON]];
      };
      // One launch is sought among all.
      state.all = launch.some(Boolean) ? rows : base();
      state.rows = state.all.filter((r) => (!verdict || words[r[VERDICT]] === verdict) && sought.every((_, i) => has(r, i)));
      if (state.column >= 0) {
        const of = value(COLUMNS[state.column]), sign = state.down ? -1 : 1;
        state.rows.sort((a, b) => {
          const x = of(a), y = of(b);
          if (x === y) return 0;
          if (x === null) return 1;
          if (y === null) return -1;
          return x < y ? -sign : sign;
        });
      }
      state.page = 0;
      draw();
      performance.mark("adtool-filter-end");
      performance.measure("adtool-filter", "adtool-filter-begin", "adtool-filter-end");
    };

    const sort = (k, down) => {
      state.column = k;
      state.down = down;
      all("th", head).forEach((x, i) => x.setAttribute("aria-sort",
        i === k ? (down ? "descending" : "ascending") : "none"));
    };

    COLUMNS.forEach((c, k) => {
      const th = make("th");
      th.scope = "col";
      th.setAttribute("aria-sort", "none");
      if (c.numeric && k) th.className = "num";
      const button = make("button", c.head, "sort");
      button.type = "button";
      button.addEventListener("click", () => {
        // Numbers begin with the largest: that is what is looked for.
        sort(k, state.column === k ? !state.down : Boolean(c.numeric) && k > 0);
        choose();
      });
      th.append(button);
      head.append(th);
    });
    const found = new Set(rows.map((r) => words[r[VERDICT]]));
    for (const v of RANK) {
      if (v && found.has(v)) form.elements.verdict.append(new Option(v, v));
    }
    let waiting = 0;
    form.elements.words.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(choose, rows.length > 2000 ? 120 : 0);
    });
    form.elements.verdict.addEventListener("change", choose);
    each.addEventListener("change", choose);
    form.addEventListener("submit", (e) => { e.preventDefault(); choose(); });
    for (const b of all("[data-page]", box)) {
      b.addEventListener("click", () => {
        const go = { first: 0, previous: state.page - 1, next: state.page + 1, last: Infinity };
        state.page = go[b.dataset.page];
        draw();
      });
    }
    // What is wrong comes first, where anything is.
    const worst = rank.some((k, i) => k >= 0 && k < RANK.indexOf("skipped") && found.has(words[i]));
    sort(worst ? COLUMNS.length - 1 : 0, false);
    choose();
    tables.push((size) => { state.size = size; draw(); });
  };

  // ---- graphs
  const known = {};
  const operations = (run, tape) => {
    if (!known[run]) known[run] = data(`${run}-operations`);
    const t = known[run].find((x) => x.tape === tape);
    if (t && !t.at) t.at = new Map(t.rows.map((r) => [r[0], r]));
    return t;
  };

  const opened = (box, key) => {
    const t = operations(box.dataset.run, +box.dataset.tape);
    const found = t && t.boxes[key];
    const panel = box.querySelector(".opened");
    panel.replaceChildren();
    for (const g of all(".is-open", box)) g.classList.remove("is-open");
    if (!found) return;
    for (const g of all("[data-node]", box)) if (g.dataset.node === key) g.classList.add("is-open");
    const [name, members] = found;
    const top = make("div", null, "opened-head");
    const many = members.length === 1 ? "1 operation" : `${members.length.toLocaleString("en")} operations`;
    top.append(make("p", `${name}: ${many}`, "opened-title"));
    const close = make("button", "Close", "ghost-button");
    close.type = "button";
    close.addEventListener("click", () => { opened(box, ""); });
    top.append(close);
    const frame = make("div", null, "scroll");
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", `Operations of ${name}`);
    const list = make("table"), head = make("tr"), body = make("tbody");
    for (const x of ["Launch", "Kernel", "Grid", "Reads", "Writes", "|grad|", "Forward", "Backward", "Called at"]) {
      const th = make("th", x);
      th.scope = "col";
      head.append(th);
    }
    for (const m of members.slice(0, OPENED)) {
      const r = t.at.get(m);
      if (!r) continue;
      const line = make("tr"), first = make("th", r[1] === null ? `record ${r[0]}` : `${t.tape}:${r[1]}`);
      first.scope = "row";
      line.append(first, make("td", t.words[r[2]], "name"), make("td", t.words[r[3]]), make("td", t.words[r[4]], "name"),
        make("td", t.words[r[5]], "name"), make("td", shown(r[9], 3), "num"), make("td", time(r[7]), "num"),
        make("td", time(r[8]), "num"), make("td", t.words[r[10]], "name"));
      body.append(line);
    }
    const thead = make("thead");
    thead.append(head);
    list.append(thead, body);
    frame.append(list);
    panel.append(top, frame);
    if (members.length > OPENED) panel.append(make("p", `The first ${OPENED}; the table of launches has all.`, "hint"));
  };

  const graph = (box) => {
    const paper = box.querySelector(".paper"), svg = paper.querySelector("svg");
    const width = +box.dataset.width, height = +box.dataset.height;
    let scale = 1, auto = true, moved = false;
    const set = (value, keepAuto) => {
      const middle = [(paper.scrollLeft + paper.clientWidth / 2) / scale, (paper.scrollTop + paper.clientHeight / 2) / scale];
      scale = Math.min(8, Math.max(0.02, value));
      auto = Boolean(keepAuto);
      svg.setAttribute("width", String(width * scale));
      svg.setAttribute("height", String(height * scale));
      paper.scrollLeft = middle[0] * scale - paper.clientWidth / 2;
      paper.scrollTop = middle[1] * scale - paper.clientHeight / 2;
    };
    // Of its own accord it is never made too small to be read; the button shows all of it.
    const fit = (least) => {
      const room = paper.clientWidth - 24;
      if (room > 0) set(Math.min(1.25, Math.max(room / width, least)), least === READABLE);
    };
    box.querySelector(".tools").hidden = false;
    for (const b of all("[data-zoom]", box)) {
      b.addEventListener("click", () => {
        const kind = b.dataset.zoom;
        if (kind === "fit") fit(0.02);
        else set(kind === "full" ? 1 : kind === "in" ? scale * 1.3 : scale / 1.3);
      });
    }
    paper.addEventListener("wheel", (e) => {
      if (!e.ctrlKey) return;
      e.preventDefault();
      set(scale * Math.exp(-e.deltaY / 300));
    }, { passive: false });
    paper.addEventListener("pointerdown", (e) => {
      if (e.button !== 0 || e.pointerType === "touch") return;
      const begin = [e.clientX + paper.scrollLeft, e.clientY + paper.scrollTop];
      const at = [e.clientX, e.clientY];
      moved = false;
      const move = (m) => {
        if (Math.hypot(m.clientX - at[0], m.clientY - at[1]) > 4) moved = true;
        paper.scrollLeft = begin[0] - m.clientX;
        paper.scrollTop = begin[1] - m.clientY;
      };
      addEventListener("pointermove", move);
      addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
    });
    for (const g of all("[data-node][role=button]", svg)) {
      g.addEventListener("click", () => { if (!moved) opened(box, g.dataset.node); });
      g.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        opened(box, g.dataset.node);
      });
    }
    const again = () => { if (auto && paper.clientWidth) fit(READABLE); };
    addEventListener("resize", again);
    new ResizeObserver(again).observe(paper);
    fit(READABLE);
    paper.scrollLeft = 0;
  };

  const start = () => {
    by("no-script").hidden = true;
    all(".launches").forEach(table);
    performance.mark("adtool-ready");
    all(".graph").forEach(graph);
    for (const select of all("select[data-tapes]")) {
      const articles = all("[data-tape].tape", by(`${select.dataset.tapes}-tapes`));
      const show = () => { for (const a of articles) a.hidden = a.dataset.tape !== select.value; };
      const wrong = Array.from(select.options).find((o) => o.textContent.includes("!"));
      if (wrong) select.value = wrong.value;
      select.addEventListener("change", show);
      show();
    }
    // On paper nothing is folded away.
    let folded = [];
    const printing = (on) => {
      for (const set of tables) set(on ? PRINTED : PAGE);
      if (on) {
        folded = [...folded, ...all("details:not([open])")];
        for (const d of folded) d.open = true;
      } else {
        for (const d of folded) d.open = false;
        folded = [];
      }
    };
    addEventListener("beforeprint", () => printing(true));
    addEventListener("afterprint", () => printing(false));
    const paper = matchMedia("print");
    paper.addEventListener("change", (e) => printing(e.matches));
    if (paper.matches) printing(true);
    reveal();
  };
  start();
})();
