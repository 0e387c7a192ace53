//! `:args`: a list of argument plists.

use std::collections::HashMap;

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::spec::reference::Plist;
use crate::spec::rules::{self, missing_key, unknown_key, wrong_value};
use crate::spec::schema::SchemaPosition;
use crate::spec::{Argument, Tool};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

impl Lowerer {
    /// Lowers the value of `:args`.
    pub(super) fn lower_arguments(&mut self, value: Datum) -> Vec<Argument> {
        let span = value.span;
        let items = match value.kind {
            DatumKind::List(items) => items,
            DatumKind::Invalid => return Vec::new(),
            DatumKind::Quoted(inner) => {
                self.report_quoted(span, &inner);
                return Vec::new();
            }
            kind => {
                let found = Datum { span, kind };
                self.findings.push(wrong_value::arguments::args(self.at(span), &found));
                return Vec::new();
            }
        };
        if matches!(items.first(), Some(Datum { kind: DatumKind::Keyword(_), .. })) {
            self.findings.push(wrong_value::arguments::single(self.at(span), &items));
            return Vec::new();
        }
        let mut arguments: Vec<Argument> = Vec::with_capacity(items.len());
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut after_stray = false;
        for item in items {
            // Consecutive stray values are one mistake.
            let is_stray = !matches!(item.kind, DatumKind::List(_) | DatumKind::Quoted(_));
            if is_stray && std::mem::replace(&mut after_stray, is_stray) {
                continue;
            }
            after_stray = is_stray;
            let Some(argument) = self.lower_argument(item) else { continue };
            let Spanned { value: name, span } = &argument.name;
            if let Some(&first) = seen.get(name) {
                self.findings.push(rules::duplicate::definition(
                    self.at(*span),
                    "argument",
                    name,
                    self.at(first),
                ));
                continue;
            }
            seen.insert(name.clone(), *span);
            arguments.push(argument);
        }
        arguments
    }

    fn lower_argument(&mut self, item: Datum) -> Option<Argument> {
        let span = item.span;
        let items = match item.kind {
            DatumKind::List(items)
                if matches!(items.first(), Some(Datum { kind: DatumKind::Keyword(_), .. })) =>
            {
                items
            }
            DatumKind::Invalid => return None,
            DatumKind::Quoted(inner) => {
                self.report_quoted(span, &inner);
                return None;
            }
            kind => {
                let found = Datum { span, kind };
                self.findings.push(wrong_value::arguments::element(self.at(span), &found));
                return None;
            }
        };
        let mut entries = self.read_plist(items, Plist::Argument);
        let name = match take(&mut entries, "name") {
            Some(Entry { value, .. }) => {
                let name_span = value.span;
                Spanned::new(self.take_string("name", value)?, name_span)
            }
            None => {
                let other = entries.iter().find(|entry| entry.key.eq_ignore_ascii_case("name"));
                self.findings.push(match other {
                    Some(Entry { key, key_span, .. }) => {
                        missing_key::misspelt(self.at(*key_span), Plist::Argument, "name", key)
                    }
                    None => missing_key::finding(self.at(span), Plist::Argument, "name"),
                });
                return None;
            }
        };
        // An unreadable or misspelt description has its own finding. The search for misspelt keys is slow.
        let is_meant = |entry: &Entry| unknown_key::meant(Plist::Argument, &entry.key) == Some("description");
        let is_described =
            entries.iter().any(|entry| entry.key == "description") || entries.iter().any(is_meant);
        let optional = take(&mut entries, "optional").map(|entry| self.take_optional(&entry));
        let schema = self.lower_keywords(entries, span, SchemaPosition::Argument { name: &name, optional });
        let argument = Argument { name, optional: optional.unwrap_or(false), schema, span };
        if !is_described {
            self.findings.push(rules::undescribed_argument::finding(self.source, &argument));
        }
        rules::argument_name::check(self.source, &argument, &mut self.findings);
        rules::idle_description::check(self.source, &argument, &mut self.findings);
        rules::default_on_required::check(self.source, &argument, &mut self.findings);
        rules::optional_in_words::check(self.source, &argument, &mut self.findings);
        Some(argument)
    }

    /// Reads `:optional` like Emacs: any value but nil is true.
    fn take_optional(&mut self, entry: &Entry) -> bool {
        match &entry.value.kind {
            DatumKind::Symbol(word) if word == "t" => true,
            DatumKind::List(items) if items.is_empty() => false,
            DatumKind::Invalid => false,
            _ => {
                let finding = wrong_value::arguments::optional(self.at(entry.value.span), &entry.value);
                self.findings.push(finding);
                true
            }
        }
    }

    /// Runs the checks that need the whole tool.
    pub(super) fn check_arguments(&mut self, tool: &Tool) {
        rules::near_name::check(tool, &mut self.findings);
        rules::callback_argument::check(tool, &mut self.findings);
        rules::lua_name::check(tool, &mut self.findings);
        rules::confirm_argument::check(tool, &mut self.findings);
    }
}

/// Removes and returns the entry of `key`.
fn take(entries: &mut Vec<Entry>, key: &str) -> Option<Entry> {
    let index = entries.iter().position(|entry| entry.key == key)?;
    Some(entries.remove(index))
}
