//! Project forms: `defmcp` and `defproject`.

use super::form::is_reserved_head;
use super::lowerer::Lowerer;
use super::plist::{Entry, as_url};
use crate::spec::reference::Plist;
use crate::spec::rules::{as_vector, duplicate, mcp_transport, preview, useless_key, wrong_value};
use crate::spec::{McpServer, McpTransport, ProjectSettings, ToolForm};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

impl Lowerer {
    /// Lowers the plist of an MCP server; `None` if it has no usable name or transport.
    pub(super) fn lower_mcp(&mut self, span: Span, items: Vec<Datum>) -> Option<McpServer> {
        let entries = self.read_plist(items, Plist::Mcp);
        let is_written = |key: &str| entries.iter().any(|entry| entry.key == key);
        let (named, both) = (is_written("name"), is_written("command") && is_written("url"));
        let reachable = is_written("command") || is_written("url");
        let mut name = Spanned::default();
        let (mut description, mut transport, mut env) = (String::new(), None, Vec::new());
        let (mut token_env, mut header_env) = (None, Vec::new());
        let (mut tools, mut confirm, mut timeout) = (None, false, None);
        for Entry { key, key_span, value } in entries {
            let at = value.span;
            match key.as_str() {
                "name" => {
                    if let Some(text) = self.take_name(value) {
                        name = Spanned::new(text, at);
                    }
                }
                "description" => description = self.take_string("description", value).unwrap_or_default(),
                "command" => transport = self.take_command(value).map(McpTransport::Command).or(transport),
                "url" => {
                    let url = self.take_parsed("url", value, "a URL such as \"https://host/mcp\"", as_url);
                    transport = url.map(McpTransport::Url).or(transport);
                }
                "env" => {
                    let names = self.take_strings("env", value).unwrap_or_default();
                    env = names.into_iter().map(|name| name.value).collect();
                }
                "token-env" => token_env = self.take_string("token-env", value),
                "header-env" => header_env = self.take_texts("header-env", value),
                "tools" => tools = self.take_strings("tools", value),
                "confirm" => confirm = self.take_flag("confirm", &value),
                "timeout" => timeout = self.take_duration("timeout", value),
                _ => self.report_unknown_key(Plist::Mcp, &key, key_span),
            }
        }
        if !named {
            self.report_missing_name(Plist::Mcp, span);
        } else if both || !reachable {
            let at = self.at(name.span);
            self.findings.push(mcp_transport::finding(at, &name.value, both));
        }
        let transport = transport.filter(|_| !self.is_incomplete() && !name.value.is_empty())?;
        let source = self.source;
        Some(McpServer {
            source,
            span,
            name,
            description,
            transport,
            env,
            token_env,
            header_env,
            tools,
            confirm,
            timeout,
        })
    }

    /// Reads a program with its arguments. Unlike other lists, it may contain duplicates.
    pub(super) fn take_command(&mut self, value: Datum) -> Option<Vec<String>> {
        let words = self.take_words(value)?;
        Some(words.into_iter().map(|word| word.value).collect())
    }

    /// Reads a program with its arguments, with their spans.
    pub(super) fn take_words(&mut self, value: Datum) -> Option<Vec<Spanned<String>>> {
        let expected = "a vector of a program and its arguments, as strings";
        let items = self.take_some_elements("command", value, expected)?;
        let word = |item: Datum| {
            let span = item.span;
            Some(Spanned::new(self.take_string("command", item)?, span))
        };
        items.into_iter().map(word).collect()
    }

