use crate::diagnostic::{Diagnostic, rule};
use std::collections::HashMap;

use crate::spec::Tool;
use crate::text::{Location, Spanned};

rule! {
    /// two arguments with names that differ only in case or dashes
    ///
    /// Models and people mix up such names.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "file_name" :description "A name." :type string) (:name "fileName" :description "Another." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "old_name" :description "A name." :type string) (:name "new_name" :description "Another." :type string)))
    /// ```
    pub(crate) SIMILAR_ARGUMENTS, "DT238", "similar-arguments", Warning
}

pub(in crate::spec) fn check(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, &Spanned<String>> = HashMap::new();
    for argument in &tool.arguments {
        let name = &argument.name;
        let plain: String =
            name.value.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect();
        if let Some(first) = seen.get(&plain) {
            let message = format!("`{}` and `{}` differ only in case or dashes", first.value, name.value);
            let at = Location { source: tool.source, span: name.span };
            findings.push(Diagnostic::new(&SIMILAR_ARGUMENTS, at, message).with_label_at(first.span, "the other one"));
        } else {
            seen.insert(plain, name);
        }
    }
}
