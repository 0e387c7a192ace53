//! What a spec gives as values of its own schemas: `:default`, `:examples`, `:accepts` and `:rejects`.
//!
//! A [`Judge`] says whether a default fits; the calls are held against the tool's own validator: [`try_examples`] is what
//! the rules tell of when a spec is loaded and what `deftool test` reports.

use super::judge::Judge;
use super::pointer::{self, enter};
use super::walk::schemas_of;
use super::{ArgumentValidator, Violation, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::{Json, JsonKind, Member, Tool};
use crate::text::{Location, Span};

/// Most of the `:examples` of one schema that are told.
const MAX_MISFITS: usize = 5;

/// What a spec says of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It stands in `:accepts`: the schema takes it.
    Accepts,
    /// It stands in `:rejects`: the schema refuses it.
    Rejects,
}

impl Expected {
    /// The key that it stands in, without its colon.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepts => "accepts",
            Self::Rejects => "rejects",
        }
    }
}

/// An example of a tool, held against the tool's schema.
#[derive(Debug)]
pub struct Example {
    /// What the spec says of it.
    pub expected: Expected,
    /// Which one of its key, from 1.
    pub number: usize,
    /// Where it stands in the tool's source.
    pub span: Span,
    /// Why the schema refuses it; `None`: it takes it.
    pub refusal: Option<Refusal>,
}

/// Why a schema refuses an example.
#[derive(Debug)]
pub struct Refusal {
    /// The first of the violations.
    pub violation: Violation,
    /// Where in the example, or the nearest around it.
    pub span: Span,
}

impl Example {
    /// Whether it is what the spec says.
    pub fn is_ok(&self) -> bool {
        match self.expected {
            Expected::Accepts => self.refusal.is_none(),
            Expected::Rejects => self.refusal.is_some(),
        }
    }
}

/// Holds the calls that a tool gives as examples against its `validator`, those of `:accepts` first.
pub fn try_examples<'t>(
    tool: &'t Tool,
    validator: &'t ArgumentValidator,
) -> impl Iterator<Item = Example> + 't {
    let accepts = tool.accepts.iter().enumerate().map(|(index, call)| (Expected::Accepts, index, call));
    let rejects = tool.rejects.iter().enumerate().map(|(index, call)| (Expected::Rejects, index, call));
    accepts.chain(rejects).map(|(expected, index, call)| {
        let refusal = validator.first_violation(&call.to_value());
        let refusal =
            refusal.map(|(pointer, violation)| Refusal { violation, span: span_at(call, &pointer) });
        Example { expected, number: index + 1, span: call.span, refusal }
    })
}

/// Holds every `:default` and `:examples` of a tool against the schema that it stands in.
pub(super) fn check_defaults(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let at = |span| Location { source: tool.source, span };
    for (_, schema) in schemas_of(tool) {
        let judge = Judge::new(schema);
        for member in schema {
            match (member.key.as_str(), &member.value.kind) {
                ("default", _) if !is_nil_elsewhere(schema, &member.value) => {
                    if let Some(misfit) = judge.misfit(&member.value) {
                        findings.push(rules::default_misfit::finding(at(member.value.span), &misfit));
                    }
                }
                ("examples", JsonKind::Array(values)) => {
                    let misfits = values.iter().filter_map(|value| Some((value.span, judge.misfit(value)?)));
                    for (span, misfit) in misfits.take(MAX_MISFITS) {
                        findings.push(rules::example_misfit::finding(at(span), &misfit));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Tells of the calls that a tool gives as examples and that are not what it says they are.
pub(super) fn check_calls(tool: &Tool, validator: &ArgumentValidator, findings: &mut Vec<Diagnostic>) {
    let at = |span| Location { source: tool.source, span };
    for example in try_examples(tool, validator).filter(|example| !example.is_ok()) {
        findings.push(match example.refusal {
            Some(refusal) => rules::accepted_example_fails::finding(at(refusal.span), &refusal.violation),
            None => rules::rejected_example_passes::finding(at(example.span)),
        });
    }
}

/// The place in `value` that a JSON pointer leads to, or the nearest around it.
pub(super) fn span_at(value: &Json, pointer: &str) -> Span {
    let mut value = value;
    for step in pointer::steps(pointer) {
        let Some(inside) = enter(value, &step) else { break };
        value = inside.value();
    }
    value.span
}

/// nil is told by a rule of its own.
fn is_nil_elsewhere(schema: &[Member], value: &Json) -> bool {
    let type_name =
        schema.iter().find(|member| member.key == "type").and_then(|member| member.value.as_str());
    matches!(&value.kind, JsonKind::Object(members) if members.is_empty())
        && type_name.is_some_and(|name| name != "object" && name != "null")
}
