// The overview of a request: where the time went, as bars on a time axis and as a list of sums.

/** The parts of the time: their lane and label, in the order of the legend. */
const PARTS = {
  waiting: ["model", "waiting for the model"],
  reasoning: ["model", "reasoning"],
  text: ["model", "text"],
  writing: ["model", "writing calls"],
  tool: ["tools", "running tools"],
  approval: ["approval", "waiting for approval"],
  retry: ["faults", "waiting to retry"],
  fault: ["faults", "faults"],
  signal: ["faults", "signals"],
};

/** Whether a span is a point in time. */
function isMark({ part }) {
  return part === "fault" || part === "signal";
}

/** Returns the spans of a request: part, start, end, description, and index of the entry. */
function spansOf(request) {
  const spans = [];
  request.entries.forEach((entry, index) => {
    const add = (part, start, end, name = "") => spans.push({ part, start, end, name, index });
    const end = entry.end_ms ?? entry.at_ms;
    switch (entry.kind) {
      case "turn":
        add("waiting", entry.at_ms, entry.first_ms ?? end, `turn ${entry.turn}`);
        break;
      case "reasoning":
      case "text":
        add(entry.kind, entry.at_ms, end);
        break;
      case "call":
        if (entry.written_ms) add("writing", entry.written_ms[0], entry.written_ms[1], entry.name);
        if (entry.started_ms !== undefined) add("tool", entry.started_ms, Math.max(end, entry.started_ms), entry.name);
        break;
      case "approval":
        add("approval", entry.at_ms, end, entry.name);
        break;
      case "retry":
        add("retry", entry.at_ms, end, `attempt ${entry.attempt}`);
        break;
      case "fault":
        add("fault", entry.at_ms, entry.at_ms, entry.name);
        break;
      case "signal":
        add("signal", end, end, entry.name);
        break;
    }
  });
  return spans;
}

/** Returns the overview of a request. `total`: the time at the right end. `go`: moves to an entry. */
function overview(request, total, label, go) {
  const spans = spansOf(request);
  const lanes = [...new Set(Object.values(PARTS).map(([lane]) => lane))];
  const chart = el("div", { class: "chart", "aria-hidden": "true" });
  for (const lane of lanes) {
    const own = spans.filter((span) => PARTS[span.part][0] === lane);
    if (own.length) chart.append(el("span", { class: "lane" }, lane === "faults" ? "events" : lane), bars(own, total, go));
  }
  chart.append(el("span"), axis(total));
  return el("section", { class: "overview", "aria-label": label }, chart, legend(spans, request.end_ms));
}

/** Returns the sums of all parts that occur. */
function legend(spans, total) {
  const list = el("ul", { class: "legend" });
  for (const [part, [, name]] of Object.entries(PARTS)) {
    const own = spans.filter((span) => span.part === part);
    if (!own.length) continue;
    const sum = own.reduce((sum, { start, end }) => sum + end - start, 0);
    const share = total > 0 ? ` (${Math.round((100 * sum) / total)} %)` : "";
    const value = isMark({ part }) ? number(own.length) : `${duration(sum)}${share}`;
    if (sum === 0 && !isMark({ part })) continue;
    list.append(el("li", null, el("span", { class: `swatch ${part}` }), `${name} ${value}`));
  }
  return list;
}

const SVG = "http://www.w3.org/2000/svg";
const ROW = 14;
const MAX_ROWS = 6;

function svg(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.append(text);
  return node;
}

/** Draws the spans of one lane. Spans that overlap are in separate rows; short neighbours share a bar. */
function bars(spans, total, go) {
  const picture = svg("svg", { class: "bars", focusable: "false" });
  const rows = [];
  const seen = new Set();
  const percent = (ms) => (100 * ms) / Math.max(total, 1);
  for (const { part, start, end, name, index } of [...spans].sort((a, b) => isMark(a) - isMark(b) || a.start - b.start)) {
    const x = Math.min(percent(start), 99.8);
    const width = Math.max(percent(end - start), 0.2);
    let row = rows.findIndex((free) => free <= start);
    if (row < 0) row = rows.length < MAX_ROWS ? rows.length : MAX_ROWS - 1;
    rows[row] = Math.max(rows[row] ?? 0, end);
    const place = `${part} ${row} ${Math.floor(x * 5)}`;
    if (width <= 0.2 && seen.has(place)) continue;
    seen.add(place);
    const bar = svg("rect", { class: part, x: `${x}%`, y: row * ROW + 1, width: `${width}%`, height: ROW - 2 });
    const parts = [PARTS[part][1], name, `at ${offset(start)} s`, end > start ? `for ${duration(end - start)}` : ""];
    bar.append(svg("title", {}, oneLine(parts.filter(Boolean).join(" "))));
    bar.addEventListener("click", () => go(index));
    picture.append(bar);
  }
  picture.setAttribute("height", String(rows.length * ROW));
  return picture;
}

/** Draws the time axis. */
function axis(total) {
  const picture = svg("svg", { class: "axis", height: "18", focusable: "false" });
  const power = 10 ** Math.floor(Math.log10(Math.max(total, 1) / 5));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => total / step <= 6) ?? total;
  for (let at = 0; at < total * 0.97; at += step) {
    const x = `${(100 * at) / total}%`;
    picture.append(svg("line", { x1: x, x2: x, y1: 0, y2: 4 }));
    picture.append(svg("text", { x, y: 15, "text-anchor": at === 0 ? "start" : "middle" }, at === 0 ? "0" : duration(Math.round(at))));
  }
  return picture;
}
