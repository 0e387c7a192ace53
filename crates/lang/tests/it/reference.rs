//! The tables of keys and their values agree with lowering.

use deftool_lang::diagnostic::Diagnostic;
use deftool_lang::spec::reference::{FORMS, KeyValue, Plist, keys, types};
use deftool_lang::spec::{FileKind, lower};
use deftool_lang::syntax::parse;
use deftool_lang::text::Sources;

fn findings(text: &str) -> Vec<Diagnostic> {
    let id = Sources::new().id_ahead(0);
    let (tree, mut findings) = parse(id, text);
    findings.extend(lower(id, text, &tree, FileKind::Specs).1);
    findings
}

/// Returns whether a value is reported as wrong.
fn is_wrong(text: &str) -> bool {
    findings(text)
        .iter()
        .any(|finding| matches!(finding.rule.name, "wrong-value" | "unknown-name" | "unknown-format"))
}

#[test]
fn each_word_is_a_value_of_its_key_and_others_are_not() {
    let mut count = 0;
    for plist in [Plist::Tool, Plist::Worker, Plist::Argument] {
        let form = |key: &str, value: &str| match plist {
            Plist::Worker => format!("(defworker :name \"w\" :{key} {value})"),
            Plist::Argument => {
                format!(
                    "(deftool :name \"a\" :description \"Does it.\" :args ((:name \"x\" :{key} {value})))"
                )
            }
            _ => format!("(deftool :name \"a\" :description \"Does it.\" :{key} {value})"),
        };
        for key in keys(plist) {
            let (words, other) = match key.value {
                KeyValue::Words(words) => (words.iter().map(|word| (*word).to_owned()).collect(), "other"),
                KeyValue::Strings(words) => {
                    (words.iter().map(|word| format!("\"{word}\"")).collect(), "\"datetime\"")
                }
                KeyValue::Type => (types().iter().map(|word| (*word).to_owned()).collect(), "strng"),
                KeyValue::Flag => (vec![String::from("t"), String::from("nil")], ""),
                _ => (Vec::new(), ""),
            };
            for word in words {
                assert!(!is_wrong(&form(key.name, &word)), "{}", form(key.name, &word));
                count += 1;
            }
            assert!(other.is_empty() || is_wrong(&form(key.name, other)), "{}", form(key.name, other));
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn each_key_of_a_form_is_known() {
    for form in FORMS {
        for key in keys(form.plist) {
            let name =
                if matches!(form.plist, Plist::Project | Plist::ProjectAsk) { "" } else { ":name \"a\"" };
            let text = format!("({} {name} :{} nil)", form.head, key.name);
            let is_unknown = |finding: &Diagnostic| finding.rule.name.starts_with("unknown-");
            assert!(!findings(&text).iter().any(is_unknown), "{text}");
            assert!(key.doc.ends_with('.'), "{text}");
        }
    }
}
