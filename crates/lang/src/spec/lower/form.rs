//! Recognition of spec forms.
//!
//! In a spec file, the head of a list identifies a spec form. In Emacs Lisp the same names occur in calls,
//! declarations and patterns (`:commands (gptel-make-tool)`, `(cl-defstruct (llm-tool …))`), so a list is a spec form
//! only if keys follow its head, or if Emacs evaluates it as a call of a function that makes tools. A spec form always
//! results in a definition or a finding.

use crate::spec::reference::Plist;
use crate::spec::{FileKind, Origin, ToolForms, ToolKind};
use crate::syntax::print::FormLayout;
use crate::syntax::{Kind, NodeId, Tree};

/// The kinds of top-level forms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Tool(ToolKind),
    /// `llm-tool-collection-deftool`.
    Collection,
    Worker,
    Mcp,
    Dialect,
    Ask,
    Project,
}

pub(super) const FORMS: [(&str, Form); 12] = [
    ("deftool", Form::Tool(ToolKind::Normal)),
    ("defexit", Form::Tool(ToolKind::Exit)),
    ("defworker", Form::Worker),
    ("defmcp", Form::Mcp),
    ("defdialect", Form::Dialect),
    ("defask", Form::Ask),
    ("defproject", Form::Project),
    ("gptel-make-tool", Form::Tool(ToolKind::Normal)),
    ("llm-make-tool", Form::Tool(ToolKind::Normal)),
    // The constructor of the structure that `llm-make-tool` returns.
    ("make-llm-tool", Form::Tool(ToolKind::Normal)),
    ("llm-tool", Form::Tool(ToolKind::Normal)),
    ("llm-tool-collection-deftool", Form::Collection),
];

/// Whether lists with this head are spec forms.
pub fn is_spec_form(head: &str) -> bool {
    FORMS.iter().any(|(form, _)| *form == head)
}

/// Returns the plist that follows the head of a spec form. `None` if no plist follows.
pub(in crate::spec) fn plist_of_form(head: &str) -> Option<Plist> {
    let (_, form) = FORMS.iter().find(|(form, _)| *form == head)?;
    match form {
        Form::Tool(ToolKind::Normal) => Some(Plist::Tool),
        Form::Tool(ToolKind::Exit) => Some(Plist::Exit),
        Form::Worker => Some(Plist::Worker),
        Form::Mcp => Some(Plist::Mcp),
        Form::Dialect => Some(Plist::Dialect),
        Form::Ask => Some(Plist::ProjectAsk),
        Form::Project => Some(Plist::Project),
        Form::Collection => None,
    }
}

/// Emacs functions that call a function passed to them.
const CALLERS: [&str; 11] = [
    "apply",
    "funcall",
    "mapc",
    "mapcar",
    "mapcan",
    "cl-mapcar",
    "cl-mapc",
    "seq-do",
    "seq-map",
    "-map",
    "apply-partially",
];

/// Returns the layout of a list that starts with this symbol, if it is a spec form.
pub(in crate::spec) fn layout_of(head: &str, forms: &ToolForms) -> Option<FormLayout> {
    let (form, skip) = known_form(head, forms)?;
    Some(match form {
        Form::Collection => FormLayout::Definition,
        Form::Tool(_) | Form::Worker | Form::Mcp | Form::Dialect | Form::Ask | Form::Project => {
            FormLayout::Keys { skip }
        }
    })
}

/// Returns the form with this head, and the number of arguments before its keys.
fn known_form(head: &str, forms: &ToolForms) -> Option<(Form, usize)> {
    let known = FORMS.iter().find(|(form, _)| *form == head).map(|(_, form)| (*form, 0));
    known.or_else(|| Some((Form::Tool(ToolKind::Normal), forms.skip(head)?)))
}

/// Special forms and macros of Emacs that are in no other list.
const EMACS_FORMS: [&str; 28] = [
    "and",
    "cond",
    "condition-case",
    "defalias",
    "defconst",
    "defcustom",
    "defvar",
    "function",
    "if",
    "interactive",
    "let",
    "let*",
    "list",
    "or",
    "prog1",
    "progn",
    "quote",
    "require",
    "save-excursion",
    "setf",
    "setq",
    "t",
    "unless",
    "unwind-protect",
    "use-package",
    "when",
    "while",
    "with-eval-after-load",
];

/// Whether forms with this head have a meaning in deftool or Emacs that a project cannot change.
pub(super) fn is_reserved_head(head: &str) -> bool {
    is_spec_form(head)
        || EMACS_FORMS.contains(&head)
        || CALLERS.contains(&head)
        || BINDERS.iter().any(|(binder, _)| *binder == head)
}

/// The evaluation of the keys and values of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Evaluation {
    /// They are data and not evaluated.
    Data,
    /// Emacs evaluates them.
    Evaluated,
    /// They are quoted.
    Quoted,
    /// They are backquoted: only forms after a comma are evaluated.
    Backquoted,
}

