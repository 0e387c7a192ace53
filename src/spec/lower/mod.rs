//! Tree → definitions.

mod argument;
mod collection;
mod confirm;
mod emacs;
mod examples;
mod fixes;
mod form;
mod function;
mod keyword;
mod permission;
mod plist;
mod project;
mod schema;
mod server;
mod tool;
mod value;
mod worker;

use self::emacs::{Guilty, Variables};
pub(crate) use self::form::is_spec_form;
pub(super) use self::form::layout_of;
use self::form::{FORMS, Form, Found, Taken, form_of, hands_on_function};
use super::{Definitions, Tool, ToolKind};
use crate::diagnostic::{Diagnostic, Severity};
use crate::spec::rules;
use crate::syntax::{Datum, DatumKind, Fault, Folder, Kind, NodeId, Tree};
use crate::text::{Location, SourceId, Span};

/// What stands in a file around its specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Specs only: any other form is a mistake.
    Specs,
    /// Emacs Lisp with specs somewhere in it: other forms are looked through for them and otherwise left alone.
    EmacsLisp,
}

impl FileKind {
    /// By the name's extension.
    pub fn of_name(name: &str) -> Self {
        if std::path::Path::new(name).extension().is_some_and(|extension| extension == "el") {
            Self::EmacsLisp
        } else {
            Self::Specs
        }
    }
}

/// The definitions of `tree`, read from `text`, the whole of `source`, and what is wrong with them.
pub fn lower(source: SourceId, text: &str, tree: &Tree, kind: FileKind) -> (Definitions, Vec<Diagnostic>) {
    let mut lowerer = Lowerer::new(source);
    let mut definitions = Definitions::default();
    let mut folder = Folder::new(source, text, tree);
    let mut variables = Variables::default();
    let mut noted_code = false;
    // With each whether it stands below a quote.
    let mut pending: Vec<(NodeId, bool)> = tree.roots().map(|root| (root, false)).collect();
    pending.reverse();
    let mut after_loose = false;
    while let Some((node, is_quoted)) = pending.pop() {
        after_loose &= !names_form(tree, node);
        let found = form_of(tree, text, node, kind);
        if let Some(found) = found.filter(|found| is_quoted && is_template(tree, found)) {
            if !std::mem::replace(&mut noted_code, true) {
                let head = tree.children(found.list).next().unwrap_or(found.list);
                let at = lowerer.at(tree.span(head));
                lowerer.findings.push(rules::tools_by_code::finding(at, tree.text(head, text)));
            }
            continue;
        }
        if let Some(found) = found {
            let items = || tree.children(found.list).skip(found.skipped);
            folder.in_code = found.taken == Taken::Evaluated && kind == FileKind::EmacsLisp;
            let data = if found.form == Form::Collection {
                items().take(4).map(|item| folder.fold_macro_data(item)).collect()
            } else {
                fold_entries(&mut folder, tree, items(), &found)
            };
            folder.in_code = false;
            folder.tell_commas();
            lowerer.form_start = lowerer.findings.len();
            lowerer.findings.append(&mut folder.findings);
            let fault = tree.fault(node);
            let known = definitions.tools.len();
            lowerer.is_called = found.taken != Taken::Data && kind == FileKind::EmacsLisp;
            lowerer.lower_form(found.form, tree.span(node), data, fault, &mut definitions);
            if let Some(tool) = definitions.tools.get(known).filter(|tool| tool.valid)
                && found.taken != Taken::Data
            {
                lowerer.check_function(tool, tree, text, &found);
            }
            if found.taken == Taken::Evaluated && kind == FileKind::EmacsLisp && !is_quoted {
                let unquoted = emacs::unquoted(tree, text, items(), &mut variables);
                lowerer.tell_unquoted(&unquoted, tree, text);
            }
            // Where a parenthesis or quote is missing, everything else that seems wrong follows from it.
            if fault == Some(Fault::Misnested) || (lowerer.has_error() && tree.is_overclosed(node)) {
                lowerer.findings.truncate(lowerer.form_start);
            }
            continue;
        }
        match kind {
            FileKind::Specs if tree.fault(node).is_some() => {}
            // Loose values one after the other are one mistake.
            FileKind::Specs if !names_form(tree, node) && std::mem::replace(&mut after_loose, true) => {}
            FileKind::Specs => lowerer.tell_unknown_form(tree, text, node),
            FileKind::EmacsLisp => {
                if let Some(function) = hands_on_function(tree, text, node).filter(|_| !noted_code) {
                    noted_code = true;
                    let at = lowerer.at(tree.span(function));
                    let name = tree.text(function, text);
                    lowerer.findings.push(rules::tools_by_code::finding(at, name));
                }
                let is_quoted = match tree.kind(node) {
                    Kind::Quote | Kind::Backquote => true,
                    Kind::Unquote | Kind::Splice => false,
                    _ => is_quoted,
                };
                // Children in reverse, so that the first is looked at first.
                let start = pending.len();
                pending.extend(tree.children(node).map(|child| (child, is_quoted)));
                if let Some(added) = pending.get_mut(start..) {
                    added.reverse();
                }
            }
        }
    }
    for tool in &definitions.tools {
        rules::lone_backslash::check(tool, text, &mut lowerer.findings);
    }
    lowerer.note_mcp(&definitions);
    fixes::settle_fixes(&mut lowerer.findings, text, tree, kind);
    (definitions, lowerer.findings)
}

