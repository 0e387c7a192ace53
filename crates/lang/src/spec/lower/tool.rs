//! Tool forms.

use std::path::{Component, Path};

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::diagnostic::Diagnostic;
use crate::spec::reference::{self, Plist};
use crate::spec::rules::{self, missing_key, useless_key};
use crate::spec::schema::SchemaPosition;
use crate::spec::{Argument, Include, Json, JsonKind, PathBase, Permissions, SampleCall, Tool, ToolKind};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

impl Lowerer {
    /// Lowers the plist of a tool; `None` if it has no usable name.
    pub(super) fn lower_tool(&mut self, kind: ToolKind, span: Span, items: Vec<Datum>) -> Option<Tool> {
        if let Some(finding) = self.name_without_key(&items) {
            // All other findings are consequences.
            self.findings.truncate(self.form_start);
            self.findings.push(finding);
            return None;
        }
        let entries = self.read_plist(items, Plist::Tool);
        // Values without any key are reported.
        let is_stray = entries.is_empty() && self.has_error();
        let mut tool = Tool::empty(self.source, span, kind, self.origin);
        // A key with an invalid value or a misspelt key is not missing.
        let written = WrittenKeys::of(&entries);
        if kind == ToolKind::Normal {
            self.check_command_keys(&entries);
        }
        let allow = entries.iter().find(|entry| entry.key == "allow").map(|entry| entry.value.span);
        let mut has_misspelt_name = false;
        let (mut accepts, mut asks) = (Vec::new(), None);
        for entry in entries {
            if !written.name && WrittenKeys::meant(&entry.key) == Some("name") {
                has_misspelt_name = true;
                let at = self.at(entry.key_span);
                self.findings.push(missing_key::misspelt(at, Plist::Tool, "name", &entry.key));
                if let DatumKind::String(name) = entry.value.kind {
                    tool.name = Spanned::new(name, entry.value.span);
                }
            } else if entry.key == "accepts" {
                accepts = self.lower_examples("accepts", entry.value);
            } else if entry.key == "asks" && !self.is_declared {
                asks = Some(entry.value);
            } else {
                self.lower_tool_key(&mut tool, entry);
            }
        }
        tool.accepts = accepts.into_iter().map(|example| sample_call(example, &tool.arguments)).collect();
        if !written.name && !has_misspelt_name && !is_stray {
            self.report_missing_name(Plist::Tool, span);
        }
        if tool.name.value.is_empty() {
            return None;
        }
        if let Some(value) = asks {
            tool.asks = self.lower_asks(value, &tool.name);
        }
        if tool.description.value.trim().is_empty() {
            let is_reported =
                tool.description.span == Span::default() || self.is_misread || self.is_incomplete();
            if !(written.description && is_reported) {
                let (name, written) = (&tool.name, tool.description.span);
                let is_empty = written != Span::default();
                let at = self.at(if is_empty { written } else { name.span });
                self.findings.push(rules::missing_description::finding(at, &name.value, is_empty));
            }
        } else {
            let checks = [rules::unfinished_description::check, rules::description_is_name::check];
            self.findings.extend(checks.iter().find_map(|check| check(&tool)));
        }
        if !self.is_incomplete() {
            self.findings.extend(rules::builtin_name::check(&tool));
            self.findings.extend(rules::name_style::check(&tool));
        }
        self.finish_command(&mut tool);
        self.check_base(&tool, allow.unwrap_or(span));
        self.check_arguments(&tool);
        tool.valid = !self.is_incomplete();
        Some(tool)
    }

    /// Reports `(deftool "now" …)` and `(deftool now (city) "Tell …")`: a tool defined like a function.
    fn name_without_key(&self, items: &[Datum]) -> Option<Diagnostic> {
        let first = items.first()?;
        let (DatumKind::String(word) | DatumKind::Symbol(word)) = &first.kind else { return None };
        let is_named = |item: &Datum| match &item.kind {
            DatumKind::Keyword(key) => key.trim_end_matches(':') == ":name",
            _ => false,
        };
        let is_key = reference::key(Plist::Tool, word.strip_prefix(':').unwrap_or(word)).is_some();
        let is_other = is_key || items.iter().any(is_named);
        (!is_other).then(|| missing_key::name(self.at(first.span), word))
    }