/// A list that is a spec form.
#[derive(Clone, Copy)]
pub(super) struct SpecForm {
    pub(super) form: Form,
    /// The list with its keys and values.
    pub(super) list: NodeId,
    /// Number of elements of the list before the keys and values.
    pub(super) skipped: usize,
    pub(super) evaluation: Evaluation,
    pub(super) origin: Origin,
    /// Whether the head is one that the project declares. Its function may change the keys.
    pub(super) is_declared: bool,
}

/// Macros that take a list of parameters or variables, and the position of this list.
pub(super) const BINDERS: [(&str, usize); 9] = [
    ("lambda", 1),
    ("dolist", 1),
    ("dotimes", 1),
    ("defun", 2),
    ("defmacro", 2),
    ("defsubst", 2),
    ("cl-defun", 2),
    ("cl-defmacro", 2),
    ("cl-defmethod", 2),
];

/// Keywords of `use-package` and `leaf` that lists of names follow: `:commands (gptel-make-tool)`.
const DECLARING: [&str; 6] = [":commands", ":functions", ":autoload", ":defines", ":defun", ":defvar"];

/// Returns for each element of `node` whether Emacs evaluates it if it is a call. Quoted data, the heads of lists,
/// parameters and declared names are not evaluated.
pub(super) fn evaluated_elements<'t>(
    tree: &'t Tree,
    text: &'t str,
    node: NodeId,
) -> impl Iterator<Item = (NodeId, bool)> + 't {
    let head = tree.children(node).next().map_or("", |head| tree.text(head, text));
    let (is_code, first) = match tree.kind(node) {
        Kind::List => (head != "quote", 1),
        kind => (kind == Kind::Unquote, 0),
    };
    let parameters = BINDERS.iter().find(|(binder, _)| *binder == head).map(|(_, at)| *at);
    let mut keyword = "";
    tree.children(node).enumerate().map(move |(index, child)| {
        if tree.kind(child) == Kind::Keyword {
            keyword = tree.text(child, text);
        }
        let is_declared = parameters == Some(index) || DECLARING.contains(&keyword);
        (child, is_code && index >= first && !is_declared)
    })
}

/// Returns the spec form that `node` is, if it is one. `is_evaluated`: whether Emacs evaluates the node.
pub(super) fn form_of(
    tree: &Tree,
    text: &str,
    node: NodeId,
    (kind, forms): (FileKind, &ToolForms),
    is_evaluated: bool,
) -> Option<SpecForm> {
    let mut children = tree.children(node);
    let head = children.next().filter(|_| tree.kind(node) == Kind::List)?;
    let name = tree.text(head, text);
    let in_code = kind.is_code();
    match tree.kind(head) {
        Kind::Symbol => {
            let Some((form, skip)) = known_form(name, forms) else {
                return if in_code { called_indirectly(tree, text, node, forms) } else { None };
            };
            let (origin, is_declared) = (origin_of(name, forms), is_declared(name, forms));
            let argument = children.nth(skip);
            let plist = argument.filter(|_| in_code && is_declared);
            if let Some((list, skipped, evaluation)) =
                plist.and_then(|plist| plist_argument(tree, text, plist))
            {
                return Some(SpecForm { form, list, skipped, evaluation, origin, is_declared });
            }
            let second = argument.map(|child| tree.kind(child));
            // `llm-tool` is also the name of a type, and `(deftool x …)` may be the macro of another package.
            let is_ambiguous = form != Form::Collection && (name == "llm-tool" || !is_function(name, forms));
            let is_call = match second {
                Some(_) if is_ambiguous => false,
                Some(Kind::Unquote | Kind::Splice) => true,
                _ => is_evaluated,
            };
            let has_keys = match form {
                Form::Collection => {
                    // In the first versions of the macro, keys followed the name.
                    let is_specs = |specs| {
                        matches!(tree.kind(specs), Kind::List | Kind::Keyword)
                            || tree.text(specs, text) == "nil"
                    };
                    matches!(second, Some(Kind::Symbol | Kind::String))
                        && children.next().is_some_and(is_specs)
                }
                // `(gptel-make-tool "name" …)` is a mistake, not a declaration.
                Form::Tool(_) => matches!(second, Some(Kind::Keyword | Kind::String)),
                Form::Worker | Form::Mcp | Form::Dialect | Form::Ask | Form::Project => {
                    second == Some(Kind::Keyword)
                }
            };
            let evaluation = if is_function(name, forms) { Evaluation::Evaluated } else { Evaluation::Data };
            (has_keys || is_call || !in_code).then_some(SpecForm {
                form,
                list: node,
                skipped: 1 + skip,
                evaluation,
                origin,
                is_declared,
            })
        }
        // In Emacs Lisp, a list that starts with a keyword may be any data.
        Kind::Keyword if !in_code => {
            let form = Form::Tool(ToolKind::Normal);
            let (evaluation, origin) = (Evaluation::Data, Origin::Spec);
            Some(SpecForm { form, list: node, skipped: 0, evaluation, origin, is_declared: false })
        }
        _ => None,
    }
}

