//! Tree → definitions.

mod fixes;
mod plist;
mod schema;
mod tool;
mod value;
mod worker;

pub(super) use schema::TYPES;

use super::{Definitions, Tool, ToolKind, nearest};
use crate::diagnostic::{Diagnostic, Rule, Severity};
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

/// The sort of a top-level form.
#[derive(Clone, Copy)]
enum Form {
    Tool(ToolKind),
    Worker,
}

const FORMS: [(&str, Form); 6] = [
    ("deftool", Form::Tool(ToolKind::Normal)),
    ("defexit", Form::Tool(ToolKind::Exit)),
    ("defworker", Form::Worker),
    ("gptel-make-tool", Form::Tool(ToolKind::Normal)),
    ("llm-make-tool", Form::Tool(ToolKind::Normal)),
    ("llm-tool", Form::Tool(ToolKind::Normal)),
];

/// The definitions of `tree`, read from `text`, the whole of `source`, and what is wrong with them.
pub fn lower(source: SourceId, text: &str, tree: &Tree, kind: FileKind) -> (Definitions, Vec<Diagnostic>) {
    let mut lowerer = Lowerer::new(source);
    let mut definitions = Definitions::default();
    let mut folder = Folder::new(source, text, tree);
    let mut pending: Vec<NodeId> = tree.roots().collect();
    pending.reverse();
    let mut after_loose = false;
    while let Some(node) = pending.pop() {
        after_loose &= !names_form(tree, node);
        let items = tree.children(node);
        let head = items.clone().next();
        let form = head.and_then(|head| match tree.kind(head) {
            Kind::Symbol => {
                let name = tree.text(head, text);
                FORMS.iter().find(|(form, _)| *form == name).map(|(_, form)| *form)
            }
            Kind::Keyword => Some(Form::Tool(ToolKind::Normal)),
            _ => None,
        });
        match form.filter(|_| tree.kind(node) == Kind::List) {
            Some(form) => {
                let bare = head.is_some_and(|head| tree.kind(head) == Kind::Keyword);
                // In Emacs Lisp a list that starts with a keyword is anybody's data.
                if bare && kind == FileKind::EmacsLisp {
                    continue;
                }
                let data = fold_entries(&mut folder, tree, text, items.skip(usize::from(!bare)));
                lowerer.form_start = lowerer.findings.len();
                lowerer.findings.append(&mut folder.findings);
                let fault = tree.fault(node);
                lowerer.lower_form(form, tree.span(node), data, fault, &mut definitions);
                // Where a parenthesis or quote is missing, everything else that seems wrong follows from it.
                if fault == Some(Fault::Misnested) {
                    lowerer.findings.truncate(lowerer.form_start);
                }
            }
            None => match kind {
                FileKind::Specs if tree.fault(node).is_some() => {}
                // Loose values one after the other are one mistake.
                FileKind::Specs if !names_form(tree, node) && std::mem::replace(&mut after_loose, true) => {}
                FileKind::Specs => lowerer.tell_unknown_form(tree, text, node, head),
                FileKind::EmacsLisp => {
                    // Children in reverse, so that the first is looked at first.
                    let start = pending.len();
                    pending.extend(tree.children(node));
                    if let Some(added) = pending.get_mut(start..) {
                        added.reverse();
                    }
                }
            },
        }
    }
    fixes::settle_fixes(&mut lowerer.findings, text, tree, kind);
    (definitions, lowerer.findings)
}

/// The tool that a constant is: a plist, or a list that starts with the name of a tool form. For callers that
/// hold specs as values; everything stands at byte 0 of `source`.
pub fn lower_tool(source: SourceId, datum: Datum) -> (Option<Tool>, Vec<Diagnostic>) {
    let mut lowerer = Lowerer::new(source);
    let mut kind = ToolKind::Normal;
    let DatumKind::List(mut items) = datum.kind else {
        lowerer.tell(&rules::UNKNOWN_FORM, datum.span, String::from("a tool spec is a list"));
        return (None, lowerer.findings);
    };
    if let Some(Datum { kind: DatumKind::Symbol(head), .. }) = items.first() {
        match FORMS.iter().find(|(form, _)| form == head) {
            Some((_, Form::Tool(of_form))) => kind = *of_form,
            Some((_, Form::Worker)) | None => {
                let message = format!("`{head}` is no tool form");
                lowerer.tell(&rules::UNKNOWN_FORM, datum.span, message);
                return (None, lowerer.findings);
            }
        }
        items.remove(0);
    }
    let tool = lowerer.lower_tool(kind, datum.span, items);
    (tool, lowerer.findings)
}

