// The page of the run panel. Everything from outside is added as text, never as HTML.
import type { Approval, EventParams, JsonValue } from "../../../docs/schemas/rpc";

type Event = EventParams["event"];

/** A message to the page. */
export type ToPanel =
  | { type: "started"; text: string }
  | { type: "event"; event: Event }
  | { type: "log" | "error"; text: string }
  | { type: "question"; id: string; text: string }
  | { type: "answered"; id: string }
  | { type: "ended" };

/** A message from the page. */
export type FromPanel =
  | { type: "send"; text: string }
  | { type: "cancel" }
  | { type: "answer"; id: string; answer: Approval };

declare function acquireVsCodeApi(): { postMessage(message: FromPanel): void };
const code = acquireVsCodeApi();

/** Maximum length of a one-line description of a call, in characters. */
const MAX_TITLE = 200;

const conversation = document.querySelector("main")!;
const questions = document.body.appendChild(document.createElement("section"));
const input = document.body.appendChild(document.createElement("form"));
const prompt = input.appendChild(document.createElement("textarea"));
prompt.placeholder = "Message";
prompt.rows = 3;
const send = button(input, "Send", () => input.requestSubmit());
const cancel = button(input, "Cancel", () => code.postMessage({ type: "cancel" }));
cancel.hidden = true;

/** The entries of the calls, by ID. */
const calls = new Map<string, HTMLDetailsElement>();
/** The entry to which text is added. */
let current: { kind: string; entry: HTMLElement } | undefined;

input.addEventListener("submit", (event) => {
  event.preventDefault();
  if (prompt.value.trim() === "" || send.hidden) return;
  code.postMessage({ type: "send", text: prompt.value });
  prompt.value = "";
});
prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    input.requestSubmit();
  }
});
window.addEventListener("message", ({ data }: MessageEvent<ToPanel>) => {
  const { clientHeight, scrollHeight, scrollTop } = conversation;
  show(data);
  // Follow the reply, unless the user reads above it.
  if (scrollTop + clientHeight >= scrollHeight - 20) conversation.scrollTop = conversation.scrollHeight;
});
prompt.focus();

function show(message: ToPanel): void {
  switch (message.type) {
    case "started":
      setRunning(true);
      add("user").textContent = message.text;
      break;
    case "event":
      showEvent(message.event);
      break;
    case "log":
    case "error":
      add(message.type).textContent = message.text;
      break;
    case "question":
      showQuestion(message.id, message.text);
      break;
    case "answered":
      document.getElementById(`question-${message.id}`)?.remove();
      break;
    case "ended":
      setRunning(false);
      break;
  }
}

function showEvent(event: Event): void {
  switch (event.type) {
    case "text":
    case "reasoning":
      append(event.type, event.text);
      break;
    case "tool_call":
      calls.set(event.id, addCall(event.name, event.arguments, "waiting"));
      break;
    case "tool_started":
      setState(event.id, "running");
      break;
    case "tool_finished": {
      const output = event.error ?? event.result ?? null;
      const entry = setState(event.id, event.ok ? "done" : "failed");
      if (entry) entry.appendChild(document.createElement("pre")).textContent = textOf(output);
      break;
    }
    case "approval":
      if (event.answer?.answer === "refused") setState(event.id, "refused");
      break;
    case "signal":
      addCall(event.tool_name, event.arguments, "signal");
      break;
    case "warning":
      add("log").textContent = event.message;
      break;
    case "retry":
    case "reloaded":
      add("log").textContent = event.detail;
      break;
    case "finished":
      if (event.state === "failed") add("error").textContent = event.detail ?? "the request failed";
      if (event.state === "canceled") add("log").textContent = "canceled";
      break;
  }
}

/** Adds text to the last entry, or to a new one if that is of another kind. */
function append(kind: string, text: string): void {
  if (current?.kind !== kind) current = { kind, entry: add(kind) };
  current.entry.append(text);
}

/** Adds an empty entry. */
function add(kind: string): HTMLElement {
  current = undefined;
  const entry = conversation.appendChild(document.createElement("div"));
  entry.className = kind;
  return entry;
}

/** Adds a call, whose result is shown when the user opens it. */
function addCall(name: string, args: JsonValue, state: string): HTMLDetailsElement {
  const entry = add("call").appendChild(document.createElement("details"));
  entry.dataset.state = state;
  const title = `${name} ${textOf(args)}`;
  entry.appendChild(document.createElement("summary")).textContent =
    title.length > MAX_TITLE ? `${title.slice(0, MAX_TITLE)}…` : title;
  return entry;
}

/** Changes the visible state of a call. A refused call stays refused. */
function setState(id: string, state: string): HTMLDetailsElement | undefined {
  const entry = calls.get(id);
  if (entry && entry.dataset.state !== "refused") entry.dataset.state = state;
  return entry;
}

function showQuestion(id: string, text: string): void {
  const question = questions.appendChild(document.createElement("div"));
  question.id = `question-${id}`;
  question.appendChild(document.createElement("pre")).textContent = text;
  const answer = (answer: Approval): void => code.postMessage({ type: "answer", id, answer });
  button(question, "Allow", () => answer({ answer: "allowed" }));
  button(question, "Refuse", () => answer({ answer: "refused", reason: reason.value }));
  const reason = question.appendChild(document.createElement("input"));
  reason.placeholder = "Reason for the model";
}

function setRunning(isRunning: boolean): void {
  send.hidden = isRunning;
  cancel.hidden = !isRunning;
}

function button(parent: HTMLElement, label: string, onClick: () => void): HTMLButtonElement {
  const button = parent.appendChild(document.createElement("button"));
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", onClick);
  return button;
}

function textOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
