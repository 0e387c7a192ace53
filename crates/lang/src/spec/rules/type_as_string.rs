use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::diagnostic::{Diagnostic, Edit, rule};
use crate::text::{Location, SourceId};

rule! {
    /// a :type written as a string
    ///
    /// Both notations are sent as the same string; the gptel documentation uses the symbol. There is one finding per
    /// file.
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
    let message = format!("write `:type {word}` instead of `:type \"{word}\"`");
    Diagnostic::new(&TYPE_AS_STRING, at, message).fixed_by(format!("write `{word}`"), at.span, word)
}

/// Merges all findings of a file into one, because most types of a file are usually written the same way. Types with a
/// silenced finding keep their notation, because the finding is already removed.
pub fn merge_type_as_string(findings: &mut Vec<Diagnostic>) {
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
            1 => Some(String::from("there is one more in this file")),
            more => Some(format!("there are {more} more in this file")),
        });
        if let Some(fix) = &mut finding.fix {
            if edits.len() > 1 {
                fix.title = String::from("write symbols");
            }
            fix.edits = edits;
        }
    }
}
