//! Completion.

mod call;
mod comment;
mod item;
mod script;

use std::cell::Cell;
use std::path::Path;

use deftool_lang::schema::Target;
use deftool_lang::spec::reference::{FORMS, Key, KeyValue, Plist, keys, types};
use deftool_lang::spec::{DIALECTS, PREVIEWS, PreviewFeature, PreviewState, ToolKind};
use deftool_lang::syntax::{Kind, NodeId, quoted};
use deftool_lang::text::Span;
use deftool_project::LoadedTool;

use self::comment::{directives, of_rules};
pub(crate) use self::item::plain;
pub use self::item::{Completion, CompletionKind, Completions};
use self::item::{choose, pattern_heads, value_snippet};
use self::script::in_script;
pub(crate) use self::script::{function_doc, host_function};
use crate::outline::{Outline, Part, Role};
use crate::project::{Language, Project};

/// Returns the completions at `offset`.
///
/// The text counts, and the tools of the last load: changes since then do not have to be loaded.
pub fn completions(project: &Project, path: &Path, offset: usize) -> Completions {
    match Language::of(path) {
        Some(Language::Spec) => {
            let Some(outline) = Outline::of(project, path) else { return Completions::default() };
            let completer = Completer { project, outline, offset, is_cut_off: Cell::new(false) };
            let items = completer.complete();
            Completions { items, is_incomplete: completer.is_cut_off.get() }
        }
        Some(Language::Script) => project.text(path).map(|text| in_script(&text, offset)).unwrap_or_default(),
        None => Completions::default(),
    }
}

struct Completer<'p> {
    project: &'p Project,
    outline: Outline,
    offset: usize,
    /// Whether there are more items.
    is_cut_off: Cell<bool>,
}