    fn lower_tool_key(&mut self, tool: &mut Tool, entry: Entry) {
        let Entry { key, key_span, value } = entry;
        let span = value.span;
        if tool.kind == ToolKind::Exit && useless_key::NOT_ON_EXIT.contains(&key.as_str()) {
            let at = self.at(key_span);
            let finding = useless_key::finding(at, &key, "on an exit tool, which executes nothing");
            self.findings.push(finding.note("use `deftool` for a tool that is executed"));
            if key == "function" {
                tool.function = Some(span);
            }
            return;
        }
        match key.as_str() {
            key if self.is_declared && is_own_key(key) => {}
            "name" => {
                if let Some(name) = self.take_name(value) {
                    tool.name = Spanned::new(name, span);
                }
            }
            "description" if value.is_nil() => {}
            "description" => {
                if let Some(text) = self.take_string("description", value) {
                    tool.description = Spanned::new(text, span);
                }
            }
            "args" => tool.arguments = self.lower_arguments(value),
            "async" => tool.is_async = self.take_flag("async", &value),
            "function" => tool.function = Some(span),
            "script" => {
                let expected = "a path inside the project such as \"scripts/weather.lua\"";
                let path = self.take_parsed("script", value, expected, as_inner_path);
                tool.script = path.map(|path| Spanned::new(path, span));
            }
            "command" => self.lower_command(tool.command.get_or_insert_default(), value),
            "stdin" => tool.command.get_or_insert_default().stdin = self.take_input(value),
            "dash" => tool.command.get_or_insert_default().allows_dash = self.take_flag("dash", &value),
            "cwd" => tool.command.get_or_insert_default().cwd = self.take_folder(value),
            "ok-codes" => tool.command.get_or_insert_default().ok_codes = self.take_codes(value),
            "timeout" => tool.timeout = self.take_duration("timeout", value),
            "memory" => tool.memory = self.take_size("memory", value),
            "max-result" => tool.max_result = self.take_size("max-result", value),
            "allow" => tool.permissions = self.lower_permissions(value),
            "base" => tool.base = self.take_word(Plist::Tool, &key, value).unwrap_or_default(),
            "effect" => tool.effect = self.take_word(Plist::Tool, &key, value).unwrap_or_default(),
            "confirm" => {
                let is_code = matches!(value.kind, DatumKind::Invalid | DatumKind::Quoted(_))
                    || matches!(&value.kind, DatumKind::Symbol(name) if name != "t");
                tool.confirm_function = is_code.then_some(span);
                tool.confirm = self.lower_confirm(value);
            }
            "include" => tool.include = Some(include_of(&value)),
            "category" => {
                tool.category = match value.kind {
                    DatumKind::String(name) | DatumKind::Symbol(name) => Some(Spanned::new(name, span)),
                    _ => None,
                };
            }
            "returns" => tool.returns = self.lower_schema("returns", value, SchemaPosition::Nested),
            "rejects" => tool.rejects = self.lower_examples("rejects", value),
            "targets" => tool.overrides = self.lower_overrides(value),
            _ => self.report_unknown_key(Plist::Tool, &key, key_span),
        }
    }

