//! The places in a list of tools that is not a file.

use std::sync::Arc;

use super::model::{FindingSink, Purpose};
use super::read::read_json;
use super::recognise::find_list;
use crate::schema::pointer::escape;
use crate::spec::{Json, JsonKind};
use crate::text::{Place, Sources};

/// Returns the places in a list of tools, in source order: each value by the name of its tool and a JSON pointer in it.
pub fn list_places(text: &str) -> Vec<Place> {
    let source = Sources::new().id_ahead(0);
    let (values, _) = read_json(source, text);
    let mut definitions = Vec::new();
    for value in &values {
        find_list(value, &mut definitions, &mut FindingSink::new(source, Purpose::Check));
    }
    let mut places = Vec::new();
    for definition in definitions {
        let json = definition.json;
        let name = ["name", "function"].iter().find_map(|key| json.get(key)).map(|member| &member.value);
        let name = name.and_then(|name| name.as_str().or_else(|| name.get("name")?.value.as_str()));
        let tool = Arc::from(name.unwrap_or_default());
        places.push(Place { span: json.span, tool: Arc::clone(&tool), pointer: String::new() });
        add_places(&tool, json, "", &mut places);
    }
    places
}

fn add_places(tool: &Arc<str>, json: &Json, pointer: &str, places: &mut Vec<Place>) {
    let mut add = |step: &str, span, value| {
        let pointer = format!("{pointer}/{step}");
        places.push(Place { span, tool: Arc::clone(tool), pointer: pointer.clone() });
        add_places(tool, value, &pointer, places);
    };
    match &json.kind {
        JsonKind::Object(members) => {
            for member in members {
                add(&escape(&member.key), member.key_span.to(member.value.span), &member.value);
            }
        }
        JsonKind::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add(&index.to_string(), item.span, item);
            }
        }
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {}
    }
}
