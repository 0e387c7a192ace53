//! Findings for what a target drops, weakens or rejects in a tool, each at the location of the keyword.
//!
//! One finding per keyword: nothing inside a schema that is rejected, dropped or ignored is reported again.

use serde_json::Value;

use super::limitation::ToolLimitation;
use super::model::{Target, description_for};
use super::node::{Parameters, SchemaNode};
use super::openai::emit_parameters;
use super::support::{Occurrence, Subject, SupportEntry, SupportLevel};
use crate::diagnostic::Diagnostic;
use crate::schema::locate::locate;
use crate::schema::pointer::of_reference;
use crate::schema::rules;
use crate::schema::walk::values_in;
use crate::spec::Tool;
use crate::spec::keywords::{self, is_annotation};
use crate::text::Span;

/// A keyword or name in a schema that a target does not fully support.
#[derive(Debug)]
pub struct Limitation {
    /// The support entry that applies; its level is not full support.
    pub support: &'static SupportEntry,
    /// JSON pointer into the parameters.
    pub pointer: String,
    /// The keyword or the name; empty for a schema as a whole.
    pub word: String,
}

/// Returns what `target` drops, weakens or rejects in a parameters schema in its `openai` form. Includes keywords that
/// the compiler added.
pub fn limitations(target: Target, parameters: &Value) -> Vec<Limitation> {
    let mut walk = Walk { target, references: references(parameters), limitations: Vec::new() };
    let parameters = Parameters::new(parameters);
    let root = SchemaNode::root(&parameters);
    for support in target.support_table().iter().filter(|support| matches!(support.subject, Subject::Tool(_)))
    {
        if support.applies(&Occurrence { node: &root, word: "" }) {
            walk.add(support, String::new(), "");
        }
    }
    // At the root only the arguments come from the spec; the compiler adds the rest.
    walk.children(&root, "properties");
    walk.limitations
}

