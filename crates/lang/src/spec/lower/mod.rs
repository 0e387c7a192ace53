//! Syntax tree to definitions.

mod argument;
mod ask;
mod collection;
mod command;
mod confirm;
mod dialect;
mod emacs;
mod examples;
mod fixes;
mod form;
mod function;
mod indirect;
mod keyword;
mod lowerer;
mod permission;
mod plist;
mod preset;
mod project;
mod schema;
mod server;
mod tool;
mod value;
mod worker;

use std::collections::HashSet;

pub use self::dialect::read_dialects;
use self::emacs::{Unquoted, Variables};
pub use self::form::is_spec_form;
use self::form::{
    Evaluation, FORMS, Form, SpecForm, evaluated_elements, form_of, passed_function, unread_tool,
};
pub(super) use self::form::{layout_of, plist_of_form, starts_plist};
use self::indirect::Indirect;
pub use self::indirect::tabled_plists;
use self::lowerer::Lowerer;
pub use self::worker::is_reserved_param;
use super::{Definitions, FileKind, Origin, Tool, ToolForms, ToolKind, ToolSelection};
use crate::diagnostic::{Diagnostic, Severity};
use crate::spec::rules;
use crate::spec::rules::invalid_name::NameGrammar;
use crate::syntax::rules::not_a_constant::{merge_causes, merge_unknown};
use crate::syntax::{Datum, DatumKind, Folder, Kind, NodeId, SyntaxError, Tree};
use crate::text::{SourceId, Span};

/// Macros whose bodies are tests (ERT, Buttercup). A tool that is registered there exists only during the test.
const TESTS: [&str; 3] = ["ert-deftest", "describe", "it"];

/// The place of a node in Emacs Lisp.
#[derive(Clone, Copy, Default)]
struct Place {
    is_quoted: bool,
    in_test: bool,
    /// Whether Emacs evaluates the node if the list around it is evaluated.
    is_evaluated: bool,
}

fn is_test(tree: &Tree, text: &str, node: NodeId) -> bool {
    tree.children(node).next().is_some_and(|head| TESTS.contains(&tree.text(head, text)))
}

/// Adds the elements of a list or quoted form in Emacs Lisp to `pending`, so that the first is processed first.
fn push_inner(tree: &Tree, text: &str, node: NodeId, place: Place, pending: &mut Vec<(NodeId, Place)>) {
    let is_quoted = match tree.kind(node) {
        Kind::Quote | Kind::Backquote => true,
        Kind::Unquote | Kind::Splice => false,
        _ => place.is_quoted,
    };
    let in_test = place.in_test || is_test(tree, text, node);
    let start = pending.len();
    let elements = evaluated_elements(tree, text, node);
    pending.extend(elements.map(|(child, is_evaluated)| (child, Place { is_quoted, in_test, is_evaluated })));
    if let Some(added) = pending.get_mut(start..) {
        added.reverse();
    }
}

/// Lowers `tree`, parsed from `text`, the complete text of `source`. Returns the definitions and the findings.
pub fn lower(source: SourceId, text: &str, tree: &Tree, kind: FileKind) -> (Definitions, Vec<Diagnostic>) {
    lower_selected(source, text, tree, kind, &ToolSelection::default(), &ToolForms::default())
}

/// Like [`lower`], without the tools that are not selected. In Emacs Lisp, the heads in `forms` are read like
/// `gptel-make-tool`.
pub fn lower_selected(
    source: SourceId,
    text: &str,
    tree: &Tree,
    kind: FileKind,
    selection: &ToolSelection,
    forms: &ToolForms,
) -> (Definitions, Vec<Diagnostic>) {
    lower_unknown(source, text, tree, kind, selection, forms, &|_| false)
}

