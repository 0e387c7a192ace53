//! Asks: `:asks` of a tool, and `defask`.

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::diagnostic::Severity;
use crate::spec::reference::Plist;
use crate::spec::rules::wrong_value::{self, ask as wrong};
use crate::spec::rules::{missing_key, unknown_key, useless_key};
use crate::spec::schema::SchemaPosition;
use crate::spec::{Ask, ExpectedCall, ExpectedReply, Json, JsonKind, PastCall, Pattern, PatternKind};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

const ASKS: &str = "a vector of asks such as `[(\"Is it warm in Oslo?\" :call (:city \"Oslo\"))]`";

const CALLS: &str = "a vector of calls such as `[(get_weather :call (:city \"Oslo\"))]`";

const HISTORY: &str =
    "a vector of past calls such as `[(get_weather :call (:city \"Oslo\") :result \"12 °C\")]`";

const IGNORED: &str = "a list of arguments such as `(note)`";

/// The value of `:call`.
enum Call {
    /// `t`
    Any,
    /// `nil`
    No,
    With(Pattern),
}

/// `:ignore`, and where it is written.
type Ignored = Option<(Span, Vec<Spanned<String>>)>;

impl Lowerer {
    /// Lowers the asks of the tool called `tool`.
    pub(super) fn lower_asks(&mut self, value: Datum, tool: &Spanned<String>) -> Vec<Ask> {
        let asks = self.take_entries("asks", value, ASKS);
        asks.into_iter().filter_map(|(span, items)| self.lower_ask(span, items, tool)).collect()
    }

    /// Lowers `("prompt" :call …)`.
    fn lower_ask(&mut self, span: Span, mut items: Vec<Datum>, tool: &Spanned<String>) -> Option<Ask> {
        let prompt = self.take_prompt("asks", items.remove(0), ASKS)?;
        let reported = self.findings.len();
        let entries = self.read_plist(items, Plist::Ask);
        let is_stated = entries.iter().any(|entry| entry.key == "call");
        let (mut call, mut ignored, mut history, mut unknown) = (None, None, Vec::new(), Vec::new());
        for Entry { key, key_span, value } in entries {
            match key.as_str() {
                "call" => call = self.take_call(value, wrong::CALL),
                "ignore" => ignored = Some((key_span, self.take_words_of("ignore", value, IGNORED))),
                "history" => history = self.lower_history(value),
                _ => unknown.push((key, key_span)),
            }
        }
        self.report_keys(Plist::Ask, unknown, is_stated, (prompt.span, reported));
        let call = call?;
        let ignored = self.useful(ignored, &call);
        let arguments = match call {
            Call::No => {
                let expected = ExpectedReply::NoCallOf(tool.value.clone());
                return Some(Ask { source: self.source, span, prompt, history, expected });
            }
            Call::Any => None,
            Call::With(pattern) => Some(pattern),
        };
        let calls = vec![ExpectedCall { tool: tool.clone(), arguments, ignored }];
        let expected = ExpectedReply::Calls { calls, is_ordered: false };
        Some(Ask { source: self.source, span, prompt, history, expected })
    }

