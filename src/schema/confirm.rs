//! `:confirm`, compiled: whether a person is asked about a call with these arguments.
//!
//! Conditions are held against arguments that are valid. Patterns are matched in linear time, so that no argument of a
//! model's makes the question late; what such an engine cannot read is a finding, and a tool that has one all the same
//! asks about every call.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::judge::Judge;
use super::{ecma, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::schema::is_of_type;
use crate::spec::{Confirm, Json, JsonKind, Member, Tool, is_same};
use crate::text::Location;

/// Which calls of a tool a person is asked about.
#[derive(Debug, Default)]
pub enum Confirmation {
    /// None.
    #[default]
    Never,
    /// Every call.
    Always,
    /// Those that meet one of the conditions.
    When(Conditions),
}

/// Conditions of which one will do.
#[derive(Debug)]
pub struct Conditions(Vec<Test>);

#[derive(Debug)]
enum Test {
    Pattern(Validator),
    Equals(Value),
    Any(Vec<Test>),
    Members(Vec<MemberTest>),
}

#[derive(Debug)]
struct MemberTest {
    key: String,
    test: Test,
    /// Whether a call that leaves it out passes: what its `:default` stands for does.
    passes_without: bool,
}

impl Confirmation {
    /// Whether a call with `arguments` is asked about.
    pub fn holds(&self, arguments: &Map<String, Value>) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::When(Conditions(tests)) => tests.iter().any(|test| test.holds_of(arguments)),
        }
    }
}

/// What a spec says, compiled.
pub(super) fn compile_confirm(tool: &Tool) -> Confirmation {
    match &tool.confirm {
        Confirm::Never => Confirmation::Never,
        Confirm::Always => Confirmation::Always,
        Confirm::When(conditions) => {
            let default_of = |name: &str| {
                let argument = tool.arguments.iter().find(|argument| argument.name.value == name)?;
                argument.keyword("default").map(Json::to_value)
            };
            let tests: Option<Vec<Test>> =
                conditions.iter().map(|condition| compile(condition, &default_of)).collect();
            tests.map_or(Confirmation::Always, |tests| Confirmation::When(Conditions(tests)))
        }
    }
}

/// `None`: a pattern that cannot be read.
fn compile(test: &Json, default_of: &dyn Fn(&str) -> Option<Value>) -> Option<Test> {
    Some(match &test.kind {
        JsonKind::String(pattern) => Test::Pattern(linear(pattern)?),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) => Test::Equals(test.to_value()),
        JsonKind::Array(tests) => {
            Test::Any(tests.iter().map(|test| compile(test, &|_| None)).collect::<Option<_>>()?)
        }
        JsonKind::Object(members) => {
            let member = |member: &Member| {
                let test = compile(&member.value, &|_| None)?;
                let passes_without = default_of(&member.key).is_some_and(|default| test.holds(&default));
                Some(MemberTest { key: member.key.clone(), test, passes_without })
            };
            Test::Members(members.iter().map(member).collect::<Option<_>>()?)
        }
    })
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Array(items)) => items.iter().any(|item| self.holds(item)),
            (Self::Pattern(pattern), Value::String(_)) => pattern.is_valid(value),
            (Self::Equals(expected), _) => is_same(expected, value),
            (Self::Any(tests), _) => tests.iter().any(|test| test.holds(value)),
            (Self::Members(_), Value::Object(members)) => self.holds_of(members),
            (Self::Pattern(_) | Self::Members(_), _) => false,
        }
    }

    fn holds_of(&self, members: &Map<String, Value>) -> bool {
        match self {
            Self::Members(tests) => tests.iter().all(|MemberTest { key, test, passes_without }| {
                members.get(key).map_or(*passes_without, |value| test.holds(value))
            }),
            Self::Pattern(_) | Self::Equals(_) | Self::Any(_) => false,
        }
    }
}

