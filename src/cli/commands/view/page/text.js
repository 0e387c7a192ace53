"use strict";

// Elements and text. All content from the data becomes text nodes or plain attributes; nothing is parsed as HTML.

/** Creates an element. Attributes that start with "on" are listeners; null and false attributes are omitted. */
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/**
 * Characters that are not shown as they are, by the rule of `is_readable` in `lang::text`: all except letters, marks,
 * numbers, punctuation, symbols, white space, joiners and variation selectors.
 */
const HIDDEN =
  /(?:[^\n\t\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\p{Cn}\u200c\u200d\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]|(?![\u200c\u200d\u180b-\u180d\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800])+/gu;
/** Maximum number of elements for escapes in one text. Further escapes are plain text. */
const MAX_ESCAPES = 500;
/** Maximum length of a text that is shown at once. */
const MAX_SHOWN = 20000;

function escaped(run) {
  return Array.from(run, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`).join("");
}

/** Returns nodes that show a text with its hidden characters as escapes. */
function visible(text) {
  const nodes = [];
  let done = 0;
  let count = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (++count > MAX_ESCAPES) break;
    if (match.index > done) nodes.push(text.slice(done, match.index));
    nodes.push(el("span", { class: "escape" }, escaped(match[0])));
    done = match.index + match[0].length;
  }
  const rest = text.slice(done);
  if (rest) nodes.push(count > MAX_ESCAPES ? rest.replace(HIDDEN, escaped) : rest);
  return nodes;
}

/** Returns a text with its hidden characters as escapes, on one line. */
function oneLine(text, limit = 160) {
  const start = text.slice(0, limit * 4).replace(/[ \t\r\n]+/g, " ").replace(HIDDEN, escaped);
  return start.length > limit ? start.slice(0, limit) + "…" : start;
}

/** Returns a block with a text; a long text is cut and has a button that shows all of it. */
function block(text, name = "pre") {
  if (text.length <= MAX_SHOWN) return el(name, { class: "content", dir: "auto" }, visible(text));
  const content = el(name, { class: "content", dir: "auto" }, visible(text.slice(0, MAX_SHOWN)), "…");
  const show = () => {
    content.replaceChildren(...visible(text));
    button.remove();
  };
  const button = el("button", { type: "button", onclick: show }, `Show all ${number(text.length)} characters`);
  return el("div", null, content, button);
}

function number(value) {
  return value.toLocaleString("en-US");
}

function count(value, word, plural = `${word}s`) {
  return `${number(value)} ${value === 1 ? word : plural}`;
}

/** Formats milliseconds as a duration. */
function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 100000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

/** Formats milliseconds since the start of the request. */
function offset(ms) {
  return `+${(ms / 1000).toFixed(3)}`;
}
