//! `:accepts`, `:rejects` and `:targets` of a tool.

use super::lowerer::Lowerer;
use crate::spec::rules::unknown_tool_key;
use crate::spec::{Json, JsonKind, TargetOverride};
use crate::syntax::{Datum, DatumKind};
use crate::text::Spanned;

const OVERRIDES: [&str; 1] = ["description"];

impl Lowerer {
    /// Lowers a vector or list of argument plists to JSON objects.
    pub(super) fn lower_examples(&mut self, key: &str, value: Datum) -> Vec<Json> {
        let expected = "a vector of argument plists such as `[(:city \"Paris\")]`";
        let (DatumKind::Vector(items) | DatumKind::List(items)) = value.kind else {
            self.report_wrong_value(key, &value, expected);
            return Vec::new();
        };
        if matches!(items.first(), Some(Datum { kind: DatumKind::Keyword(_), .. })) {
            let at = self.at(value.span);
            let found = "a single plist";
            self.findings.push(crate::spec::rules::wrong_value::finding(at, key, expected, found));
            return Vec::new();
        }
        let mut examples = Vec::new();
        for item in items {
            if !matches!(item.kind, DatumKind::List(_) | DatumKind::Quoted(_)) {
                self.report_wrong_value(key, &item, "argument plists");
            } else if let Some(json) = self.json_value(item)
                && matches!(json.kind, JsonKind::Object(_))
            {
                examples.push(json);
            }
        }
        examples
    }

    /// Lowers `(:gemini (:description "…"))`.
    pub(super) fn lower_overrides(&mut self, value: Datum) -> Vec<TargetOverride> {
        let DatumKind::List(items) = value.kind else {
            self.report_wrong_value("targets", &value, "a plist such as `(:gemini (:description \"…\"))`");
            return Vec::new();
        };
        let mut overrides = Vec::new();
        for entry in self.read_plist(items, &[]) {
            let DatumKind::List(keys) = entry.value.kind else {
                self.report_wrong_value(&entry.key, &entry.value, "a plist such as `(:description \"…\")`");
                continue;
            };
            let mut description = None;
            for inner in self.read_plist(keys, &OVERRIDES) {
                let span = inner.value.span;
                if inner.key == "description" {
                    let text = self.take_string("description", inner.value);
                    description = text.map(|text| Spanned::new(text, span));
                } else if !inner.key.ends_with(':') {
                    let at = self.at(inner.key_span);
                    let finding =
                        unknown_tool_key::finding(at, &inner.key, "a target's override", &OVERRIDES);
                    self.findings.push(finding);
                }
            }
            let target = Spanned::new(entry.key, entry.key_span);
            overrides.push(TargetOverride { target, description });
        }
        overrides
    }
}