/// The tool that a constant is: a plist, or a list that starts with the name of a tool form. For callers that
/// hold specs as values; everything stands at byte 0 of `source`.
pub fn lower_tool(source: SourceId, datum: Datum) -> (Option<Tool>, Vec<Diagnostic>) {
    let mut lowerer = Lowerer::new(source);
    let mut kind = ToolKind::Normal;
    let at = lowerer.at(datum.span);
    let DatumKind::List(mut items) = datum.kind else {
        return (None, vec![rules::unknown_form::value(at, None)]);
    };
    if let Some(Datum { kind: DatumKind::Symbol(head), .. }) = items.first() {
        match FORMS.iter().find(|(form, _)| form == head) {
            Some((_, Form::Tool(of_form))) => kind = *of_form,
            Some((_, Form::Collection | Form::Worker | Form::Mcp | Form::Lint)) | None => {
                return (None, vec![rules::unknown_form::value(at, Some(head))]);
            }
        }
        items.remove(0);
    }
    let tool = lowerer.lower_tool(kind, datum.span, items);
    (tool, lowerer.findings)
}

/// What every API is sent: where Emacs evaluates it, a symbol is a variable.
const SENT: [&str; 3] = [":name", ":description", ":args"];

/// What is Emacs Lisp, or changes nothing that is sent: code there is no mistake.
const CODE: [&str; 5] = [":function", ":async", ":confirm", ":include", ":category"];

/// The constants of a form, without its head. What stands under `:function` is Emacs Lisp and not looked at.
fn fold_entries(
    folder: &mut Folder<'_>,
    tree: &Tree,
    items: impl Iterator<Item = NodeId>,
    form: &Found,
) -> Vec<Datum> {
    let is_call = form.taken == Taken::Evaluated;
    let is_tool = matches!(form.form, Form::Tool(_));
    let mut data: Vec<Datum> = Vec::new();
    for item in items {
        let key = match data.last() {
            Some(Datum { kind: DatumKind::Keyword(key), .. }) => key.as_str(),
            _ => "",
        };
        let code = Datum { span: tree.span(item), kind: DatumKind::Invalid };
        let datum = if key == ":function" && tree.kind(item) != Kind::Keyword {
            code
        } else if CODE.contains(&key) || (is_tool && tool::is_unknown_key(key)) {
            let told = folder.findings.len();
            let datum = if is_call { folder.fold_argument(item) } else { folder.fold(item) };
            let is_code = folder.findings.len() > told && tree.kind(item) != Kind::Keyword;
            if is_code {
                folder.findings.truncate(told);
            }
            if is_code { code } else { datum }
        } else if is_call && SENT.contains(&key) {
            folder.fold_argument(item)
        } else if form.taken == Taken::Quoted || (form.form == Form::Lint && tree.kind(item) == Kind::List) {
            folder.fold_quoted(item)
        } else {
            folder.fold(item)
        };
        data.push(datum);
    }
    data
}

/// A URL of HTTP that names a host.
fn as_url(text: &str) -> Option<String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')).then(|| text.to_owned())
}

/// Collects findings while one file is lowered.
struct Lowerer {
    source: SourceId,
    findings: Vec<Diagnostic>,
    /// Number of the first finding of the form that is being lowered.
    form_start: usize,
    /// Whether the reader could not make sense of something in it.
    is_misread: bool,
    /// Whether Emacs calls the function that the form names.
    is_called: bool,
}

impl Lowerer {
    fn new(source: SourceId) -> Self {
        Self { source, findings: Vec::new(), form_start: 0, is_misread: false, is_called: false }
    }

    /// Lowers one form. What the reader could not make sense of is not valid.
    fn lower_form(
        &mut self,
        form: Form,
        span: Span,
        data: Vec<Datum>,
        fault: Option<Fault>,
        definitions: &mut Definitions,
    ) {
        self.is_misread = fault.is_some();
        let tool = match form {
            Form::Tool(kind) => self.lower_tool(kind, span, data),
            Form::Collection => {
                let plist = self.expand_collection(span, data);
                plist.and_then(|plist| self.lower_tool(ToolKind::Normal, span, plist))
            }
            Form::Worker => {
                if let Some(mut worker) = self.lower_worker(span, data) {
                    worker.valid &= fault.is_none();
                    definitions.workers.push(worker);
                }
                None
            }
            Form::Mcp => {
                definitions.mcp_servers.extend(self.lower_mcp(span, data).filter(|_| fault.is_none()));
                None
            }
            Form::Lint => {
                let lint = self.lower_lint(span, data);
                definitions.lints.extend(Some(lint).filter(|_| fault.is_none()));
                None
            }
        };
        if let Some(mut tool) = tool {
            tool.valid &= fault.is_none();
            definitions.tools.push(tool);
        }
    }