/// Recognizes `(funcall #'gptel-make-tool :name …)` and `(apply #'gptel-make-tool '(:name …))`.
fn called_indirectly(tree: &Tree, text: &str, node: NodeId, forms: &ToolForms) -> Option<SpecForm> {
    let mut children = tree.children(node);
    let caller = tree.text(children.next()?, text);
    let function = children.next().filter(|_| matches!(caller, "apply" | "funcall"))?;
    let name = named_function(tree, text, function, forms)?;
    let (origin, skip) = (origin_of(name, forms), known_form(name, forms)?.1);
    let (first, is_only) = (children.nth(skip)?, children.next().is_none());
    let (form, is_declared) = (Form::Tool(ToolKind::Normal), is_declared(name, forms));
    let (list, skipped, evaluation) = if caller == "funcall" && tree.kind(first) == Kind::Keyword {
        (node, 2 + skip, Evaluation::Evaluated)
    } else {
        plist_argument(tree, text, first).filter(|_| is_only && caller == "apply")?
    };
    Some(SpecForm { form, list, skipped, evaluation, origin, is_declared })
}

/// Reads a plist that is passed as one argument: `'(:name …)`, `(quote (:name …))`, `` `(:name …) `` or `(list :name …)`.
/// Returns the list, the number of elements before its keys, and their evaluation.
pub(super) fn plist_argument(
    tree: &Tree,
    text: &str,
    argument: NodeId,
) -> Option<(NodeId, usize, Evaluation)> {
    let head = tree.children(argument).next()?;
    let (list, skipped, evaluation) = match (tree.kind(argument), tree.text(head, text)) {
        (Kind::Quote, _) => (head, 0, Evaluation::Quoted),
        (Kind::Backquote, _) => (head, 0, Evaluation::Backquoted),
        (Kind::List, "quote") => (tree.children(argument).nth(1)?, 0, Evaluation::Quoted),
        (Kind::List, "list") => (argument, 1, Evaluation::Evaluated),
        _ => return None,
    };
    let starts_with_key = tree.children(list).nth(skipped).is_some_and(|key| tree.kind(key) == Kind::Keyword);
    let has_splice = tree.children(list).any(|item| tree.kind(item) == Kind::Splice);
    (tree.kind(list) == Kind::List && starts_with_key && !has_splice).then_some((list, skipped, evaluation))
}

/// Whether the argument of a call is a plist, or the first key of one.
pub(in crate::spec) fn starts_plist(tree: &Tree, text: &str, argument: NodeId) -> bool {
    tree.kind(argument) == Kind::Keyword || plist_argument(tree, text, argument).is_some()
}

/// Returns the function that makes tools if `node` passes it to an Emacs function. Such tools cannot be read here.
pub(super) fn passed_function(tree: &Tree, text: &str, node: NodeId, forms: &ToolForms) -> Option<NodeId> {
    let mut children = tree.children(node);
    let head = children.next().filter(|head| CALLERS.contains(&tree.text(*head, text)))?;
    (tree.kind(head) == Kind::Symbol)
        .then(|| children.find(|child| named_function(tree, text, *child, forms).is_some()))?
}

/// Returns the function or keyword at the start of a list that has the keys of a tool but is not a spec form.
pub(super) fn unread_tool(tree: &Tree, text: &str, node: NodeId) -> Option<NodeId> {
    let head = tree.children(node).next().filter(|_| tree.kind(node) == Kind::List)?;
    let has = |key: &str| {
        let mut keys = tree.children(node).filter(|item| tree.kind(*item) == Kind::Keyword);
        keys.any(|item| tree.text(item, text) == key)
    };
    (has(":name") && has(":description") && (has(":function") || has(":args"))).then_some(head)
}

/// Returns the function of `#'gptel-make-tool` or `'gptel-make-tool`.
pub(super) fn named_function<'t>(
    tree: &Tree,
    text: &'t str,
    node: NodeId,
    forms: &ToolForms,
) -> Option<&'t str> {
    let name =
        tree.children(node).next().filter(|_| matches!(tree.kind(node), Kind::Function | Kind::Quote))?;
    Some(tree.text(name, text)).filter(|name| is_function(name, forms))
}

/// Whether the form is an Emacs function call. Its arguments are evaluated.
pub(super) fn is_function(head: &str, forms: &ToolForms) -> bool {
    origin_of(head, forms) != Origin::Spec && head != "llm-tool-collection-deftool"
}

/// Whether a project declares this head.
pub(super) fn is_declared(head: &str, forms: &ToolForms) -> bool {
    !is_spec_form(head) && forms.skip(head).is_some()
}

pub(super) fn origin_of(head: &str, forms: &ToolForms) -> Origin {
    match head {
        "gptel-make-tool" | "llm-tool-collection-deftool" => Origin::Registered,
        "llm-make-tool" | "make-llm-tool" | "llm-tool" => Origin::Returned,
        head if forms.skip(head).is_some() => Origin::Registered,
        _ => Origin::Spec,
    }
}
