
"use strict";
(() => {
  const find = (selector) => [...document.querySelectorAll(selector)];
  const [filter, theme, fold, shown] = ["filter", "theme", "fold", "shown"].map((id) => document.getElementById(id));
  const rows = find("[data-row]").map((row) => ({ row, text: `${row.dataset.row} ${row.textContent}`.toLowerCase() }));
  const folds = find("details");
  const first = folds.map((part) => part.open);
  find(".controls").forEach((part) => { part.hidden = false; });

  // What a reader chose is kept where the browser keeps anything for a file.
  const kept = {
    get: () => { try { return localStorage.getItem("polctl-theme") ?? ""; } catch { return ""; } },
    set: (value) => { try { localStorage.setItem("polctl-theme", value); } catch { /* for this page only */ } },
  };
  const colour = (value) => {
    const known = ["light", "dark"].includes(value) ? value : "";
    theme.value = known;
    if (known) document.documentElement.dataset.theme = known; else delete document.documentElement.dataset.theme;
  };
  colour(kept.get());
  theme.addEventListener("change", () => { colour(theme.value); kept.set(theme.value); });

  const holds = (part) => part.querySelector("[data-row]");
  const apply = () => {
    // `tier 3` is one word: a 3 alone stands in many line numbers.
    const words = filter.value.toLowerCase().match(/tier \d|\S+/g) ?? [];
    let count = 0;
    for (const { row, text } of rows) {
      const matches = words.every((word) => text.includes(word));
      row.hidden = !matches;
      if (matches) count += 1;
    }
    folds.forEach((part, at) => {
      if (!holds(part)) return;
      const any = part.querySelector("[data-row]:not([hidden])");
      part.hidden = words.length > 0 && !any;
      part.open = words.length > 0 ? Boolean(any) : first[at];
    });
    shown.textContent = words.length > 0 ? `${count} of ${rows.length} shown` : "";
  };
  filter.addEventListener("input", apply);

  const unfold = (open) => {
    folds.forEach((part) => { part.open = open; });
    fold.setAttribute("aria-pressed", String(open));
    fold.textContent = open ? "Close all" : "Open all";
  };
  const toggle = () => unfold(fold.getAttribute("aria-pressed") !== "true");
  fold.addEventListener("click", toggle);

  // A link into a closed part opens it.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();

  let printed = null;
  addEventListener("beforeprint", () => { printed = folds.map((part) => part.open); folds.forEach((part) => { part.open = true; }); });
  addEventListener("afterprint", () => { printed?.forEach((open, at) => { folds[at].open = open; }); printed = null; });

  const step = (by) => {
    const findings = find("article.finding:not([hidden])");
    if (findings.length === 0) return;
    const at = findings.indexOf(document.activeElement);
    const next = findings[at < 0 ? (by > 0 ? 0 : findings.length - 1) : (at + by + findings.length) % findings.length];
    next.focus();
    next.scrollIntoView({ block: "start" });
  };
  const keys = {
    "/": () => { filter.focus(); filter.select(); },
    n: () => step(1),
    p: () => step(-1),
    o: toggle,
    t: () => {
      const order = ["", "light", "dark"];
      colour(order[(order.indexOf(theme.value) + 1) % order.length]);
      kept.set(theme.value);
    },
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement === filter) {
      filter.value = "";
      apply();
      filter.blur();
      return;
    }
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
})();
