//! What a target drops, weakens or refuses of a tool, each as a finding at the place of the keyword.
//!
//! One finding a keyword: what stands inside a schema that is refused, left out or not looked at is not told again.

use serde_json::Value;

use super::claims::{Claim, Fate, Subject, Subjected};
use super::loss::Loss;
use super::openai::emit_parameters;
use super::place::{Parameters, Place};
use super::{Target, description_for};
use crate::diagnostic::Diagnostic;
use crate::schema::locate::locate;
use crate::schema::pointer::of_reference;
use crate::spec::Tool;
use crate::spec::keywords;
use crate::text::Span;

/// A claim that holds for something in a schema.
#[derive(Debug)]
pub struct Held {
    /// The claim; its fate is a loss.
    pub claim: &'static Claim,
    /// Where, as a JSON pointer into the parameters.
    pub pointer: String,
    /// The keyword or the name; empty for a schema as a whole.
    pub word: String,
}

/// What `target` drops, weakens or refuses of a parameters schema as `openai` gets it, what the compiler added included.
pub fn losses(target: Target, parameters: &Value) -> Vec<Held> {
    let mut walk = Walk { target, references: references(parameters), held: Vec::new() };
    let parameters = Parameters::new(parameters);
    let root = Place::root(&parameters);
    for claim in target.claims().iter().filter(|claim| matches!(claim.subject, Subject::Tool(_))) {
        if claim.holds(&Subjected { place: &root, word: "" }) {
            walk.hold(claim, String::new(), "");
        }
    }
    // Of the parameters themselves only the arguments were written by anyone.
    walk.children(&root, "properties");
    walk.held
}

/// What `target` makes of `tool`.
pub fn check_target(target: Target, tool: &Tool) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut find = |claim: &'static Claim, span: Span, word: &str| {
        findings.push(Loss { target, tool, claim, span, word: word.to_owned() }.finding());
    };
    let nothing = Parameters::new(&Value::Null);
    for claim in target.claims() {
        match claim.subject {
            Subject::ToolName => {
                let name = &tool.name;
                if claim.holds(&Subjected { place: &Place::root(&nothing), word: &name.value }) {
                    find(claim, name.span, &name.value);
                }
            }
            Subject::DescriptionOver(limit) => {
                let (text, span) = description_for(target, tool);
                if text.chars().count() > limit {
                    find(claim, span, "description");
                }
            }
            Subject::Keywords(_)
            | Subject::OtherKeywords
            | Subject::Schema(_)
            | Subject::Tool(_)
            | Subject::PropertyNames
            | Subject::ToolsOver(_) => {}
        }
    }
    for Held { claim, pointer, word } in losses(target, &emit_parameters(tool)) {
        let span = match claim.subject {
            Subject::Tool(_) => Some(tool.name.span),
            // At its type, where what is wrong with it for every API is told, too.
            Subject::Schema(_) => {
                locate(tool, &format!("{pointer}/type")).or_else(|| locate(tool, &pointer)).map(|at| at.span)
            }
            Subject::Keywords(_)
            | Subject::OtherKeywords
            | Subject::PropertyNames
            | Subject::ToolName
            | Subject::DescriptionOver(_)
            | Subject::ToolsOver(_) => locate(tool, &pointer).map(|at| at.span),
        };
        // What the compiler added was written nowhere, and is no loss.
        if let Some(span) = span {
            find(claim, span, &word);
        }
    }
    findings
}

/// What `target` makes of `tools` in one request, each by itself and all together.
pub fn check_tools<'t>(target: Target, tools: impl IntoIterator<Item = &'t Tool>) -> Vec<Diagnostic> {
    let tools: Vec<&Tool> = tools.into_iter().collect();
    let mut findings: Vec<_> = tools.iter().flat_map(|tool| check_target(target, tool)).collect();
    findings.extend(check_count(target, tools));
    findings
}

