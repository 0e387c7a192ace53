//! One schema as it stands in a spec: references into definitions written out, Gemini's spelling undone.
//!
//! A spec has no `$defs` beside its arguments. References to the parameters themselves (`#`, `#/properties/…`) and to
//! other documents hold in a spec, too, and are kept.

use super::Told;
use super::gemini::as_json_schema;
use super::references::References;
use crate::schema::rules;
use crate::spec::keywords::{self, Takes, is_annotation};
use crate::spec::{Json, JsonKind, Member};
use crate::text::Span;

/// Written-out schemas are nested no deeper than read ones.
const MAX_DEPTH: usize = 100;

/// What writing out references may make of one tool, in values.
const MAX_WRITTEN_OUT: usize = 50_000;

/// Rewrites the schemas of one tool.
pub(super) struct Rewriter<'j> {
    pub(super) references: References<'j>,
    /// Whether the parameters are themselves what a reference refers to, so that `#/properties/…` leads elsewhere.
    pub(super) is_moved: bool,
    pub(super) is_gemini: bool,
    /// The references that are being written out.
    open: Vec<&'j str>,
    written_out: usize,
    /// One mistake, one finding: a boundless tool is told once.
    is_boundless: bool,
}

impl<'j> Rewriter<'j> {
    pub(super) fn new(root: &'j Json, is_gemini: bool) -> Self {
        Self {
            references: References::new(root),
            is_moved: false,
            is_gemini,
            open: Vec::new(),
            written_out: 0,
            is_boundless: false,
        }
    }

    /// The schema as it stands in a spec.
    pub(super) fn rewrite(&mut self, schema: &'j Json, depth: usize, told: &mut Told) -> Json {
        let JsonKind::Object(members) = &schema.kind else { return schema.clone() };
        Json { span: schema.span, kind: JsonKind::Object(self.rewrite_members(members, depth, told)) }
    }

    /// The members of a schema.
    pub(super) fn rewrite_members(
        &mut self,
        members: &'j [Member],
        depth: usize,
        told: &mut Told,
    ) -> Vec<Member> {
        if !self.open.is_empty() {
            self.written_out += members.iter().map(weigh).sum::<usize>() + 1;
        }
        if depth > MAX_DEPTH || self.written_out > MAX_WRITTEN_OUT {
            self.tell_boundless(members, told);
            return Vec::new();
        }
        let reference = members.iter().find(|member| member.key == "$ref");
        if let Some(reference) = reference
            && let Some(pointer) = reference.value.as_str()
            && self.is_written_out(pointer)
        {
            let others: Vec<&Member> =
                members.iter().filter(|member| member.key != "$ref" && says_something(member)).collect();
            let others = others.into_iter().map(|member| self.rewrite_member(member, depth, told)).collect();
            return self.write_out(pointer, reference.value.span, others, depth, told);
        }
        let mut members: Vec<Member> = members
            .iter()
            .filter(|member| says_something(member))
            .map(|member| self.rewrite_member(member, depth, told))
            .collect();
        if self.is_gemini {
            as_json_schema(&mut members);
        }
        members
    }

    fn rewrite_member(&mut self, member: &'j Member, depth: usize, told: &mut Told) -> Member {
        let span = member.value.span;
        let takes = keywords::takes(&member.key);
        let kind = match &member.value.kind {
            JsonKind::Object(_) if takes == Takes::Schema => return self.inside(member, depth, told),
            JsonKind::Object(named) if takes == Takes::Named => {
                JsonKind::Object(named.iter().map(|one| self.inside(one, depth, told)).collect())
            }
            JsonKind::Array(schemas) if matches!(takes, Takes::Schema | Takes::Schemas) => {
                JsonKind::Array(schemas.iter().map(|schema| self.rewrite(schema, depth + 1, told)).collect())
            }
            kind => kind.clone(),
        };
        Member { key: member.key.clone(), key_span: member.key_span, value: Json { span, kind } }
    }

    fn inside(&mut self, member: &'j Member, depth: usize, told: &mut Told) -> Member {
        let value = self.rewrite(&member.value, depth + 1, told);
        Member { key: member.key.clone(), key_span: member.key_span, value }
    }

    /// Whether a reference leads to what a spec cannot hold.
    fn is_written_out(&self, pointer: &str) -> bool {
        let is_kept = !self.is_moved && (pointer == "#" || pointer.starts_with("#/properties/"));
        pointer.starts_with('#') && !is_kept
    }

    /// What `pointer` refers to, together with what stands beside the reference.
    fn write_out(
        &mut self,
        pointer: &'j str,
        span: Span,
        beside: Vec<Member>,
        depth: usize,
        told: &mut Told,
    ) -> Vec<Member> {
        if self.open.contains(&pointer) {
            let why = "refers to itself, and a spec has no place for definitions to refer to";
            told.tell(rules::import_reference::finding(told.at(span), pointer, why));
            return Vec::new();
        }
        let Some(definition) = self.references.find(pointer) else {
            let why = "refers to nothing in this schema";
            told.tell(rules::import_reference::finding(told.at(span), pointer, why));
            return Vec::new();
        };
        self.open.push(pointer);
        let definition = self.rewrite(definition, depth + 1, told);
        self.open.pop();
        let mut members = match definition.kind {
            JsonKind::Object(members) => members,
            JsonKind::Bool(true) => Vec::new(),
            JsonKind::Null
            | JsonKind::Bool(false)
            | JsonKind::Number(_)
            | JsonKind::String(_)
            | JsonKind::Array(_) => {
                let why = "refers to no schema that a value could fit";
                told.tell(rules::import_reference::finding(told.at(span), pointer, why));
                return Vec::new();
            }
        };
        // What allows and forbids nothing wins over the definition's own.
        if beside.iter().all(|member| is_annotation(&member.key)) {
            for member in beside {
                match members.iter_mut().find(|known| known.key == member.key) {
                    Some(known) => *known = member,
                    None => members.push(member),
                }
            }
            return members;
        }
        // Both hold: neither may take a keyword from the other.
        join(beside, Json { span, kind: JsonKind::Object(members) })
    }

    fn tell_boundless(&mut self, members: &[Member], told: &mut Told) {
        let Some(first) = members.first() else { return };
        if std::mem::replace(&mut self.is_boundless, true) {
            return;
        }
        let (pointer, why) = match self.open.last() {
            Some(pointer) => (*pointer, "becomes boundless when it is written out"),
            None => ("schema", "is nested deeper than any tool's"),
        };
        told.tell(rules::import_reference::finding(told.at(first.key_span), pointer, why));
    }
}

/// Some programs write every keyword that they know, and null for those that are not meant.
fn says_something(member: &Member) -> bool {
    let may_be_null = matches!(member.key.as_str(), "default" | "const" | "example");
    may_be_null || member.value.kind != JsonKind::Null
}

/// `members` and `schema` together.
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

/// The values that a member brings, without those of the schemas in it.
fn weigh(member: &Member) -> usize {
    match &member.value.kind {
        _ if !keywords::takes(&member.key).holds_schemas() => count(&member.value),
        JsonKind::Array(items) => 1 + items.len(),
        JsonKind::Object(members) => 1 + members.len(),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => 1,
    }
}

/// The values in `json`, itself included.
fn count(json: &Json) -> usize {
    match &json.kind {
        JsonKind::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        JsonKind::Object(members) => 1 + members.iter().map(|member| count(&member.value)).sum::<usize>(),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => 1,
    }
}
