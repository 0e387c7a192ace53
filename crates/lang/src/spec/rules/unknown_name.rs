use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, rule};
use crate::spec::keywords::TYPES;
use crate::spec::schema::Schema;
use crate::spec::{CommandPlaceholder, JsonKind, Tool, ToolCommand, nearest};
use crate::syntax::quoted;
use crate::text::Location;

rule! {
    /// an unknown type, property, placeholder or tool
    ///
    /// The types are string, number, integer, boolean, array, object and null. Any other word is sent unchanged, and
    /// every API rejects the whole request.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type bool)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type boolean)))
    /// ```
    ///
    /// A property in `:required` that is missing in the `:properties` of a closed object makes every value invalid. Gemini
    /// rejects the schema, and so does OpenAI in strict mode. A worker would run without an unknown tool: list tools in
    /// `:tools` and exit tools in `:exit-tools`. A test script fails if `tool.load` names an unknown tool; a name inside of
    /// `expect(…).fails` or `pcall` is not checked, and neither is one that is computed.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["nwo"])
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// (defworker :name "local" :tools ["now"])
    /// ```
    ///
    /// `{name}` in `:command` and `:stdin` stands for the value of an argument in `:args`. For literal braces, write `{{`
    /// and `}}`.
    ///
    /// ```eld fails
    /// (deftool :name "count" :description "Count words." :command ["wc" "-w" "{fiel}" "{file}"]
    ///  :args ((:name "file" :description "The file." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "count" :description "Count words." :command ["wc" "-w" "{file}"]
    ///  :args ((:name "file" :description "The file." :type string)))
    /// ```
    pub(crate) UNKNOWN_NAME, "DT204", "unknown-name", Error
}

/// Maximum number of suggestions for one tool or schema, to limit their cost.
const MAX_SUGGESTIONS: usize = 20;

/// Reports a name that is not one of `known`. `written` returns the similar name as it is written at `at`.
pub fn finding<'k>(
    at: Location,
    message: String,
    name: &str,
    known: impl IntoIterator<Item = &'k str>,
    written: impl FnOnce(&str) -> String,
) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_NAME, at, message);
    match nearest(name, known) {
        Some(near) => finding.did_you_mean(at.span, written(near)),
        None => finding,
    }
}

/// Checks the names in `:required`.
pub(in crate::spec) fn check_required(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    let (Some(required), Some(properties)) = (schema.get("required"), schema.get("properties")) else {
        return;
    };
    let (JsonKind::Array(names), JsonKind::Object(known)) = (&required.value.kind, &properties.value.kind)
    else {
        return;
    };
    let keys: HashSet<&str> = known.iter().map(|property| property.key.as_str()).collect();
    let unknown = names.iter().filter_map(|name| Some((name, name.as_str()?)));
    for (index, (name, word)) in unknown.filter(|(_, word)| !keys.contains(word)).enumerate() {
        let message = format!("unknown property `{word}` in `:required`");
        let known = known.iter().map(|property| property.key.as_str()).filter(|_| index < MAX_SUGGESTIONS);
        findings.push(finding(schema.at(name.span), message, word, known, quoted));
    }
}

/// Checks the placeholders of a command.
pub(in crate::spec) fn check_placeholders(tool: &Tool, command: &ToolCommand, findings: &mut Vec<Diagnostic>) {
    let names = || tool.arguments.iter().map(|argument| argument.name.value.as_str());
    let placeholders = command
        .templates()
        .flat_map(|template| template.value.placeholders().map(move |placeholder| (template, placeholder)));
    let unknown = placeholders.filter(|(_, placeholder)| !names().any(|name| name == placeholder.name));
    for (index, (template, placeholder)) in unknown.enumerate() {
        let at = Location { source: tool.source, span: template.span };
        let message = format!("the tool has no argument `{}` for `{placeholder}`", placeholder.name);
        let known = names().filter(|_| index < MAX_SUGGESTIONS);
        let finding = finding(at, message, &placeholder.name, known, |near| {
            let meant = CommandPlaceholder { name: near.to_owned(), optional: placeholder.optional };
            quoted(&template.value.renamed(&placeholder.name, &meant).to_string())
        });
        let is_fixed = finding.fix.is_some();
        findings.push(if is_fixed { finding } else { finding.note("for literal braces, write `{{` and `}}`") });
    }
}

/// Reports a `:type`. Any unknown type is sent unchanged, and every API rejects the whole request.
pub(in crate::spec) fn of_type(at: Location, word: &str) -> Diagnostic {
    let plain = word.strip_prefix(':').unwrap_or(word);
    let finding = Diagnostic::new(&UNKNOWN_NAME, at, format!("unknown type `{word}`"));
    let known = |word: &str| TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(word));
    if let Some(note) = hint(plain) {
        finding.note(note)
    } else if let Some(known) = known(plain).or_else(|| same_type(plain)) {
        finding.labelled(format!("did you mean `{known}`?")).fixed_by(format!("write `{known}`"), at.span, known)
    } else if let Some(known) = related_type(plain).or_else(|| nearest(plain, TYPES)) {
        finding.did_you_mean(at.span, known)
    } else {
        finding.note(format!("types: {}", TYPES.join(", ")))
    }
}

/// Returns how to write types that JSON Schema expresses differently.
fn hint(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "date" => "a date is `:type string :format \"date\"`",
        "time" => "a time is `:type string :format \"time\"`",
        "datetime" | "date-time" | "timestamp" => "a time stamp is `:type string :format \"date-time\"`",
        "uri" | "url" => "an address is `:type string :format \"uri\"`",
        "uuid" => "an identifier is `:type string :format \"uuid\"`",
        "email" => "an address is `:type string :format \"email\"`",
        "any" => "omit `:type` to allow any value",
        "enum" => "use the type of its values, as in `:type string :enum [\"first\" \"second\"]`",
        _ => return None,
    })
}

/// Returns the type for its name in another language.
fn same_type(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "bool" => "boolean",
        "int" => "integer",
        "float" | "double" => "number",
        "str" => "string",
        "dict" => "object",
        _ => return None,
    })
}

/// Returns the JSON type that probably represents the value.
fn related_type(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "list" | "vector" => "array",
        "text" | "file" | "path" | "directory" => "string",
        "map" | "hash-table" | "plist" | "alist" => "object",
        "long" => "integer",
        "nil" | "none" => "null",
        _ => return None,
    })
}
