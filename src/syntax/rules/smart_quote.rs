use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::text::{Location, Span};

rule! {
    /// a typographic quotation mark where a string starts
    ///
    /// Word processors and web pages turn `"` into “ and ”. For Emacs these are letters, and the text between them is a row of
    /// symbols. Inside of a string they are welcome.
    ///
    /// ```eld fails
    /// (deftool :name “now” :description "Tell the time, as “noon” or “six”.")
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time, as “noon” or “six”.")
    /// ```
    pub(crate) SMART_QUOTE, "DT011", "smart-quote", Error
}

/// The marks that close what `opener` opens; `None`: it opens nothing.
pub(in crate::syntax) fn closers(opener: char) -> Option<&'static [char]> {
    match opener {
        '“' | '”' | '„' | '‟' | '＂' => Some(&['”', '“', '‟', '"', '＂']),
        '«' => Some(&['»']),
        '»' => Some(&['«']),
        _ => None,
    }
}

/// A whole string between such marks. `at`: both marks and what stands between them.
pub(in crate::syntax) fn string(at: Location, text: &str) -> Diagnostic {
    let opener = text.chars().next().unwrap_or(' ');
    let closer = text.chars().next_back().unwrap_or(' ');
    let inside = text.trim_start_matches(opener).trim_end_matches(closer);
    let finding = Diagnostic::new(&SMART_QUOTE, at, format!("`{opener}` opens no string; `\"` does"));
    // Where the string ends is a guess when marks stand in it, or when it ends in a plain one.
    let is_mark = |c: char| matches!(c, '"' | '\\' | '“' | '”' | '„' | '‟' | '＂' | '«' | '»');
    if closer == '"' || (opener, closer) == ('“', '“') || inside.contains(is_mark) {
        return finding;
    }
    let (start, end) = (at.span.start as usize, at.span.end as usize);
    let edit = |span| Edit { span, replacement: String::from("\"") };
    let edits = vec![
        edit(Span::new(start, start + opener.len_utf8())),
        edit(Span::new(end - closer.len_utf8(), end)),
    ];
    finding.fixed_by_edits("write plain quotation marks", edits)
}

/// `at`: a string between single quotes.
pub(in crate::syntax) fn single(at: Location) -> Diagnostic {
    let (start, end) = (at.span.start as usize, at.span.end as usize);
    let edit = |at| Edit { span: Span::new(at, at + 1), replacement: String::from("\"") };
    Diagnostic::new(&SMART_QUOTE, at, "`'` opens no string; `\"` does")
        .fixed_by_edits("write plain quotation marks", vec![edit(start), edit(end - 1)])
}

/// A mark that is never closed on its line, or a single one.
pub(in crate::syntax) fn mark(at: Location, mark: char) -> Diagnostic {
    let finding = Diagnostic::new(&SMART_QUOTE, at, format!("`{mark}` is a letter to Emacs, no quotation mark"));
    match mark {
        '‘' | '’' | '‛' | '＇' => finding.maybe_fixed_by("write a quote", at.span, "'"),
        _ => finding.note("a string starts and ends with `\"`"),
    }
}