/// The constants of a form, without its head. What stands under `:function` is Emacs Lisp and not looked at.
fn fold_entries(
    folder: &mut Folder<'_>,
    tree: &Tree,
    text: &str,
    items: impl Iterator<Item = NodeId>,
) -> Vec<Datum> {
    let mut data: Vec<Datum> = Vec::new();
    for item in items {
        let after_code_key = matches!(data.last(), Some(Datum { kind: DatumKind::Keyword(key), .. })
            if key == ":function" || (key == ":confirm" && is_lambda(tree, text, item)));
        data.push(if after_code_key {
            Datum { span: tree.span(item), kind: DatumKind::Invalid }
        } else {
            folder.fold(item)
        });
    }
    data
}

fn is_lambda(tree: &Tree, text: &str, node: NodeId) -> bool {
    tree.children(node).next().is_some_and(|head| {
        matches!(tree.text(head, text), "lambda") || tree.text(head, text).starts_with("(lambda")
    })
}

/// Collects findings while one file is lowered.
struct Lowerer {
    source: SourceId,
    findings: Vec<Diagnostic>,
    /// Number of the first finding of the form that is being lowered.
    form_start: usize,
}

impl Lowerer {
    fn new(source: SourceId) -> Self {
        Self { source, findings: Vec::new(), form_start: 0 }
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
        match form {
            Form::Tool(kind) => {
                if let Some(mut tool) = self.lower_tool(kind, span, data) {
                    tool.valid &= fault.is_none();
                    definitions.tools.push(tool);
                }
            }
            Form::Worker => {
                if let Some(mut worker) = self.lower_worker(span, data) {
                    worker.valid &= fault.is_none();
                    definitions.workers.push(worker);
                }
            }
        }
    }

    /// Adds a finding and hands it out for labels, notes and a fix.
    fn tell(&mut self, rule: &'static Rule, span: Span, message: String) {
        self.findings.push(self.finding(rule, span, message));
    }

    fn finding(&self, rule: &'static Rule, span: Span, message: String) -> Diagnostic {
        Diagnostic::new(rule, Location { source: self.source, span }, message)
    }

    /// Whether the form that is being lowered has an error.
    fn has_error(&self) -> bool {
        let of_form = self.findings.get(self.form_start..).unwrap_or_default();
        of_form.iter().any(|finding| finding.severity == Severity::Error)
    }

    fn tell_unknown_form(&mut self, tree: &Tree, text: &str, node: NodeId, head: Option<NodeId>) {
        let span = tree.span(node);
        let name = head.filter(|&head| tree.kind(head) == Kind::Symbol && tree.kind(node) == Kind::List);
        let Some(head) = name else {
            let message = String::from("expected a form such as `(deftool …)`");
            self.tell(
                &rules::UNKNOWN_FORM,
                Span::new(span.start as usize, first_line_end(span, text)),
                message,
            );
            return;
        };
        let word = tree.text(head, text);
        let mut finding = self.finding(
            &rules::UNKNOWN_FORM,
            tree.span(head),
            format!("`{word}` is no form of a spec file"),
        );
        finding = match nearest(word, FORMS.map(|(form, _)| form)) {
            Some(known) => finding
                .maybe_fixed_by(format!("write `{known}`"), tree.span(head), known)
                .note(format!("did you mean `{known}`?")),
            None => finding
                .note("known forms: deftool, defexit, defworker, gptel-make-tool, llm-make-tool, llm-tool"),
        };
        self.findings.push(finding);
    }
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
