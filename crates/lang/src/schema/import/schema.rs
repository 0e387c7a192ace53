//! Rewrites a schema for use in a spec: inlines references to definitions and converts Gemini's spelling.
//!
//! A spec has no `$defs` next to its arguments. References to the parameters (`#`, `#/properties/…`) and external
//! references are also valid in a spec and are kept.

use std::collections::HashMap;

use super::gemini::as_json_schema;
use super::messages;
use super::model::{FindingSink, Purpose};
use crate::schema::pointer::{self, enter, of_reference};
use crate::spec::keywords::{self, ValueKind, is_annotation};
use crate::spec::{Json, JsonKind, Member};
use crate::text::Span;

/// Maximum nesting of inlined schemas; lower than the limit for parsed ones.
const MAX_DEPTH: usize = 100;

/// Maximum number of values per tool that come from inlined references.
const MAX_INLINED: usize = 50_000;

/// Rewrites the schemas of one tool.
pub(super) struct Rewriter<'j> {
    pub(super) references: References<'j>,
    /// Whether the parameters are the target of a reference, so that `#/properties/…` has a different meaning.
    pub(super) is_moved: bool,
    pub(super) is_gemini: bool,
    /// The references being inlined.
    open: Vec<&'j str>,
    inlined: usize,
    /// Whether the tool was already reported as too large; it is reported once.
    is_unbounded: bool,
}

impl<'j> Rewriter<'j> {
    pub(super) fn new(root: &'j Json, is_gemini: bool) -> Self {
        Self {
            references: References::new(root),
            is_moved: false,
            is_gemini,
            open: Vec::new(),
            inlined: 0,
            is_unbounded: false,
        }
    }

    /// Returns the schema for use in a spec.
    pub(super) fn rewrite(&mut self, schema: &'j Json, depth: usize, sink: &mut FindingSink) -> Json {
        let JsonKind::Object(members) = &schema.kind else { return schema.clone() };
        Json { span: schema.span, kind: JsonKind::Object(self.rewrite_members(members, depth, sink)) }
    }

    /// Rewrites the members of a schema.
    pub(super) fn rewrite_members(
        &mut self,
        members: &'j [Member],
        depth: usize,
        sink: &mut FindingSink,
    ) -> Vec<Member> {
        if !self.open.is_empty() {
            self.inlined += members.iter().map(own_size).sum::<usize>() + 1;
        }
        if depth > MAX_DEPTH || self.inlined > MAX_INLINED {
            self.report_unbounded(members, sink);
            let first = members.first().filter(|_| sink.purpose == Purpose::Check);
            return first.map_or_else(Vec::new, |first| any_value(first.key_span, Vec::new()));
        }
        let reference = members.iter().find(|member| member.key == "$ref");
        if let Some(reference) = reference
            && let Some(pointer) = reference.value.as_str()
            && self.is_inlined(pointer)
        {
            let others: Vec<&Member> =
                members.iter().filter(|member| member.key != "$ref" && has_effect(member)).collect();
            let others = others.into_iter().map(|member| self.rewrite_member(member, depth, sink)).collect();
            return self.inline(pointer, reference.value.span, others, depth, sink);
        }
        let mut members: Vec<Member> = members
            .iter()
            .filter(|member| has_effect(member))
            .map(|member| self.rewrite_member(member, depth, sink))
            .collect();
        if self.is_gemini {
            as_json_schema(&mut members);
        }
        members
    }

    fn rewrite_member(&mut self, member: &'j Member, depth: usize, sink: &mut FindingSink) -> Member {
        let span = member.value.span;
        let value_kind = keywords::value_kind(&member.key);
        let kind = match &member.value.kind {
            JsonKind::Object(_) if value_kind == ValueKind::Schema => {
                return self.inside(member, depth, sink);
            }
            JsonKind::Object(named) if value_kind == ValueKind::Named => {
                JsonKind::Object(named.iter().map(|one| self.inside(one, depth, sink)).collect())
            }
            JsonKind::Array(schemas) if matches!(value_kind, ValueKind::Schema | ValueKind::Schemas) => {
                JsonKind::Array(schemas.iter().map(|schema| self.rewrite(schema, depth + 1, sink)).collect())
            }
            kind => kind.clone(),
        };
        Member { key: member.key.clone(), key_span: member.key_span, value: Json { span, kind } }
    }

    fn inside(&mut self, member: &'j Member, depth: usize, sink: &mut FindingSink) -> Member {
        let value = self.rewrite(&member.value, depth + 1, sink);
        Member { key: member.key.clone(), key_span: member.key_span, value }
    }

    /// Returns whether a reference must be inlined because a spec cannot contain its target.
    fn is_inlined(&self, pointer: &str) -> bool {
        let is_kept = !self.is_moved && (pointer == "#" || pointer.starts_with("#/properties/"));
        pointer.starts_with('#') && !is_kept
    }