/// Checks `tool` for `target`.
pub fn check_target(target: Target, tool: &Tool) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut find = |support: &'static SupportEntry, span: Span, word: &str| {
        findings.push(finding_for(&ToolLimitation { target, tool, support, span, word: word.to_owned() }));
    };
    let nothing = Parameters::new(&Value::Null);
    for support in target.support_table() {
        match support.subject {
            Subject::ToolName => {
                let name = &tool.name;
                if support.applies(&Occurrence { node: &SchemaNode::root(&nothing), word: &name.value }) {
                    find(support, name.span, &name.value);
                }
            }
            Subject::DescriptionOver(limit) => {
                let (text, span) = description_for(target, tool);
                if text.chars().count() > limit {
                    find(support, span, "description");
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
    for Limitation { support, pointer, word } in limitations(target, &emit_parameters(tool)) {
        let span = match support.subject {
            Subject::Tool(_) => Some(tool.name.span),
            // At the type, where the rules for all APIs also report the schema.
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
        // A keyword that the compiler added has no location in the spec and is not reported.
        if let Some(span) = span {
            find(support, span, &word);
        }
    }
    findings
}

/// Checks `tools` for one request to `target`: each tool alone and all of them together.
pub fn check_tools<'t>(target: Target, tools: impl IntoIterator<Item = &'t Tool>) -> Vec<Diagnostic> {
    let tools: Vec<&Tool> = tools.into_iter().collect();
    let mut findings: Vec<_> = tools.iter().flat_map(|tool| check_target(target, tool)).collect();
    findings.extend(check_count(target, tools));
    findings
}

/// Checks the number of `tools` in one request to `target`. The finding is at the first tool over the limit.
pub fn check_count<'t>(target: Target, tools: impl IntoIterator<Item = &'t Tool>) -> Option<Diagnostic> {
    let (support, limit) = max_tools(target)?;
    let tool = tools.into_iter().nth(limit)?;
    let name = &tool.name;
    Some(finding_for(&ToolLimitation { target, tool, support, span: name.span, word: name.value.clone() }))
}

/// Returns whether `target` accepts any number of tools in one request.
pub fn takes_any_number(target: Target) -> bool {
    max_tools(target).is_none()
}

fn max_tools(target: Target) -> Option<(&'static SupportEntry, usize)> {
    target.support_table().iter().find_map(|support| match support.subject {
        Subject::ToolsOver(limit) => Some((support, limit)),
        Subject::Keywords(_)
        | Subject::OtherKeywords
        | Subject::Schema(_)
        | Subject::Tool(_)
        | Subject::PropertyNames
        | Subject::ToolName
        | Subject::DescriptionOver(_) => None,
    })
}

/// Returns whether `tool` is omitted because `target` is known to reject a request that contains it.
pub(super) fn is_omitted(target: Target, tool: &Tool) -> bool {
    let is_refused = |limitation: &Limitation| limitation.support.level == SupportLevel::Refused;
    target.omits_refused_tools() && limitations(target, &emit_parameters(tool)).iter().any(is_refused)
}

/// Returns the finding for a limitation, of the rule for its subject and level.
fn finding_for(limitation: &ToolLimitation<'_>) -> Diagnostic {
    match (limitation.support.subject, limitation.support.level) {
        (Subject::ToolName | Subject::PropertyNames, _) => rules::name_refused(limitation),
        (Subject::DescriptionOver(limit), _) => rules::description_too_long(limitation, limit),
        (Subject::ToolsOver(limit), _) => rules::too_many_tools(limitation, limit),
        (Subject::Tool(_), SupportLevel::Refused) if limitation.target.omits_refused_tools() => {
            rules::too_large(limitation)
        }
        (_, SupportLevel::Refused) if limitation.target.omits_refused_tools() => {
            rules::refused_by_target(limitation)
        }
        (_, SupportLevel::Refused) => rules::may_be_refused(limitation),
        (_, SupportLevel::Dropped | SupportLevel::Ignored)
            if is_annotation(&limitation.word) || limitation.word == "nullable" =>
        {
            rules::annotation_lost(limitation)
        }
        (_, SupportLevel::Dropped) => rules::dropped_by_target(limitation),
        (_, SupportLevel::Ignored) => rules::ignored_by_target(limitation),
        (_, SupportLevel::Misread) => rules::misread_by_target(limitation),
        (_, SupportLevel::Weakened | SupportLevel::Enforced | SupportLevel::Shown) => {
            rules::weakened_by_target(limitation)
        }
    }
}

struct Walk {
    target: Target,
    /// Targets of the references in the parameters, sorted.
    references: Vec<String>,
    limitations: Vec<Limitation>,
}

impl Walk {
    fn add(&mut self, support: &'static SupportEntry, pointer: String, word: &str) {
        self.limitations.push(Limitation { support, pointer, word: word.to_owned() });
    }

    fn children(&mut self, node: &SchemaNode<'_>, keyword: &str) {
        for child in node.children(keyword) {
            if let Some(name) = child.name {
                match keyword {
                    "properties" => self.name(node, name, &child.node.pointer),
                    // A definition without a reference to it is never read.
                    "$defs" | "definitions" if !self.is_used(&child.node.pointer) => continue,
                    _ => {}
                }
            } else if child.node.schema.is_boolean() && is_boolean_keyword(keyword) {
                continue;
            }
            self.schema(&child.node);
        }
    }

    fn name(&mut self, node: &SchemaNode<'_>, name: &str, pointer: &str) {
        let occurrence = Occurrence { node, word: name };
        let is_about = |support: &&SupportEntry| matches!(support.subject, Subject::PropertyNames);
        let support =
            self.target.support_table().iter().filter(is_about).find(|support| support.applies(&occurrence));
        if let Some(support) = support {
            self.add(support, pointer.to_owned(), name);
        }
    }

    fn schema(&mut self, node: &SchemaNode<'_>) {
        let occurrence = Occurrence { node, word: "" };
        let wholes = self
            .target
            .support_table()
            .iter()
            .filter(|support| matches!(support.subject, Subject::Schema(_)));
        for support in wholes.filter(|support| support.applies(&occurrence)) {
            self.add(support, node.pointer.clone(), "");
            if stops_at(support.level) {
                return;
            }
        }
        for keyword in node.members().into_iter().flat_map(serde_json::Map::keys) {
            // An unknown keyword has its own finding for every target.
            let support =
                self.target.support_for(node, keyword).filter(|_| keywords::find(keyword).is_some());
            if let Some(support) = support
                && !matches!(support.level, SupportLevel::Enforced | SupportLevel::Shown)
            {
                self.add(support, node.pointer_to(keyword), keyword);
            }
            if support.is_some_and(|support| !stops_at(support.level)) {
                self.children(node, keyword);
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

/// Returns whether a boolean under the keyword is a flag instead of a schema.
fn is_boolean_keyword(keyword: &str) -> bool {
    matches!(keyword, "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems")
}

/// Returns whether the target does not look inside a keyword of this level.
fn stops_at(level: SupportLevel) -> bool {
    match level {
        SupportLevel::Misread | SupportLevel::Ignored | SupportLevel::Dropped | SupportLevel::Refused => true,
        SupportLevel::Enforced | SupportLevel::Shown | SupportLevel::Weakened => false,
    }
}

/// Returns the JSON pointers in the references of a schema, sorted.
fn references(schema: &Value) -> Vec<String> {
    let references = values_in(schema).filter_map(|value| value.get("$ref")?.as_str());
    let mut found: Vec<String> = references.filter_map(of_reference).collect();
    found.sort_unstable();
    found
}
