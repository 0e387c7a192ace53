//! The meaning of each part of a spec file.
//!
//! [`Outline`] walks the syntax tree along the tables of [`deftool_lang::spec::reference`]. Unlike lowering, it also
//! describes forms that are incomplete or invalid, as they are while a user types.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use deftool_lang::spec::reference::{Key, KeyValue, Plist, key};
use deftool_lang::spec::{FileKind, ToolForms, tabled_plists};
use deftool_lang::syntax::{Kind, NodeId, Tree, parse};
use deftool_lang::text::{Sources, Span};

use crate::project::Project;

/// A part of a tool form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) node: NodeId,
    pub(crate) role: Role,
    /// The form that it belongs to, as an index of [`Outline::forms`].
    pub(crate) form: usize,
}

/// The meaning of a part.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    /// The head of a form.
    Head,
    /// A list with keys and values.
    Plist(Plist),
    /// A key, `None` if it is unknown.
    Key(Plist, Option<&'static Key>),
    /// The value of a key, or an element of it.
    Value(Plist, &'static Key),
    /// The name of a tool, at the head of a call.
    Tool,
    /// A list that maps names to plists.
    Names(Plist),
    /// A list that maps arguments of a tool to values, in a value of this plist.
    Call(Plist),
    /// An argument of the tool, as a key of such a list.
    CallKey,
    /// The value of an argument in such a list. Holds the node of the key.
    CallValue(NodeId),
    /// Such a value in an ask, or a part of it, where a list can stand for several values. Holds the node of the key if the
    /// values of the argument are possible here.
    Pattern(Option<NodeId>),
    /// The head of a list that stands for several values: `any`.
    PatternHead,
    /// A name that the user chose, as a key: a property, a target.
    Name,
}

/// A tool form, worker or other form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) node: NodeId,
    pub(crate) plist: Plist,
}

/// The parts of a spec file, in source order, parents before children.
pub(crate) struct Outline {
    pub(crate) text: Arc<str>,
    pub(crate) tree: Tree,
    pub(crate) kind: FileKind,
    pub(crate) forms: Vec<Form>,
    pub(crate) parts: Vec<Part>,
}

impl Outline {
    /// Returns the outline of a spec file.
    pub(crate) fn of(project: &Project, path: &Path) -> Option<Self> {
        let (text, kind) = (project.text(path)?, FileKind::of_name(&path.to_string_lossy()));
        Some(Self::of_text(text, kind, &project.load().tool_forms))
    }

    fn of_text(text: Arc<str>, kind: FileKind, tool_forms: &ToolForms) -> Self {
        let (tree, _) = parse(Sources::new().id_ahead(0), &kind.code_of(&text));
        let tabled = if kind.is_code() { tabled_plists(&tree, &text, tool_forms) } else { BTreeSet::new() };
        let mut outline = Self { text, tree, kind, forms: Vec::new(), parts: Vec::new() };
        let mut pending: Vec<NodeId> = outline.tree.roots().collect();
        pending.reverse();
        while let Some(node) = pending.pop() {
            let tool = tabled.contains(&node).then_some((Plist::Tool, 0));
            if let Some((plist, skipped)) = tool.or_else(|| outline.form_at(node, tool_forms)) {
                outline.forms.push(Form { node, plist });
                outline.walk(node, plist, skipped);
            } else if kind.is_code() {
                let start = pending.len();
                pending.extend(outline.tree.children(node));
                if let Some(added) = pending.get_mut(start..) {
                    added.reverse();
                }
            }
        }
        outline
    }

