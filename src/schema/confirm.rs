//! `:confirm`, compiled: whether a person is asked about a call with these arguments.
//!
//! Conditions are held against arguments that are valid. Patterns are matched in linear time, so that no argument of a
//! model's makes the question late; what such an engine cannot read is a finding, and a tool that has one all the same
//! asks about every call.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::judge::Judge;
use super::{ecma, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::schema::is_of_type;
use crate::spec::{Argument, Confirm, Json, JsonKind, Member, Tool, is_same, testable_members};
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
            let named = tool.arguments.iter().map(|argument| (argument.name.value.as_str(), argument));
            let arguments: HashMap<&str, &Argument> = named.collect();
            let default_of = |name: &str| arguments.get(name)?.keyword("default").map(Json::to_value);
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
    if tool.confirm.conditions().is_empty() {
        return;
    }
    let named = tool.arguments.iter();
    let named = named.map(|argument| (argument.name.value.as_str(), Tested::new(&argument.schema)));
    let arguments: HashMap<&str, Tested<'_>> = named.collect();
    for condition in tool.confirm.conditions() {
        let JsonKind::Object(tests) = &condition.kind else { continue };
        for test in tests {
            // One that is not there was told.
            check_test(tool, arguments.get(test.key.as_str()), &test.value, findings);
        }
    }
}

/// `tested`: `None` where nothing is known of what is tested.
fn check_test(tool: &Tool, tested: Option<&Tested<'_>>, test: &Json, findings: &mut Vec<Diagnostic>) {
    let at = Location { source: tool.source, span: test.span };
    match &test.kind {
        JsonKind::Array(tests) => {
            for test in tests {
                check_test(tool, tested, test, findings);
            }
        }
        JsonKind::String(pattern) => {
            if let Some(problem) = ecma::problem(pattern) {
                findings.push(rules::confirm_pattern::finding(at, &problem));
            } else if let Some(pattern) = linear(pattern) {
                if tested.is_some_and(|tested| !tested.may_match(test, &pattern)) {
                    findings.push(rules::confirm_never::of_pattern(at));
                }
            } else {
                findings.push(rules::confirm_pattern::unread(at));
            }
        }
        JsonKind::Object(members) => {
            if tested.is_some_and(|tested| !tested.may_be(test)) {
                findings.push(rules::confirm_never::finding(at, "it is no object"));
                return;
            }
            for member in members {
                let inner = tested.and_then(|tested| tested.member(&member.key));
                check_test(tool, inner, &member.value, findings);
            }
        }
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) => {
            if let Some(tested) = tested
                && let Some(misfit) = tested.judge.misfit(test)
                && tested.items().is_none_or(|items| items.judge.misfit(test).is_some())
            {
                findings.push(rules::confirm_never::finding(at, &misfit.message));
            }
        }
    }
}

/// How many values of an `:enum` are looked at for all patterns of one argument. Beyond that nothing is said of them.
const MAX_MATCHES: usize = 100_000;

/// A schema with what its tests ask of it, found once for all of them.
struct Tested<'s> {
    schema: &'s [Member],
    judge: Judge<'s>,
    items: OnceCell<Option<Box<Tested<'s>>>>,
    members: OnceCell<HashMap<&'s str, Tested<'s>>>,
    /// Whether it may be a text, and an object.
    may_be_text: OnceCell<bool>,
    may_be_object: OnceCell<bool>,
    matches_left: Cell<usize>,
}

impl<'s> Tested<'s> {
    fn new(schema: &'s [Member]) -> Self {
        Self {
            schema,
            judge: Judge::new(schema),
            items: OnceCell::new(),
            members: OnceCell::new(),
            may_be_text: OnceCell::new(),
            may_be_object: OnceCell::new(),
            matches_left: Cell::new(MAX_MATCHES),
        }
    }

    fn get(&self, key: &str) -> Option<&'s JsonKind> {
        self.schema.iter().find(|member| member.key == key).map(|member| &member.value.kind)
    }

    fn items(&self) -> Option<&Self> {
        let items = || match self.get("items") {
            Some(JsonKind::Object(items)) => Some(Box::new(Self::new(items))),
            Some(_) | None => None,
        };
        self.items.get_or_init(items).as_deref()
    }

    fn member(&self, key: &str) -> Option<&Self> {
        let members = || {
            let members = testable_members(self.schema).unwrap_or_default().iter();
            let schemas = members.filter_map(|member| match &member.value.kind {
                JsonKind::Object(schema) => Some((member.key.as_str(), Self::new(schema))),
                _ => None,
            });
            schemas.collect()
        };
        self.members.get_or_init(members).get(key)
    }

    /// Whether values of the schema, or their items, may be of the kind of `test`, a text or an object.
    fn may_be(&self, test: &Json) -> bool {
        let known = if test.as_str().is_some() { &self.may_be_text } else { &self.may_be_object };
        *known.get_or_init(|| {
            let is_taken =
                |name: &str| is_of_type(&test.kind, name) || (name == "array" && self.items().is_none());
            let itself = match self.get("type") {
                Some(JsonKind::String(name)) => is_taken(name),
                Some(JsonKind::Array(names)) => names.iter().filter_map(Json::as_str).any(is_taken),
                Some(_) | None => true,
            };
            itself || self.items().is_some_and(|items| items.may_be(test))
        })
    }

    /// The same of a pattern, with the values of an `:enum`.
    fn may_match(&self, test: &Json, pattern: &Validator) -> bool {
        if !self.may_be(test) {
            return false;
        }
        let tested = self.items().unwrap_or(self);
        let Some(values) = tested.judge.values() else { return true };
        let Some(left) = self.matches_left.get().checked_sub(values.len()) else { return true };
        self.matches_left.set(left);
        values.iter().any(|value| pattern.is_valid(&value.to_value()))
    }
}
