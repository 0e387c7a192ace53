//! Findings about schemas that a validator cannot enforce.

use serde_json::Value;

use super::examples::span_at;
use super::walk::schemas_under;
use super::{ArgumentValidator, SchemaError, cost, ecma, rules};
use crate::diagnostic::Diagnostic;
use crate::spec::keywords::{self, ValueKind};
use crate::spec::{Json, JsonKind, Member};
use crate::text::{Location, SourceId};

/// Checks a schema other than those of arguments, at `location`. Returns its validator, unless it would be too costly.
pub(super) fn check_schema(
    tool: &str,
    location: Location,
    schema: &Json,
    findings: &mut Vec<Diagnostic>,
) -> Option<ArgumentValidator> {
    let value = schema.to_value();
    if let Some(excess) = cost::excess(&value) {
        findings.push(rules::costly_schema::finding(location, &excess));
        return None;
    }
    let (validator, problems) = ArgumentValidator::compile_lenient(tool, value.clone());
    if let JsonKind::Object(members) = &schema.kind {
        check_patterns(location.source, schemas_under(members), findings);
    }
    for problem in &problems {
        let text = value.pointer(&problem.path).and_then(Value::as_str);
        let at = Location { span: span_at(schema, &problem.path), ..location };
        findings.extend(report(at, problem, text, false));
    }
    Some(validator)
}

/// Reports patterns that are not valid in ECMA-262, even if the validator accepts them.
pub(super) fn check_patterns<'t>(
    source: SourceId,
    schemas: impl Iterator<Item = &'t [Member]>,
    findings: &mut Vec<Diagnostic>,
) {
    for member in schemas.flatten().filter(|member| member.key == "pattern") {
        if let Some(problem) = member.value.as_str().and_then(ecma::problem) {
            let location = Location { source, span: member.span() };
            findings.push(rules::invalid_pattern::finding(location, &problem));
        }
    }
}

/// Returns the finding for a validator error, unless another rule already reports it. `text` is the rejected string.
pub(super) fn report(
    location: Location,
    problem: &SchemaError,
    text: Option<&str>,
    has_lost_references: bool,
) -> Option<Diagnostic> {
    // `/properties/x/enum/0`: skip the index to get the keyword.
    let mut steps = problem.path.rsplit('/').skip_while(|step| step.parse::<usize>().is_ok());
    let (last, parent) = (steps.next().unwrap_or_default(), steps.next().unwrap_or_default());
    match keywords::find(last).map(|_| last) {
        Some("pattern") if text.is_some_and(|text| ecma::problem(text).is_none()) => {
            Some(rules::invalid_pattern::unsupported(location))
        }
        Some("dependentRequired") => Some(rules::invalid_schema::finding(location, problem)),
        // All other keyword values were checked during lowering, as were the schemas in a plist.
        Some(_) => None,
        None if has_lost_references
            || keywords::find(parent).is_some_and(|keyword| keyword.value_kind == ValueKind::Named) =>
        {
            None
        }
        None => Some(rules::invalid_schema::finding(location, problem)),
    }
}
