//! Applies compatible fixes to a text.
//!
//! A fix is applied completely or not at all. If two fixes overlap, the one that comes first in the text is applied.
//! The second one can be applied in the next round, after the text is checked again. The caller decides whether to run
//! further rounds and which fixes to apply without review.

use std::collections::BTreeMap;

use super::{Edit, Fix};

/// A text with fixes applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// The new text.
    pub text: String,
    /// Number of applied fixes.
    pub applied: usize,
}

/// Applies the compatible subset of `fixes`, which all refer to `text`.
pub fn apply_fixes<'f>(text: &str, fixes: impl IntoIterator<Item = &'f Fix>) -> Fixed {
    let (edits, applied) = compatible_edits(text, fixes);
    let mut fixed = String::with_capacity(text.len());
    let mut copied = 0;
    for edit in edits {
        fixed.push_str(text.get(copied..edit.span.start as usize).unwrap_or_default());
        fixed.push_str(&edit.replacement);
        copied = edit.span.end as usize;
    }
    fixed.push_str(text.get(copied..).unwrap_or_default());
    Fixed { text: fixed, applied }
}

/// Returns the edits of the compatible subset of `fixes`, which all refer to `text`, in source order, and the size of the
/// subset.
pub fn compatible_edits<'f>(text: &str, fixes: impl IntoIterator<Item = &'f Fix>) -> (Vec<Edit>, usize) {
    let mut fixes: Vec<&Fix> = fixes.into_iter().filter(|fix| is_valid(fix, text)).collect();
    fixes.sort_by_key(|fix| fix.edits.first().map(|edit| edit.span));
    let mut accepted: BTreeMap<u32, &Edit> = BTreeMap::new();
    let mut applied = 0;
    for fix in fixes {
        if fix.edits.iter().all(|edit| is_free(&accepted, edit)) {
            accepted.extend(fix.edits.iter().map(|edit| (edit.span.start, edit)));
            applied += 1;
        }
    }
    (accepted.into_values().cloned().collect(), applied)
}

/// Returns whether a fix changes something, its edits are sorted and disjoint, and each is on character boundaries of
/// `text`.
fn is_valid(fix: &Fix, text: &str) -> bool {
    let in_text = fix.edits.iter().all(|edit| text.get(edit.span.range()).is_some());
    let apart = fix
        .edits
        .iter()
        .zip(fix.edits.iter().skip(1))
        .all(|(edit, next)| edit.span.end <= next.span.start && edit.span.start < next.span.start);
    let changes = fix.edits.iter().any(|edit| edit.span.of(text) != edit.replacement);
    in_text && apart && changes
}

