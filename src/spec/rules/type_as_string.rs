use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::text::{Location, SourceId};

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

/// Makes one finding of all in a file: where one type is a string, most are. What is allowed is gone by then, and stays
/// as it is.
pub(crate) fn merge(findings: &mut Vec<Diagnostic>) {
    let mut edits: BTreeMap<SourceId, Vec<Edit>> = BTreeMap::new();
    findings.retain_mut(|finding| {
        if finding.rule != &TYPE_AS_STRING {
            return true;
        }
        let of_fix = finding.fix.iter_mut().flat_map(|fix| fix.edits.drain(..));
        match edits.entry(finding.primary.source) {
            Entry::Vacant(first) => {
                first.insert(of_fix.collect());
                true
            }
            Entry::Occupied(mut others) => {
                others.get_mut().extend(of_fix);
                false
            }
        }
    });
    for finding in findings.iter_mut().filter(|finding| finding.rule == &TYPE_AS_STRING) {
        let mut edits = edits.remove(&finding.primary.source).unwrap_or_default();
        edits.sort_unstable_by_key(|edit| edit.span);
        finding.notes.extend(match edits.len().saturating_sub(1) {
            0 => None,
            1 => Some(String::from("so is one more in this file")),
            more => Some(format!("so are {more} more in this file")),
        });
        if let Some(fix) = &mut finding.fix {
            if edits.len() > 1 {
                fix.title = String::from("write symbols");
            }
            fix.edits = edits;
        }
    }
}
