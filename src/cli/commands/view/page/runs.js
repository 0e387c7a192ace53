// The runs of a file: their list, what was asked and answered, the totals of their tools, and calls that are repeated.

/** Returns the texts and signals of the last turn that has one. */
function answerOf(request) {
  const isAnswer = ({ kind, text }) => kind === "signal" || (kind === "text" && text.trim() !== "");
  const turn = request.entries.findLast(isAnswer)?.turn;
  const parts = request.entries.filter((entry) => entry.turn === turn && isAnswer(entry));
  return parts.map(({ text, name, arguments: given }) => text?.trim() ?? `${name} ${compact(given)}`).join("\n");
}

/** Returns what was asked and answered; null if that is unknown. */
function talk(request) {
  const parts = [["Prompt", request.prompt], ["Answer", answerOf(request)]].filter(([, text]) => text);
  return parts.length ? el("div", { class: "talk" }, parts.map(([title, text]) => titled(title, block(text, "div")))) : null;
}

/** Returns a table. Columns without a value are omitted. `rows`: the content of each column by its title. */
function table(name, rows) {
  const titles = Object.keys(rows[0]).filter((title) => rows.some((row) => row[title]));
  const head = el("tr", null, titles.map((title) => el("th", { scope: "col" }, title)));
  const cell = (row) => (title, at) => el(at ? "td" : "th", { scope: at ? null : "row" }, row[title]);
  const body = rows.map((row) => el("tr", null, titles.map(cell(row))));
  return el("table", { class: name }, el("thead", null, head), el("tbody", null, body));
}

/** Returns the list of runs. */
function runList(requests) {
  const rows = requests.map((request, index) => ({
    Request: el("a", { href: `#request-${index + 1}` }, `Request ${index + 1}`),
    Prompt: oneLine(request.prompt ?? "", 90),
    State: badge(request),
    Duration: isTimed ? duration(request.end_ms) : "",
    Tokens: tokensText(request.outcome.usage),
  }));
  return el("nav", { "aria-label": "Requests" }, table("runs", rows));
}

/** Returns the totals of each tool; null if no tool was called. `idOf` returns the id of an entry, to link it. */
function toolTotals(requests, idOf = null) {
  const tools = new Map();
  for (const call of requests.flatMap(({ entries }) => entries).filter(({ kind }) => kind === "call")) {
    if (!tools.has(call.name)) tools.set(call.name, []);
    tools.get(call.name).push(call);
  }
  if (!tools.size) return null;
  const rows = Array.from(tools, ([name, calls]) => {
    const timed = calls.filter((call) => ranFor(call) !== undefined);
    const slowest = timed.reduce((one, other) => (ranFor(other) > ranFor(one) ? other : one), timed[0]);
    const time = isTimed && slowest ? duration(ranFor(slowest)) : "";
    return {
      Tool: el("span", null, visible(oneLine(name, 60))),
      Calls: number(calls.length),
      Slowest: time && idOf ? el("a", { href: `#${idOf(slowest)}` }, time) : time,
      Failures: number(calls.filter(({ state }) => ["failed", "abandoned", "not_run"].includes(state)).length),
    };
  });
  return table("tools", rows);
}

/** Returns the calls with the name and the arguments of each call, itself included. */
function equalCalls(entries) {
  const [groups, byContent] = [new Map(), new Map()];
  for (const call of entries.filter(({ kind }) => kind === "call")) {
    const content = JSON.stringify([call.name, call.arguments]);
    if (!byContent.has(content)) byContent.set(content, []);
    byContent.get(content).push(call);
    groups.set(call, byContent.get(content));
  }
  return groups;
}

/** Returns the summary of equal calls, as in `count × 3` and `{"text": "a"} → 2 ok, 1 failed`. */
function repeatedSummary(calls) {
  const numbers = new Map();
  for (const { state } of calls) numbers.set(STATES[state], (numbers.get(STATES[state]) ?? 0) + 1);
  const states = Array.from(numbers, ([state, times]) => `${number(times)} ${state}`).join(", ");
  return [`${calls[0].name} × ${number(calls.length)}`, `${oneLine(compact(calls[0].arguments), 90)} → ${states}`];
}

function repeatedDetails(calls, request) {
  const title = (call, at) => [`Call ${number(at + 1)}`, `turn ${number(call.turn)}`, timeOf(call)].filter(Boolean).join(", ");
  const parts = calls.map((call, at) => titled(title(call, at), ...callDetails(call, lineOf(call), request, true).filter(Boolean)));
  return [titled("Arguments", block(calls[0].arguments)), ...parts];
}
