//! A form that makes a tool is never ignored silently: it is a definition, or it has a finding.

use deftool_lang::spec::{FileKind, lower};
use deftool_lang::syntax::parse;

use crate::syntax::source;

/// Functions and macros of Emacs packages that make tools.
const FUNCTIONS: [&str; 4] =
    ["gptel-make-tool", "llm-make-tool", "make-llm-tool", "llm-tool-collection-deftool"];

/// Names that also have other meanings in Emacs Lisp.
const AMBIGUOUS: [&str; 5] = ["deftool", "defexit", "defworker", "defmcp", "llm-tool"];

/// What follows the head.
const SHAPES: [&str; 20] = [
    "",
    " nil",
    " t",
    " 5",
    " tool",
    " \"tool\"",
    " #'tool",
    " 'tool",
    " [:name]",
    " . tool",
    " :name",
    " :name nil",
    " :category \"x\"",
    " tool :name \"x\"",
    " '(:name \"x\" :description \"X y z.\")",
    " (list :name \"x\" :description \"X y z.\")",
    " (:name \"x\" :description \"X y z.\")",
    " tool (x) \"X y z.\" x",
    " tool (:description \"X y z.\") ((x :type string)) x",
    " ,@keys",
];

/// Places that Emacs evaluates.
const CODE: [&str; 14] = [
    "{}",
    "(progn {})",
    "(let ((x {})) x)",
    "(when y {})",
    "(cond ((f y) {}))",
    "(setq x {})",
    "(list {})",
    "(defun f (x) {})",
    "(mapc (lambda (x) {}) xs)",
    "(dolist (x xs) {})",
    "(use-package gptel :defer t :config {})",
    "(with-eval-after-load 'gptel {})",
    "(my-register :tool {})",
    "(setq x `(a ,{}))",
];

/// Places that Emacs does not evaluate.
const DATA: [&str; 7] = [
    "'{}",
    "(setq x '(a {}))",
    "(setq x (quote {}))",
    "(use-package gptel :commands {} :defer t)",
    "(defun f {} x)",
    "(mapc (lambda {} x) xs)",
    "(cl-flet ({}) x)",
];

/// Returns the number of definitions and the messages of the findings.
fn read(text: &str, kind: FileKind) -> (usize, Vec<String>) {
    let (tree, mut findings) = parse(source(), text);
    let (definitions, more) = lower(source(), text, &tree, kind);
    findings.extend(more);
    (definitions.spans().len(), findings.into_iter().map(|finding| finding.message).collect())
}

/// Returns the texts that are neither a definition nor have a finding.
fn silent(texts: impl Iterator<Item = String>, kind: FileKind) -> Vec<String> {
    texts.filter(|text| read(text, kind) == (0, Vec::new())).collect()
}

#[test]
fn every_form_of_a_spec_file_is_a_definition_or_has_a_finding() {
    let heads = FUNCTIONS.iter().chain(&AMBIGUOUS);
    let texts = heads.flat_map(|head| SHAPES.map(|shape| format!("({head}{shape})")));
    assert_eq!(silent(texts, FileKind::Specs), Vec::<String>::new());
}

#[test]
fn every_call_in_emacs_lisp_is_a_definition_or_has_a_finding() {
    let of_functions =
        FUNCTIONS.iter().flat_map(|head| SHAPES.map(|shape| format!("({head}{shape})"))).collect::<Vec<_>>();
    let others = AMBIGUOUS
        .iter()
        .flat_map(|head| ["", " :name", " :category 5"].map(|shape| format!("({head}{shape})")));
    let forms = of_functions.into_iter().chain(others);
    let texts = forms.flat_map(|form| CODE.map(|code| code.replace("{}", &form)));
    assert_eq!(silent(texts, FileKind::EmacsLisp), Vec::<String>::new());
}

#[test]
fn names_in_data_are_not_forms() {
    for head in FUNCTIONS.iter().chain(&AMBIGUOUS) {
        for text in DATA.map(|data| data.replace("{}", &format!("({head})"))) {
            assert_eq!(read(&text, FileKind::EmacsLisp), (0, Vec::new()), "{text}");
        }
    }
}