    /// Returns the plist of the form at `node`, and the number of elements before it.
    fn form_at(&self, node: NodeId, tool_forms: &ToolForms) -> Option<(Plist, usize)> {
        let mut children = self.tree.children(node);
        let head = children.next().filter(|_| self.tree.kind(node) == Kind::List)?;
        match self.tree.kind(head) {
            // In Emacs Lisp, the names of forms occur in calls and declarations too.
            Kind::Symbol => {
                let (plist, skipped) = tool_forms.plist_of_form(self.text_of(head))?;
                let mut after = children.skip(skipped - 1);
                let is_meant = self.kind == FileKind::Specs
                    || after.next().is_some_and(|next| self.tree.kind(next) == Kind::Keyword);
                is_meant.then_some((plist, skipped))
            }
            Kind::Keyword if self.kind == FileKind::Specs => Some((Plist::Tool, 0)),
            _ => None,
        }
    }

    fn walk(&mut self, form: NodeId, plist: Plist, skipped: usize) {
        let mut pending = vec![(form, Role::Plist(plist), skipped)];
        while let Some((node, role, skipped)) = pending.pop() {
            self.parts.push(Part { node, role, form: self.forms.len() - 1 });
            let start = pending.len();
            self.push_children(node, role, skipped, &mut pending);
            if let Some(added) = pending.get_mut(start..) {
                added.reverse();
            }
        }
    }

    /// Adds the parts inside `node`, in source order.
    fn push_children(
        &self,
        node: NodeId,
        role: Role,
        skipped: usize,
        parts: &mut Vec<(NodeId, Role, usize)>,
    ) {
        let children = self.tree.children(node);
        if self.tree.kind(node).is_prefix() {
            return parts.extend(children.map(|child| (child, role, 0)));
        }
        match role {
            Role::Plist(plist) => {
                let head = self.tree.children(node).take(skipped.min(1));
                let of_head = match plist {
                    Plist::ExpectedCall | Plist::PastCall => Role::Tool,
                    Plist::Schema if self.head_of(node) == Some("schema") => Role::PatternHead,
                    _ => Role::Head,
                };
                parts.extend(head.map(|head| (head, of_head, 0)));
                let mut of = None;
                for child in children.skip(skipped) {
                    if self.is_key(child) {
                        let name = self.text_of(child).trim_start_matches(':');
                        of = key(plist, name);
                        parts.push((child, Role::Key(plist, of), 0));
                    } else if let Some(of) = of.take() {
                        parts.push(self.value(child, plist, of));
                    }
                }
            }
            Role::Value(plist, of) => {
                let is_code = self.is_call(node) && !matches!(of.value, KeyValue::Arguments);
                for child in children.skip(usize::from(is_code)) {
                    parts.push(match of.value {
                        KeyValue::Plists(inner) | KeyValue::VectorOf(inner) => self.plist(child, inner),
                        KeyValue::Entries(inner) => (child, Role::Plist(inner), 1),
                        KeyValue::Calls => (child, Role::Call(plist), 0),
                        KeyValue::Confirm if self.tree.kind(child) == Kind::List => {
                            (child, Role::Call(plist), 0)
                        }
                        _ => (child, Role::Value(plist, of), 0),
                    });
                }
            }
            Role::Call(plist) => {
                let (is_sample, mut of) = (self.is_sample(node, plist), None);
                for child in children {
                    if self.is_key(child) {
                        of = Some(child);
                        parts.push((child, if is_sample { Role::Name } else { Role::CallKey }, 0));
                    } else if let Some(key) = of.take() {
                        parts.push(match plist {
                            Plist::Ask | Plist::ExpectedCall => self.pattern(child, Some(key)),
                            _ if is_sample && self.text_of(key) == ":args" => (child, Role::Call(plist), 0),
                            _ => (child, Role::CallValue(key), 0),
                        });
                    }
                }
            }
            Role::Pattern(key) => {
                let is_call = self.is_call(node);
                let head = self.tree.children(node).take(usize::from(is_call));
                parts.extend(head.map(|head| (head, Role::PatternHead, 0)));
                for child in children.skip(usize::from(is_call)) {
                    let is_name = !is_call && self.is_key(child);
                    let part = self.pattern(child, key.filter(|_| is_call));
                    parts.push(if is_name { (child, Role::Name, 0) } else { part });
                }
            }
            Role::Names(inner) => {
                for child in children.skip(usize::from(self.is_call(node))) {
                    let is_name = self.tree.kind(child) == Kind::Keyword;
                    parts.push(if is_name { (child, Role::Name, 0) } else { self.plist(child, inner) });
                }
            }
            Role::Name
            | Role::Head
            | Role::Tool
            | Role::Key(..)
            | Role::CallKey
            | Role::CallValue(_)
            | Role::PatternHead => {}
        }
    }

