//! `:accepts`, `:rejects` and `:targets` of a tool.

use super::lowerer::Lowerer;
use crate::spec::reference::Plist;
use crate::spec::rules::wrong_value;
use crate::spec::{Json, JsonKind, TargetOverride};
use crate::syntax::{Datum, DatumKind};
use crate::text::Spanned;

impl Lowerer {
    /// Lowers a vector or list of argument plists to JSON objects.
    pub(super) fn lower_examples(&mut self, key: &str, value: Datum) -> Vec<Json> {
        let expected = "a vector of argument plists such as `[(:city \"Paris\")]`";
        let at = self.at(value.span);
        let items = self.take_elements(key, value, expected).unwrap_or_default();
        if matches!(items.first(), Some(Datum { kind: DatumKind::Keyword(_), .. })) {
            self.findings.push(wrong_value::finding(at, key, expected, "a single plist"));
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
        let example = "(:gemini (:description \"…\"))";
        let items = self.take_plist("targets", value, example).unwrap_or_default();
        let mut overrides = Vec::new();
        for entry in self.read_members(items) {
            let example = "(:description \"…\")";
            let Some(keys) = self.take_plist(&entry.key, entry.value, example) else { continue };
            let mut description = None;
            for inner in self.read_plist(keys, Plist::Override) {
                let span = inner.value.span;
                if inner.key == "description" {
                    let text = self.take_string("description", inner.value);
                    description = text.map(|text| Spanned::new(text, span));
                } else {
                    self.report_unknown_key(Plist::Override, &inner.key, inner.key_span);
                }
            }
            let target = Spanned::new(entry.key, entry.key_span);
            overrides.push(TargetOverride { target, description });
        }
        overrides
    }
}
