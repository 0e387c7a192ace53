//! Checks the targets of `$ref` in a tool, without a validator.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::Value;

use super::cycles::ReferenceCycles;
use super::pointer::{escape, of_reference, to_reference};
use super::rules::unresolved_reference;
use super::walk::{schemas_of, values_in};
use crate::diagnostic::Diagnostic;
use crate::spec::{Argument, Tool};
use crate::text::Location;

/// Reports references that have no target, leave the tool, or point into a cycle. `parameters` is the schema as sent.
pub(super) fn check(tool: &Tool, parameters: &Value, findings: &mut Vec<Diagnostic>) {
    let references = References { parameters, cycles: OnceCell::new(), anchors: OnceCell::new() };
    for (argument, schema) in schemas_of(tool) {
        for member in schema.iter().filter(|member| member.key == "$ref") {
            let at = Location { source: tool.source, span: member.value.span };
            let target = member.value.as_str();
            findings.extend(target.and_then(|target| references.check(at, argument, target)));
        }
    }
}

struct References<'v> {
    parameters: &'v Value,
    cycles: OnceCell<ReferenceCycles>,
    anchors: OnceCell<HashSet<&'v str>>,
}

impl References<'_> {
    fn check(&self, at: Location, argument: &Argument, target: &str) -> Option<Diagnostic> {
        let Some(name) = target.strip_prefix('#') else {
            return Some(unresolved_reference::finding(at, target, None));
        };
        let Some(pointer) = of_reference(target) else {
            let exists = self.anchors.get_or_init(|| anchors(self.parameters)).contains(name);
            return (!exists).then(|| unresolved_reference::finding(at, target, None));
        };
        let Some(found) = self.parameters.pointer(&pointer) else {
            let inside = format!("/properties/{}{pointer}", escape(&argument.name.value));
            let found = self.parameters.pointer(&inside).map(|_| to_reference(&inside));
            return Some(unresolved_reference::finding(at, target, found.as_deref()));
        };
        let is_cyclic = self.cycles.get_or_init(|| ReferenceCycles::of(self.parameters)).contains(found);
        is_cyclic.then(|| unresolved_reference::cyclic(at, target))
    }
}

/// Returns every `$anchor` in a schema.
fn anchors(schema: &Value) -> HashSet<&str> {
    values_in(schema).filter_map(|value| value.get("$anchor")?.as_str()).collect()
}
