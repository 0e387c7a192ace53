use crate::diagnostic::{Diagnostic, rule};
use crate::spec::schema::Schema;

rule! {
    /// a :pattern in Emacs or JavaScript literal syntax
    ///
    /// A `:pattern` is an ECMA-262 regular expression: `(…)` is a group, `|` an alternative, `^` and `$` match the
    /// start and the end of the text, `[A-Za-z]` is a class of letters. In this syntax, the Emacs escapes `\\(`, `\\|`
    /// and `\\'` match the characters themselves, and `[[:alpha:]]` is a class of six characters. The slashes of a
    /// JavaScript literal, `/^a$/i`, are not part of a pattern.
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
        r"uses the Emacs group `\\(…\\|…\\)`; write `(…|…)`"
    } else if has(r"\`") || has(r"\'") {
        r"uses the Emacs anchors `\\`` and `\\'`; write `^` and `$`"
    } else if has("[[:") && has(":]") {
        "uses an Emacs class `[[:…:]]`; write its characters, as in `[A-Za-z]`"
    } else if has(r"\_<") {
        r"uses the Emacs symbol boundary `\\_<`; write `\\b`"
    } else if has(r"\_>") {
        r"uses the Emacs symbol boundary `\\_>`; write `\\b`"
    } else if has(r"\<") {
        r"uses the Emacs word boundary `\\<`; write `\\b`"
    } else if has(r"\>") {
        r"uses the Emacs word boundary `\\>`; write `\\b`"
    } else if in_slashes(pattern) {
        "has the slashes of a JavaScript literal, which are not part of a pattern"
    } else {
        return;
    };
    let message = format!("the pattern {found}");
    findings.push(Diagnostic::new(&EMACS_REGEXP, schema.at(member.value.span), message));
}

/// Whether the pattern is a literal such as `/^a$/i`, with anchors inside or flags after the slashes; `/etc/` is a
/// path.
fn in_slashes(pattern: &str) -> bool {
    let Some((inside, flags)) = pattern.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else {
        return false;
    };
    flags.bytes().all(|flag| b"dgimsuvy".contains(&flag)) && (inside.starts_with('^') || inside.ends_with('$'))
}