    /// Returns the target of `pointer`, combined with the keywords next to the reference.
    fn inline(
        &mut self,
        pointer: &'j str,
        span: Span,
        siblings: Vec<Member>,
        depth: usize,
        sink: &mut FindingSink,
    ) -> Vec<Member> {
        if self.open.contains(&pointer) && sink.purpose == Purpose::Check {
            return any_value(span, siblings);
        }
        if self.open.contains(&pointer) {
            let why = "refers to itself, and a spec does not support definitions";
            sink.report(messages::reference(sink.at(span), pointer, why));
            return Vec::new();
        }
        let Some(definition) = self.references.find(pointer) else {
            let why = "has no target in this schema";
            sink.report(messages::reference(sink.at(span), pointer, why));
            return Vec::new();
        };
        self.open.push(pointer);
        let definition = self.rewrite(definition, depth + 1, sink);
        self.open.pop();
        let mut members = match definition.kind {
            JsonKind::Object(members) => members,
            JsonKind::Bool(true) => Vec::new(),
            JsonKind::Null
            | JsonKind::Bool(false)
            | JsonKind::Number(_)
            | JsonKind::String(_)
            | JsonKind::Array(_) => {
                let why = "refers to a schema that accepts no value";
                sink.report(messages::reference(sink.at(span), pointer, why));
                return Vec::new();
            }
        };
        // Annotations next to the reference override those of the definition.
        if siblings.iter().all(|member| is_annotation(&member.key)) {
            for member in siblings {
                match members.iter_mut().find(|known| known.key == member.key) {
                    Some(known) => *known = member,
                    None => members.push(member),
                }
            }
            return members;
        }
        // Both apply, so the keywords must stay separate.
        join(siblings, Json { span, kind: JsonKind::Object(members) })
    }

    fn report_unbounded(&mut self, members: &[Member], sink: &mut FindingSink) {
        let Some(first) = members.first() else { return };
        if std::mem::replace(&mut self.is_unbounded, true) {
            return;
        }
        let (pointer, why) = match self.open.last() {
            Some(pointer) => (*pointer, "becomes too large when it is inlined"),
            None => ("schema", "is nested too deeply"),
        };
        let at = sink.at(first.key_span);
        sink.report(match sink.purpose {
            Purpose::Import => messages::reference(at, pointer, why),
            Purpose::Check => messages::not_checked(at, pointer),
        });
    }
}

/// Returns a schema in place of one that is not inlined, such as the next level of a recursive one: a reference, because
/// its rules are those for a schema whose content stands elsewhere.
fn any_value(span: Span, siblings: Vec<Member>) -> Vec<Member> {
    let kind = JsonKind::String(String::from("#"));
    let reference = Member { key: String::from("$ref"), key_span: span, value: Json { span, kind } };
    let is_text = |member: &Member| matches!(member.key.as_str(), "title" | "description");
    std::iter::once(reference).chain(siblings.into_iter().filter(is_text)).collect()
}

/// Returns whether a member has an effect. Some programs emit every keyword, with null for unset ones.
fn has_effect(member: &Member) -> bool {
    let may_be_null = matches!(member.key.as_str(), "default" | "const" | "example");
    may_be_null || member.value.kind != JsonKind::Null
}

/// Combines `members` and `schema` with `allOf`.
fn join(mut members: Vec<Member>, schema: Json) -> Vec<Member> {
    if let Some(Member { value: Json { kind: JsonKind::Array(all), .. }, .. }) =
        members.iter_mut().find(|member| member.key == "allOf")
    {
        all.push(schema);
        return members;
    }
    let span = schema.span;
    let value = Json { span, kind: JsonKind::Array(vec![schema]) };
    members.push(Member { key: String::from("allOf"), key_span: span, value });
    members
}

/// Returns the number of values in a member, without those in nested schemas.
fn own_size(member: &Member) -> usize {
    match &member.value.kind {
        _ if !keywords::value_kind(&member.key).holds_schemas() => count(&member.value),
        JsonKind::Array(items) => 1 + items.len(),
        JsonKind::Object(members) => 1 + members.len(),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => 1,
    }
}

/// Returns the number of values in `json`, including itself.
fn count(json: &Json) -> usize {
    match &json.kind {
        JsonKind::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        JsonKind::Object(members) => 1 + members.iter().map(|member| count(&member.value)).sum::<usize>(),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => 1,
    }
}

/// Resolves references inside one schema.
pub(super) struct References<'j> {
    root: &'j Json,
    /// Definitions by container and name, for fast lookup.
    definitions: HashMap<(&'j str, &'j str), &'j Json>,
}

impl<'j> References<'j> {
    pub(super) fn new(root: &'j Json) -> Self {
        let mut definitions = HashMap::new();
        for container in ["$defs", "definitions"] {
            if let Some(member) = root.get(container)
                && let JsonKind::Object(named) = &member.value.kind
            {
                definitions
                    .extend(named.iter().map(|one| ((member.key.as_str(), one.key.as_str()), &one.value)));
            }
        }
        Self { root, definitions }
    }

    /// Returns the target of `reference`, such as `#/$defs/Colour`; `None` if it does not exist.
    pub(super) fn find(&self, reference: &str) -> Option<&'j Json> {
        let steps: Vec<String> = pointer::steps(&of_reference(reference)?).collect();
        let (mut found, rest) = match steps.as_slice() {
            [container, name, rest @ ..] => {
                match self.definitions.get(&(container.as_str(), name.as_str())) {
                    Some(definition) => (*definition, rest),
                    None => (self.root, steps.as_slice()),
                }
            }
            _ => (self.root, steps.as_slice()),
        };
        for step in rest {
            found = enter(found, step)?.value();
        }
        Some(found)
    }
}
