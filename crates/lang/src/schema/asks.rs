//! Checks asks: a valid call must be able to meet each, and none may be answered in the definition of its tool.

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::plain::is_plain;
use super::problems::check_schema;
use super::rules;
use super::value_checker::ValueChecker;
use crate::diagnostic::Diagnostic;
use crate::spec::form::keyword;
use crate::spec::rules::{duplicate_ask, unknown_name};
use crate::spec::schema::is_of_type;
use crate::spec::{
    Argument, Ask, ExpectedCall, Json, JsonKind, Member, PastCall, Pattern, PatternKind, Tool, same_key,
    testable_members,
};
use crate::syntax::write;
use crate::text::{Location, SourceId, Span, Spanned};

/// Maximum number of suggestions for the names in the asks of one tool, to limit their cost.
const MAX_SUGGESTIONS: usize = 20;

/// Maximum number of bytes of a description that are searched for the prompts of asks.
const MAX_SEARCHED: usize = 20_000_000;

/// Checks the calls in asks against one tool.
pub struct AskChecker<'t> {
    tool: &'t Tool,
    arguments: HashMap<&'t str, (&'t Argument, ValueChecker<'t>)>,
    /// The description, normalised.
    description: String,
    suggestions_left: Cell<usize>,
    searched_left: Cell<usize>,
}

/// Checks the asks of a tool.
pub(super) fn check_asks(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    if tool.asks.is_empty() {
        return;
    }
    let checker = AskChecker::new(tool);
    for ask in &tool.asks {
        checker.check_prompt(ask, findings);
        for call in ask.calls() {
            checker.check_call(ask, call, findings);
        }
        findings.extend(check_ask_schemas(ask));
    }
    findings.extend(repeated_asks(&tool.asks));
}

/// Checks the schemas in an ask, which need no tool.
pub fn check_ask_schemas(ask: &Ask) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for schema in ask.schemas() {
        let is_plain = matches!(&schema.kind, JsonKind::Object(members) if is_plain(members));
        if !is_plain {
            let at = Location { source: ask.source, span: schema.span };
            check_schema("", at, schema, &mut findings);
        }
    }
    findings
}

/// Returns findings about asks with the same prompt and history as an earlier one.
pub fn repeated_asks<'a>(asks: impl IntoIterator<Item = &'a Ask>) -> Vec<Diagnostic> {
    let mut first: HashMap<String, Location> = HashMap::new();
    let mut findings = Vec::new();
    for ask in asks {
        let here = Location { source: ask.source, span: ask.prompt.span };
        match first.entry(identity(ask)) {
            Entry::Vacant(vacant) => drop(vacant.insert(here)),
            Entry::Occupied(other) => findings.push(duplicate_ask(here, *other.get())),
        }
    }
    findings
}

/// Returns a key that is the same for asks with the same prompt and history.
fn identity(ask: &Ask) -> String {
    let mut key = words(&ask.prompt.value);
    for PastCall { tool, arguments, result } in &ask.history {
        let parts = [&tool.value, &same_key(arguments), &same_key(result)];
        for part in parts {
            key.push('\0');
            key.push_str(part);
        }
    }
    key
}

/// Returns the words of a text, separated by single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'t> AskChecker<'t> {
    /// Creates the checker of calls of a valid tool.
    pub fn new(tool: &'t Tool) -> Self {
        let named = tool
            .arguments
            .iter()
            .map(|argument| (argument.name.value.as_str(), (argument, ValueChecker::new(&argument.schema))));
        Self {
            tool,
            arguments: named.collect(),
            description: words(&tool.description.value).to_lowercase(),
            suggestions_left: Cell::new(MAX_SUGGESTIONS),
            searched_left: Cell::new(MAX_SEARCHED),
        }
    }

    /// Reports a prompt that occurs in the description of the tool.
    pub fn check_prompt(&self, ask: &Ask, findings: &mut Vec<Diagnostic>) {
        let Some(left) = self.searched_left.get().checked_sub(self.description.len()) else { return };
        self.searched_left.set(left);
        if contains_words(&self.description, &words(&ask.prompt.value).to_lowercase()) {
            let at = Location { source: ask.source, span: ask.prompt.span };
            findings.push(rules::prompt_in_description::finding(at, &self.tool.name.value));
        }
    }

    /// Reports what makes a call impossible that `ask` expects.
    pub fn check_call(&self, ask: &Ask, call: &ExpectedCall, findings: &mut Vec<Diagnostic>) {
        let mut check = Check { source: ask.source, findings };
        for name in call.ignored.iter().filter(|name| !self.arguments.contains_key(name.value.as_str())) {
            self.report_unknown(name, false, &mut check);
        }
        if let Some(Pattern { span, kind: PatternKind::Object(members) }) = &call.arguments {
            self.check_members(*span, members, &call.ignored, &mut check);
        }
    }

    /// Reports what makes a call impossible that the model should have made before the reply to `ask`.
    pub fn check_past(&self, ask: &Ask, call: &PastCall, findings: &mut Vec<Diagnostic>) {
        let mut check = Check { source: ask.source, findings };
        if let PatternKind::Object(members) = Pattern::of_json(&call.arguments).kind {
            self.check_members(call.arguments.span, &members, &[], &mut check);
        }
    }

    /// Checks the stated arguments of a call.
    fn check_members(
        &self,
        span: Span,
        members: &[(Spanned<String>, Pattern)],
        ignored: &[Spanned<String>],
        check: &mut Check<'_>,
    ) {
        let mut has_unknown = false;
        for (name, pattern) in members {
            match self.arguments.get(name.value.as_str()) {
                Some((argument, checker)) => check.pattern(&argument.schema, checker, pattern),
                None => {
                    has_unknown = true;
                    self.report_unknown(name, true, check);
                }
            }
        }
        // A misspelt argument is not missing.
        if has_unknown {
            return;
        }
        let named = members.iter().map(|(name, _)| name).chain(ignored);
        let named: HashSet<&str> = named.map(|name| name.value.as_str()).collect();
        let is_named = |argument: &&Argument| named.contains(argument.name.value.as_str());
        // A call may also state the default.
        let needs = |argument: &&Argument| !argument.optional && argument.keyword("default").is_none();
        let missing = self.tool.arguments.iter().filter(needs).filter(|argument| !is_named(argument));
        let missing: Vec<&str> = missing.map(|argument| argument.name.value.as_str()).collect();
        if !missing.is_empty() {
            check.report(rules::ask_misfit::missing(check.at(span), &missing));
        }
    }

    /// Reports a name that is no argument of the tool. `is_key`: whether it is written as a keyword.
    fn report_unknown(&self, name: &Spanned<String>, is_key: bool, check: &mut Check<'_>) {
        let message = format!("the tool `{}` has no argument `{}`", self.tool.name.value, name.value);
        let left = self.suggestions_left.get();
        self.suggestions_left.set(left.saturating_sub(1));
        let known = self.tool.arguments.iter().map(|argument| argument.name.value.as_str());
        let known = known.filter(|_| left > 0);
        let written = |near: &str| {
            // A name may need escapes.
            if is_key { write(&keyword(near, name.span)) } else { near.to_owned() }
        };
        check.report(unknown_name(check.at(name.span), message, &name.value, known, written));
    }
}

