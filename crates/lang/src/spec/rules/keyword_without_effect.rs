use crate::diagnostic::{Diagnostic, rule};
use crate::spec::JsonKind;
use crate::spec::keywords::{self, TYPES};
use crate::spec::schema::Schema;

rule! {
    /// a keyword without effect on its :type
    ///
    /// `:minLength` applies to strings, `:minimum` to numbers, `:items` to arrays, `:properties` to objects. On any
    /// other type the keyword is valid but has no effect. Often the keyword belongs one level deeper, or the type is
    /// wrong. Gemini rejects some of these keywords.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :maxLength 3)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :maximum 999)))
    /// ```
    pub(crate) KEYWORD_WITHOUT_EFFECT, "DT224", "keyword-without-effect", Warning
}

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let types = schema.types();
    // An unknown type has been reported, and the intended one is not known.
    if types.is_empty() || types.iter().any(|name| !TYPES.contains(name)) {
        return;
    }
    for member in schema.members {
        let on = keywords::find(&member.key).map(|keyword| keyword.on).unwrap_or_default();
        // `:required t` has been reported.
        let is_flag = member.key == "required" && !matches!(member.value.kind, JsonKind::Array(_));
        if on.is_empty() || is_flag || on.iter().any(|name| types.contains(name)) {
            continue;
        }
        let message = format!(
            "`:{}` has no effect on {}; it applies to {}",
            member.key,
            types.join(" or "),
            on.first().copied().map_or("", |name| if name == "number" { "numbers" } else { plural(name) })
        );
        findings.push(Diagnostic::new(&KEYWORD_WITHOUT_EFFECT, schema.at(member.key_span), message));
    }
}

fn plural(name: &str) -> &str {
    match name {
        "string" => "strings",
        "array" => "arrays",
        "object" => "objects",
        other => other,
    }
}
