//! What scripts' authors are told of `text`.

use super::super::{FunctionDoc, TableDoc};

pub(in crate::script::host) const DOC: TableDoc = TableDoc {
    types: "type TextMatch = { text: string, first: number, last: number, groups: { string }, named: { [string]: string } }\n\
            type DiffOptions = { context: number?, old_name: string?, new_name: string? }",
    functions: &[
        FunctionDoc::new("length", "(text: string) -> number", "The number of characters."),
        FunctionDoc::new(
            "sub",
            "(text: string, from: number, to: number?) -> string",
            "The characters `from` to `to`, counted from 1, or from the end where negative, as `string.sub` does with bytes.",
        )
        .as_in("return text.sub(\"naïve\", 1, 3)  -- naï"),
        FunctionDoc::new("valid", "(text: string) -> boolean", "Whether a string is UTF-8 and so can be a result."),
        FunctionDoc::new(
            "lines",
            "(text: string) -> { string }",
            "The lines, without their ends (`\\n` or `\\r\\n`). An end at the end of the text begins no further line.",
        ),
        FunctionDoc::new("trim", "(text: string) -> string", "Without the blanks at both ends, Unicode's among them."),
        FunctionDoc::new("lower", "(text: string) -> string", "In lower case, of any script; `string.lower` knows ASCII."),
        FunctionDoc::new("upper", "(text: string) -> string", "In upper case."),
        FunctionDoc::new("starts_with", "(text: string, start: string) -> boolean", "Whether a text starts so."),
        FunctionDoc::new("ends_with", "(text: string, ending: string) -> boolean", "Whether a text ends so."),
        FunctionDoc::new(
            "count",
            "(text: string, part: string) -> number",
            "How often a text holds another, without overlaps. Nothing is special in it.",
        )
        .fails("An empty part."),
        FunctionDoc::new(
            "replace",
            "(text: string, old: string, new: string, limit: number?) -> (string, number)",
            "The text with `old` replaced by `new`, everywhere or `limit` times from the start, and how often that was. Nothing is \
             special in either, as it is in `string.gsub`.",
        )
        .fails("An empty `old`; a result longer than 8 MiB.")
        .as_in("local source = \"print(a.b(1))\"\nlocal new, count = text.replace(source, \"a.b(\", \"a.c(\")"),
        FunctionDoc::new(
            "wrap",
            "(text: string, width: number) -> string",
            "In lines of at most `width` characters, broken at blanks. Each line is wrapped by itself and keeps the blanks it begins \
             with; a word that is longer stays whole.",
        ),
        FunctionDoc::new(
            "truncate",
            "(text: string, most: number, options: { bytes: boolean?, mark: string? }?) -> string",
            "The text cut to `most` characters, or bytes with `bytes = true`, but never within a character. What was cut ends with \
             `mark`, which counts, too; `…` by default.",
        )
        .as_in("local page = string.rep(\"naïve \", 20000)\nreturn text.truncate(page, 60000, { bytes = true, mark = \"\\n[cut]\" })"),
        FunctionDoc::new(
            "diff",
            "(old: string, new: string, options: DiffOptions?) -> string",
            "What changed, as a unified diff with `context` unchanged lines (3) around each change; empty where nothing did. \
             Beyond a second or so the search for the shortest ends with a longer one.",
        )
        .fails("A text longer than 4 MiB or 200,000 lines, or not UTF-8.")
        .as_in("return text.diff(\"one\\n\", \"two\\n\", { old_name = \"a/list\", new_name = \"b/list\" })"),
        FunctionDoc::new(
            "matches",
            "(text: string, pattern: string) -> boolean",
            "Whether a regular expression matches anywhere. The syntax is Rust's: as in most languages, but without look-around \
             and backreferences, so that no pattern takes for ever. Flags stand in the pattern: `(?i)` either case, `(?m)` `^` and `$` \
             at lines, `(?s)` `.` for line ends, too, `(?x)` blanks and comments.",
        )
        .fails(
            "A pattern that makes no sense, is too big, or is too costly for a long text, as one with large counts or with a Unicode `\\b` \
             beside letters beyond ASCII can be (`(?-u:\\b)` knows ASCII alone and costs nothing); a text longer than 8 MiB. So for all \
             functions below.",
        )
        .as_in("return text.matches(\"-- FIXME: later\", [[(?i)\\bfix(me|es)\\b]])"),
        FunctionDoc::new(
            "find",
            "(text: string, pattern: string, from: number?) -> TextMatch?",
            "The first match from byte `from` (1) on: its text, its `first` and `last` byte, for `string.sub`, what its groups matched \
             (an empty string where a group took no part), and by name what the groups with names did.",
        )
        .as_in("local found = text.find(\"name = deftool\", [[^(?<key>\\w+)\\s*=\\s*(?<value>.*)$]])\nreturn found and found.named.value"),
        FunctionDoc::new(
            "find_all",
            "(text: string, pattern: string, options: { limit: number? }?) -> { TextMatch }",
            "All matches that do not overlap, 10,000 by default and at most.",
        ),
        FunctionDoc::new(
            "replace_matches",
            "(text: string, pattern: string, replacement: string, limit: number?) -> (string, number)",
            "The text with matches replaced, everywhere or `limit` times from the start, and how often that was. `$1`, `${1}` and `${name}` \
             in the replacement stand for groups, `$$` for a dollar sign.",
        )
        .fails("A result longer than 8 MiB; a replacement longer than 64 KiB.")
        .as_in("local iso = text.replace_matches(\"29/2/2024\", [[(\\d+)/(\\d+)/(\\d+)]], \"$3-$1-$2\")"),
        FunctionDoc::new(
            "escape",
            "(text: string) -> string",
            "The pattern that matches just this text.",
        ),
    ],
    ..TableDoc::new(
        "text",
        "UTF-8 texts, where Luau's `string` knows bytes (and `utf8` code points). Texts are 8 MiB at most; one that is not UTF-8 is \
         an error, but for `valid`, `lines`, `starts_with`, `ends_with`, `count`, `replace` and the regular expressions.",
    )
};
