// The list of entries or of compared rows: opening, moving, searching and filtering.

/** The items of the page in order. Each has an element, a `text` for searches, a `group` for filters, and `build`. */
const view = {
  items: [],
  /** The index of an item by the id of each of its entries. */
  places: new Map(),
  /** Index of the current item; -1 before the first move. */
  current: -1,
  matches: [],
  hidden: new Set(),
  onlyDifferences: false,

  /** Adds an item. `head` is the content of its button; `build` returns its details when it is first opened. */
  add(list, { id, classes, head, build, text, group, heading, differs }) {
    const button = el("button", { type: "button", class: "head", "aria-expanded": "false" }, head);
    const node = el("li", { id, class: classes }, heading ? el(heading, null, button) : button);
    const item = { node, button, build, text, group, differs, body: null };
    const index = this.items.push(item) - 1;
    this.places.set(id, index);
    button.addEventListener("click", () => this.toggle(item));
    button.addEventListener("focus", () => (this.current = index));
    list.append(node);
    return item;
  },

  toggle(item, open = item.button.getAttribute("aria-expanded") !== "true") {
    if (open && !item.body) {
      item.body = el("div", { class: "body" }, item.build());
      item.node.append(item.body);
    }
    item.button.setAttribute("aria-expanded", String(open));
    if (item.body) item.body.hidden = !open;
  },

  toggleAll() {
    const open = this.items.some((item) => this.isShown(item) && item.button.getAttribute("aria-expanded") !== "true");
    for (const item of this.items) this.toggle(item, open);
  },

  isShown(item) {
    return !this.hidden.has(item.group) && (!this.onlyDifferences || item.differs);
  },

  /** Applies the filters. */
  filter() {
    for (const item of this.items) item.node.hidden = !this.isShown(item);
    this.search(search.value);
  },

  /** Moves to an item. */
  go(index, open = false) {
    const item = this.items[index];
    if (!item) return;
    if (item.node.hidden) item.node.hidden = false;
    if (open) this.toggle(item, true);
    this.items[this.current]?.node.classList.remove("current");
    this.current = index;
    item.node.classList.add("current");
    item.button.focus({ preventScroll: true });
    item.node.scrollIntoView({ block: item.node.offsetHeight > innerHeight / 2 ? "start" : "center" });
  },

  /** Moves to the next shown item in a direction for which `test` holds. */
  move(step, test = () => true) {
    for (let index = this.current + step; index >= 0 && index < this.items.length; index += step) {
      const item = this.items[index];
      if (this.isShown(item) && test(item)) return this.go(index);
    }
  },

  /** Finds the items that contain a text. */
  search(query) {
    const wanted = query.trim().toLowerCase();
    this.matches = [];
    highlight(null, "");
    if (!wanted) return (results.textContent = "");
    this.items.forEach((item, index) => {
      item.lower ??= item.text().join("\n").toLowerCase();
      if (this.isShown(item) && item.lower.includes(wanted)) this.matches.push(index);
    });
    results.textContent = this.matches.length ? count(this.matches.length, "matching entry", "matching entries") : "no matches";
  },

  /** Moves to the next match in a direction, and from the last match to the first. */
  match(step) {
    if (!this.matches.length) return;
    const ahead = step > 0 ? this.matches.find((index) => index > this.current) : this.matches.findLast((index) => index < this.current);
    const index = ahead ?? this.matches.at(step > 0 ? 0 : -1);
    this.go(index, true);
    const query = search.value.trim();
    highlight(this.items[index].node, query);
    results.textContent = `match ${number(this.matches.indexOf(index) + 1)} of ${number(this.matches.length)}`;
  },
};

/** Marks a text in an element. The DOM does not change. */
function highlight(node, query) {
  if (!("highlights" in CSS)) return;
  CSS.highlights.delete("search");
  if (!node) return;
  const wanted = query.toLowerCase();
  const ranges = [];
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < 1000) {
    const text = walker.currentNode;
    const lower = text.data.toLowerCase();
    if (lower.length !== text.data.length) continue;
    for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(text, at);
      range.setEnd(text, at + wanted.length);
      ranges.push(range);
    }
  }
  if (ranges.length) CSS.highlights.set("search", new Highlight(...ranges));
}

const search = el("input", { type: "search", placeholder: "Search", "aria-label": "Search in all entries", autocomplete: "off", spellcheck: "false" });
const results = el("output", { "aria-live": "polite" });

/** Fills the toolbar. `groups`: the filters that have entries. */
function toolbar(groups, hasDifferences) {
  const form = document.getElementById("tools");
  const toggle = (label, change, pressed) => {
    const button = el("button", { type: "button", class: "toggle", "aria-pressed": String(pressed) }, label);
    button.addEventListener("click", () => {
      const isPressed = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isPressed));
      change(isPressed);
      view.filter();
    });
    return button;
  };
  const filters = groups.map((group) =>
    toggle(group, (isShown) => (isShown ? view.hidden.delete(group) : view.hidden.add(group)), true),
  );
  const only = hasDifferences ? toggle("only differences", (isOn) => (view.onlyDifferences = isOn), false) : null;
  form.append(
    el("div", { class: "search" },
      search,
      el("button", { type: "button", onclick: () => view.match(-1), "aria-label": "Previous match" }, "↑"),
      el("button", { type: "button", onclick: () => view.match(1), "aria-label": "Next match" }, "↓"),
      results),
    el("div", { class: "filters", role: "group", "aria-label": "Show" }, filters, only),
    el("button", { type: "button", onclick: () => view.toggleAll() }, "Open or close all"),
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", () => view.search(search.value));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      view.match(event.shiftKey ? -1 : 1);
      search.focus();
    } else if (event.key === "Escape") {
      search.value = "";
      view.search("");
      search.blur();
    }
  });
}

const KEYS = {
  "/": () => search.focus(),
  n: () => view.match(1),
  N: () => view.match(-1),
  j: () => view.move(1),
  k: () => view.move(-1),
  e: () => view.toggleAll(),
  d: () => view.move(1, (item) => item.differs),
  D: () => view.move(-1, (item) => item.differs),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target === search;
  const action = KEYS[event.key];
  if (!action || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
});

/** Returns all strings in a value, for searches. */
function strings(value, found = []) {
  if (typeof value === "string") found.push(value);
  else if (value && typeof value === "object") for (const member of Object.values(value)) strings(member, found);
  return found;
}
