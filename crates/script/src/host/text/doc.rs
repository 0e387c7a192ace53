//! Documentation of `text`.

use super::super::docs::{FunctionDoc, TableDoc};

pub(in crate::host) const DOC: TableDoc = TableDoc {
    types: "type TextMatch = { text: string, first: number, last: number, groups: { string }, named: { [string]: string } }\n\
            type DiffOptions = { context: number?, old_name: string?, new_name: string? }",
    functions: &[
        FunctionDoc::new("length", "(text: string) -> number", "Returns the number of characters."),
        FunctionDoc::new(
            "sub",
            "(text: string, from: number, to: number?) -> string",
            "Returns the characters from `from` to `to`. Positions start at 1; negative positions count from the end. Like `string.sub`, which counts bytes.",
        )
        .with_example("return text.sub(\"naïve\", 1, 3)  -- naï"),
        FunctionDoc::new("valid", "(text: string) -> boolean", "Returns whether a string is valid UTF-8. Only such strings can be part of a result."),
        FunctionDoc::new(
            "lines",
            "(text: string) -> { string }",
            "Returns the lines without their ends (`\\n` or `\\r\\n`). A line end at the end of the text does not start another line.",
        ),
        FunctionDoc::new("trim", "(text: string) -> string", "Removes Unicode whitespace from both ends."),
        FunctionDoc::new("lower", "(text: string) -> string", "Converts to lower case, including non-ASCII letters (`string.lower` converts only ASCII)."),
        FunctionDoc::new("upper", "(text: string) -> string", "Converts to upper case."),
        FunctionDoc::new("starts_with", "(text: string, start: string) -> boolean", "Returns whether a text starts with `start`."),
        FunctionDoc::new("ends_with", "(text: string, ending: string) -> boolean", "Returns whether a text ends with `ending`."),
        FunctionDoc::new(
            "count",
            "(text: string, part: string) -> number",
            "Returns the number of non-overlapping occurrences of `part`, which is literal text.",
        )
        .with_errors("`part` is empty."),
        FunctionDoc::new(
            "replace",
            "(text: string, old: string, new: string, limit: number?) -> (string, number)",
            "Replaces all occurrences of `old` with `new`, or only the first `limit`. Returns the new text and the number of \
             replacements. Both are literal text, unlike in `string.gsub`.",
        )
        .with_errors("`old` is empty; the result is longer than 8 MiB.")
        .with_example("local source = \"print(a.b(1))\"\nlocal new, count = text.replace(source, \"a.b(\", \"a.c(\")"),
        FunctionDoc::new(
            "wrap",
            "(text: string, width: number) -> string",
            "Wraps lines at spaces to at most `width` characters. Each line is wrapped separately and keeps its indentation. Longer \
             words are not split.",
        ),
        FunctionDoc::new(
            "truncate",
            "(text: string, most: number, options: { bytes: boolean?, mark: string? }?) -> string",
            "Truncates a text to `most` characters, or bytes with `bytes = true`, without splitting a character. A truncated text ends \
             with `mark` (by default `…`), which counts towards the limit.",
        )
        .with_example("local page = string.rep(\"naïve \", 20000)\nreturn text.truncate(page, 60000, { bytes = true, mark = \"\\n[truncated]\" })"),
        FunctionDoc::new(
            "diff",
            "(old: string, new: string, options: DiffOptions?) -> string",
            "Returns a unified diff with `context` unchanged lines (by default 3) around each change, or an empty string for equal texts. \
             After about a second, the search stops looking for the shortest diff and returns a longer one.",
        )
        .with_errors("A text is longer than 4 MiB or 200,000 lines, or is not UTF-8.")
        .with_example("return text.diff(\"one\\n\", \"two\\n\", { old_name = \"a/list\", new_name = \"b/list\" })"),
        FunctionDoc::new(
            "matches",
            "(text: string, pattern: string) -> boolean",
            "Returns whether a regular expression matches anywhere in the text. The syntax is that of Rust's `regex` crate: like in most \
             languages, but without look-around and backreferences, so that matching takes linear time. Flags are part of the pattern: \
             `(?i)` ignore case, `(?m)` `^` and `$` match at lines, `(?s)` `.` matches line ends, `(?x)` allow whitespace and comments.",
        )
        .with_errors(
            "The pattern is invalid, too big, or too costly for a long text (for example with large counts, or a Unicode `\\b` and \
             non-ASCII letters in the text; `(?-u:\\b)` supports only ASCII and is always fast); the text is longer than 8 MiB. This \
             applies to all functions below.",
        )
        .with_example("return text.matches(\"-- FIXME: later\", [[(?i)\\bfix(me|es)\\b]])"),
        FunctionDoc::new(
            "find",
            "(text: string, pattern: string, from: number?) -> TextMatch?",
            "Returns the first match at or after byte `from` (by default 1), or nil: its `text`, the positions of its `first` and `last` \
             byte (for `string.sub`), the texts of its `groups` (empty for a group that did not match), and the `named` groups.",
        )
        .with_example("local found = text.find(\"name = deftool\", [[^(?<key>\\w+)\\s*=\\s*(?<value>.*)$]])\nreturn found and found.named.value"),
        FunctionDoc::new(
            "find_all",
            "(text: string, pattern: string, options: { limit: number? }?) -> { TextMatch }",
            "Returns all non-overlapping matches, at most `limit` (by default and at most 10,000).",
        ),
        FunctionDoc::new(
            "replace_matches",
            "(text: string, pattern: string, replacement: string, limit: number?) -> (string, number)",
            "Replaces all matches, or only the first `limit`. Returns the new text and the number of replacements. In the replacement, \
             `$1`, `${1}` and `${name}` insert groups, and `$$` inserts a dollar sign.",
        )
        .with_errors("The result is longer than 8 MiB; the replacement is longer than 64 KiB.")
        .with_example("local iso = text.replace_matches(\"29/2/2024\", [[(\\d+)/(\\d+)/(\\d+)]], \"$3-$1-$2\")"),
        FunctionDoc::new(
            "escape",
            "(text: string) -> string",
            "Returns a pattern that matches exactly this text.",
        ),
    ],
    ..TableDoc::new(
        "text",
        "Functions for UTF-8 texts. (Luau's `string` works on bytes, `utf8` on code points.) Texts may be at most 8 MiB long and must be \
         UTF-8, except for `valid`, `lines`, `starts_with`, `ends_with`, `count`, `replace` and the regular expressions.",
    )
};
