//! `:confirm` of a tool.

use super::lowerer::Lowerer;
use crate::spec::rules::wrong_value;
use crate::spec::{Confirm, Json, JsonKind, nearest};
use crate::syntax::{Datum, DatumKind};
use crate::text::Span;

const EXPECTED: &str = "t, nil or conditions such as `(:when (:path \"^/etc/\"))`";

const CONDITION: &str = "plists of arguments such as `(:path \"^/etc/\" :force t)`";

impl Lowerer {
    pub(super) fn lower_confirm(&mut self, value: Datum) -> Confirm {
        let span = value.span;
        let items = match value.kind {
            DatumKind::List(items) if items.is_empty() => return Confirm::Never,
            DatumKind::List(items) if matches!(items.first(), Some(first) if is_keyword(first)) => items,
            DatumKind::Keyword(word) if word == ":json-false" || word == ":false" => return Confirm::Never,
            // Emacs interprets the value itself: anything but nil is true, including a function.
            _ => return Confirm::Always,
        };
        let mut items = items.into_iter();
        match items.next().map(|first| (first.span, first.kind)) {
            Some((_, DatumKind::Keyword(word))) if word == ":when" => self.lower_conditions(span, items),
            Some((at, DatumKind::Keyword(word))) => {
                let found = format!("`{word}`");
                let finding = wrong_value::finding(self.at(at), "confirm", EXPECTED, &found);
                self.findings.push(match nearest(&word, [":when"]) {
                    Some(near) => finding.did_you_mean(at, near.to_owned()),
                    None => finding,
                });
                Confirm::Always
            }
            Some(_) | None => Confirm::Always,
        }
    }

    fn lower_conditions(&mut self, span: Span, items: impl Iterator<Item = Datum>) -> Confirm {
        let reported = self.findings.len();
        let mut conditions = Vec::new();
        for item in items {
            match &item.kind {
                DatumKind::List(inner) if inner.first().is_some_and(is_keyword) => {
                    if let Some(condition) = self.json_value(item) {
                        self.check_tests(&condition);
                        conditions.push(condition);
                    }
                }
                DatumKind::List(inner) if inner.is_empty() => {
                    let found = "nil, which matches every call; write `:confirm t`";
                    self.findings.push(wrong_value::finding(self.at(item.span), "when", CONDITION, found));
                }
                DatumKind::Invalid => {}
                _ => {
                    let found = item.describe();
                    self.findings.push(wrong_value::finding(self.at(item.span), "when", CONDITION, found));
                    // The values after it belong to the same mistake: `(:when :path "^/etc/")`.
                    break;
                }
            }
        }
        if conditions.is_empty() && self.findings.len() == reported {
            self.findings.push(wrong_value::finding(self.at(span), "when", CONDITION, "none"));
        }
        // If a condition could not be read, every call requires confirmation, to be safe.
        if self.findings.len() == reported { Confirm::When(conditions) } else { Confirm::Always }
    }

    /// Reports nil in a test: nil is the empty object, but false is probably meant.
    fn check_tests(&mut self, test: &Json) {
        match &test.kind {
            JsonKind::Object(members) if members.is_empty() => {
                let at = self.at(test.span);
                let expected = "a pattern, a value, a plist or a vector of these";
                let finding = wrong_value::finding(at, "when", expected, "nil");
                self.findings.push(finding.note("write `:json-false` for false and `:null` for null"));
            }
            JsonKind::Object(members) => members.iter().for_each(|member| self.check_tests(&member.value)),
            JsonKind::Array(tests) if tests.is_empty() => {
                let at = self.at(test.span);
                let expected = "a non-empty vector of tests";
                self.findings.push(wrong_value::finding(at, "when", expected, "an empty vector"));
            }
            JsonKind::Array(tests) => tests.iter().for_each(|test| self.check_tests(test)),
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {}
        }
    }
}

fn is_keyword(datum: &Datum) -> bool {
    matches!(datum.kind, DatumKind::Keyword(_))
}