    fn value(&self, node: NodeId, plist: Plist, of: &'static Key) -> (NodeId, Role, usize) {
        match of.value {
            KeyValue::Plist(inner) => self.plist(node, inner),
            KeyValue::Named(inner) => (node, Role::Names(inner), 0),
            KeyValue::Call(_) if self.tree.kind(node) == Kind::List => (node, Role::Call(plist), 0),
            _ => (node, Role::Value(plist, of), 0),
        }
    }

    fn plist(&self, node: NodeId, inner: Plist) -> (NodeId, Role, usize) {
        (node, Role::Plist(inner), usize::from(self.is_call(node)))
    }

    fn pattern(&self, node: NodeId, key: Option<NodeId>) -> (NodeId, Role, usize) {
        match self.head_of(node) {
            Some("schema") => (node, Role::Plist(Plist::Schema), 1),
            _ => (node, Role::Pattern(key), 0),
        }
    }

    /// Returns whether the list is a call such as `(list …)`.
    fn is_call(&self, node: NodeId) -> bool {
        self.head_of(node).is_some()
    }

    /// Returns the symbol at the head of a list.
    fn head_of(&self, node: NodeId) -> Option<&str> {
        let head = self.tree.children(node).next().filter(|_| self.tree.kind(node) == Kind::List)?;
        (self.tree.kind(head) == Kind::Symbol).then(|| self.text_of(head))
    }

    /// Returns whether a list that maps arguments to values is an example with a result: `(:args (…) :returns …)`.
    pub(crate) fn is_sample(&self, list: NodeId, plist: Plist) -> bool {
        matches!(plist, Plist::Tool | Plist::Exit) && self.keys_in(list).contains(&"returns")
    }

    pub(crate) fn is_key(&self, node: NodeId) -> bool {
        self.tree.kind(node) == Kind::Keyword
            && !matches!(self.text_of(node), ":json-false" | ":false" | ":null" | ":json-null")
    }

    pub(crate) fn text_of(&self, node: NodeId) -> &str {
        self.tree.text(node, &self.text)
    }

    pub(crate) fn span(&self, node: NodeId) -> Span {
        self.tree.span(node)
    }

    /// Returns the text of a string without quotation marks, or of a symbol.
    pub(crate) fn word(&self, node: NodeId) -> &str {
        self.text_of(node).trim_matches('"')
    }

    /// Returns whether the list at `node` contains `offset` between its brackets.
    pub(crate) fn is_inside(&self, node: NodeId, offset: usize) -> bool {
        let span = self.span(node).range();
        let is_closed = self.text_of(node).ends_with([')', ']']);
        span.start < offset && (offset < span.end || (offset == span.end && !is_closed))
    }

    /// Returns whether the atom at `node` contains or touches `offset`.
    fn touches(&self, node: NodeId, offset: usize) -> bool {
        let span = self.span(node).range();
        span.start <= offset && offset <= span.end
    }

    /// Returns the innermost part at `offset`: an atom that contains or touches it, or a list around it.
    pub(crate) fn part_at(&self, offset: usize) -> Option<Part> {
        let is_list = |node| matches!(self.tree.kind(node), Kind::List | Kind::Vector);
        let at = |part: &&Part| {
            if is_list(part.node) {
                self.is_inside(part.node, offset)
            } else {
                self.touches(part.node, offset)
            }
        };
        self.parts.iter().rev().find(at).copied()
    }

