use crate::diagnostic::{Diagnostic, Edit, Fix, rule};
use crate::text::Location;

rule! {
    /// a :type written as a string
    ///
    /// Both are sent as the same string; the symbol is how gptel's documentation writes it. Told once a file.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type "string")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) TYPE_AS_STRING, "DT217", "type-as-string", Note
}

pub(in crate::spec) fn finding(at: Location, word: &str) -> Diagnostic {
    let message = format!("`:type \"{word}\"` is written `:type {word}`");
    Diagnostic::new(&TYPE_AS_STRING, at, message).fixed_by(format!("write `{word}`"), at.span, word)
}

/// Makes one finding of all in a file: where one type is a string, most are.
pub(in crate::spec) fn merge(findings: &mut Vec<Diagnostic>) {
    let mut first: Option<usize> = None;
    let mut edits: Vec<Edit> = Vec::new();
    let mut kept = 0;
    findings.retain(|finding| {
        let is_later = first.is_some() && finding.rule == &TYPE_AS_STRING;
        if finding.rule == &TYPE_AS_STRING {
            first.get_or_insert(kept);
            edits.extend(finding.fix.iter().flat_map(|fix| fix.edits.iter().cloned()));
        }
        kept += usize::from(!is_later);
        !is_later
    });
    let Some(finding) = first.and_then(|index| findings.get_mut(index)).filter(|_| edits.len() > 1) else { return };
    finding.notes.push(match edits.len() - 1 {
        1 => String::from("so is one more in this file"),
        more => format!("so are {more} more in this file"),
    });
    edits.sort_unstable_by_key(|edit| edit.span);
    finding.fix = Some(Fix { title: String::from("write symbols"), edits, is_safe: true });
}