    /// Lowers the plist of `defask`; `None` if it has an error.
    pub(super) fn lower_project_ask(&mut self, span: Span, items: Vec<Datum>) -> Option<Ask> {
        let reported = self.findings.len();
        let entries = self.read_plist(items, Plist::ProjectAsk);
        let place = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_span);
        let (has_prompt, calls, none) = (place("prompt").is_some(), place("calls"), place("call"));
        let ordered = place("ordered");
        let (mut prompt, mut expected, mut history, mut unknown) = (None, Vec::new(), Vec::new(), Vec::new());
        let mut is_ordered = false;
        for Entry { key, key_span, value } in entries {
            match key.as_str() {
                "prompt" => prompt = self.take_prompt("prompt", value, "a string"),
                "calls" => expected = self.lower_calls(value),
                "call" => drop(self.take_word::<String>(Plist::ProjectAsk, "call", value)),
                "ordered" => is_ordered = self.take_flag("ordered", &value),
                "history" => history = self.lower_history(value),
                _ => unknown.push((key, key_span)),
            }
        }
        let head = Span::new(span.start as usize, span.start as usize + 1);
        if !has_prompt && !self.has_error_since(reported) {
            self.findings.push(missing_key::finding(self.at(head), Plist::ProjectAsk, "prompt"));
        }
        self.report_keys(Plist::ProjectAsk, unknown, calls.or(none).is_some(), (head, reported));
        if let (Some(_), Some(none)) = (calls, none) {
            self.findings.push(wrong::both(self.at(none)));
        }
        let prompt = prompt.filter(|_| !self.is_incomplete())?;
        if let Some(ordered) = ordered.filter(|_| expected.len() < 2) {
            let place = "with fewer than two calls";
            self.findings.push(useless_key::finding(self.at(ordered), "ordered", place));
        }
        let expected = match none {
            Some(_) => ExpectedReply::NoCall,
            None => ExpectedReply::Calls { calls: expected, is_ordered },
        };
        Some(Ask { source: self.source, span, prompt, history, expected })
    }

    /// Lowers `[(TOOL :call …) …]`.
    fn lower_calls(&mut self, value: Datum) -> Vec<ExpectedCall> {
        let at = self.at(value.span);
        let is_empty = match &value.kind {
            DatumKind::Vector(items) | DatumKind::List(items) => items.is_empty(),
            _ => false,
        };
        if is_empty {
            self.findings.push(wrong::no_calls(at, CALLS));
            return Vec::new();
        }
        let calls = self.take_entries("calls", value, CALLS);
        calls.into_iter().filter_map(|(_, items)| self.lower_expected_call(items)).collect()
    }

    /// Lowers `(TOOL :call …)`.
    fn lower_expected_call(&mut self, mut items: Vec<Datum>) -> Option<ExpectedCall> {
        let tool = self.take_tool("calls", items.remove(0), CALLS)?;
        let reported = self.findings.len();
        let entries = self.read_plist(items, Plist::ExpectedCall);
        let is_stated = entries.iter().any(|entry| entry.key == "call");
        let (mut call, mut ignored, mut unknown) = (None, None, Vec::new());
        for Entry { key, key_span, value } in entries {
            match key.as_str() {
                "call" => call = self.take_call(value, wrong::EXPECTED_CALL),
                "ignore" => ignored = Some((key_span, self.take_words_of("ignore", value, IGNORED))),
                _ => unknown.push((key, key_span)),
            }
        }
        self.report_keys(Plist::ExpectedCall, unknown, is_stated, (tool.span, reported));
        let call = call?;
        let ignored = self.useful(ignored, &call);
        let arguments = match call {
            Call::Any | Call::No => None,
            Call::With(pattern) => Some(pattern),
        };
        Some(ExpectedCall { tool, arguments, ignored })
    }

    /// Lowers `[(TOOL :call … :result …) …]`.
    fn lower_history(&mut self, value: Datum) -> Vec<PastCall> {
        let calls = self.take_entries("history", value, HISTORY);
        calls.into_iter().filter_map(|(span, items)| self.lower_past_call(span, items)).collect()
    }

    fn lower_past_call(&mut self, span: Span, mut items: Vec<Datum>) -> Option<PastCall> {
        let tool = self.take_tool("history", items.remove(0), HISTORY)?;
        let reported = self.findings.len();
        let entries = self.read_plist(items, Plist::PastCall);
        let has_result = entries.iter().any(|entry| entry.key == "result");
        let mut arguments = Some(Json { span, kind: JsonKind::Object(Vec::new()) });
        let mut result = None;
        for Entry { key, key_span, value } in entries {
            match key.as_str() {
                "call" => {
                    if matches!(&value.kind, DatumKind::List(_) | DatumKind::Invalid) {
                        arguments = self.json_value(value);
                    } else {
                        let at = self.at(value.span);
                        self.findings.push(wrong::call(at, wrong::PAST_CALL, &value));
                        arguments = None;
                    }
                }
                "result" => result = self.json_value(value),
                _ => self.report_unknown_key(Plist::PastCall, &key, key_span),
            }
        }
        if !has_result && !self.has_error_since(reported) {
            self.findings.push(missing_key::finding(self.at(tool.span), Plist::PastCall, "result"));
        }
        Some(PastCall { tool, arguments: arguments?, result: result? })
    }

    /// Reads a vector of lists that are not empty, each with its span.
    fn take_entries(&mut self, key: &str, value: Datum, expected: &str) -> Vec<(Span, Vec<Datum>)> {
        let span = value.span;
        let items = match value.kind {
            DatumKind::Vector(items) => items,
            DatumKind::List(items) if items.is_empty() => return Vec::new(),
            DatumKind::Invalid => return Vec::new(),
            kind => {
                let found = Datum { span, kind };
                self.findings.push(wrong::entries(self.at(span), key, expected, &found));
                return Vec::new();
            }
        };
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            match item.kind {
                DatumKind::List(inner) if !inner.is_empty() => entries.push((item.span, inner)),
                _ => self.report_wrong_value(key, &item, expected),
            }
        }
        entries
    }

    /// Reads a prompt, which is not empty.
    fn take_prompt(&mut self, key: &str, value: Datum, expected: &str) -> Option<Spanned<String>> {
        let span = value.span;
        let DatumKind::String(prompt) = value.kind else {
            self.report_wrong_value(key, &value, expected);
            return None;
        };
        if prompt.trim().is_empty() {
            let found = "an empty string";
            self.findings.push(wrong_value::finding(self.at(span), key, "a prompt as a string", found));
            return None;
        }
        Some(Spanned::new(prompt, span))
    }

    /// Reads the name of a tool, as a symbol or a string.
    fn take_tool(&mut self, key: &str, value: Datum, expected: &str) -> Option<Spanned<String>> {
        match value.kind {
            DatumKind::Symbol(name) | DatumKind::String(name) if !name.is_empty() => {
                Some(Spanned::new(name, value.span))
            }
            _ => {
                self.report_wrong_value(key, &value, expected);
                None
            }
        }
    }

    /// Reads the value of `:call`, which may be one of the forms in `expected`.
    fn take_call(&mut self, value: Datum, expected: &str) -> Option<Call> {
        let span = value.span;
        match value.kind {
            DatumKind::Invalid => None,
            DatumKind::Symbol(word) if word == "t" => Some(Call::Any),
            DatumKind::List(items) if items.is_empty() && expected == wrong::CALL => Some(Call::No),
            DatumKind::List(items)
                if matches!(items.first(), Some(Datum { kind: DatumKind::Keyword(_), .. })) =>
            {
                Some(Call::With(self.lower_object(span, items)))
            }
            kind => {
                let found = Datum { span, kind };
                self.findings.push(wrong::call(self.at(span), expected, &found));
                None
            }
        }
    }

    /// Returns the arguments in `:ignore`, which has an effect only if others are stated.
    fn useful(&mut self, ignored: Ignored, call: &Call) -> Vec<Spanned<String>> {
        let Some((key_span, names)) = ignored else { return Vec::new() };
        if matches!(call, Call::With(_)) {
            return names;
        }
        let place = "without arguments in `:call`";
        self.findings.push(useless_key::finding(self.at(key_span), "ignore", place));
        Vec::new()
    }

    /// Reports unknown keys, and that the key with the expected calls is missing if it is not `is_stated` and no error since
    /// `reported` may be the cause.
    fn report_keys(
        &mut self,
        plist: Plist,
        unknown: Vec<(String, Span)>,
        is_stated: bool,
        (span, reported): (Span, usize),
    ) {
        let needed = if plist == Plist::ProjectAsk { "calls" } else { "call" };
        for (key, key_span) in unknown {
            let at = self.at(key_span);
            match unknown_key::meant(plist, &key).filter(|_| !is_stated) {
                Some(meant @ ("call" | "calls")) => {
                    self.findings.push(missing_key::misspelt(at, plist, meant, &key));
                }
                // Without `:call`, the other keys are probably the arguments.
                _ if plist == Plist::ExpectedCall && !is_stated => {}
                _ => self.report_unknown_key(plist, &key, key_span),
            }
        }
        if !is_stated && !self.has_error_since(reported) {
            self.findings.push(missing_key::finding(self.at(span), plist, needed));
        }
    }

    fn has_error_since(&self, reported: usize) -> bool {
        let new = self.findings.get(reported..).unwrap_or_default();
        new.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Lowers a plist from names to patterns.
    fn lower_object(&mut self, span: Span, items: Vec<Datum>) -> Pattern {
        let mut members = Vec::new();
        for Entry { key, key_span, value } in self.read_members(items) {
            let value = match value.kind {
                // As in other values: `:type string` is `"type": "string"`.
                DatumKind::Symbol(word) if key == "type" && word != "t" => {
                    Datum { span: value.span, kind: DatumKind::String(word) }
                }
                kind => Datum { span: value.span, kind },
            };
            if let Some(pattern) = self.lower_pattern(value) {
                members.push((Spanned::new(key, key_span), pattern));
            }
        }
        Pattern { span, kind: PatternKind::Object(members) }
    }

    /// Lowers a value, or a list that stands for several values.
    fn lower_pattern(&mut self, datum: Datum) -> Option<Pattern> {
        let span = datum.span;
        match datum.kind {
            DatumKind::Vector(items) => {
                let patterns = items.into_iter().filter_map(|item| self.lower_pattern(item));
                Some(Pattern { span, kind: PatternKind::Array(patterns.collect()) })
            }
            DatumKind::List(mut items) => match items.first().map(|first| &first.kind) {
                Some(DatumKind::Keyword(_)) => Some(self.lower_object(span, items)),
                // The nesting is too deep, which has been reported.
                Some(DatumKind::Invalid) => None,
                Some(DatumKind::Symbol(_)) => {
                    let head = items.remove(0);
                    self.lower_alternatives(span, &head, items)
                }
                Some(_) | None => {
                    let value = self.json_value(Datum { span, kind: DatumKind::List(items) })?;
                    Some(Pattern::of_json(&value))
                }
            },
            kind => Some(Pattern::of_json(&self.json_value(Datum { span, kind })?)),
        }
    }

    /// Lowers `(any A B…)`, `(optional A)` and `(schema :type …)`.
    fn lower_alternatives(&mut self, span: Span, head: &Datum, mut items: Vec<Datum>) -> Option<Pattern> {
        let DatumKind::Symbol(word) = &head.kind else { return None };
        let kind = match word.as_str() {
            "any" if !items.is_empty() => {
                PatternKind::Any(items.into_iter().filter_map(|item| self.lower_pattern(item)).collect())
            }
            "optional" if items.len() == 1 => {
                PatternKind::Optional(Box::new(self.lower_pattern(items.remove(0))?))
            }
            "schema" if matches!(items.first(), Some(Datum { kind: DatumKind::Keyword(_), .. })) => {
                let plist = Datum { span, kind: DatumKind::List(items) };
                PatternKind::Schema(self.lower_schema("schema", plist, SchemaPosition::Nested)?)
            }
            _ => {
                let at = self.at(span);
                self.findings.push(wrong::pattern(at, word, self.at(head.span)));
                return None;
            }
        };
        Some(Pattern { span, kind })
    }
}
