//! Completion.

use std::path::Path;

use deftool_lang::spec::reference::{FORMS, Key, KeyValue, Plist, keys, types};
use deftool_lang::spec::{DIALECTS, PREVIEWS, PreviewFeature, PreviewState, ToolKind};
use deftool_lang::syntax::{Kind, NodeId};
use deftool_lang::text::Span;
use deftool_project::rules;
use deftool_script::{host_tables, known_globals};

use crate::outline::{Outline, Part, Role};
use crate::project::{Language, Project};

/// A text to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text to show and to filter by.
    pub label: String,
    /// The kind.
    pub kind: CompletionKind,
    /// The documentation in Markdown. May be empty.
    pub documentation: String,
    /// The replaced span.
    pub replaces: Span,
    /// The text to insert, a snippet in the syntax of the Language Server Protocol.
    pub snippet: String,
}

/// The kind of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A form.
    Form,
    /// A key of a plist.
    Key,
    /// A symbol or string with a fixed meaning.
    Value,
    /// A type.
    Type,
    /// A tool.
    Tool,
    /// A rule.
    Rule,
    /// A file.
    File,
    /// A global of scripts.
    Global,
    /// A function of scripts.
    Function,
    /// A variable of a script.
    Variable,
    /// A field of a value in a script.
    Field,
    /// A keyword of scripts.
    Keyword,
}

/// Returns the completions at `offset`.
pub fn completions(project: &Project, path: &Path, offset: usize) -> Vec<Completion> {
    match Language::of(path) {
        Some(Language::Spec) => {
            let completer = Outline::of(project, path).map(|outline| Completer { project, outline, offset });
            completer.map(|completer| completer.complete()).unwrap_or_default()
        }
        Some(Language::Script) => project.text(path).map(|text| in_script(&text, offset)).unwrap_or_default(),
        None => Vec::new(),
    }
}

struct Completer<'p> {
    project: &'p Project,
    outline: Outline,
    offset: usize,
}

