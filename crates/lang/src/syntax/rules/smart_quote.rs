use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::text::{Location, Span};

rule! {
    /// a typographic quotation mark at the start of a string
    ///
    /// Word processors and web pages replace `"` by “ and ”. Emacs treats these as letters and reads the text between
    /// them as symbols. Inside a string they are fine.
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

/// Returns the marks that close a string opened by `opener`; `None` if it is not an opening mark.
pub(in crate::syntax) fn closers(opener: char) -> Option<&'static [char]> {
    match opener {
        '“' | '”' | '„' | '‟' | '＂' => Some(&['”', '“', '‟', '"', '＂']),
        '«' => Some(&['»']),
        '»' => Some(&['«']),
        _ => None,
    }
}

/// Reports a string between typographic marks; `at` includes both marks.
pub(in crate::syntax) fn string(at: Location, text: &str) -> Diagnostic {
    let opener = text.chars().next().unwrap_or(' ');
    let closer = text.chars().next_back().unwrap_or(' ');
    let inside = text.trim_start_matches(opener).trim_end_matches(closer);
    let finding = Diagnostic::new(&SMART_QUOTE, at, format!("strings start with `\"`, not with `{opener}`"));
    // The end of the string is a guess if it contains marks or ends in a plain one.
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

/// Reports a string between single quotes.
pub(in crate::syntax) fn single(at: Location) -> Diagnostic {
    let (start, end) = (at.span.start as usize, at.span.end as usize);
    let edit = |at| Edit { span: Span::new(at, at + 1), replacement: String::from("\"") };
    Diagnostic::new(&SMART_QUOTE, at, "strings start with `\"`, not with `'`")
        .fixed_by_edits("write plain quotation marks", vec![edit(start), edit(end - 1)])
}

/// Reports a single mark, or one that is not closed on its line.
pub(in crate::syntax) fn mark(at: Location, mark: char) -> Diagnostic {
    let finding = Diagnostic::new(&SMART_QUOTE, at, format!("`{mark}` is a letter to Emacs, not a quotation mark"));
    match mark {
        '‘' | '’' | '‛' | '＇' => finding.maybe_fixed_by("write a quote", at.span, "'"),
        _ => finding.note("a string starts and ends with `\"`"),
    }
}
