// The page: its header, and the requests with their entries.

const data = JSON.parse(document.getElementById("data").textContent);
const isTimed = data.files.every((file) => !["events", "session"].includes(file.source));

function timeOf(entry) {
  return isTimed ? offset(entry.at_ms) : "";
}

/** Returns the duration in an entry's line. */
function lengthOf(entry) {
  if (entry.end_ms === undefined || entry.kind === "finished") return "";
  const start = entry.kind === "call" ? (entry.started_ms ?? entry.at_ms) : entry.at_ms;
  return entry.end_ms > start ? duration(entry.end_ms - start) : "";
}

/** Adds an entry. `equal`: the calls with its name and arguments, itself included, which are one item. */
function addEntry(list, request, id, entry, equal) {
  const [label, group] = KINDS[entry.kind];
  const isRepeated = equal.length > 1;
  const [name, text] = isRepeated ? repeatedSummary(equal) : summary(entry, request);
  const stats = entry.deltas ? el("span", { class: "stats" }, streamStats(entry)) : null;
  const line = el("span", { class: "summary" }, name ? el("b", null, visible(name)) : null, name && text ? " " : null, el("span", { class: "preview" }, text), stats);
  view.add(list, {
    id,
    classes: `entry ${entry.kind}${equal.some((one) => isBad(one, request)) ? " bad" : ""}`,
    head: [el("span", { class: "time" }, timeOf(entry)), el("span", { class: "kind" }, label), line, el("span", { class: "length" }, isRepeated ? "" : lengthOf(entry))],
    build: () => (isRepeated ? repeatedDetails(equal, request) : details(entry, request)),
    text: () => [label, ...strings(equal)],
    group,
    differs: false,
    heading: entry.kind === "turn" ? "h3" : null,
  });
}

/** Returns what identifies a request and sums it up, as names and values. */
function requestFacts(request) {
  const numberOf = (kind) => request.entries.filter((entry) => entry.kind === kind).length;
  const turns = request.entries.filter((entry) => entry.kind === "turn" && entry.attempt <= 1).length;
  const { state, usage, first_token_ms, fail_reason } = request.outcome;
  return {
    State: state ? state + (fail_reason ? ` (${fail_reason})` : "") : "unfinished",
    Duration: isTimed ? duration(request.end_ms) : "",
    Turns: number(turns),
    Calls: number(numberOf("call")),
    Signals: number(numberOf("signal")),
    Faults: number(numberOf("fault")),
    Retries: number(numberOf("retry")),
    Tokens: tokensText(usage),
    "First output": first_token_ms === undefined ? "" : duration(first_token_ms),
    Worker: request.worker,
    Model: request.model,
    Server: request.url,
    Job: request.job,
    Submitted: request.local_time || (request.submitted_at_ms ? new Date(request.submitted_at_ms).toISOString() : ""),
    Request: request.id,
    deftool: request.engine,
  };
}

function badge(request) {
  const { state, fail_reason } = request.outcome;
  const text = state ? (fail_reason && state === "failed" ? `failed: ${fail_reason}` : state) : "unfinished";
  return el("span", { class: `badge ${state === "completed" ? "good" : "bad"}` }, oneLine(text));
}

/** Returns what of the files cannot be read. */
function damage(files) {
  return files.flatMap((file) => file.damage ?? []).map((text) => el("p", { class: "damage" }, visible(`${text}; the page shows what can be read`)));
}

/** Shows one run. */
function showRun(main, file) {
  const head = document.getElementById("top");
  head.append(el("h1", null, visible(file.name)));
  if (file.requests.length > 1) head.append(runList(file.requests), toolTotals(file.requests) ?? "");
  head.append(...damage([file]));
  if (!isTimed) head.append(el("p", { class: "muted" }, "This file contains no times. A recording (--record) shows when each entry happened."));
  file.requests.forEach((request, index) => {
    const title = file.requests.length > 1 ? `Request ${index + 1}` : "Run";
    const list = el("ol", { class: "entries" });
    const idOf = (entry) => `e${index + 1}-${request.entries.indexOf(entry) + 1}`;
    const shown = Object.entries(requestFacts(request)).filter(([, value]) => value && value !== "0");
    main.append(
      el("section", { "aria-labelledby": `request-${index + 1}` },
        el("h2", { id: `request-${index + 1}` }, title, " ", badge(request)),
        talk(request),
        facts(shown.filter(([name]) => name !== "State")),
        toolTotals([request], idOf),
        isTimed ? overview(request, request.end_ms, "Timeline", (at) => view.go(view.places.get(`e${index + 1}-${at + 1}`))) : null,
        list),
    );
    const groups = equalCalls(request.entries);
    request.entries.forEach((entry, at) => {
      const equal = groups.get(entry) ?? [entry];
      const id = `e${index + 1}-${at + 1}`;
      if (equal[0] === entry) addEntry(list, request, id, entry, equal);
      else view.places.set(id, view.places.get(idOf(equal[0])));
    });
  });
}