impl Completer<'_> {
    fn complete(&self) -> Vec<Completion> {
        if let Some(comment) = self.outline.comment_at(self.offset) {
            let text = comment.of(&self.outline.text);
            return self.items(directives(text, self.offset - comment.start as usize, self.offset));
        }
        if let Some(replaces) = self.outline.preset_tools_at(self.offset) {
            return self.tools(ToolKind::Normal, replaces);
        }
        let part = self.outline.part_at(self.offset);
        // A string has its own words, unless it is the value of a key.
        let string = self.outline.string_at(self.offset);
        if string.is_some_and(|string| part.is_none_or(|part| part.node != string)) {
            return Vec::new();
        }
        match part {
            None => self.forms(),
            Some(Part { node, role, .. }) => match role {
                Role::Head => self.forms(),
                Role::Tool => self.called_tools(self.outline.span(node)),
                Role::Key(plist, _) => self.keys(plist, self.list_of(node), self.outline.span(node)),
                Role::Plist(plist) => self.in_plist(node, plist),
                Role::Value(_, key) => self.value(key, node),
                Role::Call(plist) => self.in_call(node, plist),
                Role::CallKey => self.argument_keys(self.list_of(node), self.outline.span(node)),
                Role::CallValue(_) if self.is_sequence(node) => Vec::new(),
                Role::CallValue(key) => self.argument_values(key, self.outline.span(node)),
                Role::Pattern(key) => self.in_pattern(key, node),
                Role::PatternHead => pattern_heads(self.outline.span(node)),
                Role::Names(Plist::Override) => self.in_targets(node),
                Role::Name if self.is_in_targets(node) => {
                    self.targets(self.list_of(node), self.outline.span(node))
                }
                Role::Names(_) | Role::Name => Vec::new(),
            },
        }
    }

    /// Returns the items, and notes whether there are more.
    fn items(&self, completions: Completions) -> Vec<Completion> {
        self.is_cut_off.set(completions.is_incomplete);
        completions.items
    }

    /// Returns the part of the replaced text before the cursor, without a quotation mark.
    fn typed(&self, replaces: Span) -> &str {
        let typed = self.outline.text.get(replaces.start as usize..self.offset).unwrap_or_default();
        typed.trim_start_matches('"')
    }

    /// Returns the innermost list around `node`.
    fn list_of(&self, node: NodeId) -> NodeId {
        let is_around = |part: &&Part| {
            part.node < node && self.outline.span(part.node).end >= self.outline.span(node).end
        };
        self.outline.parts.iter().rev().find(is_around).map_or(node, |part| part.node)
    }

    fn here(&self) -> Span {
        Span::at(self.offset)
    }

    fn is_sequence(&self, node: NodeId) -> bool {
        matches!(self.outline.tree.kind(node), Kind::Vector | Kind::List)
    }

    fn forms(&self) -> Vec<Completion> {
        if self.outline.kind.is_code() {
            return Vec::new();
        }
        let (tree, at) = (&self.outline.tree, self.offset as u32);
        let around = tree.roots().find(|root| {
            let span = tree.span(*root);
            span.start <= at && at <= span.end && tree.kind(*root) != Kind::String
        });
        // The head of an unfinished form, or a new form.
        let (replaces, opener) = match around {
            None => (self.here(), "("),
            Some(root) if tree.kind(root) == Kind::Symbol => (tree.span(root), "("),
            Some(root) => match tree.children(root).next() {
                None if tree.kind(root) == Kind::List => (self.here(), ""),
                Some(head) if tree.kind(head) == Kind::Symbol && at <= tree.span(head).end => {
                    (tree.span(head), "")
                }
                _ => return Vec::new(),
            },
        };
        let complete = |form: &deftool_lang::spec::reference::FormDoc| {
            let rest = match form.plist {
                Plist::Tool => {
                    " :name \"$1\"\n :description \"$2\"\n :args ((:name \"$3\" :type ${4:string} :description \"$5\"))"
                }
                Plist::Exit => " :name \"$1\"\n :description \"$2\"",
                Plist::Project => " :allow [$1]",
                Plist::ProjectAsk => " :prompt \"$1\"\n :calls [($2 :call ${3:t})]",
                _ => " :name \"$1\"",
            };
            let closer = if opener.is_empty() { "" } else { ")" };
            let snippet = format!("{opener}{}{rest}{closer}", form.head);
            Completion {
                label: form.head.to_owned(),
                kind: CompletionKind::Form,
                documentation: form.doc.to_owned(),
                replaces,
                snippet,
            }
        };
        FORMS.iter().map(complete).collect()
    }

    fn in_plist(&self, list: NodeId, plist: Plist) -> Vec<Completion> {
        let before = self.outline.child_before(list, self.offset);
        match plist {
            Plist::ExpectedCall | Plist::PastCall if before.is_none() => {
                return self.called_tools(self.here());
            }
            // The prompt comes first.
            Plist::Ask if before.is_none() => return Vec::new(),
            _ => {}
        }
        let key = before.and_then(|before| {
            let part = self.outline.parts.iter().find(|part| part.node == before)?;
            if let Role::Key(_, key) = part.role { key } else { None }
        });
        match key {
            Some(key) => self.new_value(key),
            None => self.keys(plist, list, self.here()),
        }
    }

    fn keys(&self, plist: Plist, list: NodeId, replaces: Span) -> Vec<Completion> {
        let written = self.outline.keys_in(list);
        let here = replaces.of(&self.outline.text).trim_start_matches(':');
        let is_new = |key: &&Key| key.name == here || !written.contains(&key.name);
        // The value is already there.
        let rest = self.outline.text.get(replaces.end as usize..).unwrap_or_default();
        let has_value = !replaces.is_empty()
            && !rest.trim_start_matches([' ', '\t']).starts_with([')', '\n', '\r', ':'])
            && !rest.is_empty();
        let complete = |key: &Key| {
            let name = key.name.replace('$', "\\$");
            let value = if has_value { String::new() } else { format!(" {}", value_snippet(key)) };
            Completion {
                label: format!(":{}", key.name),
                kind: CompletionKind::Key,
                documentation: key.doc.to_owned(),
                replaces,
                snippet: format!(":{name}{value}"),
            }
        };
        keys(plist).iter().filter(is_new).map(complete).collect()
    }

    /// Completes the value `node` of `key`, or an element of it.
    fn value(&self, key: &Key, node: NodeId) -> Vec<Completion> {
        let is_sequence = self.is_sequence(node);
        let replaces = if is_sequence { self.here() } else { self.outline.span(node) };
        match key.value {
            KeyValue::Plists(_) | KeyValue::VectorOf(_) if is_sequence => {
                let snippet = "(:name \"$1\" :type ${2:string} :description \"$3\")";
                let is_argument = matches!(key.value, KeyValue::Plists(Plist::Argument));
                let completion =
                    plain("argument", CompletionKind::Form, snippet, "A new argument.", replaces);
                if is_argument { vec![completion] } else { Vec::new() }
            }
            KeyValue::Confirm if is_sequence || self.outline.tree.kind(node) == Kind::Keyword => {
                self.in_confirm(node, key)
            }
            _ if brackets(key).is_some() => self.elements(key, replaces),
            _ => self.atoms(key, replaces, self.outer_plist(node)),
        }
    }

    /// Completes the missing value of `key`.
    fn new_value(&self, key: &Key) -> Vec<Completion> {
        if let Some((open, close)) = brackets(key) {
            let elements = self.elements(key, self.here()).into_iter();
            let enclosed =
                |one: Completion| Completion { snippet: format!("{open}{}$0{close}", one.snippet), ..one };
            return elements.map(enclosed).collect();
        }
        match key.value {
            KeyValue::Named(Plist::Override) => {
                let entries = Target::ALL.map(Target::as_str).map(|name| target(name, false, self.here()));
                let enclosed = |one: Completion| Completion { snippet: format!("({})", one.snippet), ..one };
                entries.map(enclosed).to_vec()
            }
            KeyValue::Confirm => {
                let mut found = self.atoms(key, self.here(), None);
                let snippet = "(:when ($1))";
                found.push(plain("(:when …)", CompletionKind::Form, snippet, key.doc, self.here()));
                found
            }
            _ => self.atoms(key, self.here(), None),
        }
    }

    fn outer_plist(&self, node: NodeId) -> Option<NodeId> {
        let lists = self.outline.parts.iter().rev().filter(|part| matches!(part.role, Role::Plist(_)));
        let at = self.outline.span(node);
        lists.map(|part| part.node).find(|list| {
            let span = self.outline.span(*list);
            span.start < at.start && at.end <= span.end
        })
    }

    fn atoms(&self, key: &Key, replaces: Span, list: Option<NodeId>) -> Vec<Completion> {
        let words = |words: &[&str], kind| {
            words.iter().map(|word| plain(word, kind, word, key.doc, replaces)).collect::<Vec<_>>()
        };
        match key.value {
            KeyValue::Words(known) | KeyValue::Call(known) => words(known, CompletionKind::Value),
            KeyValue::Dialect => {
                let load = self.project.load();
                let own = load.dialects.iter().map(|dialect| dialect.name.value.as_str());
                let names: Vec<&str> = own.chain(DIALECTS).collect();
                words(&names, CompletionKind::Value)
            }
            KeyValue::Flag | KeyValue::Confirm => words(&["t", "nil"], CompletionKind::Value),
            KeyValue::JsonFlag => words(&["t", ":json-false"], CompletionKind::Value),
            KeyValue::Type => words(types(), CompletionKind::Type),
            KeyValue::Strings(known) => {
                let quoted: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
                words(&quoted.iter().map(String::as_str).collect::<Vec<_>>(), CompletionKind::Value)
            }
            KeyValue::Script => self.scripts(replaces),
            KeyValue::Any if key.name == "stdin" => words(&["json"], CompletionKind::Value),
            KeyValue::Any if key.name == "ok-codes" => words(&["[0 1]"], CompletionKind::Value),
            // `:default` and `:const` of an argument with `:enum`.
            KeyValue::Any if matches!(key.name, "default" | "const") => {
                let values = list.and_then(|list| self.outline.value_of(list, "enum"));
                self.enum_values(values, replaces)
            }
            _ => Vec::new(),
        }
    }

    fn enum_values(&self, values: Option<NodeId>, replaces: Span) -> Vec<Completion> {
        let values = values.into_iter().flat_map(|values| self.outline.tree.children(values));
        let text = values.map(|value| self.outline.text_of(value));
        text.map(|value| plain(value, CompletionKind::Value, value, "", replaces)).collect()
    }

    fn elements(&self, key: &Key, replaces: Span) -> Vec<Completion> {
        if let KeyValue::Tools(kind) = key.value {
            return self.tools(kind, replaces);
        }
        if matches!(key.value, KeyValue::Previews) {
            let active = PREVIEWS.iter().filter(|feature| feature.state == PreviewState::Preview);
            let complete = |feature: &PreviewFeature| {
                plain(feature.name, CompletionKind::Value, feature.name, feature.description, replaces)
            };
            return active.map(complete).collect();
        }
        if let KeyValue::WordList(words) = key.value {
            let complete = |word: &&str| plain(word, CompletionKind::Value, word, key.doc, replaces);
            return words.iter().map(complete).collect();
        }
        if matches!(key.value, KeyValue::Arguments) {
            return self.ignored_arguments(replaces);
        }
        self.items(of_rules(self.typed(replaces), replaces))
    }

    fn tools(&self, kind: ToolKind, replaces: Span) -> Vec<Completion> {
        let load = self.project.load();
        let tools = load.valid_tools().filter(|loaded| loaded.tool.kind == kind).map(described);
        let servers = load.mcp_servers.iter().filter(|_| kind == ToolKind::Normal);
        let servers = servers.map(|server| (server.name.value.as_str(), server.description.as_str()));
        self.names(tools.chain(servers), quoted, replaces)
    }

    /// Completes names of tools, each with its documentation. `written` returns the text of a name.
    fn names<'n>(
        &self,
        names: impl Iterator<Item = (&'n str, &'n str)>,
        written: impl Fn(&str) -> String,
        replaces: Span,
    ) -> Vec<Completion> {
        let (chosen, are_all) = choose(names, |(name, _)| name, self.typed(replaces));
        self.is_cut_off.set(!are_all);
        let complete = |(name, doc): (&str, &str)| {
            let written = written(name);
            Completion {
                label: name.to_owned(),
                ..plain(&written, CompletionKind::Tool, &written, doc, replaces)
            }
        };
        chosen.into_iter().map(complete).collect()
    }

    fn scripts(&self, replaces: Span) -> Vec<Completion> {
        let names = self.project.scripts().iter().filter_map(|path| path.file_name()?.to_str());
        let typed = self.typed(replaces);
        let typed = typed.strip_prefix("scripts/").unwrap_or(typed);
        let (mut chosen, are_all) = choose(names, |name| name, typed);
        self.is_cut_off.set(!are_all);
        chosen.sort_unstable();
        let complete = |name: &str| {
            let quoted = format!("\"scripts/{name}\"");
            plain(&quoted, CompletionKind::File, &quoted, "", replaces)
        };
        chosen.into_iter().map(complete).collect()
    }

    /// Completes inside the list of `:targets`: another target, or the override of the last one.
    fn in_targets(&self, list: NodeId) -> Vec<Completion> {
        match self.outline.child_before(list, self.offset) {
            Some(before) if self.outline.tree.kind(before) == Kind::Keyword => {
                let doc = "The keys that are different for this target.";
                vec![plain("override", CompletionKind::Form, "(:description \"$1\")", doc, self.here())]
            }
            _ => self.targets(list, self.here()),
        }
    }

    fn is_in_targets(&self, name: NodeId) -> bool {
        let list = self.list_of(name);
        let mut parts = self.outline.parts.iter();
        parts.any(|part| part.node == list && matches!(part.role, Role::Names(Plist::Override)))
    }

    /// Completes the targets that `list` does not have yet.
    fn targets(&self, list: NodeId, replaces: Span) -> Vec<Completion> {
        let written = self.outline.keys_in(list);
        let here = replaces.of(&self.outline.text).trim_start_matches(':');
        let has_value = self.outline.text.get(replaces.end as usize..).is_some_and(|rest| {
            !replaces.is_empty() && rest.trim_start_matches([' ', '\t']).starts_with('(')
        });
        let names = Target::ALL.map(Target::as_str).into_iter();
        let new = names.filter(|name| *name == here || !written.contains(name));
        new.map(|name| target(name, has_value, replaces)).collect()
    }

    /// Completes inside the value of `:confirm`.
    fn in_confirm(&self, node: NodeId, key: &Key) -> Vec<Completion> {
        let is_keyword = self.outline.tree.kind(node) == Kind::Keyword;
        let list = if is_keyword { self.list_of(node) } else { node };
        let replaces = if is_keyword { self.outline.span(node) } else { self.here() };
        if is_keyword || !self.outline.keys_in(list).contains(&"when") {
            return vec![plain(":when", CompletionKind::Key, ":when ($1)", key.doc, replaces)];
        }
        let doc = "A condition: tests of arguments, all of which must pass.";
        vec![plain("condition", CompletionKind::Form, "($1)", doc, replaces)]
    }
}

/// Returns the brackets around the value of a key that takes names.
fn brackets(key: &Key) -> Option<(char, char)> {
    match key.value {
        KeyValue::Tools(_) | KeyValue::Rules | KeyValue::WordList(_) => Some(('[', ']')),
        KeyValue::Previews | KeyValue::Arguments => Some(('(', ')')),
        _ => None,
    }
}

/// Returns the name and the description of a tool.
fn described(loaded: &LoadedTool) -> (&str, &str) {
    (&*loaded.tool.name.value, &*loaded.tool.description.value)
}

/// Returns the completion of an entry of `:targets`.
fn target(name: &str, has_value: bool, replaces: Span) -> Completion {
    let value = if has_value { "" } else { " (:description \"$1\")" };
    Completion {
        label: format!(":{name}"),
        kind: CompletionKind::Key,
        documentation: format!("An override for `--target {name}`."),
        replaces,
        snippet: format!(":{name}{value}"),
    }
}
