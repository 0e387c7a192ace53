// Two runs side by side.

/** Returns the state of a row. */
function rowState(row) {
  if (row.left === undefined) return "right only";
  if (row.right === undefined) return "left only";
  return row.fields || row.words ? "changed" : "same";
}

/** Adds a row to the list. */
function addRow(list, files, row, index) {
  const sides = ["left", "right"].map((side, at) => {
    const request = files[at].requests[row.request];
    return row[side] === undefined ? null : { request, entry: request.entries[row[side]] };
  });
  const state = rowState(row);
  const { entry } = sides[0] ?? sides[1];
  const [label, group] = KINDS[entry.kind];
  const cell = (side) => {
    if (!side) return el("span", { class: "cell absent" }, "—");
    const [name, text] = summary(side.entry, side.request);
    return el("span", { class: "cell" }, el("span", { class: "time" }, timeOf(side.entry)), el("span", { class: "summary" }, name ? el("b", null, visible(name)) : null, " ", text));
  };
  const differs = state !== "same";
  view.add(list, {
    id: `r${index}`,
    classes: `row ${entry.kind}${differs ? " differs" : ""}${state === "changed" ? " changed" : ""}`,
    head: [el("span", { class: `state ${state.replace(" ", "-")}` }, state), el("span", { class: "kind" }, label), cell(sides[0]), cell(sides[1])],
    build: () => rowDetails(row, sides),
    text: () => [label, state, ...strings(sides[0]?.entry), ...strings(sides[1]?.entry)],
    group,
    differs,
    heading: entry.kind === "turn" ? "h3" : null,
  });
}

function rowDetails(row, sides) {
  const column = (side, which) => {
    if (!side) return el("div", { class: "column" });
    const content = row.words ? [changedWords(row.words, which)] : details(side.entry, side.request);
    return el("div", { class: "column" }, content);
  };
  const columns = el("div", { class: "columns" }, column(sides[0], "left"), column(sides[1], "right"));
  if (!row.fields) return [columns];
  return [changedFields(row.fields), el("details", null, el("summary", null, "Both entries"), columns)];
}

/** Returns a table of the differing fields. */
function changedFields(fields) {
  const value = (text) => el("td", null, text === undefined ? el("i", null, "absent") : block(text, "code"));
  const rows = fields.map(({ path, left, right }) => el("tr", null, el("th", { scope: "row" }, visible(path || "value")), value(left), value(right)));
  const head = el("tr", null, ["Field", "Left", "Right"].map((title) => el("th", { scope: "col" }, title)));
  return el("table", { class: "fields" }, el("caption", null, "Differences"), el("thead", null, head), el("tbody", null, rows));
}

/** Returns one side of a text; its own words are marked. */
function changedWords(words, which) {
  const nodes = words
    .filter(([side]) => side === "both" || side === which)
    .map(([side, text]) => (side === "both" ? visible(text) : el(which === "left" ? "del" : "ins", null, visible(text))));
  return el("p", { class: "content", dir: "auto" }, nodes.flat());
}
