use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::Schema;

rule! {
    /// a :pattern in the syntax of Emacs
    ///
    /// A `:pattern` is an ECMA-262 regular expression: groups are `(…)`, alternatives `|`, a text's start and end `^` and `$`, a class of letters
    /// `[A-Za-z]`. In it `\\(`, `\\|` and `\\'` of Emacs are the characters themselves, and `[[:alpha:]]` is a class of six characters.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "^\\(on\\|off\\)$")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :pattern "^(on|off)$")))
    /// ```
    pub(crate) EMACS_REGEXP, "DT227", "emacs-regexp", Warning
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let Some(member) = schema.get("pattern") else { return };
    let Some(pattern) = member.value.as_str() else { return };
    let has = |piece: &str| pattern.contains(piece);
    let found = if has(r"\(") && has(r"\|") && has(r"\)") {
        r"`\\(…\\|…\\)` of Emacs; a group is `(…|…)`"
    } else if has(r"\`") || has(r"\'") {
        r"`\\`` and `\\'` of Emacs; a text's start and end are `^` and `$`"
    } else if has("[[:") && has(":]") {
        "a class `[[:…:]]` of Emacs; write its characters, as in `[A-Za-z]`"
    } else if has(r"\_<") || has(r"\_>") || has(r"\<") || has(r"\>") {
        r"a word's end of Emacs; it is `\\b`"
    } else {
        return;
    };
    let message = format!("the pattern has {found}");
    findings.push(Diagnostic::new(&EMACS_REGEXP, schema.at(member.value.span), message));
}
