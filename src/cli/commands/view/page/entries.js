// The entries of a run: their kinds, their one-line summaries and their details.

/** The kinds of entries: their label, and the filter that they belong to. */
const KINDS = {
  turn: ["turn", "turns"],
  reasoning: ["reasoning", "reasoning"],
  text: ["text", "text"],
  call: ["call", "calls"],
  approval: ["approval", "calls"],
  signal: ["signal", "signals"],
  retry: ["retry", "faults"],
  fault: ["fault", "faults"],
  warning: ["warning", "faults"],
  reloaded: ["reload", "other"],
  resumed: ["resume", "other"],
  finished: ["end", "other"],
};

const STATES = { ok: "ok", failed: "failed", refused: "refused", abandoned: "no result", not_run: "not run" };

/** Whether an entry is a problem. */
function isBad(entry, request) {
  if (entry.kind === "call") return entry.state !== "ok";
  if (entry.kind === "finished") return request.outcome.state !== "completed";
  return ["fault", "warning"].includes(entry.kind);
}

/** Returns JSON text on one line. */
function compact(json) {
  return json.replace(/\n\s*/g, " ");
}

function budgetText(budget) {
  const unit = budget.unit ?? "unit";
  return `${count(budget.left, unit)} left`;
}

/** Returns the tokens of the prompt and of the reply; an empty text if the server reported none. */
function tokensText(usage) {
  if (!usage?.prompt_tokens && !usage?.completion_tokens) return "";
  const part = (tokens, what) => (tokens ? ` (${number(tokens)} ${what})` : "");
  const prompt = `${number(usage.prompt_tokens)}${part(usage.cached_tokens, "cached")}`;
  return `${prompt} + ${count(usage.completion_tokens, "token")}${part(usage.reasoning_tokens, "reasoning")}`;
}

/** Returns the summary of an entry: a name and details. */
function summary(entry, request) {
  switch (entry.kind) {
    case "turn": {
      const parts = [entry.attempt > 1 ? `attempt ${entry.attempt}` : null];
      if (entry.status) parts.push(`HTTP ${entry.status}`);
      if (entry.first_ms !== undefined) parts.push(`first output after ${duration(entry.first_ms - entry.at_ms)}`);
      parts.push(tokensText(entry.usage));
      if (entry.budget) parts.push(budgetText(entry.budget));
      return [`Turn ${entry.turn}`, parts.filter(Boolean).join(" · ")];
    }
    case "reasoning":
    case "text":
      return ["", oneLine(entry.text.trim())];
    case "call": {
      const text = entry.error?.message ?? compact(entry.result ?? "");
      return [entry.name, `${oneLine(compact(entry.arguments), 90)} → ${STATES[entry.state]}${text ? ": " : ""}${oneLine(text, 90)}`];
    }
    case "approval": {
      const answer = entry.answer ? entry.answer.answer + (entry.answer.reason ? `: ${entry.answer.reason}` : "") : "no answer";
      return [entry.name, oneLine(answer)];
    }
    case "signal":
      return [entry.name, oneLine(compact(entry.arguments))];
    case "retry":
      return [`attempt ${entry.attempt}`, oneLine(entry.detail)];
    case "fault":
      return [entry.name, oneLine(entry.detail)];
    case "reloaded":
      return [`generation ${entry.generation}`, oneLine(entry.detail)];
    case "resumed":
      return ["after the end of the process", entry.superseded ? "an interrupted reply is requested again" : ""];
    case "warning":
      return ["", oneLine(entry.message)];
    case "finished": {
      const { state, fail_reason, kind, detail, usage } = request.outcome;
      const parts = [fail_reason, kind !== fail_reason ? kind : null, detail];
      parts.push(tokensText(usage));
      return [state ?? "unknown", oneLine(parts.filter(Boolean).join(" · "))];
    }
    default:
      return ["", ""];
  }
}