    /// What the lambda under `:function` takes, held against the arguments.
    fn check_function(&mut self, tool: &Tool, tree: &Tree, text: &str, found: &Found) {
        let value_of = |key: &str| {
            let mut items = tree.children(found.list);
            items.find(|item| tree.kind(*item) == Kind::Keyword && tree.text(*item, text) == key)?;
            items.next()
        };
        // Whether there is a callback may be known to Emacs alone.
        let is_code = |value: NodeId| !matches!(tree.text(value, text), "t" | "nil");
        if !tool.is_async && value_of(":async").is_some_and(is_code) {
            return;
        }
        // `:arguments`: what the arguments are is not known.
        let is_alias = |item: NodeId| tool::is_meant_for_args(tree.text(item, text));
        let mut keys = tree.children(found.list).filter(|item| tree.kind(*item) == Kind::Keyword);
        if tool.arguments.is_empty() && keys.any(is_alias) {
            return;
        }
        let parameters = value_of(":function").and_then(|value| function::parameters_of(tree, text, value));
        let Some(function::Parameters { span, names, required, has_rest }) = parameters else { return };
        let arguments = || tool.arguments.iter().map(|argument| argument.name.value.as_str());
        // The callback among the arguments is told, and decides what the function takes.
        if tool.is_async && arguments().any(|name| name == "callback") {
            return;
        }
        // It may have any name but that of an argument.
        let own = names.first().map(String::as_str).filter(|name| !arguments().any(|other| other == *name));
        let callback = tool.is_async.then_some(own.unwrap_or("callback"));
        let expected: Vec<&str> = callback.into_iter().chain(arguments()).collect();
        let finding = rules::function_parameters::check(
            self.at(span),
            &tool.name.value,
            &names,
            required,
            has_rest,
            &expected,
        );
        self.findings.extend(finding);
    }

    /// What Emacs cannot evaluate. Where there is an error in it, that is what is wrong with it.
    fn tell_unquoted(&mut self, unquoted: &[(NodeId, Guilty)], tree: &Tree, text: &str) {
        let errors = self.findings.get(self.form_start..).unwrap_or_default().iter();
        let errors = errors.filter(|finding| finding.severity == Severity::Error);
        let mut errors: Vec<u32> = errors.map(|finding| finding.primary.span.start).collect();
        errors.sort_unstable();
        for &(node, guilty) in unquoted {
            let span = tree.span(node);
            let first = errors.partition_point(|error| *error < span.start);
            if errors.get(first).is_some_and(|error| *error < span.end) {
                continue;
            }
            let at = self.at(span);
            self.findings.push(match guilty {
                Guilty::Call(head) => rules::unquoted_in_code::call(at, tree.text(head, text)),
                Guilty::Variable => rules::unquoted_in_code::variable(at, tree.text(node, text)),
                Guilty::Category => rules::unquoted_in_code::category(at, tree.text(node, text)),
            });
        }
    }

    /// Servers are read and not used yet: said once a file.
    fn note_mcp(&mut self, definitions: &Definitions) {
        if let Some(first) = definitions.mcp_servers.first() {
            self.findings.push(rules::mcp_without_effect::finding(self.at(first.name.span)));
        }
    }

    fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    /// Whether the form that is being lowered has an error.
    fn has_error(&self) -> bool {
        let of_form = self.findings.get(self.form_start..).unwrap_or_default();
        of_form.iter().any(|finding| finding.severity == Severity::Error)
    }

    fn tell_unknown_form(&mut self, tree: &Tree, text: &str, node: NodeId) {
        let head = tree
            .children(node)
            .next()
            .filter(|&head| tree.kind(head) == Kind::Symbol && tree.kind(node) == Kind::List);
        self.findings.push(match head {
            Some(head) => {
                let known = FORMS.map(|(form, _)| form);
                rules::unknown_form::named(self.at(tree.span(head)), tree.text(head, text), &known)
            }
            None => {
                let span = tree.span(node);
                let first_line = Span::new(span.start as usize, first_line_end(span, text));
                let is_json = tree.text(node, text).starts_with(['{', '[']);
                rules::unknown_form::finding(self.at(first_line), is_json)
            }
        });
    }
}

/// Whether commas stand among the keys and values of a form below a backquote: it is the template of a macro.
fn is_template(tree: &Tree, found: &Found) -> bool {
    tree.children(found.list).any(|child| matches!(tree.kind(child), Kind::Unquote | Kind::Splice))
}

/// Whether it is a list that starts with a symbol or keyword.
fn names_form(tree: &Tree, node: NodeId) -> bool {
    let head = tree.children(node).next().map(|head| tree.kind(head));
    tree.kind(node) == Kind::List && matches!(head, Some(Kind::Symbol | Kind::Keyword))
}

/// Long forms are shown by their first line.
fn first_line_end(span: Span, text: &str) -> usize {
    span.start as usize + span.of(text).lines().next().map_or(0, str::len)
}
