use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::spec::keywords::{self, ValueKind};
use crate::spec::{Ask, Json, JsonKind, Member, Tool};
use crate::text::{Location, SourceId, Span};

rule! {
    /// a single backslash in a :pattern
    ///
    /// Emacs Lisp strings interpret the backslash: `"\w"` is the letter w, `"\s"` a space, `"\d"` the character DEL.
    /// The resulting pattern differs from the intended one and usually matches nothing. Write two backslashes in the
    /// string for each backslash in the pattern.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "^\d{4}-\d\d$")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "^\\d{4}-\\d\\d$")))
    /// ```
    pub(crate) LONE_BACKSLASH, "DT255", "lone-backslash", Warning
}

/// Checks every `:pattern` of `tool` that is a single string literal in `text`, the complete text of its source.
pub(in crate::spec) fn check(tool: &Tool, text: &str, findings: &mut Vec<Diagnostic>) {
    for argument in &tool.arguments {
        check_members(tool.source, &argument.schema, text, findings);
    }
    for ask in &tool.asks {
        check_ask(ask, text, findings);
    }
}

/// Checks every `:pattern` in an ask.
pub(in crate::spec) fn check_ask(ask: &Ask, text: &str, findings: &mut Vec<Diagnostic>) {
    for schema in ask.schemas() {
        check_schema(ask.source, schema, text, findings);
    }
}

fn check_members(source: SourceId, schema: &[Member], text: &str, findings: &mut Vec<Diagnostic>) {
    for Member { key, value, .. } in schema {
        match (keywords::value_kind(key), &value.kind) {
            (_, JsonKind::String(_)) if key == "pattern" => {
                findings.extend(finding(source, value.span, value.span.of(text)));
            }
            (ValueKind::Schema, JsonKind::Object(members)) => check_members(source, members, text, findings),
            (ValueKind::Schema | ValueKind::Schemas, JsonKind::Array(items)) => {
                for item in items {
                    check_schema(source, item, text, findings);
                }
            }
            (ValueKind::Named, JsonKind::Object(named)) => {
                for member in named {
                    check_schema(source, &member.value, text, findings);
                }
            }
            _ => {}
        }
    }
}

fn check_schema(source: SourceId, schema: &Json, text: &str, findings: &mut Vec<Diagnostic>) {
    if let JsonKind::Object(members) = &schema.kind {
        check_members(source, members, text, findings);
    }
}

fn finding(source: SourceId, span: Span, literal: &str) -> Option<Diagnostic> {
    let lone = lone_escapes(literal.strip_prefix('"')?);
    let &(first, letter) = lone.first()?;
    let start = span.start as usize + 1 + first;
    let sent = match letter {
        's' => String::from("a space"),
        'd' => String::from("the character DEL"),
        'b' => String::from("a backspace"),
        '^' => String::from("a control character"),
        other => format!("`{other}`"),
    };
    let message = format!("`\\{letter}` in a string is {sent}; write `\\\\{letter}` for a backslash in the pattern");
    let at = Location { source, span: Span::new(start, start + 2) };
    let mut finding = Diagnostic::new(&LONE_BACKSLASH, at, message);
    let edit = |(offset, _): (usize, char)| Edit {
        span: Span::at(span.start as usize + 1 + offset),
        replacement: String::from("\\"),
    };
    let title = if lone.len() == 1 { "double the backslash" } else { "double the backslashes" };
    let edits = lone.into_iter().map(edit).collect();
    finding.fix = Some(Fix { title: String::from(title), edits, is_safe: false });
    Some(finding)
}

/// Returns the single backslashes before characters with a meaning in patterns. Escapes that Emacs supports (`\n`,
/// `\u00e9`) may be intended and are skipped.
fn lone_escapes(inside: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        if character != '\\' {
            continue;
        }
        if let Some((_, letter)) = characters.next()
            && r"dwsbBDWSpP.()[]+*?{}|/^$-".contains(letter)
        {
            found.push((at, letter));
        }
    }
    found
}

/// Returns the spans of all lone backslashes, sorted.
pub fn lone_backslashes(findings: &[Diagnostic]) -> Vec<Span> {
    let lone = findings.iter().filter(|finding| *finding.rule == LONE_BACKSLASH);
    let mut places: Vec<Span> = lone.map(|finding| finding.primary.span).collect();
    places.sort_unstable();
    places
}

/// Whether one of `places`, from [`lone_backslashes`], is inside the string `pattern`. Other findings for this pattern
/// may then be consequences.
pub fn contains_lone_backslash(places: &[Span], pattern: Span) -> bool {
    let first = places.partition_point(|place| place.start < pattern.start);
    places.get(first).is_some_and(|place| place.end <= pattern.end)
}