/** Returns a list of names and values. Values are texts or nodes; empty values are omitted. */
function facts(pairs) {
  const list = el("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(el("div", null, el("dt", null, name), el("dd", null, typeof value === "string" ? visible(value) : value)));
  }
  return list;
}

function titled(title, ...content) {
  return el("div", { class: "part" }, el("h4", null, title), ...content);
}

function lineOf(entry) {
  return `line ${number(entry.line)}`;
}

/** Returns the details of an entry. */
function details(entry, request) {
  const line = lineOf(entry);
  switch (entry.kind) {
    case "turn":
      return turnDetails(entry, line, request);
    case "reasoning":
    case "text":
      return [stream(entry)];
    case "call":
      return callDetails(entry, line, request);
    case "approval":
      return [facts([["Id", entry.id], ["Answer", entry.answer?.answer ?? "none"], ["Reason", entry.answer?.reason], ["In the file", line]])];
    case "signal":
      return [
        entry.arguments_error ? facts([["Invalid", entry.arguments_error]]) : null,
        titled("Arguments", block(entry.arguments)),
      ];
    case "fault":
    case "retry":
    case "reloaded":
      return [block(entry.detail || "no details", "p"), facts([["In the file", line]])];
    case "resumed":
      return entry.superseded ? [titled("Superseded text", block(entry.superseded))] : [];
    case "warning":
      return [block(entry.message, "p")];
    case "finished":
      return [block(JSON.stringify(request.outcome, null, 2))];
    default:
      return [];
  }
}

/** Returns the milliseconds that a call ran; undefined if that is unknown. */
function ranFor({ started_ms, end_ms }) {
  return started_ms === undefined || end_ms === undefined ? undefined : Math.max(0, end_ms - started_ms);
}

/** Returns the details of a call; without its arguments if `isRepeated`. */
function callDetails(entry, line, request, isRepeated = false) {
  const written = entry.written_ms && entry.written_ms[1] > entry.written_ms[0] ? duration(entry.written_ms[1] - entry.written_ms[0]) : null;
  const ran = ranFor(entry);
  const error = entry.error;
  return [
    facts([
      ["State", STATES[entry.state]],
      ["Written in", written],
      ["Written as", entry.as_text ? "text" : null],
      ["Started at", entry.started_ms !== undefined ? `${offset(entry.started_ms)} s` : null],
      ["Ran for", ran === undefined ? null : duration(ran)],
      ["Id", entry.id],
      ["In the file", line],
      ["Invalid", entry.arguments_error],
      ["Repaired", entry.repairs?.join("; ")],
    ]),
    isRepeated ? null : titled("Arguments", block(entry.arguments)),
    entry.result !== undefined ? titled("Result", block(entry.result), images(request, (entry.attachments ?? []).map(({ sha256 }) => sha256))) : null,
    error ? titled("Error", block(typeof error === "object" && error.message ? `${error.kind}: ${error.message}` : JSON.stringify(error)), facts([["Path", error.path]]), error.details ? block(error.details) : null) : null,
    entry.logs ? titled("Log", block(entry.logs.join("\n"))) : null,
  ];
}

function turnDetails(entry, line, request) {
  const since = (ms) => (ms === undefined ? null : duration(ms - entry.at_ms));
  const folded = (title, text) => (text === undefined ? null : el("details", null, el("summary", null, title), block(text)));
  return [
    facts([
      ["Headers after", since(entry.response_ms)],
      ["First output after", since(entry.first_ms)],
      ["End after", since(entry.end_ms)],
      ["Finish reason", entry.finish_reason],
      ["Budget", entry.budget ? budgetText(entry.budget) : null],
      ["Tools", entry.tool_count ? String(entry.tool_count) : null],
      ["Generation", entry.generation === undefined ? null : String(entry.generation)],
      ["In the file", line],
    ]),
    entry.messages?.length ? titled("New messages", ...entry.messages.map((json) => message(json, request))) : null,
    folded("Tool definitions", entry.tools),
    folded("Other members of the request", entry.settings),
  ];
}

/** The URLs of images that are shown. */
const IMAGE_URL = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$/;