/// Like [`lower_selected`], without the top-level forms whose definitions and findings the caller knows.
pub fn lower_unknown(
    source: SourceId,
    text: &str,
    tree: &Tree,
    kind: FileKind,
    selection: &ToolSelection,
    forms: &ToolForms,
    is_known: &dyn Fn(Span) -> bool,
) -> (Definitions, Vec<Diagnostic>) {
    let mut lowerer = Lowerer { is_code: kind.is_code(), ..Lowerer::new(source) };
    let indirect = if kind.is_code() { Indirect::of(tree, text, forms) } else { Indirect::default() };
    let mut definitions = Definitions::default();
    let mut folder = Folder::new(source, text, tree);
    folder.is_emacs = kind.is_code();
    folder.is_org = kind == FileKind::Org;
    let mut variables = Variables::default();
    let mut noted_code = false;
    let at_top_level = Place { is_evaluated: true, ..Place::default() };
    let mut pending: Vec<(NodeId, Place)> = tree.roots().map(|root| (root, at_top_level)).collect();
    pending.reverse();
    let mut after_loose = false;
    while let Some((node, place)) = pending.pop() {
        let Place { is_quoted, in_test, .. } = place;
        after_loose &= !names_form(tree, node);
        if is_known(tree.span(node)) {
            continue;
        }
        let in_table = indirect.plists.get(&node).copied();
        let is_evaluated = place.is_evaluated && !is_quoted;
        // A wrapper passes its parameters on; the tools are in its calls.
        let is_wrapped = !is_quoted && indirect.calls.contains(&node);
        let found = in_table
            .or_else(|| form_of(tree, text, node, (kind, forms), is_evaluated).filter(|_| !is_wrapped));
        let may_be_template = is_quoted && in_table.is_none();
        if let Some(found) = found.filter(|found| may_be_template && is_template(tree, found)) {
            if !indirect.calls.contains(&node) && !std::mem::replace(&mut noted_code, true) {
                lowerer.report_code(tree, text, found.list);
            }
            continue;
        }
        if let Some(found) = found.as_ref().filter(|_| !selection.is_all())
            && let Form::Tool(tool_kind) = found.form
            && let Some(name) = literal_name(tree, text, found)
            && !selection.contains(tool_kind, name)
        {
            definitions.skipped.push((tool_kind, name.to_owned()));
            continue;
        }
        if let Some(found) = found {
            let items = || tree.children(found.list).skip(found.skipped);
            let is_code = matches!(found.evaluation, Evaluation::Evaluated | Evaluation::Backquoted);
            folder.in_code = is_code && kind.is_code();
            let data = if found.form == Form::Collection {
                items().take(4).map(|item| folder.fold_macro_data(item)).collect()
            } else {
                fold_entries(&mut folder, tree, items(), &found)
            };
            folder.in_code = false;
            folder.report_commas();
            lowerer.form_start = lowerer.findings.len();
            lowerer.is_partial = merge_unknown(&mut folder.findings);
            lowerer.findings.append(&mut folder.findings);
            let syntax_error = tree.syntax_error(node);
            let known = definitions.tools.len();
            let is_spec = kind == FileKind::Specs;
            let origin = if in_test { Origin::Returned } else { found.origin };
            lowerer.origin = if is_spec { Origin::Spec } else { origin };
            lowerer.is_declared = found.is_declared;
            lowerer.lower_form(found.form, tree.span(node), data, syntax_error, &mut definitions);
            if let Some(tool) = definitions.tools.get(known).filter(|tool| tool.valid)
                && found.evaluation != Evaluation::Data
                && !found.is_declared
            {
                lowerer.check_function(tool, tree, text, &found);
            }
            if found.evaluation == Evaluation::Evaluated && kind.is_code() && !is_quoted {
                let mut unquoted = emacs::unquoted(tree, text, (items(), found.is_declared), &mut variables);
                folder.in_code = true;
                unquoted.retain(|(node, kind)| {
                    *kind != Unquoted::Variable || !folder.is_constant(tree.text(*node, text))
                });
                folder.in_code = false;
                lowerer.report_unquoted(&unquoted, tree, text);
            }
            // With a missing parenthesis or quote, all other findings may be consequences.
            if syntax_error == Some(SyntaxError::Misnested)
                || (lowerer.is_incomplete() && tree.is_overclosed(node))
            {
                lowerer.findings.truncate(lowerer.form_start);
            }
            continue;
        }
        match kind {
            FileKind::Specs if tree.syntax_error(node).is_some() => {}
            // Consecutive loose values are one mistake.
            FileKind::Specs if !names_form(tree, node) && std::mem::replace(&mut after_loose, true) => {}
            FileKind::Specs => lowerer.report_unknown_form(tree, text, node),
            FileKind::EmacsLisp | FileKind::Org => {
                definitions.preset_tools.extend(preset::tools_of(&mut folder, tree, text, node));
                let is_read = noted_code || indirect.calls.contains(&node);
                noted_code |= !is_read && lowerer.note_unread_tools(tree, text, node, forms);
                push_inner(tree, text, node, place, &mut pending);
            }
        }
    }
    if folder.has_used_constants() {
        drop_repeated(&mut lowerer.findings);
    }
    definitions.wrappers = indirect.wrappers.into_values().collect();
    let findings = completed(lowerer.findings, &definitions, (text, tree, kind));
    (definitions, findings)
}