impl Completer<'_> {
    fn complete(&self) -> Vec<Completion> {
        if let Some(comment) = self.outline.comment_at(self.offset) {
            return self.in_comment(comment);
        }
        match self.outline.part_at(self.offset) {
            None => self.forms(),
            Some(Part { node, role, form }) => match role {
                Role::Head => self.forms(),
                Role::Key(plist, _) => self.keys(plist, self.list_of(node), self.outline.span(node)),
                Role::Plist(plist) => self.in_plist(node, plist),
                Role::Value(_, key) => self.value(key, node),
                Role::Call => self.in_call(node, form),
                Role::CallKey => self.argument_keys(self.list_of(node), self.outline.span(node), form),
                Role::CallValue(key) => self.argument_values(key, Some(node), form),
                Role::Names(_) | Role::Name => Vec::new(),
            },
        }
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
        let is_sequence = matches!(self.outline.tree.kind(node), Kind::Vector | Kind::List);
        let replaces = if is_sequence { self.here() } else { self.outline.span(node) };
        match key.value {
            KeyValue::Plists(_) | KeyValue::VectorOf(_) if is_sequence => {
                let snippet = "(:name \"$1\" :type ${2:string} :description \"$3\")";
                let is_argument = matches!(key.value, KeyValue::Plists(Plist::Argument));
                let completion =
                    plain("argument", CompletionKind::Form, snippet, "A new argument.", replaces);
                if is_argument { vec![completion] } else { Vec::new() }
            }
            KeyValue::Tools(_) | KeyValue::Rules | KeyValue::Previews | KeyValue::WordList(_) => {
                self.elements(key, replaces)
            }
            _ => self.atoms(key, replaces, self.outer_plist(node)),
        }
    }

    /// Completes the missing value of `key`.
    fn new_value(&self, key: &Key) -> Vec<Completion> {
        match key.value {
            KeyValue::Tools(_) | KeyValue::Rules | KeyValue::Previews | KeyValue::WordList(_) => {
                let (open, close) =
                    if matches!(key.value, KeyValue::Previews) { ('(', ')') } else { ('[', ']') };
                let elements = self.elements(key, self.here()).into_iter();
                let enclosed = |one: Completion| Completion {
                    snippet: format!("{open}{}$0{close}", one.snippet),
                    ..one
                };
                elements.map(enclosed).collect()
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
            KeyValue::Words(known) => words(known, CompletionKind::Value),
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
        let rules = rules::all().into_iter();
        rules
            .map(|rule| plain(rule.name, CompletionKind::Rule, rule.name, &rule.explanation(), replaces))
            .collect()
    }

    fn tools(&self, kind: ToolKind, replaces: Span) -> Vec<Completion> {
        let load = self.project.load();
        let tools = load.valid_tools().filter(|loaded| loaded.tool.kind == kind);
        let mut found: Vec<(&str, &str)> = tools
            .map(|loaded| (loaded.tool.name.value.as_str(), loaded.tool.description.value.as_str()))
            .collect();
        if kind == ToolKind::Normal {
            found.extend(
                load.mcp_servers
                    .iter()
                    .map(|server| (server.name.value.as_str(), server.description.as_str())),
            );
        }
        let complete = |(name, doc): (&str, &str)| {
            let quoted = format!("\"{name}\"");
            Completion {
                label: name.to_owned(),
                ..plain(&quoted, CompletionKind::Tool, &quoted, doc, replaces)
            }
        };
        found.into_iter().map(complete).collect()
    }

    fn scripts(&self, replaces: Span) -> Vec<Completion> {
        let scripts = self.project.scripts().iter();
        let mut names: Vec<String> =
            scripts.filter_map(|path| Some(format!("\"scripts/{}\"", path.file_name()?.to_str()?))).collect();
        names.sort_unstable();
        names.iter().map(|name| plain(name, CompletionKind::File, name, "", replaces)).collect()
    }

    fn in_call(&self, list: NodeId, form: usize) -> Vec<Completion> {
        match self.outline.child_before(list, self.offset) {
            Some(before)
                if self
                    .outline
                    .parts
                    .iter()
                    .any(|part| part.node == before && matches!(part.role, Role::CallKey)) =>
            {
                self.argument_values(before, None, form)
            }
            _ => self.argument_keys(list, self.here(), form),
        }
    }

    /// Returns the plists of the arguments of a form.
    fn arguments(&self, form: usize) -> impl Iterator<Item = NodeId> {
        let of_form = self.outline.form_parts(form);
        of_form.filter(|part| matches!(part.role, Role::Plist(Plist::Argument))).map(|part| part.node)
    }

    fn argument_keys(&self, list: NodeId, replaces: Span, form: usize) -> Vec<Completion> {
        let written = self.outline.keys_in(list);
        let here = replaces.of(&self.outline.text).trim_start_matches(':');
        let complete = |argument| {
            let name = self.outline.word(self.outline.value_of(argument, "name")?);
            let doc = self.outline.value_of(argument, "description").map_or("", |doc| self.outline.word(doc));
            if name != here && written.contains(&name) {
                return None;
            }
            let label = format!(":{name}");
            Some(plain(&label, CompletionKind::Key, &label, doc, replaces))
        };
        self.arguments(form).filter_map(complete).collect()
    }

    fn argument_values(&self, key: NodeId, value: Option<NodeId>, form: usize) -> Vec<Completion> {
        let name = self.outline.text_of(key).trim_start_matches(':');
        let is_named = |argument: &NodeId| {
            self.outline.value_of(*argument, "name").is_some_and(|node| self.outline.word(node) == name)
        };
        let Some(argument) = self.arguments(form).find(is_named) else { return Vec::new() };
        let replaces = value.map_or(self.here(), |value| self.outline.span(value));
        let is_boolean =
            self.outline.value_of(argument, "type").is_some_and(|node| self.outline.word(node) == "boolean");
        if is_boolean {
            let words = ["t", ":json-false"].iter();
            return words.map(|word| plain(word, CompletionKind::Value, word, "", replaces)).collect();
        }
        self.enum_values(self.outline.value_of(argument, "enum"), replaces)
    }

    /// Completes rules in `deftool: allow(…)`.
    fn in_comment(&self, comment: Span) -> Vec<Completion> {
        let before = self.outline.text.get(comment.start as usize..self.offset).unwrap_or_default();
        if !before.contains("deftool:") || !before.contains("allow(") {
            return Vec::new();
        }
        let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
        let replaces = Span::new(self.offset - word.len(), self.offset);
        let rules = rules::all().into_iter();
        rules
            .map(|rule| plain(rule.name, CompletionKind::Rule, rule.name, &rule.explanation(), replaces))
            .collect()
    }
}

/// Creates a completion. `snippet` is text, unless it has the placeholder `$1`.
pub(crate) fn plain(
    label: &str,
    kind: CompletionKind,
    snippet: &str,
    doc: &str,
    replaces: Span,
) -> Completion {
    Completion {
        label: label.to_owned(),
        kind,
        documentation: doc.to_owned(),
        replaces,
        snippet: if snippet.contains("$1") { snippet.to_owned() } else { escaped(snippet) },
    }
}

/// Returns the snippet for the value of a key.
fn value_snippet(key: &Key) -> String {
    match key.value {
        KeyValue::Text | KeyValue::Quantity | KeyValue::Strings(_) | KeyValue::Script => {
            String::from("\"$1\"")
        }
        KeyValue::Flag | KeyValue::JsonFlag | KeyValue::Confirm => String::from("t"),
        KeyValue::Number | KeyValue::Status | KeyValue::Dialect | KeyValue::Any => String::from("$1"),
        KeyValue::Words(words) => format!("${{1|{}|}}", words.join(",")),
        KeyValue::Type => format!("${{1|{}|}}", types().join(",")),
        KeyValue::List | KeyValue::Tools(_) => String::from("[\"$1\"]"),
        KeyValue::Rules | KeyValue::Statuses | KeyValue::WordList(_) => String::from("[$1]"),
        KeyValue::Plist(_) | KeyValue::Named(_) | KeyValue::Previews => String::from("($1)"),
        KeyValue::Plists(Plist::Argument) => {
            String::from("((:name \"$1\" :type ${2:string} :description \"$3\"))")
        }
        KeyValue::Plists(_) => String::from("(($1))"),
        KeyValue::VectorOf(_) | KeyValue::Calls => String::from("[($1)]"),
    }
}

/// Returns `text` as a snippet without placeholders.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")
}