/// A pattern of ECMA-262 under an engine that never goes back.
fn linear(pattern: &str) -> Option<Validator> {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(&json!({"type": "string", "pattern": pattern})).ok()
}

/// What is wrong with the tests of `tool`: patterns that are none, values that an argument never has.
pub(super) fn check_confirm(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    for condition in tool.confirm.conditions() {
        let JsonKind::Object(tests) = &condition.kind else { continue };
        for test in tests {
            let argument = tool.arguments.iter().find(|argument| argument.name.value == test.key);
            // One that is not there was told.
            let schema = argument.map(|argument| argument.schema.as_slice());
            check_test(tool, schema, &test.value, findings);
        }
    }
}

/// `schema`: `None` where nothing is known of what is tested.
fn check_test(tool: &Tool, schema: Option<&[Member]>, test: &Json, findings: &mut Vec<Diagnostic>) {
    let at = Location { source: tool.source, span: test.span };
    match &test.kind {
        JsonKind::Array(tests) => {
            for test in tests {
                check_test(tool, schema, test, findings);
            }
        }
        JsonKind::String(pattern) => {
            if let Some(problem) = ecma::problem(pattern) {
                findings.push(rules::confirm_pattern::finding(at, &problem));
            } else if let Some(pattern) = linear(pattern) {
                let is_match = |value: &Json| pattern.is_valid(&value.to_value());
                if schema.is_some_and(|schema| !may_match(schema, test, &is_match)) {
                    findings.push(rules::confirm_never::of_pattern(at));
                }
            } else {
                findings.push(rules::confirm_pattern::unread(at));
            }
        }
        JsonKind::Object(members) => {
            if schema.is_some_and(|schema| !may_be(schema, test)) {
                findings.push(rules::confirm_never::finding(at, "it is no object"));
                return;
            }
            let known = schema.and_then(crate::spec::testable_members);
            for member in members {
                let inner = known.and_then(|known| known.iter().find(|known| known.key == member.key));
                let inner = inner.and_then(|inner| match &inner.value.kind {
                    JsonKind::Object(schema) => Some(schema.as_slice()),
                    _ => None,
                });
                check_test(tool, inner, &member.value, findings);
            }
        }
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) => {
            if let Some(schema) = schema
                && let Some(misfit) = Judge::new(schema).misfit(test)
                && items_of(schema).is_none_or(|items| Judge::new(items).misfit(test).is_some())
            {
                findings.push(rules::confirm_never::finding(at, &misfit.message));
            }
        }
    }
}

/// Whether values of `schema`, or their items, may be of the kind of `test`.
fn may_be(schema: &[Member], test: &Json) -> bool {
    let types = schema.iter().find(|member| member.key == "type").map(|member| &member.value);
    let is_taken =
        |name: &str| is_of_type(&test.kind, name) || (name == "array" && items_of(schema).is_none());
    let itself = match types.map(|types| &types.kind) {
        Some(JsonKind::String(name)) => is_taken(name),
        Some(JsonKind::Array(names)) => names.iter().filter_map(Json::as_str).any(is_taken),
        Some(_) | None => true,
    };
    itself || items_of(schema).is_some_and(|items| may_be(items, test))
}

/// The same of a pattern, with the values of an `:enum`.
fn may_match(schema: &[Member], test: &Json, is_match: &dyn Fn(&Json) -> bool) -> bool {
    if !may_be(schema, test) {
        return false;
    }
    let schema = items_of(schema).unwrap_or(schema);
    match schema.iter().find(|member| member.key == "enum").map(|member| &member.value.kind) {
        Some(JsonKind::Array(values)) => values.iter().any(is_match),
        Some(_) | None => true,
    }
}

fn items_of(schema: &[Member]) -> Option<&[Member]> {
    match schema.iter().find(|member| member.key == "items").map(|member| &member.value.kind) {
        Some(JsonKind::Object(items)) => Some(items),
        Some(_) | None => None,
    }
}
