//! Completion in calls of tools: examples, conditions and asks.

use deftool_lang::spec::reference::{PATTERNS, PatternDoc, Plist};
use deftool_lang::syntax::{Kind, NodeId, quoted};
use deftool_lang::text::Span;

use super::item::{Completion, CompletionKind, pattern_heads, plain};
use super::{Completer, described};
use crate::arguments::{WrittenArgument, arguments_at};
use crate::model::symbol_or_string;
use crate::outline::{Part, Role};

impl Completer<'_> {
    /// Completes the tool of a call in an ask. The tools of MCP servers are not known here.
    pub(super) fn called_tools(&self, replaces: Span) -> Vec<Completion> {
        let tools = self.project.load().valid_tools().map(described);
        self.names(tools, |name| self.written(name, replaces), replaces)
    }

    /// Completes inside a list that maps arguments to values, in a value of `plist`.
    pub(super) fn in_call(&self, list: NodeId, plist: Plist) -> Vec<Completion> {
        let is_key = |part: &Part, node: NodeId| part.node == node && matches!(part.role, Role::CallKey);
        let before = self.outline.child_before(list, self.offset);
        let key = before.filter(|before| self.outline.parts.iter().any(|part| is_key(part, *before)));
        match (key, plist) {
            (Some(key), Plist::Ask | Plist::ExpectedCall) => self.patterns(Some(key), self.here()),
            (Some(key), _) => self.argument_values(key, self.here()),
            (None, _) => self.argument_keys(list, self.here()),
        }
    }

    /// Completes an argument as a key of `list`.
    pub(super) fn argument_keys(&self, list: NodeId, replaces: Span) -> Vec<Completion> {
        let written = self.outline.keys_in(list);
        let here = replaces.of(&self.outline.text).trim_start_matches(':');
        let is_new = |name: &str| name == here || !written.contains(&name);
        let new = self.arguments().into_iter().filter(|argument| is_new(&argument.name));
        let complete = |argument: WrittenArgument| {
            let label = format!(":{}", argument.name);
            plain(&label, CompletionKind::Key, &label, &argument.description, replaces)
        };
        new.map(complete).collect()
    }

    /// Completes the value of the argument that `key` names.
    pub(super) fn argument_values(&self, key: NodeId, replaces: Span) -> Vec<Completion> {
        let name = self.outline.text_of(key).trim_start_matches(':');
        let Some(argument) = self.arguments().into_iter().find(|argument| argument.name == name) else {
            return Vec::new();
        };
        let complete = |value: &str| plain(value, CompletionKind::Value, value, "", replaces);
        if argument.of_type.as_deref() == Some("boolean") {
            return ["t", ":json-false"].map(complete).to_vec();
        }
        argument.values.iter().map(|value| complete(value)).collect()
    }

    /// Completes a value in an ask, or inside of it if it is a list.
    pub(super) fn in_pattern(&self, key: Option<NodeId>, node: NodeId) -> Vec<Completion> {
        let tree = &self.outline.tree;
        let before = self.outline.child_before(node, self.offset);
        match (tree.kind(node), tree.children(node).next()) {
            (Kind::List, None) => pattern_heads(self.here()),
            (Kind::List, Some(head)) if tree.kind(head) == Kind::Symbol => self.patterns(key, self.here()),
            // In an object, only the value of a key can be one of several.
            (Kind::List, _) if before.is_none_or(|before| !self.outline.is_key(before)) => Vec::new(),
            (Kind::List | Kind::Vector, _) => self.patterns(None, self.here()),
            _ => self.patterns(key, self.outline.span(node)),
        }
    }

    /// Completes the values of an argument, and the lists that stand for several values.
    fn patterns(&self, key: Option<NodeId>, replaces: Span) -> Vec<Completion> {
        let mut found = key.map_or_else(Vec::new, |key| self.argument_values(key, replaces));
        if !self.is_string(replaces) {
            found.extend(PATTERNS.map(|PatternDoc { head, doc }| {
                let label = format!("({head} …)");
                plain(&label, CompletionKind::Form, &format!("({head} $1)"), doc, replaces)
            }));
        }
        found
    }

    /// Completes an element of `:ignore`: an argument that is neither there nor in the call.
    pub(super) fn ignored_arguments(&self, replaces: Span) -> Vec<Completion> {
        let outline = &self.outline;
        let is_around =
            |part: &&Part| matches!(part.role, Role::Plist(_)) && outline.is_inside(part.node, self.offset);
        let list = outline.parts.iter().rev().find(is_around).map(|part| part.node);
        let value = |key| list.and_then(|list| outline.value_of(list, key));
        let stated = value("call").into_iter().flat_map(|call| outline.keys_in(call));
        let ignored = value("ignore").into_iter().flat_map(|names| outline.tree.children(names));
        let ignored = ignored.filter(|name| outline.span(*name) != replaces).map(|name| outline.word(name));
        let written: Vec<&str> = stated.chain(ignored).collect();
        let arguments = self.arguments().into_iter();
        let new = arguments.filter(|argument| !written.contains(&argument.name.as_str()));
        let complete = |argument: WrittenArgument| {
            let name = self.written(&argument.name, replaces);
            plain(&name, CompletionKind::Value, &name, &argument.description, replaces)
        };
        new.map(complete).collect()
    }

    /// Returns the arguments of the tool that is called here.
    fn arguments(&self) -> Vec<WrittenArgument> {
        let part = self.outline.part_at(self.offset);
        part.map_or_else(Vec::new, |part| arguments_at(self.project, &self.outline, part.form, self.offset))
    }

    /// Returns a name as it is written in an ask: as a string if it replaces one.
    fn written(&self, name: &str, replaces: Span) -> String {
        if self.is_string(replaces) { quoted(name) } else { symbol_or_string(name) }
    }

    fn is_string(&self, span: Span) -> bool {
        span.of(&self.outline.text).starts_with('"')
    }
}