/// Returns the findings of a file, merged and with their fixes.
fn completed(
    mut findings: Vec<Diagnostic>,
    definitions: &Definitions,
    (text, tree, kind): (&str, &Tree, FileKind),
) -> Vec<Diagnostic> {
    merge_causes(&mut findings);
    include_quotes(&mut findings, text);
    for tool in &definitions.tools {
        rules::lone_backslash::check(tool, text, &mut findings);
    }
    for ask in &definitions.asks {
        rules::lone_backslash::check_ask(ask, text, &mut findings);
    }
    fixes::complete_fixes(&mut findings, text, tree, kind);
    findings
}

/// Returns the name of a form if it is written as a string without escapes.
fn literal_name<'t>(tree: &Tree, text: &'t str, form: &SpecForm) -> Option<&'t str> {
    let mut items = tree.children(form.list).skip(form.skipped);
    items.find(|item| tree.text(*item, text) == ":name")?;
    let name = items.next()?;
    let name = tree.text(name, text).strip_prefix('"')?.strip_suffix('"')?;
    (!name.contains('\\')).then_some(name)
}

/// Extends the location of a misplaced value to the quote before it, which is the mistake then.
fn include_quotes(findings: &mut [Diagnostic], text: &str) {
    for finding in findings {
        let span = &mut finding.primary.span;
        let before = (span.start as usize).checked_sub(1).and_then(|at| text.as_bytes().get(at));
        let is_quote = match before {
            Some(b'\'') => {
                *finding.rule == rules::stray_value::STRAY_VALUE
                    || *finding.rule == rules::wrong_value::WRONG_VALUE
            }
            Some(b'"') => *finding.rule == rules::stray_value::STRAY_VALUE,
            _ => false,
        };
        span.start -= u32::from(is_quote);
    }
}

/// Removes repeated findings: several forms may use one constant.
fn drop_repeated(findings: &mut Vec<Diagnostic>) {
    let mut seen = HashSet::new();
    findings
        .retain(|finding| seen.insert((finding.rule.code, finding.primary.span, finding.message.clone())));
}

/// Lowers a constant to a tool: a plist, or a list that starts with the name of a tool form. For callers that have
/// specs as values. All findings point to byte 0 of `source`. `names`: the names that are accepted.
pub(crate) fn lower_tool(
    source: SourceId,
    datum: Datum,
    names: &'static NameGrammar,
) -> (Option<Tool>, Vec<Diagnostic>) {
    let mut lowerer = Lowerer { names, ..Lowerer::new(source) };
    let mut kind = ToolKind::Normal;
    let at = lowerer.at(datum.span);
    let DatumKind::List(mut items) = datum.kind else {
        return (None, vec![rules::unknown_form::value(at, None)]);
    };
    if let Some(Datum { kind: DatumKind::Symbol(head), .. }) = items.first() {
        match FORMS.iter().find(|(form, _)| form == head) {
            Some((_, Form::Tool(of_form))) => kind = *of_form,
            Some((
                _,
                Form::Collection | Form::Worker | Form::Mcp | Form::Dialect | Form::Ask | Form::Project,
            ))
            | None => return (None, vec![rules::unknown_form::value(at, Some(head))]),
        }
        items.remove(0);
    }
    let tool = lowerer.lower_tool(kind, datum.span, items);
    (tool, lowerer.findings)
}

