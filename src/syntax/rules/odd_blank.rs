use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a blank that Emacs takes for a letter
    ///
    /// Text copied from web pages and chats holds blanks that only look like one: narrow and wide spaces, spaces of no width.
    /// Emacs separates words at spaces, tabs, line ends and no-break spaces; every other blank is part of a symbol, so a
    /// key with one at its end is another key.
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

/// Whether it looks like a blank or like nothing and is a letter to Emacs. Joiners are left alone: words of some
/// scripts need them.
pub(in crate::syntax) fn is_odd(character: char) -> bool {
    is_wide(character) || matches!(character, '\u{AD}' | '\u{200B}' | '\u{2060}' | '\u{FEFF}')
}

fn is_wide(character: char) -> bool {
    matches!(character, '\u{85}' | '\u{1680}' | '\u{2000}'..='\u{200A}' | '\u{2028}' | '\u{2029}' | '\u{202F}' | '\u{205F}' | '\u{3000}')
}

/// `run`: such characters, one after the other.
pub(in crate::syntax) fn finding(at: Location, run: &str) -> Diagnostic {
    let first = run.chars().next().unwrap_or(' ');
    let code = u32::from(first);
    let message = format!("U+{code:04X} looks like a blank and is part of a word to Emacs");
    let finding = Diagnostic::new(&ODD_BLANK, at, message);
    if has_no_width(run) {
        finding.fixed_by("remove it", at.span, "")
    } else {
        finding.fixed_by("write a space", at.span, " ")
    }
}

/// Whether nothing of it is seen.
pub(in crate::syntax) fn has_no_width(run: &str) -> bool {
    !run.chars().any(is_wide)
}
