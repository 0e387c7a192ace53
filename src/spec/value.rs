//! Tools from and to `lexpr` values, for Rust programs that write a spec with its `sexp!` macro or hold it as such.
//!
//! A value is data: nothing is folded, but a quoted value stands for what it quotes. It has no places: whatever is
//! found wrong stands at byte 0. What a [`Tool`] does not keep (`:function`) does not come back.

use crate::diagnostic::{Diagnostic, Severity};
use crate::syntax::lexpr::{LexprError, Value, from_lexpr, to_lexpr};
use crate::syntax::{Datum, DatumKind, Number};
use crate::text::{SourceFile, Sources, Span};

use super::json::{Json, JsonKind, Member};
use super::{Argument, Effect, TargetOverride, Tool, ToolKind, lower_tool};

/// A value that is no valid tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolValueError {
    /// It holds what no spec can.
    #[error(transparent)]
    NotASpec(#[from] LexprError),
    /// It is a spec with errors.
    #[error("not a valid tool: {}", describe(.0))]
    Invalid(Vec<Diagnostic>),
}

impl TryFrom<&Value> for Tool {
    type Error = ToolValueError;

    /// The tool that a plist, or a list that starts with the name of a tool form, is.
    ///
    /// # Errors
    /// When it has an error; the findings are all there, warnings included.
    fn try_from(value: &Value) -> Result<Self, ToolValueError> {
        let mut datum = from_lexpr(value)?;
        if let DatumKind::List(items) = &mut datum.kind {
            items.iter_mut().for_each(unquote);
        }
        let source = Sources::new().add(SourceFile::new("a value", ""));
        match lower_tool(source, datum) {
            (Some(tool), _) if tool.valid => Ok(tool),
            (_, findings) => Err(ToolValueError::Invalid(findings)),
        }
    }
}

impl From<&Tool> for Value {
    /// The tool as a form: `(deftool :name … :description … :args (…) …)`.
    fn from(tool: &Tool) -> Self {
        to_lexpr(&form_of_tool(tool))
    }
}

fn describe(findings: &[Diagnostic]) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// `(quote x)` → `x`.
fn unquote(datum: &mut Datum) {
    if let DatumKind::List(items) = &mut datum.kind
        && let [Datum { kind: DatumKind::Symbol(head), .. }, _] = items.as_slice()
        && head == "quote"
        && let Some(inner) = items.pop()
    {
        *datum = inner;
    }
}

fn form_of_tool(tool: &Tool) -> Datum {
    let head = match tool.kind {
        ToolKind::Normal => "deftool",
        ToolKind::Exit => "defexit",
    };
    let mut form = vec![symbol(head)];
    let mut entry = |key: &str, value: Datum| form.extend([keyword(key), value]);
    entry("name", string(&tool.name.value));
    entry("description", string(&tool.description.value));
    if !tool.arguments.is_empty() {
        entry("args", list(tool.arguments.iter().map(plist_of_argument).collect()));
    }
    if tool.is_async {
        entry("async", symbol("t"));
    }
    if let Some(script) = &tool.script {
        entry("script", string(&script.value));
    }
    if let Some(timeout) = tool.timeout {
        entry("timeout", string(&format!("{}ms", timeout.as_secs_f64() * 1000.0)));
    }
    if let Some(memory) = tool.memory {
        entry("memory", string(&format!("{memory}B")));
    }
    let allow = &tool.permissions;
    let grants = [
        ("net", &allow.net),
        ("read", &allow.read),
        ("write", &allow.write),
        ("run", &allow.run),
        ("env", &allow.env),
    ];
    let granted = grants.into_iter().filter(|(_, names)| !names.is_empty());
    let granted: Vec<Datum> = granted.flat_map(|(key, names)| [keyword(key), strings(names)]).collect();
    if !granted.is_empty() {
        entry("allow", list(granted));
    }
    match tool.effect {
        Effect::Pure => entry("effect", symbol("pure")),
        Effect::Keyed => entry("effect", symbol("keyed")),
        Effect::Once => {}
    }
    if let Some(category) = &tool.category {
        entry("category", string(&category.value));
    }
    for (key, flag) in [("confirm", tool.confirm), ("include", tool.include)] {
        if flag {
            entry(key, symbol("t"));
        }
    }
    for (key, examples) in [("accepts", &tool.accepts), ("rejects", &tool.rejects)] {
        if !examples.is_empty() {
            entry(key, datum(DatumKind::Vector(examples.iter().map(datum_of_json).collect())));
        }
    }
    if !tool.overrides.is_empty() {
        let override_of = |over: &TargetOverride| {
            let description =
                over.description.iter().flat_map(|text| [keyword("description"), string(&text.value)]);
            [keyword(&over.target.value), list(description.collect())]
        };
        entry("targets", list(tool.overrides.iter().flat_map(override_of).collect()));
    }
    list(form)
}

fn plist_of_argument(argument: &Argument) -> Datum {
    let mut plist = vec![keyword("name"), string(&argument.name.value)];
    if argument.optional {
        plist.extend([keyword("optional"), symbol("t")]);
    }
    plist.extend(entries(&argument.schema));
    list(plist)
}

fn entries(members: &[Member]) -> Vec<Datum> {
    let entry = |member: &Member| {
        let value = match (member.key.as_str(), &member.value.kind) {
            ("type", JsonKind::String(word)) => symbol(word),
            _ => datum_of_json(&member.value),
        };
        [keyword(&member.key), value]
    };
    members.iter().flat_map(entry).collect()
}

fn datum_of_json(json: &Json) -> Datum {
    match &json.kind {
        JsonKind::Null => keyword("null"),
        JsonKind::Bool(true) => symbol("t"),
        JsonKind::Bool(false) => keyword("json-false"),
        JsonKind::String(text) => string(text),
        JsonKind::Number(number) => datum(DatumKind::Number(match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Number::Integer(value),
            (None, Some(value)) => Number::Unsigned(value),
            (None, None) => Number::Float(number.as_f64().unwrap_or_default()),
        })),
        JsonKind::Array(items) => datum(DatumKind::Vector(items.iter().map(datum_of_json).collect())),
        JsonKind::Object(members) => list(entries(members)),
    }
}

fn strings(names: &[String]) -> Datum {
    datum(DatumKind::Vector(names.iter().map(|name| string(name)).collect()))
}

fn list(items: Vec<Datum>) -> Datum {
    datum(DatumKind::List(items))
}

fn symbol(name: &str) -> Datum {
    datum(DatumKind::Symbol(name.to_owned()))
}

fn keyword(name: &str) -> Datum {
    datum(DatumKind::Keyword(format!(":{name}")))
}

fn string(text: &str) -> Datum {
    datum(DatumKind::String(text.to_owned()))
}

fn datum(kind: DatumKind) -> Datum {
    Datum { span: Span::default(), kind }
}
