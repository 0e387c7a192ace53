use crate::diagnostic::{Diagnostic, rule};
use crate::spec::nearest;
use crate::spec::schema::Schema;

rule! {
    /// an unknown :format
    ///
    /// The known formats are those of JSON Schema (`date-time`, `uri`, `email` …). Other names are legal but never
    /// validated, and OpenAI rejects them in strict mode. The rule reports only names similar to a known format:
    /// others may be hints for the model.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :format "datetime")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string :format "date-time")))
    /// ```
    pub(crate) UNKNOWN_FORMAT, "DT228", "unknown-format", Warning
}

pub(in crate::spec) const FORMATS: [&str; 19] = [
    "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6",
    "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer",
    "relative-json-pointer", "regex",
];

/// Formats defined by `OpenAPI` and others.
const KNOWN_ELSEWHERE: [&str; 11] =
    ["int32", "int64", "float", "double", "byte", "binary", "password", "url", "color", "phone", "enum"];

pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let Some(member) = schema.get("format") else { return };
    let Some(word) = member.value.as_str() else { return };
    if FORMATS.contains(&word) || (KNOWN_ELSEWHERE.contains(&word) && word != "url") {
        return;
    }
    let meant = match word {
        "url" => Some("uri"),
        "timestamp" | "iso8601" | "iso-8601" | "rfc3339" => Some("date-time"),
        "mail" => Some("email"),
        "guid" => Some("uuid"),
        _ => nearest(word, FORMATS),
    };
    let Some(known) = meant else { return };
    let message = format!("unknown JSON Schema format \"{word}\"");
    findings.push(
        Diagnostic::new(&UNKNOWN_FORMAT, schema.at(member.value.span), message)
            .did_you_mean(member.value.span, super::quoted(known)),
    );
}