/// The keys sent to every API. Where Emacs evaluates their values, a symbol is a variable.
const SENT: [&str; 3] = [":name", ":description", ":args"];

/// The keys with Emacs Lisp values, or without effect on the request. Code is allowed as their value.
const CODE: [&str; 5] = [":function", ":async", ":confirm", ":include", ":category"];

/// Folds the elements of a form, without its head. The value of `:function` is Emacs Lisp and is not inspected.
fn fold_entries(
    folder: &mut Folder<'_>,
    tree: &Tree,
    items: impl Iterator<Item = NodeId>,
    form: &SpecForm,
) -> Vec<Datum> {
    let is_call = form.evaluation == Evaluation::Evaluated;
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
            let reported = folder.findings.len();
            let datum = match form.evaluation {
                Evaluation::Evaluated => folder.fold_argument(item),
                Evaluation::Backquoted => folder.fold_backquoted(item),
                Evaluation::Data | Evaluation::Quoted => folder.fold(item),
            };
            let is_code = folder.findings.len() > reported && tree.kind(item) != Kind::Keyword;
            if is_code {
                folder.findings.truncate(reported);
            }
            if is_code { code } else { datum }
        } else if is_call && SENT.contains(&key) {
            folder.fold_argument(item)
        } else if form.evaluation == Evaluation::Backquoted {
            folder.fold_backquoted(item)
        } else if form.evaluation == Evaluation::Quoted
            || (tree.kind(item) == Kind::List && holds_lists(form, key))
        {
            folder.fold_quoted(item)
        } else {
            folder.fold(item)
        };
        data.push(datum);
    }
    data
}

/// Whether the lists in the value of a key are data, whatever their heads.
fn holds_lists(form: &SpecForm, key: &str) -> bool {
    match form.form {
        Form::Project => true,
        Form::Ask => key != ":prompt",
        Form::Tool(_) => form.evaluation == Evaluation::Data && key == ":asks",
        Form::Collection | Form::Worker | Form::Mcp | Form::Dialect => false,
    }
}

impl Lowerer {
    /// Lowers one form. A form with syntax errors is invalid.
    fn lower_form(
        &mut self,
        form: Form,
        span: Span,
        data: Vec<Datum>,
        syntax_error: Option<SyntaxError>,
        definitions: &mut Definitions,
    ) {
        self.is_misread = syntax_error.is_some();
        let tool = match form {
            Form::Tool(kind) => self.lower_tool(kind, span, data),
            Form::Collection => {
                let plist = self.expand_collection(span, data);
                plist.and_then(|plist| self.lower_tool(ToolKind::Normal, span, plist))
            }
            Form::Worker => {
                if let Some(mut worker) = self.lower_worker(span, data) {
                    worker.valid &= syntax_error.is_none();
                    definitions.workers.push(worker);
                }
                None
            }
            Form::Mcp => {
                definitions.mcp_servers.extend(self.lower_mcp(span, data).filter(|_| syntax_error.is_none()));
                None
            }
            Form::Dialect => {
                definitions
                    .dialects
                    .extend(self.lower_dialect(span, data).filter(|_| syntax_error.is_none()));
                None
            }
            Form::Ask => {
                let ask = self.lower_project_ask(span, data);
                definitions.asks.extend(ask.filter(|_| syntax_error.is_none()));
                None
            }
            Form::Project => {
                let settings = self.lower_settings(span, data);
                definitions.settings.extend(Some(settings).filter(|_| syntax_error.is_none()));
                None
            }
        };
        if let Some(mut tool) = tool {
            tool.valid &= syntax_error.is_none();
            definitions.tools.push(tool);
        }
    }