    /// Lowers the settings of a project.
    pub(super) fn lower_settings(&mut self, span: Span, items: Vec<Datum>) -> ProjectSettings {
        let (allow, deny, tool_forms, previews) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut settings = ProjectSettings { source: self.source, span, allow, deny, tool_forms, previews };
        for entry in self.read_plist(items, Plist::Project) {
            match entry.key.as_str() {
                "allow" => settings.allow = self.take_rules("allow", entry.value),
                "deny" => settings.deny = self.take_rules("deny", entry.value),
                "preview" => settings.previews = self.take_previews(entry.value),
                "tool-forms" if self.is_code => {
                    let at = self.at(entry.key_span);
                    self.findings.push(useless_key::finding(at, "tool-forms", "in Emacs Lisp").note(
                        "write the form in an `.eld` file of the project, or in the folder of this file",
                    ));
                }
                "tool-forms" => settings.tool_forms = self.take_tool_forms(entry.value),
                key => self.report_unknown_key(Plist::Project, key, entry.key_span),
            }
        }
        settings
    }

    /// Reads names of preview features.
    fn take_previews(&mut self, value: Datum) -> Vec<String> {
        let expected = "a list of preview features such as `(script-types)`";
        let names = self.take_words_of("preview", value, expected);
        for name in &names {
            self.findings.extend(preview::finding(self.at(name.span), &name.value));
        }
        names.into_iter().map(|name| name.value).collect()
    }

    /// Reads codes or names of rules.
    fn take_rules(&mut self, key: &str, value: Datum) -> Vec<Spanned<String>> {
        let expected = "a vector of rules such as `[missing-description]`";
        if matches!(&value.kind, DatumKind::List(items) if !items.is_empty()) {
            let finding = wrong_value::finding(self.at(value.span), key, expected, "a list");
            self.findings.push(as_vector(finding, &value));
        }
        self.take_words_of(key, value, expected)
    }

    /// Reads names, as strings or symbols.
    pub(super) fn take_words_of(&mut self, key: &str, value: Datum, expected: &str) -> Vec<Spanned<String>> {
        let mut names = Vec::new();
        for item in self.take_elements(key, value, expected).unwrap_or_default() {
            match item.kind {
                DatumKind::String(word) | DatumKind::Symbol(word) => {
                    names.push(Spanned::new(word, item.span));
                }
                _ => self.report_wrong_value(key, &item, expected),
            }
        }
        names
    }

    /// Reads heads of tool forms: names, and lists `(NAME :skip N)`.
    fn take_tool_forms(&mut self, value: Datum) -> Vec<ToolForm> {
        let DatumKind::List(items) = value.kind else {
            let expected = "a list of names such as `(my-add-tool (my-register :skip 1))`";
            self.report_wrong_value("tool-forms", &value, expected);
            return Vec::new();
        };
        let mut forms: Vec<ToolForm> = Vec::new();
        for item in items {
            let Some(form) = self.take_tool_form(item) else { continue };
            let name = &form.name;
            match forms.iter().find(|known| known.name.value == name.value) {
                Some(first) => {
                    let what = format!("\"{}\" in `:tool-forms`", name.value);
                    let finding = duplicate::finding(self.at(name.span), &what, first.name.span);
                    self.findings.push(finding);
                }
                None => forms.push(form),
            }
        }
        forms
    }

    fn take_tool_form(&mut self, item: Datum) -> Option<ToolForm> {
        let (name, options) = match item {
            Datum { kind: DatumKind::List(mut items), .. } if !items.is_empty() => (items.remove(0), items),
            name => (name, Vec::new()),
        };
        let expected = "names of your own functions and macros";
        let DatumKind::Symbol(word) = name.kind else {
            self.report_wrong_value("tool-forms", &name, expected);
            return None;
        };
        if is_reserved_head(&word) {
            self.report_wrong_word("tool-forms", name.span, expected, word);
            return None;
        }
        let mut skip = 0;
        for Entry { key, key_span, value } in self.read_plist(options, Plist::ToolForm) {
            if key == "skip" {
                skip = self.take_skip(&value)?;
            } else {
                self.report_unknown_key(Plist::ToolForm, &key, key_span);
            }
        }
        Some(ToolForm { name: Spanned::new(word, name.span), skip })
    }

    fn take_skip(&mut self, value: &Datum) -> Option<usize> {
        let expected = "the number of arguments before the keys";
        usize::try_from(self.take_integer("skip", value, expected, 0..=i64::MAX)?).ok()
    }
}
