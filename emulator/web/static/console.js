// The live parts of the console. Every page works without this; it only saves the reader from reloading.
"use strict";

(() => {
  const QUIET = 400; // milliseconds in which further events are taken together
  const AGAIN = 3000; // until a lost event stream is asked for again
  const KINDS = [
    "request", "payment", "basket", "sca", "consent", "notification",
    "clock", "scenario", "reset", "settings", "rules", "customers", "requests",
    "snapshots", "tpps", "banks", "conformance", "events",
  ];

  // Bank time: a live clock goes on by itself between two answers of the bank.
  const offsets = new WeakMap();
  const shown = new Intl.DateTimeFormat("sv-SE", {
    timeZone: "Europe/Oslo", dateStyle: "short", timeStyle: "medium",
  });
  const tick = () => {
    for (const clock of document.querySelectorAll("[data-clock='live']")) {
      if (!offsets.has(clock)) offsets.set(clock, Date.parse(clock.dateTime) - Date.now());
      clock.textContent = shown.format(new Date(Date.now() + offsets.get(clock)));
    }
  };

  // Copy buttons are of no use without a script, so they are hidden until it runs.
  const wire = (root) => {
    for (const button of root.querySelectorAll("[data-copy], [data-copy-text]")) button.hidden = false;
  };
  const copy = async (button) => {
    const source = button.parentElement.querySelector("pre, code");
    const text = source.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-text]");
    if (button) copy(button);
  });

  // A region that somebody is using (a focused field, a link reached by keyboard, an opened detail, a selection) is left
  // alone until nobody does any more.
  const busy = (region) => {
    const active = document.activeElement;
    if (region.contains(active) && active.matches("input, select, textarea, button, :focus-visible")) return true;
    if (region.querySelector("details[open]")) return true;
    const selection = getSelection();
    return !selection.isCollapsed && region.contains(selection.anchorNode);
  };

  // What somebody has chosen or typed stays when the region around it is redrawn.
  const FIELDS = "select, input:not([type=hidden]), textarea";
  const untouched = (field) => field.matches("select")
    ? (field.querySelector("[selected]") ?? field.options[0])?.value : field.defaultValue;
  const carry = (region, fresh) => {
    const others = [...fresh.querySelectorAll(FIELDS)];
    const address = (field) => field.form?.getAttribute("action");
    for (const field of region.querySelectorAll(FIELDS)) {
      if (field.value === untouched(field)) continue;
      const other = others.find((one) => one.name === field.name && address(one) === address(field));
      if (!other) continue;
      other.value = field.value;
      if (other.value !== field.value) other.value = untouched(other); // no longer among the choices
    }
  };

  const gone = document.querySelector("[data-gone]");
  let asking = false;
  let missed = false;
  let left = false; // whether a region was left alone that has changed since
  const refresh = async () => {
    if (asking) { missed = true; return; }
    asking = true;
    left = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (gone) gone.hidden = answer.status !== 404;
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        wire(fresh);
        for (const region of document.querySelectorAll("[data-live]")) {
          const other = fresh.querySelector(`[data-live="${region.dataset.live}"]`);
          const changed = other && region.innerHTML !== other.innerHTML;
          if (!changed) continue;
          if (busy(region)) { left = true; continue; }
          carry(region, other);
          region.replaceChildren(...other.childNodes);
        }
        tick();
      }
    } catch {
      // The bank is gone or busy; the next event, or the next page, shows what it holds.
    } finally {
      asking = false;
      if (missed) { missed = false; later(); }
    }
  };

  let timer = 0;
  const later = () => {
    if (!timer) timer = setTimeout(() => { timer = 0; refresh(); }, QUIET);
  };
  for (const end of ["focusout", "selectionchange", "toggle"]) {
    document.addEventListener(end, () => { if (left) later(); }, true);
  }

  // Only a page in sight listens: a browser has six connections to a bank, and six tabs would leave none to the others.
  const light = document.querySelector("[data-watching]");
  let source = null;
  const rest = () => {
    source?.close();
    source = null;
    light.hidden = true;
  };
  const watch = () => {
    if (source || document.hidden) return;
    source = new EventSource(document.body.dataset.events);
    for (const kind of KINDS) source.addEventListener(kind, later);
    // What happened while nobody listened, before the first time too, comes with no event.
    source.addEventListener("open", () => { light.hidden = false; refresh(); });
    source.addEventListener("error", () => {
      light.hidden = true;
      if (source?.readyState === EventSource.CLOSED) { rest(); refresh(); setTimeout(watch, AGAIN); }
    });
  };

  wire(document);
  // On a phone the places stand in one row that scrolls sideways.
  const place = document.querySelector(".side nav");
  const current = place?.querySelector("[aria-current]");
  if (current) place.scrollLeft = current.offsetLeft - (place.clientWidth - current.offsetWidth) / 2;
  if (document.body.dataset.events && document.querySelector("main [data-live]")) {
    tick();
    setInterval(tick, 1000);
    watch();
    document.addEventListener("visibilitychange", () => { if (document.hidden) rest(); else watch(); });
    addEventListener("pagehide", rest);
    addEventListener("pageshow", (event) => { if (event.persisted) watch(); });
  }
})();
