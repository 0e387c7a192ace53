//! `:args`: a list of argument plists.

use std::collections::HashMap;

use super::Lowerer;
use super::schema::{KEYWORDS, Place};
use crate::spec::Argument;
use crate::spec::rules;
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

impl Lowerer {
    /// The arguments that the value of `:args` is.
    pub(super) fn lower_arguments(&mut self, value: Datum) -> Vec<Argument> {
        let span = value.span;
        let items = match value.kind {
            DatumKind::List(items) => items,
            DatumKind::Invalid => return Vec::new(),
            DatumKind::Quoted(inner) => {
                self.tell_quoted(span, &inner);
                return Vec::new();
            }
            kind => {
                let found = Datum { span, kind };
                let message = format!("`:args` takes a list of argument plists, found {}", found.describe());
                let finding = self.finding(&rules::ARGS_NOT_A_LIST, span, message);
                self.findings.push(finding.note("write `:args ((:name \"…\" :type string) …)`"));
                return Vec::new();
            }
        };
        if matches!(items.first(), Some(Datum { kind: DatumKind::Keyword(_), .. })) {
            let message = String::from("`:args` takes a list of argument plists, found a single plist");
            let finding = self.finding(&rules::ARGS_NOT_A_LIST, span, message);
            self.findings.push(finding.note("wrap it in one more pair of parentheses"));
            return Vec::new();
        }
        let mut arguments: Vec<Argument> = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut after_stray = false;
        for item in items {
            // Stray values one after the other are one mistake.
            let is_stray = !matches!(item.kind, DatumKind::List(_) | DatumKind::Quoted(_));
            if is_stray && std::mem::replace(&mut after_stray, is_stray) {
                continue;
            }
            after_stray = is_stray;
            let Some(argument) = self.lower_argument(item) else { continue };
            let Spanned { value: name, span } = &argument.name;
            if let Some(&first) = seen.get(name) {
                let message = format!("two arguments called `{name}`");
                let finding = self.finding(&rules::DUPLICATE_ARGUMENT, *span, message);
                self.findings.push(finding.and_at(first, "first given here"));
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
                self.tell_quoted(span, &inner);
                return None;
            }
            kind => {
                let found = Datum { span, kind };
                let message =
                    format!("an argument is a plist `(:name \"…\" :type …)`, found {}", found.describe());
                self.tell(&rules::ARGS_NOT_A_LIST, span, message);
                return None;
            }
        };
        let known: Vec<&str> = KEYWORDS.iter().copied().chain(["name", "optional"]).collect();
        let mut entries = self.read_plist(items, &known);
        let name = match entries.iter().position(|entry| entry.key == "name") {
            Some(index) => {
                let value = entries.remove(index).value;
                let name_span = value.span;
                Spanned::new(self.take_string("name", value)?, name_span)
            }
            None => {
                self.tell(&rules::MISSING_NAME, span, String::from("an argument needs a `:name`"));
                return None;
            }
        };
        let optional = match entries.iter().position(|entry| entry.key == "optional") {
            Some(index) => {
                let value = entries.remove(index).value;
                self.take_flag("optional", &value)
            }
            None => false,
        };
        let describes_type = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
        let typed = entries.iter().any(|entry| describes_type.contains(&entry.key.as_str()));
        let schema = self.lower_keywords(entries, span, Place::Argument);
        if !typed {
            let message = format!("the argument `{}` has no `:type`", name.value);
            self.tell(&rules::MISSING_TYPE, name.span, message);
        }
        Some(Argument { name, optional, schema, span })
    }
}
