//! Constant folding of Emacs Lisp, compared with Emacs, and its limits.

use deftool_lang::diagnostic::Severity;
use deftool_lang::spec::{FileKind, lower};
use deftool_lang::syntax::{Datum, Folder, parse};
use deftool_test_support::cpu::CpuClock;

use crate::syntax::{show, source};

/// Emacs has printed the values in the file.
#[test]
fn forms_are_folded_to_the_values_of_emacs() {
    let text = include_str!("../data/folded.el");
    let (tree, findings) = parse(source(), text);
    assert!(findings.is_empty());
    let mut folder = Folder::new(source(), text, &tree);
    (folder.in_code, folder.is_emacs) = (true, true);
    for root in tree.roots() {
        let end = tree.span(root).end as usize;
        let Some(expected) = text[end..].strip_prefix("\n;; ") else { continue };
        let expected = expected.lines().next().unwrap();
        let datum = folder.fold_argument(root);
        let found = std::mem::take(&mut folder.findings);
        let folded =
            if found.is_empty() { format!("=> {}", show(&datum)) } else { String::from("not folded") };
        let expected = match expected.strip_prefix("=> ") {
            Some(value) => format!("=> {}", show(&data(value))),
            None => expected.to_owned(),
        };
        assert_eq!(folded, expected, "{}", tree.text(root, text));
    }
}

#[test]
fn values_of_variables_are_limited() {
    let use_of = |value: &str| format!("(gptel-make-tool :name \"t\" :description {value} :function #'f)\n");
    let many = |of: &dyn Fn(usize) -> String| (1..20_000).map(of).collect::<String>();
    let clock = CpuClock::start();
    for text in [
        // Each value is twice as long as the one before.
        format!(
            "(setq a0 \"xx\")\n{}{}",
            many(&|i| format!("(setq a{i} (concat a{0} a{0}))\n", i - 1)),
            use_of("a60")
        ),
        use_of(&format!("(let* ((a \"xx\"){}) a)", " (a (concat a a))".repeat(60))),
        use_of(&format!("{}\"{}\"{}", "(mapconcat (lambda (x) ".repeat(60), "a".repeat(20), ")".repeat(60))),
        // Each variable is defined by the next, and nested in it.
        format!("{}{}", many(&|i| format!("(setq a{i} a{})\n", i + 1)), use_of("a1")),
        many(&|i| format!("(setq a{i} (list a{}))\n{}", i - 1, use_of(&format!("(format \"%s\" a{i})")))),
        format!("(setq a \"{}\")\n{}", "x".repeat(1_000_000), many(&|_| use_of("(concat a a)"))),
    ] {
        let (tree, _) = parse(source(), &text);
        let (_, findings) = lower(source(), &text, &tree, FileKind::EmacsLisp);
        assert!(
            findings
                .iter()
                .all(|finding| finding.rule.code != "DT102" || finding.severity == Severity::Warning)
        );
    }
    // Without limits, the first would take hours and the fourth would overflow the stack.
    assert!(clock.elapsed().as_secs() < 60);
}

/// Reads a printed value.
fn data(text: &str) -> Datum {
    let (tree, _) = parse(source(), text);
    Folder::new(source(), text, &tree).fold_quoted(tree.roots().next().unwrap())
}
