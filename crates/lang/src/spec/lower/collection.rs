//! Expansion of `(llm-tool-collection-deftool NAME (SPECS…) (ARGS…) "DOC" BODY…)` to the plist of a tool.
//!
//! Source: the macro of the same name in skissue/llm-tool-collection (2025). It builds `(:name "…" :description DOC
//! SPECS… :args (…) :function …)`. Dashes in the names of the tool and of the arguments become underscores, `:name` in
//! SPECS takes precedence, the description of an argument comes before its other keys, and arguments after `&optional`
//! are optional. Nothing before the body is evaluated. Variants of the macro take the description of an argument as a key,
//! which is also read. The layouts of the versions before 2025-03-24 are reported: they had keys after the name, or the
//! description among the SPECS.

use super::lowerer::Lowerer;
use crate::diagnostic::Diagnostic;
use crate::spec::rules::collection_shape;
use crate::syntax::{Datum, DatumKind};
use crate::text::Span;

impl Lowerer {
    /// Builds the plist. `data` are the elements between the head and the body. Returns `None` if a finding was
    /// reported.
    pub(super) fn expand_collection(&mut self, span: Span, data: Vec<Datum>) -> Option<Vec<Datum>> {
        let head = Span::new(span.start as usize, span.start as usize + 1);
        let mut data = data.into_iter();
        let mut next = || data.next().unwrap_or(Datum { span: head, kind: DatumKind::List(Vec::new()) });
        let (name, specs, args, doc) = (next(), next(), next(), next());
        if let Some(finding) = self.check_old_layout(&specs, &doc) {
            // All other findings are consequences.
            self.findings.truncate(self.form_start);
            self.findings.push(finding);
            return None;
        }
        let DatumKind::Symbol(symbol) = &name.kind else {
            return self.report_shape(&name, "the name of the tool, a symbol");
        };
        let DatumKind::List(specs_items) = specs.kind else {
            return self.report_shape(&specs, "a plist of specs after the name");
        };
        let DatumKind::List(arguments) = args.kind else {
            return self.report_shape(&args, "a list of arguments after the specs");
        };
        let DatumKind::String(_) = doc.kind else {
            return self.report_shape(&doc, "a description after the arguments");
        };
        let has_name = specs_items.iter().step_by(2).any(|item| is_keyword(item, ":name"));
        let mut plist = Vec::new();
        if !has_name {
            plist.extend([keyword(":name", name.span), string(&underscored(symbol), name.span)]);
        }
        plist.push(keyword(":description", doc.span));
        plist.push(doc);
        plist.extend(without_tags(specs_items));
        plist.push(keyword(":args", args.span));
        plist.push(Datum { span: args.span, kind: DatumKind::List(self.expand_arguments(arguments)?) });
        plist.push(keyword(":function", head));
        plist.push(Datum { span: head, kind: DatumKind::Invalid });
        Some(plist)
    }

    /// Reports a layout of earlier versions of the macro.
    fn check_old_layout(&self, specs: &Datum, doc: &Datum) -> Option<Diagnostic> {
        let is_description = |item: &&Datum| is_keyword(item, ":description");
        match &specs.kind {
            DatumKind::Keyword(_) => {
                Some(collection_shape::old_layout(self.at(specs.span), "keys after the name"))
            }
            DatumKind::List(items) if !matches!(doc.kind, DatumKind::String(_)) => {
                let key = items.iter().step_by(2).find(is_description)?;
                Some(collection_shape::old_layout(self.at(key.span), "the description among the specs"))
            }
            _ => None,
        }
    }

    fn expand_arguments(&mut self, items: Vec<Datum>) -> Option<Vec<Datum>> {
        let mut optional = false;
        let mut arguments = Vec::new();
        for item in items {
            let span = item.span;
            match item.kind {
                DatumKind::Symbol(word) if word == "&optional" => optional = true,
                DatumKind::List(parts) => {
                    let mut parts = parts.into_iter().peekable();
                    let name = parts.next();
                    let doc = parts.next_if(|part| matches!(part.kind, DatumKind::String(_)));
                    let has_keys =
                        parts.peek().is_some_and(|part| matches!(part.kind, DatumKind::Keyword(_)));
                    let Some(Datum { kind: DatumKind::Symbol(name), span: name_span }) =
                        name.filter(|_| doc.is_some() || has_keys)
                    else {
                        let found = Datum { span, kind: DatumKind::List(parts.collect()) };
                        return self.report_shape(&found, "an argument `(NAME \"description\" :type …)`");
                    };
                    let mut plist = vec![keyword(":name", name_span), string(&underscored(&name), name_span)];
                    if let Some(doc) = doc {
                        plist.extend([keyword(":description", doc.span), doc]);
                    }
                    if optional {
                        let t = Datum { span: name_span, kind: DatumKind::Symbol(String::from("t")) };
                        plist.extend([keyword(":optional", name_span), t]);
                    }
                    plist.extend(parts);
                    arguments.push(Datum { span, kind: DatumKind::List(plist) });
                }
                kind => {
                    let found = Datum { span, kind };
                    return self.report_shape(&found, "an argument `(NAME \"description\" :type …)`");
                }
            }
        }
        Some(arguments)
    }

    fn report_shape<T>(&mut self, found: &Datum, place: &str) -> Option<T> {
        // An invalid value has a finding, unless it is the end of a dotted list.
        if found.kind != DatumKind::Invalid || self.findings.len() == self.form_start {
            let described = match &found.kind {
                DatumKind::List(_) if place.starts_with("an argument") => "a different list",
                _ => found.describe(),
            };
            self.findings.push(collection_shape::finding(self.at(found.span), place, described));
        }
        None
    }
}

/// Removes `:tags`, which only the collection uses.
fn without_tags(items: Vec<Datum>) -> Vec<Datum> {
    let is_tags = |item| is_keyword(item, ":tags");
    let at = items.iter().step_by(2).position(is_tags).map(|index| index * 2);
    let mut items = items;
    if let Some(at) = at {
        items.drain(at..(at + 2).min(items.len()));
    }
    items
}

fn is_keyword(item: &Datum, name: &str) -> bool {
    matches!(&item.kind, DatumKind::Keyword(key) if key == name)
}

fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

fn keyword(name: &str, span: Span) -> Datum {
    Datum { span, kind: DatumKind::Keyword(name.to_owned()) }
}

fn string(text: &str, span: Span) -> Datum {
    Datum { span, kind: DatumKind::String(text.to_owned()) }
}
