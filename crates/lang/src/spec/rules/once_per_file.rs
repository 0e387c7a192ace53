//! Rules that report once per file, because a file is usually written in one style.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::name_style::NAME_STYLE;
use super::type_as_string::TYPE_AS_STRING;
use crate::diagnostic::Diagnostic;

/// Merges the findings of a rule about style in each file into the first one, with their fixes. A silenced finding is
/// already removed.
pub fn merge_style(findings: &mut Vec<Diagnostic>) {
    let is_style = |finding: &Diagnostic| finding.rule == &TYPE_AS_STRING || finding.rule == &NAME_STYLE;
    let mut merged = BTreeMap::new();
    findings.retain_mut(|finding| {
        if !is_style(finding) {
            return true;
        }
        let of_fix = finding.fix.iter_mut().flat_map(|fix| fix.edits.drain(..));
        match merged.entry((finding.rule.code, finding.primary.source)) {
            Entry::Vacant(first) => {
                first.insert((of_fix.collect::<Vec<_>>(), 0));
                true
            }
            Entry::Occupied(mut first) => {
                let (edits, more) = first.get_mut();
                edits.extend(of_fix);
                *more += 1;
                false
            }
        }
    });
    for finding in findings.iter_mut().filter(|finding| is_style(finding)) {
        let Some((mut edits, more)) = merged.remove(&(finding.rule.code, finding.primary.source)) else {
            continue;
        };
        edits.sort_unstable_by_key(|edit| edit.span);
        finding.notes.extend(match more {
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