/** Returns the images with these digests; null if the file contains none of them. */
function images(request, digests) {
  const urls = [...new Set(digests)].map((digest) => request.images?.[digest]).filter((url) => IMAGE_URL.test(url ?? ""));
  if (!urls.length) return null;
  return el("div", { class: "images" }, urls.map((src) => el("img", { src, alt: "image", loading: "lazy" })));
}

/** Returns a sent message with its images. Its content is shown as text if it is a string. */
function message(json, request) {
  let role = "message";
  let text = json;
  try {
    const value = JSON.parse(json);
    role = String(value.role ?? value.type ?? role);
    const content = value.content ?? value.output;
    if (typeof content === "string" && !value.tool_calls) text = content;
  } catch {
    // The JSON text is shown.
  }
  const digests = Array.from(json.matchAll(/sha256(?:,|": ")([0-9a-f]{64})"/g), ([, digest]) => digest);
  return el("div", { class: "message" }, el("span", { class: "role" }, visible(oneLine(role, 40))), el("div", null, block(text), images(request, digests)));
}

/** Describes the speed of a stream, as in `45 characters in 9 deltas, longest pause 17 ms after 35 characters`. */
function streamStats({ text, deltas }) {
  const parts = [`${count(text.length, "character")} in ${count(deltas.length, "delta")}`];
  let [longest, before] = [0, 0];
  let sum = 0;
  deltas.forEach(([at, length], index) => {
    const pause = index > 0 ? at - deltas[index - 1][0] : 0;
    if (pause > longest) [longest, before] = [pause, sum];
    sum += length;
  });
  if (longest > 0) parts.push(`longest pause ${duration(longest)} after ${count(before, "character")}`);
  return parts.join(", ");
}

/** Returns a text with a control that shows it as it was streamed. */
function stream(entry) {
  const deltas = entry.deltas;
  const text = entry.text;
  const content = el("div", { class: "stream" });
  const end = deltas.length;
  const isTimed = end > 1 && deltas[end - 1][0] > deltas[0][0];
  const all = () => content.replaceChildren(block(text, "span"));
  all();
  if (end < 2) return content;
  const ends = [];
  let sum = 0;
  for (const [, length] of deltas) ends.push((sum += length));
  const output = el("output", null);
  const slider = el("input", { type: "range", min: 1, max: end, value: end, "aria-label": "Text as it streamed" });
  const show = () => {
    const index = Number(slider.value);
    const at = ends[index - 1];
    const time = isTimed ? `${offset(deltas[index - 1][0])} s, ` : "";
    const state = `${time}delta ${number(index)} of ${number(end)}`;
    output.textContent = state;
    slider.setAttribute("aria-valuetext", state);
    if (index === end) return all();
    const from = Math.max(0, at - MAX_SHOWN);
    const pending = el("span", { class: "pending" }, visible(text.slice(at, at + MAX_SHOWN)));
    const shown = [from > 0 ? "…" : "", ...visible(text.slice(from, at)), el("span", { class: "cursor" }), pending];
    content.replaceChildren(el("span", { class: "content", dir: "auto" }, shown));
  };
  slider.addEventListener("input", show);
  show();
  const controls = el("div", { class: "player" }, isTimed ? playButton(slider, deltas, show) : null, slider, output);
  return el("div", null, content, controls);
}

/** Returns a button that moves the slider with the recorded delays. */
function playButton(slider, deltas, show) {
  let timer = null;
  const button = el("button", { type: "button" }, "Play");
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    button.textContent = "Play";
  };
  const step = () => {
    const index = Number(slider.value);
    if (index >= deltas.length) return stop();
    timer = setTimeout(() => {
      slider.value = index + 1;
      show();
      step();
    }, deltas[index][0] - deltas[index - 1][0]);
  };
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(slider.value) >= deltas.length) slider.value = 1;
    button.textContent = "Stop";
    show();
    step();
  });
  slider.addEventListener("input", () => timer !== null && stop());
  return button;
}
