//! Tool forms.

use std::path::{Component, Path};

use super::Lowerer;
use super::plist::Entry;
use crate::spec::rules;
use crate::spec::units::{parse_bytes, parse_duration};
use crate::spec::{Effect, Permissions, Tool, ToolKind, nearest};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Span, Spanned};

const TOOL_KEYS: [&str; 16] = [
    "name",
    "description",
    "args",
    "async",
    "confirm",
    "include",
    "category",
    "function",
    "script",
    "timeout",
    "memory",
    "allow",
    "effect",
    "accepts",
    "rejects",
    "targets",
];

/// The longest name that every API takes.
const MAX_NAME: usize = 64;

impl Lowerer {
    /// The tool that a form's plist is; `None` when it has no usable name.
    pub(super) fn lower_tool(&mut self, kind: ToolKind, span: Span, items: Vec<Datum>) -> Option<Tool> {
        let entries = self.read_plist(items, &TOOL_KEYS);
        let mut tool = Tool {
            source: self.source,
            span,
            kind,
            name: Spanned::default(),
            description: Spanned::default(),
            arguments: Vec::new(),
            is_async: false,
            script: None,
            has_function: false,
            timeout: None,
            memory: None,
            permissions: Permissions::default(),
            effect: Effect::default(),
            category: None,
            confirm: false,
            include: false,
            accepts: Vec::new(),
            rejects: Vec::new(),
            overrides: Vec::new(),
            valid: true,
        };
        // What was written but could not be read is not missing.
        let is_written = |key: &str| entries.iter().any(|entry| entry.key == key);
        let (named, described) = (is_written("name"), is_written("description"));
        for entry in entries {
            self.lower_tool_key(&mut tool, entry);
        }
        if !named {
            let head = Span::new(span.start as usize, span.start as usize + 1);
            self.findings.push(
                self.finding(&rules::MISSING_NAME, head, String::from("a tool needs a `:name`"))
                    .note("add `:name \"…\"`, up to 64 of A-Z a-z 0-9 _ -"),
            );
        }
        if tool.name.value.is_empty() {
            return None;
        }
        if tool.description.value.trim().is_empty() && !(described && self.has_error()) {
            let message = format!(
                "`{}` has no `:description`, so the model cannot know when to use it",
                tool.name.value
            );
            self.tell(&rules::MISSING_DESCRIPTION, tool.name.span, message);
        }
        self.check_arguments(&tool);
        tool.valid = !self.has_error();
        Some(tool)
    }

    fn lower_tool_key(&mut self, tool: &mut Tool, entry: Entry) {
        let Entry { key, key_span, value } = entry;
        let span = value.span;
        match key.as_str() {
            "name" => {
                if let Some(name) = self.take_string("name", value) {
                    self.check_name(&name, span);
                    tool.name = Spanned::new(name, span);
                }
            }
            "description" => {
                if let Some(text) = self.take_string("description", value) {
                    tool.description = Spanned::new(text, span);
                }
            }
            "args" => tool.arguments = self.lower_arguments(value),
            "async" => tool.is_async = self.take_flag("async", &value),
            "function" => tool.has_function = true,
            "script" => {
                let inside = |path: &str| {
                    let is_plain =
                        |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
                    Path::new(path).components().all(is_plain).then(|| path.to_owned())
                };
                let expected = "a path inside the project such as \"scripts/weather.lua\"";
                let path = self.take_parsed("script", value, expected, inside);
                tool.script = path.map(|path| Spanned::new(path, span));
            }
            "timeout" => {
                tool.timeout = self.take_parsed(
                    "timeout",
                    value,
                    "a duration such as \"5s\" or \"500ms\"",
                    parse_duration,
                );
            }
            "memory" => {
                tool.memory = self.take_parsed("memory", value, "a size such as \"64MiB\"", parse_bytes);
            }
            "allow" => tool.permissions = self.lower_permissions(value),
            "effect" => {
                let effect = |word: &str| match word {
                    "pure" => Some(Effect::Pure),
                    "keyed" => Some(Effect::Keyed),
                    "once" => Some(Effect::Once),
                    _ => None,
                };
                if let Some(effect) = self.take_parsed("effect", value, "pure, keyed or once", effect) {
                    tool.effect = effect;
                }
            }
            // Emacs reads these; they change nothing here.
            "confirm" | "include" | "category" => {}
            "accepts" => tool.accepts = self.lower_calls("accepts", value),
            "rejects" => tool.rejects = self.lower_calls("rejects", value),
            "targets" => {
                let message = format!("`:{key}` is not there yet; it has no effect");
                self.tell(&rules::UNKNOWN_TOOL_KEY, key_span, message);
            }
            _ => {
                let entry = Entry { key, key_span, value };
                self.tell_unknown_key(&rules::UNKNOWN_TOOL_KEY, &entry, "a tool", &TOOL_KEYS);
            }
        }
    }

    /// Names that every API takes.
    pub(super) fn check_name(&mut self, name: &str, span: Span) {
        let problem = if name.is_empty() {
            Some(String::from("a name cannot be empty"))
        } else if let Some(bad) = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_' && *c != '-')
        {
            Some(format!("`{bad}` cannot stand in a name; APIs take A-Z a-z 0-9 _ -"))
        } else if name.len() > MAX_NAME {
            Some(format!("a name of {} characters; APIs take {MAX_NAME}", name.len()))
        } else {
            None
        };
        if let Some(problem) = problem {
            self.tell(&rules::INVALID_NAME, span, problem);
        }
    }

    fn lower_permissions(&mut self, value: Datum) -> Permissions {
        let mut permissions = Permissions::default();
        let DatumKind::List(items) = value.kind else {
            self.tell_wrong("allow", &value, "a plist such as `(:read [\"notes/\"])`");
            return permissions;
        };
        let known = ["net", "read", "write", "run", "env"];
        for entry in self.read_plist(items, &known) {
            match permissions.list_mut(&entry.key) {
                Some(list) => {
                    let strings = self.take_strings(&entry.key, entry.value).unwrap_or_default();
                    list.extend(strings.into_iter().map(|string| string.value));
                }
                None => {
                    let message = format!("`:{}` is no permission", entry.key);
                    let mut finding = self.finding(&rules::ALLOW_UNKNOWN, entry.key_span, message);
                    finding = match nearest(&entry.key, known) {
                        Some(near) => finding.labelled(format!("did you mean `:{near}`?")),
                        None => finding.note("permissions: :net :read :write :run :env"),
                    };
                    self.findings.push(finding);
                }
            }
        }
        permissions
    }
}