/// Completes host tables, libraries and their functions.
fn in_script(text: &str, offset: usize) -> Vec<Completion> {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let word = line.rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').next().unwrap_or_default();
    let is_code = !line.contains("--") && !before.ends_with(':');
    let start = word.rfind('.').map_or(0, |dot| dot + 1);
    let table = word.get(..start).unwrap_or_default();
    let replaces = Span::new(offset - (word.len() - start), offset);
    let complete = |name: String| {
        let rest = name.strip_prefix(table).filter(|rest| !rest.contains('.'))?.to_owned();
        let function = host_function(&name);
        let is_table = host_tables().iter().any(|doc| doc.name == name);
        let about = host_tables().iter().find(|doc| doc.name == name).map_or("", |doc| doc.about);
        Some(Completion {
            kind: if table.is_empty() || is_table {
                CompletionKind::Global
            } else {
                CompletionKind::Function
            },
            documentation: function
                .map_or_else(|| about.to_owned(), |(table, function)| function_doc(table, function)),
            replaces,
            snippet: escaped(&rest),
            label: rest,
        })
    };
    if is_code { known_globals().into_iter().filter_map(complete).collect() } else { Vec::new() }
}

/// Returns the host function called `name`, such as `fs.read`, and its table.
pub(crate) fn host_function(name: &str) -> Option<(&'static str, &'static deftool_script::FunctionDoc)> {
    let (table, function) = name.split_once('.')?;
    let doc = host_tables().iter().find(|doc| doc.name == table)?;
    doc.functions.iter().find(|known| known.name == function).map(|function| (doc.name, function))
}

/// Returns the documentation of a host function in Markdown.
pub(crate) fn function_doc(table: &str, function: &deftool_script::FunctionDoc) -> String {
    let mut parts = vec![
        format!("```luau\n{table}.{}{}\n```\n{}", function.name, function.signature, function.about),
        function.errors.to_owned(),
    ];
    if !function.example.is_empty() {
        parts.push(format!("```luau\n{}\n```", function.example));
    }
    if !function.permissions.is_empty() {
        let keys: Vec<String> = function.permissions.iter().map(|key| format!("`:{key}`")).collect();
        parts.push(format!("Requires {} in `:allow`.", keys.join(" or ")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}