/// Returns whether no accepted edit conflicts with `edit`. Adjacent edits conflict only if one of them is an insertion,
/// because their order is then ambiguous.
fn is_free(accepted: &BTreeMap<u32, &Edit>, edit: &Edit) -> bool {
    let span = edit.span;
    let before = accepted.range(..span.start).next_back();
    let after = accepted.range(span.start..).next();
    let is_clear_before = before.is_none_or(|(_, other)| {
        other.span.end < span.start || (other.span.end == span.start && !span.is_empty())
    });
    let is_clear_after = after.is_none_or(|(&start, other)| {
        span.end < start || (span.end == start && !span.is_empty() && !other.span.is_empty())
    });
    is_clear_before && is_clear_after
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Span;

    fn fix(edits: &[(usize, usize, &str)]) -> Fix {
        let edits = edits.iter().map(|&(start, end, replacement)| Edit {
            span: Span::new(start, end),
            replacement: replacement.to_owned(),
        });
        Fix { title: String::new(), edits: edits.collect(), is_safe: true }
    }

    fn apply(text: &str, fixes: &[Fix]) -> (String, usize) {
        let Fixed { text, applied } = apply_fixes(text, fixes);
        (text, applied)
    }

    #[test]
    fn applies_fixes_completely_and_prefers_the_first() {
        let first = fix(&[(0, 2, "AB")]);
        let overlapping = fix(&[(1, 3, "x"), (8, 9, "y")]);
        let apart = fix(&[(4, 5, ""), (6, 7, "long")]);
        let text = "abcdefghij";
        let all = [apart.clone(), overlapping.clone(), first];
        assert_eq!(apply(text, &all), (String::from("ABcdflonghij"), 2));
        assert_eq!(apply(text, &[overlapping]), (String::from("axdefghyj"), 1));
        assert_eq!(apply(text, &[]), (text.to_owned(), 0));
        assert_eq!(apply(text, &[apart.clone(), apart]).1, 1, "a duplicate fix is applied once");
    }

    #[test]
    fn adjacent_edits_are_compatible_but_insertions_at_the_same_position_are_not() {
        assert_eq!(apply("abcd", &[fix(&[(0, 2, "x")]), fix(&[(2, 4, "y")])]), (String::from("xy"), 2));
        assert_eq!(apply("ab", &[fix(&[(1, 1, "x")]), fix(&[(1, 1, "y")])]), (String::from("axb"), 1));
        assert_eq!(apply("ab", &[fix(&[(0, 1, "x")]), fix(&[(1, 1, "y")])]), (String::from("xb"), 1));
        assert_eq!(apply("ab", &[fix(&[(1, 1, "y")]), fix(&[(1, 2, "x")])]), (String::from("ayb"), 1));
    }

    #[test]
    fn ignores_invalid_fixes() {
        for bad in [
            fix(&[(1, 9, "x")]),
            fix(&[(1, 2, "x")]),
            fix(&[(3, 4, "x"), (0, 1, "y")]),
            fix(&[(0, 1, "a")]),
            fix(&[]),
        ] {
            assert_eq!(apply("aébc", std::slice::from_ref(&bad)), (String::from("aébc"), 0), "{bad:?}");
        }
    }

    fn fixes() -> impl Strategy<Value = (String, Vec<Fix>)> {
        let edit = (0..40_usize, 0..6_usize, "[xyz]{0,3}");
        let edits = prop::collection::vec(edit, 1..4);
        ("[a-eé]{0,30}", prop::collection::vec(edits, 0..8)).prop_map(|(text, fixes)| {
            let fixes = fixes.iter().map(|edits| {
                let edits: Vec<(usize, usize, &str)> =
                    edits.iter().map(|(start, len, new)| (*start, start + len, new.as_str())).collect();
                fix(&edits)
            });
            (text, fixes.collect())
        })
    }

    proptest! {
        /// The result equals a set of complete fixes, applied from last to first. Text between edits is kept, and every
        /// skipped fix conflicts with an applied one.
        #[test]
        fn applies_only_complete_fixes((text, fixes) in fixes()) {
            let fixed = apply_fixes(&text, &fixes);
            let mut taken: Vec<&Fix> = Vec::new();
            let mut in_order: Vec<&Fix> = fixes.iter().filter(|fix| is_valid(fix, &text)).collect();
            in_order.sort_by_key(|fix| fix.edits[0].span);
            for fix in in_order {
                let touches = |a: Span, b: Span| {
                    let inserts = a.is_empty() || b.is_empty();
                    if inserts { a.start <= b.end && b.start <= a.end } else { a.start < b.end && b.start < a.end }
                };
                let conflicts = taken.iter().flat_map(|other| &other.edits)
                    .any(|other| fix.edits.iter().any(|edit| touches(edit.span, other.span)));
                if !conflicts {
                    taken.push(fix);
                }
            }
            let mut edits: Vec<&Edit> = taken.iter().flat_map(|fix| &fix.edits).collect();
            edits.sort_by_key(|edit| edit.span);
            let mut expected = text.clone();
            for edit in edits.iter().rev() {
                expected.replace_range(edit.span.range(), &edit.replacement);
            }
            prop_assert_eq!(fixed.applied, taken.len());
            prop_assert_eq!(fixed.text, expected);
        }
    }
}