    /// Returns the parts of the form of `part`.
    pub(crate) fn form_parts(&self, form: usize) -> impl Iterator<Item = &Part> {
        let start = self.parts.partition_point(|part| part.form < form);
        self.parts.iter().skip(start).take_while(move |part| part.form == form)
    }

    /// Returns the name in a form.
    pub(crate) fn name_of(&self, form: usize) -> Option<&str> {
        Some(self.word(self.value_of(self.forms.get(form)?.node, "name")?))
    }

    /// Returns the name of the tool to which the arguments at `offset` of a form belong: that of the call around it, or of
    /// the form.
    pub(crate) fn tool_at(&self, form: usize, offset: usize) -> Option<&str> {
        let is_call = |part: &&Part| {
            matches!(part.role, Role::Plist(Plist::ExpectedCall | Plist::PastCall))
                && self.is_inside(part.node, offset)
        };
        match self.form_parts(form).filter(is_call).last() {
            Some(call) => Some(self.word(self.tree.children(call.node).next()?)),
            None => self.name_of(form),
        }
    }

    /// Returns the value of a key in the plist `list`.
    pub(crate) fn value_of(&self, list: NodeId, name: &str) -> Option<NodeId> {
        let mut children = self.tree.children(list);
        children.find(|child| self.is_key(*child) && self.text_of(*child).trim_start_matches(':') == name)?;
        children.next().filter(|value| !self.is_key(*value))
    }

    /// Returns the last child of `list` that ends before `offset`.
    pub(crate) fn child_before(&self, list: NodeId, offset: usize) -> Option<NodeId> {
        self.tree.children(list).take_while(|child| self.span(*child).end as usize <= offset).last()
    }

    /// Returns the keys of the plist `list`, without colons.
    pub(crate) fn keys_in(&self, list: NodeId) -> Vec<&str> {
        let keys = self.tree.children(list).filter(|child| self.is_key(*child));
        keys.map(|key| self.text_of(key).trim_start_matches(':')).collect()
    }

    /// Returns the string with `offset` between its quotation marks.
    pub(crate) fn string_at(&self, offset: usize) -> Option<NodeId> {
        let mut strings = self.tree.iter().filter(|node| self.tree.kind(*node) == Kind::String);
        strings.find(|node| {
            let (span, text) = (self.span(*node).range(), self.text_of(*node));
            let is_closed = text.len() > 1 && text.ends_with('"');
            span.start < offset && (offset < span.end || (offset == span.end && !is_closed))
        })
    }

    /// Returns the span of the tool that a preset of gptel names at `offset`, or would name there:
    /// `(gptel-make-preset NAME :tools '("a"))`.
    pub(crate) fn preset_tools_at(&self, offset: usize) -> Option<Span> {
        if !self.kind.is_code() {
            return None;
        }
        let is_preset = |node: &NodeId| {
            let head = self.tree.children(*node).next().filter(|_| self.tree.kind(*node) == Kind::List);
            head.is_some_and(|head| self.text_of(head) == "gptel-make-preset")
        };
        let preset = self.tree.iter().filter(is_preset).find(|node| self.is_inside(*node, offset))?;
        let mut items = self.tree.children(preset).skip_while(|item| self.text_of(*item) != ":tools");
        let mut list = items.nth(1)?;
        while self.tree.kind(list).is_prefix() {
            list = self.tree.children(list).next()?;
        }
        let is_list = self.tree.kind(list) == Kind::List && self.is_inside(list, offset);
        let mut names = self.tree.iter().filter(|node| self.tree.kind(*node) == Kind::String);
        let name = names.find(|node| self.touches(*node, offset)).map(|node| self.span(node));
        is_list.then(|| name.unwrap_or(Span::at(offset)))
    }

    /// Returns the comment at `offset`.
    pub(crate) fn comment_at(&self, offset: usize) -> Option<Span> {
        let comments = self.tree.comments();
        let index = comments.partition_point(|comment| (comment.start as usize) < offset).checked_sub(1)?;
        comments.get(index).copied().filter(|comment| offset <= comment.end as usize)
    }
}
