use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::Schema;

rule! {
    /// a :pattern in the syntax of Emacs or of a JavaScript literal
    ///
    /// A `:pattern` is an ECMA-262 regular expression: groups are `(…)`, alternatives `|`, a text's start and end `^` and `$`, a class of letters
    /// `[A-Za-z]`. In it `\\(`, `\\|` and `\\'` of Emacs are the characters themselves, and `[[:alpha:]]` is a class of six characters. The slashes
    /// of a JavaScript literal, `/^a$/i`, are no part of it.
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
    } else if has(r"\_<") {
        r"a symbol's start of Emacs, `\\_<`; write `\\b`"
    } else if has(r"\_>") {
        r"a symbol's end of Emacs, `\\_>`; write `\\b`"
    } else if has(r"\<") {
        r"a word's start of Emacs, `\\<`; write `\\b`"
    } else if has(r"\>") {
        r"a word's end of Emacs, `\\>`; write `\\b`"
    } else if in_slashes(pattern) {
        "the slashes of JavaScript, which are no part of it"
    } else {
        return;
    };
    let message = format!("the pattern has {found}");
    findings.push(Diagnostic::new(&EMACS_REGEXP, schema.at(member.value.span), message));
}

/// `/^a$/i`: anchors inside of slashes, or flags behind them; `/etc/` is a path.
fn in_slashes(pattern: &str) -> bool {
    let Some((inside, flags)) = pattern.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else {
        return false;
    };
    flags.bytes().all(|flag| b"dgimsuvy".contains(&flag)) && (inside.starts_with('^') || inside.ends_with('$'))
}