/// Whether `target` takes so many `tools` in one request; the finding is about the first that is too many.
pub fn check_count<'t>(target: Target, tools: impl IntoIterator<Item = &'t Tool>) -> Option<Diagnostic> {
    let (claim, limit) = target.claims().iter().find_map(|claim| match claim.subject {
        Subject::ToolsOver(limit) => Some((claim, limit)),
        Subject::Keywords(_)
        | Subject::OtherKeywords
        | Subject::Schema(_)
        | Subject::Tool(_)
        | Subject::PropertyNames
        | Subject::ToolName
        | Subject::DescriptionOver(_) => None,
    })?;
    let tool = tools.into_iter().nth(limit)?;
    let name = &tool.name;
    Some(Loss { target, tool, claim, span: name.span, word: name.value.clone() }.finding())
}

/// Whether `target` is certain to refuse a request with `tool`, so that it is not emitted.
pub(super) fn is_quarantined(target: Target, tool: &Tool) -> bool {
    let is_refused = |held: &Held| held.claim.fate == Fate::Refused;
    target.quarantines() && losses(target, &emit_parameters(tool)).iter().any(is_refused)
}

struct Walk {
    target: Target,
    /// Where the references of the parameters lead, sorted.
    references: Vec<String>,
    held: Vec<Held>,
}

impl Walk {
    fn hold(&mut self, claim: &'static Claim, pointer: String, word: &str) {
        self.held.push(Held { claim, pointer, word: word.to_owned() });
    }

    fn children(&mut self, place: &Place<'_>, keyword: &str) {
        for child in place.children(keyword) {
            if let Some(name) = child.name {
                match keyword {
                    "properties" => self.name(place, name, &child.place.pointer),
                    // What nothing leads to is looked at by nobody.
                    "$defs" | "definitions" if !self.is_used(&child.place.pointer) => continue,
                    _ => {}
                }
            } else if child.place.schema.is_boolean() && is_boolean_keyword(keyword) {
                continue;
            }
            self.schema(&child.place);
        }
    }

    fn name(&mut self, place: &Place<'_>, name: &str, pointer: &str) {
        let subjected = Subjected { place, word: name };
        let is_about = |claim: &&Claim| matches!(claim.subject, Subject::PropertyNames);
        let claim = self.target.claims().iter().filter(is_about).find(|claim| claim.holds(&subjected));
        if let Some(claim) = claim {
            self.hold(claim, pointer.to_owned(), name);
        }
    }

    fn schema(&mut self, place: &Place<'_>) {
        let subjected = Subjected { place, word: "" };
        let wholes = self.target.claims().iter().filter(|claim| matches!(claim.subject, Subject::Schema(_)));
        for claim in wholes.filter(|claim| claim.holds(&subjected)) {
            self.hold(claim, place.pointer.clone(), "");
            if is_end(claim.fate) {
                return;
            }
        }
        for keyword in place.members().into_iter().flat_map(serde_json::Map::keys) {
            // A key that is no keyword has a finding of its own, whatever the target.
            let claim = self.target.claim_of(place, keyword).filter(|_| keywords::find(keyword).is_some());
            if let Some(claim) = claim
                && !matches!(claim.fate, Fate::Enforced | Fate::Shown)
            {
                self.hold(claim, place.pointer_to(keyword), keyword);
            }
            if claim.is_some_and(|claim| !is_end(claim.fate)) {
                self.children(place, keyword);
            }
        }
    }

    fn is_used(&self, pointer: &str) -> bool {
        let inside = format!("{pointer}/");
        let at = self.references.partition_point(|reference| *reference < inside);
        self.references.binary_search_by(|reference| reference.as_str().cmp(pointer)).is_ok()
            || self.references.get(at).is_some_and(|reference| reference.starts_with(&inside))
    }
}

/// Whether a boolean under the keyword is a plain yes or no.
fn is_boolean_keyword(keyword: &str) -> bool {
    matches!(keyword, "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems")
}

/// Whether nothing looks at what is inside.
fn is_end(fate: Fate) -> bool {
    match fate {
        Fate::Misread | Fate::Ignored | Fate::Dropped | Fate::Refused => true,
        Fate::Enforced | Fate::Shown | Fate::Weakened => false,
    }
}

/// The pointers that the references of a schema hold.
fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => {
                let reference = members.get("$ref").and_then(Value::as_str);
                found.extend(reference.and_then(of_reference));
                pending.extend(members.values());
            }
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found.sort_unstable();
    found
}
