use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a space character that Emacs treats as a letter
    ///
    /// Text copied from web pages and chats can contain unusual spaces: narrow, wide and zero-width ones. Emacs
    /// separates words at spaces, tabs, line ends and no-break spaces only. Any other space character becomes part of
    /// a symbol, so a key that ends in one is a different key.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    pub(crate) ODD_BLANK, "DT010", "odd-blank", Error
}

/// Whether the character looks like a space or is invisible, but is a letter to Emacs. Joiners are excluded: some
/// scripts need them in words.
pub(in crate::syntax) fn is_odd(character: char) -> bool {
    is_wide(character) || matches!(character, '\u{AD}' | '\u{200B}' | '\u{2060}' | '\u{FEFF}')
}

fn is_wide(character: char) -> bool {
    matches!(character, '\u{85}' | '\u{1680}' | '\u{2000}'..='\u{200A}' | '\u{2028}' | '\u{2029}' | '\u{202F}' | '\u{205F}' | '\u{3000}')
}

/// `run` is a run of such characters.
pub(in crate::syntax) fn finding(at: Location, run: &str) -> Diagnostic {
    let first = run.chars().next().unwrap_or(' ');
    let code = u32::from(first);
    let message = format!("U+{code:04X} looks like a space, but Emacs treats it as a letter");
    let finding = Diagnostic::new(&ODD_BLANK, at, message);
    if has_no_width(run) {
        finding.fixed_by("remove it", at.span, "")
    } else {
        finding.fixed_by("write a space", at.span, " ")
    }
}

/// Whether all characters are invisible.
pub(in crate::syntax) fn has_no_width(run: &str) -> bool {
    !run.chars().any(is_wide)
}