/// Returns whether a text contains another one that begins and ends at the borders of words.
fn contains_words(text: &str, part: &str) -> bool {
    let is_border = |next: Option<char>| next.is_none_or(|next| !next.is_alphanumeric());
    text.match_indices(part).any(|(start, found)| {
        let (before, after) = (text.get(..start), text.get(start + found.len()..));
        is_border(before.and_then(|before| before.chars().next_back()))
            && is_border(after.and_then(|after| after.chars().next()))
    })
}

/// The findings about the asks in one source.
struct Check<'f> {
    source: SourceId,
    findings: &'f mut Vec<Diagnostic>,
}

impl Check<'_> {
    fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// Checks that a value can match `pattern`. Every alternative of `any` must be possible.
    fn pattern(&mut self, schema: &[Member], checker: &ValueChecker<'_>, pattern: &Pattern) {
        if let Some(value) = pattern.literal() {
            if let Some(misfit) = checker.misfit(&value) {
                let is_nil = matches!(&value.kind, JsonKind::Object(members) if members.is_empty());
                self.report(rules::ask_misfit::finding(self.at(pattern.span), &misfit, is_nil));
            }
            return;
        }
        match &pattern.kind {
            PatternKind::Any(patterns) => {
                for pattern in patterns {
                    self.pattern(schema, checker, pattern);
                }
            }
            PatternKind::Optional(pattern) => self.pattern(schema, checker, pattern),
            PatternKind::Array(items) => {
                self.type_of(schema, pattern.span, &JsonKind::Array(Vec::new()));
                let of_items = match get(schema, "items") {
                    Some(JsonKind::Object(members)) => members.as_slice(),
                    _ => &[],
                };
                let checker = ValueChecker::new(of_items);
                for item in items {
                    self.pattern(of_items, &checker, item);
                }
            }
            PatternKind::Object(members) => {
                self.type_of(schema, pattern.span, &JsonKind::Object(Vec::new()));
                self.members(schema, pattern.span, members);
            }
            // A schema is checked alone.
            PatternKind::Scalar(_) | PatternKind::Schema(_) => {}
        }
    }

    /// Checks the members of an object that contains alternatives.
    fn members(&mut self, schema: &[Member], span: Span, members: &[(Spanned<String>, Pattern)]) {
        let is_object = get(schema, "items").is_none();
        let known = testable_members(schema).filter(|_| is_object);
        let schemas: HashMap<&str, &Json> =
            known.into_iter().flatten().map(|member| (member.key.as_str(), &member.value)).collect();
        for (name, pattern) in members {
            let of_member = match schemas.get(name.value.as_str()).map(|schema| &schema.kind) {
                Some(JsonKind::Object(schema)) => schema.as_slice(),
                Some(_) => &[],
                None => {
                    if known.is_some() {
                        self.report(rules::ask_misfit::member(self.at(name.span), &name.value));
                    }
                    &[]
                }
            };
            self.pattern(of_member, &ValueChecker::new(of_member), pattern);
        }
        let Some(JsonKind::Array(required)) = get(schema, "required") else { return };
        let has_default = |name: &str| match schemas.get(name).map(|schema| &schema.kind) {
            Some(JsonKind::Object(schema)) => get(schema, "default").is_some(),
            _ => false,
        };
        let stated: HashSet<&str> = members.iter().map(|(name, _)| name.value.as_str()).collect();
        let required = required.iter().filter_map(Json::as_str);
        let missing: Vec<&str> =
            required.filter(|&name| !stated.contains(name) && !has_default(name)).collect();
        if !missing.is_empty() {
            self.report(rules::ask_misfit::missing(self.at(span), &missing));
        }
    }

    /// Checks that the schema allows the type of `value`.
    fn type_of(&mut self, schema: &[Member], span: Span, value: &JsonKind) {
        if let Some(JsonKind::String(name)) = get(schema, "type")
            && !is_of_type(value, name)
        {
            self.report(rules::ask_misfit::of_type(self.at(span), name));
        }
    }
}

fn get<'s>(schema: &'s [Member], key: &str) -> Option<&'s JsonKind> {
    schema.iter().find(|member| member.key == key).map(|member| &member.value.kind)
}
