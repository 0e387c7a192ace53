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
    let finding = Diagnostic::new(&UNKNOWN_NAME, at, format!("unknown type `{word}`"));
    let word = word.strip_prefix(':').unwrap_or(word).to_ascii_lowercase();
    let known = TYPES.into_iter().find(|known| *known == word).map(MeantType::Same);
    match known.or_else(|| MeantType::of(&word)).or_else(|| nearest(&word, TYPES).map(MeantType::Related)) {
        Some(MeantType::Same(known)) => {
            finding.labelled(format!("did you mean `{known}`?")).fixed_by(format!("write `{known}`"), at.span, known)
        }
        Some(MeantType::Related(known)) => finding.did_you_mean(at.span, known),
        Some(MeantType::Other(note)) => finding.note(note),
        None => finding.note(format!("types: {}", TYPES.join(", "))),
    }
}

/// What an unknown type means.
enum MeantType {
    /// The type has this name in JSON Schema.
    Same(&'static str),
    /// A value of this type probably represents it.
    Related(&'static str),
    /// JSON Schema expresses it in another way.
    Other(&'static str),
}

impl MeantType {
    /// Returns the meaning of a name, in lower case, that is used elsewhere.
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "bool" => Self::Same("boolean"),
            "int" => Self::Same("integer"),
            "float" | "double" => Self::Same("number"),
            "str" => Self::Same("string"),
            "dict" => Self::Same("object"),
            "list" | "vector" => Self::Related("array"),
            "text" | "file" | "path" | "directory" => Self::Related("string"),
            "map" | "hash-table" | "plist" | "alist" => Self::Related("object"),
            "long" => Self::Related("integer"),
            "nil" | "none" => Self::Related("null"),
            "date" => Self::Other("a date is `:type string :format \"date\"`"),
            "time" => Self::Other("a time is `:type string :format \"time\"`"),
            "datetime" | "date-time" | "timestamp" => {
                Self::Other("a time stamp is `:type string :format \"date-time\"`")
            }
            "uri" | "url" => Self::Other("an address is `:type string :format \"uri\"`"),
            "uuid" => Self::Other("an identifier is `:type string :format \"uuid\"`"),
            "email" => Self::Other("an address is `:type string :format \"email\"`"),
            "any" => Self::Other("omit `:type` to allow any value"),
            "enum" => Self::Other("use the type of its values, as in `:type string :enum [\"first\" \"second\"]`"),
            _ => return None,
        })
    }
}
