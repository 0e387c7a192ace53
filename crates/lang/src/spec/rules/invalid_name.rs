use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::text::{Location, MAX_NAME, portable};

rule! {
    /// a name that APIs reject
    ///
    /// OpenAI and Anthropic accept letters, digits, underscores and dashes, OpenAI at most 64 of them. They reject the whole
    /// request for any other name. Emacs itself accepts any text. In the list of an MCP server, a name that MCP allows is a
    /// warning: programs must rename the tool for the APIs that reject it, as deftool does.
    ///
    /// ```eld fails
    /// (deftool :name "tell time" :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "tell_time" :description "Tell the time.")
    /// ```
    pub(crate) INVALID_NAME, "DT110", "invalid-name", Error
}

/// The names of tools that an API or a protocol accepts: ASCII letters, digits, `_`, `-` and `marks`.
pub(crate) struct NameGrammar {
    name: &'static str,
    /// Its name and the verb.
    accepts: &'static str,
    marks: &'static [char],
    max: usize,
    /// Whether a name must start with a letter or `_`.
    starts_with_letter: bool,
    /// The APIs to which the tools are passed on.
    passed_on: &'static [&'static Self],
}

/// What every API accepts.
pub(crate) const EVERY_API: NameGrammar = NameGrammar {
    name: "APIs",
    accepts: "APIs accept",
    marks: &[],
    max: MAX_NAME,
    starts_with_letter: false,
    passed_on: &[],
};

/// Sources: openai/codex#8174 (2025-12-17), nanbingxyz/5ire#403 (2026-01-17).
pub(crate) const OPENAI: NameGrammar =
    NameGrammar { name: "OpenAI", accepts: "OpenAI accepts", max: MAX_NAME, ..EVERY_API };

/// Source: netclaw-dev/netclaw#1133 (2026-05-21).
pub(crate) const ANTHROPIC: NameGrammar =
    NameGrammar { name: "Anthropic", accepts: "Anthropic accepts", max: 128, ..EVERY_API };

/// Source: kaitranntt/ccs#25 (2025-11-30).
pub(crate) const GEMINI: NameGrammar = NameGrammar {
    name: "Gemini",
    accepts: "Gemini accepts",
    marks: &['.', ':'],
    max: MAX_NAME,
    starts_with_letter: true,
    passed_on: &[],
};

/// Source: "Tool Names" in the specification of MCP, 2025-11-25.
pub(crate) const MCP: NameGrammar = NameGrammar {
    name: "MCP",
    accepts: "MCP accepts",
    marks: &['.'],
    max: 128,
    starts_with_letter: false,
    passed_on: &[&OPENAI, &ANTHROPIC, &GEMINI],
};

impl NameGrammar {
    /// Returns why a name is not accepted.
    fn problem(&self, name: &str) -> Option<String> {
        let accepts = self.accepts;
        let is_accepted = |character: char| is_plain(character) || self.marks.contains(&character);
        let first = name.chars().next();
        if first.is_none() {
            Some(String::from("a name cannot be empty"))
        } else if let Some(bad) = name.chars().find(|&character| !is_accepted(character)) {
            let bad = if bad.is_ascii_graphic() || bad == ' ' || bad.is_alphabetic() {
                format!("`{bad}`")
            } else {
                format!("U+{:04X}", u32::from(bad))
            };
            let marks: String = self.marks.iter().flat_map(|mark| [' ', *mark]).collect();
            Some(format!("invalid character {bad} in a name; {accepts} A-Z a-z 0-9 _ -{marks}"))
        } else if name.len() > self.max {
            Some(format!("name has {} characters; {accepts} at most {}", name.len(), self.max))
        } else if self.starts_with_letter && !first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_') {
            Some(format!("{accepts} only names that start with a letter or `_`"))
        } else {
            None
        }
    }
}

/// Checks `name`, the string at `at`. For argument names see `argument-name`. The name of a provider's own tool is not
/// reported here: the check of a target reports that it rejects the name.
pub(in crate::spec) fn check(at: Location, name: &str, grammar: &NameGrammar) -> Option<Diagnostic> {
    if is_reserved(name) {
        return None;
    }
    let Some(message) = grammar.problem(name) else { return check_passed_on(at, name, grammar) };
    let finding = Diagnostic::new(&INVALID_NAME, at, message);
    let plain = portable(name.trim());
    let is_close = plain.len() <= MAX_NAME && plain.contains(|character: char| character.is_ascii_alphabetic());
    Some(if is_close && plain != name {
        finding.maybe_fixed_by(format!("write \"{plain}\""), at.span, super::quoted(&plain))
    } else {
        finding
    })
}

/// Checks a name for the APIs to which the tool is passed on.
fn check_passed_on(at: Location, name: &str, grammar: &NameGrammar) -> Option<Diagnostic> {
    let rejecting: Vec<_> = grammar
        .passed_on
        .iter()
        .filter_map(|api| Some((api.name, api.problem(name)?)))
        .collect();
    let [names @ .., last] = rejecting.as_slice() else { return None };
    let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let (names, verb) = match names.as_slice() {
        [] => (last.0.to_owned(), "rejects"),
        names => (format!("{} and {}", names.join(", "), last.0), "reject"),
    };
    let mut finding = Diagnostic::new(&INVALID_NAME, at, format!("{names} {verb} the name `{name}`"));
    finding.severity = Severity::Warning;
    finding.notes.extend(rejecting.into_iter().map(|(_, problem)| problem));
    Some(finding.note("programs must rename the tool for these APIs, as deftool does"))
}

/// Whether every API accepts a tool with this name.
pub fn is_tool_name(name: &str) -> bool {
    EVERY_API.problem(name).is_none()
}

/// Whether the name is one of a provider's own tools, such as Moonshot's `$web_search`.
fn is_reserved(name: &str) -> bool {
    name.strip_prefix('$').is_some_and(is_tool_name)
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}
