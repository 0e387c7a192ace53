use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a name that APIs reject
    ///
    /// OpenAI and Anthropic accept at most 64 letters, digits, underscores and dashes. They reject the whole request
    /// for any other name. Emacs itself accepts any text.
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

/// Maximum length of a name that every API accepts.
const MAX_NAME: usize = 64;

/// Checks `name`, the string at `at`. For argument names see `argument-name`. The name of a provider's own tool is not
/// reported here: the check of a target reports that it rejects the name.
pub(in crate::spec) fn check(at: Location, name: &str) -> Option<Diagnostic> {
    if is_reserved(name) {
        return None;
    }
    let message = if name.is_empty() {
        String::from("a name cannot be empty")
    } else if let Some(bad) = name.chars().find(|&character| !is_plain(character)) {
        let bad = if bad.is_ascii_graphic() || bad == ' ' || bad.is_alphabetic() {
            format!("`{bad}`")
        } else {
            format!("U+{:04X}", u32::from(bad))
        };
        format!("invalid character {bad} in a name; APIs accept A-Z a-z 0-9 _ -")
    } else if name.len() > MAX_NAME {
        format!("name has {} characters; APIs accept at most {MAX_NAME}", name.len())
    } else {
        return None;
    };
    let finding = Diagnostic::new(&INVALID_NAME, at, message);
    let plain: String =
        name.trim().chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    let is_close = plain.len() <= MAX_NAME && plain.contains(|character: char| character.is_ascii_alphabetic());
    Some(if is_close && plain != name {
        finding.maybe_fixed_by(format!("write \"{plain}\""), at.span, super::quoted(&plain))
    } else {
        finding
    })
}

/// Whether every API accepts a tool with this name.
pub fn is_tool_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain)
}

/// Whether the name is one of a provider's own tools, such as Moonshot's `$web_search`.
fn is_reserved(name: &str) -> bool {
    name.strip_prefix('$').is_some_and(is_tool_name)
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}