    /// Checks the parameters of the lambda under `:function` against the arguments of the tool.
    fn check_function(&mut self, tool: &Tool, tree: &Tree, text: &str, found: &SpecForm) {
        let value_of = |key: &str| {
            let mut items = tree.children(found.list);
            items.find(|item| tree.kind(*item) == Kind::Keyword && tree.text(*item, text) == key)?;
            items.next()
        };
        // The value may depend on the running Emacs.
        let is_code = |value: NodeId| !matches!(tree.text(value, text), "t" | "nil");
        if !tool.is_async && value_of(":async").is_some_and(is_code) {
            return;
        }
        // With a misspelt `:args` such as `:arguments`, the arguments are unknown.
        let is_alias = |item: NodeId| tool::is_meant_for_args(tree.text(item, text));
        let mut keys = tree.children(found.list).filter(|item| tree.kind(*item) == Kind::Keyword);
        if tool.arguments.is_empty() && keys.any(is_alias) {
            return;
        }
        let parameters = value_of(":function").and_then(|value| function::parameters_of(tree, text, value));
        let Some(function::Parameters { span, names, required, has_rest }) = parameters else { return };
        let arguments = || tool.arguments.iter().map(|argument| argument.name.value.as_str());
        // A callback among the arguments is reported and determines the parameters.
        if tool.is_async && arguments().any(|name| name == "callback") {
            return;
        }
        // The callback may have any name that is not an argument name.
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

    /// Reports forms that Emacs cannot evaluate, unless there is an error inside.
    fn report_unquoted(&mut self, unquoted: &[(NodeId, Unquoted)], tree: &Tree, text: &str) {
        let errors = self.findings.get(self.form_start..).unwrap_or_default().iter();
        let errors = errors.filter(|finding| finding.severity == Severity::Error);
        let mut errors: Vec<u32> = errors.map(|finding| finding.primary.span.start).collect();
        errors.sort_unstable();
        for &(node, kind) in unquoted {
            let span = tree.span(node);
            let first = errors.partition_point(|error| *error < span.start);
            if errors.get(first).is_some_and(|error| *error < span.end) {
                continue;
            }
            let at = self.at(span);
            self.findings.push(match kind {
                Unquoted::Call(head) => rules::unquoted_in_code::call(at, tree.text(head, text)),
                Unquoted::Variable => rules::unquoted_in_code::variable(at, tree.text(node, text)),
                Unquoted::Category => rules::unquoted_in_code::category(at, tree.text(node, text)),
            });
        }
    }

    /// Reports that the code of the form `list` makes tools.
    fn report_code(&mut self, tree: &Tree, text: &str, list: NodeId) {
        let head = tree.children(list).next().unwrap_or(list);
        let at = self.at(tree.span(head));
        self.findings.push(rules::tools_by_code::finding(at, Some(tree.text(head, text))));
    }

    /// Reports tools that the code at `node` creates in an unsupported way. Returns whether there are any.
    fn note_unread_tools(&mut self, tree: &Tree, text: &str, node: NodeId, forms: &ToolForms) -> bool {
        let passed = || {
            let function = passed_function(tree, text, node, forms)?;
            Some((function, tree.children(function).next().unwrap_or(function)))
        };
        let unread = || unread_tool(tree, text, node).map(|head| (head, head));
        let Some((at, name)) = passed().or_else(unread) else { return false };
        let is_function = tree.kind(name) == Kind::Symbol && tree.text(name, text) != "list";
        let function = is_function.then(|| tree.text(name, text));
        let at = self.at(tree.span(at));
        self.findings.push(rules::tools_by_code::finding(at, function));
        true
    }

    fn report_unknown_form(&mut self, tree: &Tree, text: &str, node: NodeId) {
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

/// Whether a backquoted form has commas between its keys and values, which makes it the template of a macro.
fn is_template(tree: &Tree, found: &SpecForm) -> bool {
    tree.children(found.list).any(|child| matches!(tree.kind(child), Kind::Unquote | Kind::Splice))
}

/// Whether the node is a list that starts with a symbol or keyword.
fn names_form(tree: &Tree, node: NodeId) -> bool {
    let head = tree.children(node).next().map(|head| tree.kind(head));
    tree.kind(node) == Kind::List && matches!(head, Some(Kind::Symbol | Kind::Keyword))
}

/// Returns the end of the first line of a form; findings for long forms show only this line.
fn first_line_end(span: Span, text: &str) -> usize {
    span.start as usize + span.of(text).lines().next().map_or(0, str::len)
}
