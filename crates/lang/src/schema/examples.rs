//! Checks the sample values in a spec: `:default`, `:examples`, `:accepts` and `:rejects`.
//!
//! A [`ValueChecker`] checks defaults and examples of one schema. Sample calls are validated with the tool's own
//! validator: [`try_examples`] provides the results for the rules and for `deftool test`.

use super::pointer::{self, enter};
use super::value_checker::ValueChecker;
use super::walk::schemas_of;
use super::{ArgumentValidator, Violation, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::{Json, JsonKind, Member, SampleCall, Tool};
use crate::text::{Location, Span};

/// Maximum number of invalid `:examples` reported per schema.
const MAX_MISFITS: usize = 5;

/// The expected result for a sample call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// From `:accepts`: the schema must accept it.
    Accepts,
    /// From `:rejects`: the schema must reject it.
    Rejects,
}

impl Expected {
    /// Returns the key without its colon.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepts => "accepts",
            Self::Rejects => "rejects",
        }
    }
}

/// A sample call of a tool, validated against the tool's schema.
#[derive(Debug)]
pub struct Example<'t> {
    /// The expected result.
    pub expected: Expected,
    /// Position under its key, from 1.
    pub number: usize,
    /// Location in the tool's source.
    pub span: Span,
    /// The sample call, if it has a result.
    pub sample: Option<&'t SampleCall>,
    /// The reason why the schema rejects the call; `None` if the call is valid.
    pub refusal: Option<Refusal>,
}

/// The reason why a schema rejects a sample call.
#[derive(Debug)]
pub struct Refusal {
    /// The first violation.
    pub violation: Violation,
    /// Location of the invalid value in the sample, or of its nearest ancestor.
    pub span: Span,
    /// Whether it is nil where a boolean is expected.
    pub is_nil_for_false: bool,
}

impl Example<'_> {
    /// Returns whether the result is as expected.
    pub fn is_ok(&self) -> bool {
        match self.expected {
            Expected::Accepts => self.refusal.is_none(),
            Expected::Rejects => self.refusal.is_some(),
        }
    }
}

/// Validates the sample calls of a tool with its `validator`, those of `:accepts` first.
pub fn try_examples<'t>(
    tool: &'t Tool,
    validator: &'t ArgumentValidator,
) -> impl Iterator<Item = Example<'t>> + 't {
    let example = |expected, index: usize, arguments: &Json, sample| {
        let refusal = validator.first_violation(&arguments.to_value());
        let refusal = refusal.map(|(pointer, violation)| {
            let value = value_at(arguments, &pointer);
            let is_nil_for_false = is_nil(value) && violation.message.ends_with("of type \"boolean\"");
            Refusal { violation, span: value.span, is_nil_for_false }
        });
        Example { expected, number: index + 1, span: arguments.span, sample, refusal }
    };
    let accepts = tool.accepts.iter().enumerate().map(move |(index, sample)| {
        let with_result = Some(sample).filter(|sample| sample.returns.is_some());
        example(Expected::Accepts, index, &sample.arguments, with_result)
    });
    let rejects = tool.rejects.iter().enumerate();
    accepts.chain(rejects.map(move |(index, call)| example(Expected::Rejects, index, call, None)))
}

/// Checks every `:default` and `:examples` of a tool against its own schema.
pub(super) fn check_defaults(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    let at = |span| Location { source: tool.source, span };
    for (_, schema) in schemas_of(tool) {
        let checker = ValueChecker::new(schema);
        for member in schema {
            match (member.key.as_str(), &member.value.kind) {
                ("default", _) if !is_nil_of_other_type(schema, &member.value) => {
                    if let Some(misfit) = checker.misfit(&member.value) {
                        findings.push(rules::default_misfit::finding(at(member.value.span), &misfit));
                    }
                }
                ("examples", JsonKind::Array(values)) => {
                    let misfits =
                        values.iter().filter_map(|value| Some((value.span, checker.misfit(value)?)));
                    for (span, misfit) in misfits.take(MAX_MISFITS) {
                        findings.push(rules::example_misfit::finding(at(span), &misfit));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Reports sample calls of a tool with an unexpected result.
pub(super) fn check_calls(tool: &Tool, validator: &ArgumentValidator, findings: &mut Vec<Diagnostic>) {
    let at = |span| Location { source: tool.source, span };
    for example in try_examples(tool, validator).filter(|example| !example.is_ok()) {
        findings.push(match example.refusal {
            Some(Refusal { violation, span, is_nil_for_false }) => {
                rules::accepted_example_fails::finding(at(span), &violation, is_nil_for_false)
            }
            None => rules::rejected_example_passes::finding(at(example.span)),
        });
    }
}

/// Returns the location of a JSON pointer in `value`, or of its nearest existing ancestor.
pub(super) fn span_at(value: &Json, pointer: &str) -> Span {
    value_at(value, pointer).span
}

fn value_at<'j>(value: &'j Json, pointer: &str) -> &'j Json {
    let mut value = value;
    for step in pointer::steps(pointer) {
        let Some(inside) = enter(value, &step) else { break };
        value = inside.value();
    }
    value
}

fn is_nil(value: &Json) -> bool {
    matches!(&value.kind, JsonKind::Object(members) if members.is_empty())
}

/// Returns whether `value` is nil although the type of the schema does not allow nil. The rule `nil-value` reports
/// this.
fn is_nil_of_other_type(schema: &[Member], value: &Json) -> bool {
    let type_name =
        schema.iter().find(|member| member.key == "type").and_then(|member| member.value.as_str());
    is_nil(value) && type_name.is_some_and(|name| name != "object" && name != "null")
}