    /// Reports relative paths that a tool with `:base project` cannot have: the current project may be anybody's.
    fn check_base(&mut self, tool: &Tool, allow: Span) {
        let Permissions { read, write, run, .. } = &tool.permissions;
        if tool.base != PathBase::Project {
            return;
        }
        let is_relative = |path: &&String| !path.starts_with(['~', '$']) && Path::new(path).is_relative();
        let leaves = |path: &str| Path::new(path).components().any(|part| part == Component::ParentDir);
        let is_hidden = |path: &str| {
            Path::new(path).components().any(
                |part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".")),
            )
        };
        for path in read.iter().chain(write).chain(run).filter(is_relative).filter(|path| leaves(path)) {
            self.findings.push(rules::wrong_value::outside_base(self.at(allow), path));
        }
        for path in write.iter().filter(is_relative).filter(|path| is_hidden(path) && !leaves(path)) {
            self.findings.push(rules::wrong_value::hidden_in_base(self.at(allow), path));
        }
    }

    /// Reads a name and reports it if an API rejects it.
    pub(super) fn take_name(&mut self, value: Datum) -> Option<String> {
        let at = self.at(value.span);
        let name = self.take_string("name", value)?;
        self.findings.extend(rules::invalid_name::check(at, &name, self.names));
        Some(name)
    }
}

/// Whether a keyword is not a key of a tool.
pub(super) fn is_unknown_key(keyword: &str) -> bool {
    keyword.strip_prefix(':').is_some_and(|key| reference::key(Plist::Tool, key).is_none())
}

/// The keys of a tool that gptel and llm.el have.
const EMACS_KEYS: [&str; 8] =
    ["name", "description", "args", "function", "category", "confirm", "include", "async"];

/// Whether a key belongs to the function that a project declares: Emacs has no such key, and it is not misspelt.
pub(super) fn is_own_key(key: &str) -> bool {
    let is_known = reference::key(Plist::Tool, key).is_some();
    !EMACS_KEYS.contains(&key) && (is_known || WrittenKeys::meant(key).is_none())
}

/// Whether an unknown keyword was probably meant to be `:args`.
pub(super) fn is_meant_for_args(keyword: &str) -> bool {
    is_unknown_key(keyword) && WrittenKeys::meant(keyword.trim_start_matches(':')) == Some("args")
}

/// The required keys that are present, including misspelt ones.
struct WrittenKeys {
    name: bool,
    description: bool,
}

impl WrittenKeys {
    fn of(entries: &[Entry]) -> Self {
        // For Emacs, a nil value is a missing one.
        let is_written = |key: &str| entries.iter().any(|entry| entry.key == key && !entry.value.is_nil());
        let is_meant = |key: &str| entries.iter().any(|entry| Self::meant(&entry.key) == Some(key));
        Self { name: is_written("name"), description: is_written("description") || is_meant("description") }
    }

    /// Returns the known key that an unknown one was probably meant to be.
    fn meant(key: &str) -> Option<&'static str> {
        if reference::key(Plist::Tool, key).is_some() {
            return None;
        }
        rules::unknown_key::meant(Plist::Tool, key.trim_end_matches(':'))
    }
}

/// Reads arguments, or `(:args (…) :returns …)` if the tool has no argument called `args`.
fn sample_call(example: Json, arguments: &[Argument]) -> SampleCall {
    let JsonKind::Object(members) = &example.kind else {
        return SampleCall { arguments: example, returns: None };
    };
    let member = |key: &str| members.iter().find(|member| member.key == key).map(|member| &member.value);
    let is_call = members.iter().all(|member| matches!(member.key.as_str(), "args" | "returns"));
    let is_argument = arguments.iter().any(|argument| argument.name.value == "args");
    match member("args").filter(|_| is_call && !is_argument) {
        Some(given) => SampleCall { arguments: given.clone(), returns: member("returns").cloned() },
        None => SampleCall { arguments: example, returns: None },
    }
}

/// Returns what gptel shows. Emacs interprets the value itself: anything but nil and the symbol `call` means everything.
fn include_of(value: &Datum) -> Include {
    match &value.kind {
        DatumKind::Keyword(word) if word == ":json-false" || word == ":false" => Include::Nothing,
        DatumKind::Symbol(word) if word == "call" => Include::Call,
        DatumKind::Quoted(quoted) => include_of(quoted),
        _ if value.is_nil() => Include::Nothing,
        _ => Include::Everything,
    }
}

/// Accepts a path that does not leave the project.
fn as_inner_path(path: &str) -> Option<String> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    (!path.is_empty() && Path::new(path).components().all(is_plain)).then(|| path.to_owned())
}