/** Shows two runs side by side. */
function showDifference(main, files, rows) {
  const differing = rows.filter((row) => rowState(row) !== "same").length;
  document.getElementById("top").append(
    el("h1", null, "Difference of ", visible(files[0].name), " and ", visible(files[1].name)),
    el("p", null, differing ? `${number(differing)} of ${number(rows.length)} entries differ.` : "No entry differs.", " Times and ids are not compared."),
    ...damage(files),
  );
  document.getElementById("difference-keys").hidden = false;
  const total = Math.max(...files.flatMap((file) => file.requests.map((request) => request.end_ms)));
  const requests = Math.max(...files.map((file) => file.requests.length));
  for (let index = 0; index < requests; index++) {
    const pair = files.map((file) => file.requests[index]);
    const title = requests > 1 ? `Request ${index + 1}` : "Runs";
    const list = el("ol", { class: "entries rows" });
    main.append(
      el("section", { "aria-labelledby": `request-${index + 1}` },
        el("h2", { id: `request-${index + 1}` }, title),
        comparedFacts(files, pair),
        isTimed ? el("div", { class: "columns" }, pair.map((request, at) => el("div", { class: "column" }, request ? overview(request, total, `Timeline of ${oneLine(files[at].name)}`, (entry) => view.go(rows.findIndex((row) => row.request === index && row[at ? "right" : "left"] === entry))) : null))) : null,
        list),
    );
    rows.forEach((row, at) => row.request === index && addRow(list, files, row, at + 1));
  }
}

/** Returns a table with the facts of two requests. */
function comparedFacts(files, pair) {
  const [left, right] = pair.map((request) => (request ? requestFacts(request) : {}));
  const rows = Object.keys(left.Worker === undefined ? right : left)
    .filter((name) => name === "State" || (name !== "Request" && left[name] !== right[name]))
    .map((name) => {
      const isSame = left[name] === right[name];
      const cells = [left[name], right[name]].map((value) => el("td", null, visible(value ?? "")));
      return el("tr", null, el("th", { scope: "row" }, name), cells, el("td", { class: "sign" }, isSame ? "=" : "≠"));
    });
  const head = el("tr", null, el("th", { scope: "col" }, ""), files.map((file, at) => el("th", { scope: "col" }, at ? "Right: " : "Left: ", visible(file.name))), el("th", { scope: "col" }, ""));
  return el("table", { class: "facts-table" }, el("thead", null, head), el("tbody", null, rows));
}

/** Moves to the place that the URL names: `#q=TEXT`, or the id of an entry. */
function followHash() {
  const hash = location.hash.slice(1);
  if (hash.startsWith("q=")) {
    search.value = decodeURIComponent(hash.slice(2));
    view.search(search.value);
    view.match(1);
  } else {
    const index = view.places.get(hash);
    if (index !== undefined) view.go(index, true);
  }
}

/** Maximum number of entries that are open at the start. */
const MAX_OPEN = 300;

function start() {
  const main = document.getElementById("entries");
  if (data.rows) showDifference(main, data.files, data.rows);
  else showRun(main, data.files[0]);
  const groups = [...new Set(Object.values(KINDS).map(([, group]) => group))];
  toolbar(groups.filter((group) => view.items.some((item) => item.group === group)), Boolean(data.rows));
  // What the model wrote, problems and differences are open; requests and results are one line.
  if (view.items.length <= MAX_OPEN) {
    for (const item of view.items) {
      const isOpen = data.rows ? item.node.classList.contains("changed") : ["reasoning", "text", "calls", "signals"].includes(item.group) && !item.node.classList.contains("approval");
      if (isOpen) view.toggle(item, true);
    }
  }
  followHash();
  window.addEventListener("hashchange", followHash);
}

const begun = performance.now();
start();
/** Milliseconds until all entries were built, for tests. */
view.startedIn = performance.now() - begun;
