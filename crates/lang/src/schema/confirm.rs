//! Compiles `:confirm`: whether a call with given arguments needs the user's approval.
//!
//! Conditions are evaluated on valid arguments. Patterns are matched in linear time, so that no argument from the model
//! can delay the prompt. A pattern that cannot be matched in linear time is reported, and its tool requires approval
//! for every call.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::value_checker::ValueChecker;
use super::{ecma, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::schema::is_of_type;
use crate::spec::{Argument, Confirm, Json, JsonKind, Member, Tool, is_same, testable_members};
use crate::text::Location;

/// The calls of a tool that need the user's approval.
#[derive(Debug, Default)]
pub enum Confirmation {
    /// No call.
    #[default]
    Never,
    /// Every call.
    Always,
    /// Calls that meet at least one of the conditions.
    When(Conditions),
}

/// Conditions, of which at least one must be met.
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
    /// Whether the test passes if the member is missing: true if its `:default` passes.
    passes_without: bool,
}

impl Confirmation {
    /// Returns whether a call with `arguments` needs approval.
    pub fn matches(&self, arguments: &Arguments) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::When(Conditions(tests)) => {
                let members = arguments.as_object();
                members.is_some_and(|members| tests.iter().any(|test| test.is_met_by(members)))
            }
        }
    }
}

/// Compiles the `:confirm` of a tool.
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

/// Compiles one condition; `None` if a pattern is not supported.
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
                let passes_without = default_of(&member.key).is_some_and(|default| test.matches(&default));
                Some(MemberTest { key: member.key.clone(), test, passes_without })
            };
            Test::Members(members.iter().map(member).collect::<Option<_>>()?)
        }
    })
}

impl Test {
    fn matches(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Array(items)) => items.iter().any(|item| self.matches(item)),
            (Self::Pattern(pattern), Value::String(_)) => pattern.is_valid(value),
            (Self::Equals(expected), _) => is_same(expected, value),
            (Self::Any(tests), _) => tests.iter().any(|test| test.matches(value)),
            (Self::Members(_), Value::Object(members)) => self.is_met_by(members),
            (Self::Pattern(_) | Self::Members(_), _) => false,
        }
    }

    fn is_met_by(&self, members: &Map<String, Value>) -> bool {
        match self {
            Self::Members(tests) => tests.iter().all(|MemberTest { key, test, passes_without }| {
                members.get(key).map_or(*passes_without, |value| test.matches(value))
            }),
            Self::Pattern(_) | Self::Equals(_) | Self::Any(_) => false,
        }
    }
}

/// Compiles an ECMA-262 pattern for an engine without backtracking.
fn linear(pattern: &str) -> Option<Validator> {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(&json!({"type": "string", "pattern": pattern})).ok()
}

/// Reports invalid patterns in the conditions of `tool`, and values that an argument can never have.
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
            // An unknown argument was already reported.
            check_test(tool, arguments.get(test.key.as_str()), &test.value, findings);
        }
    }
}

/// Checks one condition. `tested` is `None` if the schema of the tested value is unknown.
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
                findings.push(rules::confirm_pattern::unsupported(at));
            }
        }
        JsonKind::Object(members) => {
            if tested.is_some_and(|tested| !tested.may_be(test)) {
                findings.push(rules::confirm_never::finding(at, "its schema does not allow an object"));
                return;
            }
            for member in members {
                let inner = tested.and_then(|tested| tested.member(&member.key));
                check_test(tool, inner, &member.value, findings);
            }
        }
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) => {
            if let Some(tested) = tested
                && let Some(misfit) = tested.checker.misfit(test)
                && tested.items().is_none_or(|items| items.checker.misfit(test).is_some())
            {
                findings.push(rules::confirm_never::finding(at, &misfit.message));
            }
        }
    }
}

/// Maximum number of `:enum` values that are checked against all patterns of one argument. The rest are not checked.
const MAX_MATCHES: usize = 100_000;

/// A schema with cached data for its tests.
struct Tested<'s> {
    schema: &'s [Member],
    checker: ValueChecker<'s>,
    items: OnceCell<Option<Box<Tested<'s>>>>,
    members: OnceCell<HashMap<&'s str, Tested<'s>>>,
    /// Cached results of [`Self::may_be`] for a string and for an object.
    may_be_string: OnceCell<bool>,
    may_be_object: OnceCell<bool>,
    matches_left: Cell<usize>,
}

impl<'s> Tested<'s> {
    fn new(schema: &'s [Member]) -> Self {
        Self {
            schema,
            checker: ValueChecker::new(schema),
            items: OnceCell::new(),
            members: OnceCell::new(),
            may_be_string: OnceCell::new(),
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

    /// Returns whether a value of the schema, or one of its items, may have the type of `test`: a string or an object.
    fn may_be(&self, test: &Json) -> bool {
        let known = if test.as_str().is_some() { &self.may_be_string } else { &self.may_be_object };
        *known.get_or_init(|| {
            let is_allowed =
                |name: &str| is_of_type(&test.kind, name) || (name == "array" && self.items().is_none());
            let itself = match self.get("type") {
                Some(JsonKind::String(name)) => is_allowed(name),
                Some(JsonKind::Array(names)) => names.iter().filter_map(Json::as_str).any(is_allowed),
                Some(_) | None => true,
            };
            itself || self.items().is_some_and(|items| items.may_be(test))
        })
    }

    /// Like [`Self::may_be`], for a pattern. If there is an `:enum`, one of its values must match the pattern.
    fn may_match(&self, test: &Json, pattern: &Validator) -> bool {
        if !self.may_be(test) {
            return false;
        }
        let tested = self.items().unwrap_or(self);
        let Some(values) = tested.checker.values() else { return true };
        let Some(left) = self.matches_left.get().checked_sub(values.len()) else { return true };
        self.matches_left.set(left);
        values.iter().any(|value| pattern.is_valid(&value.to_value()))
    }
}
