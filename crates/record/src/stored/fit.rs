use serde_json::Value;

/// Maximum nesting. Deeper values are written as JSON text, because a reader would reject the line.
const MAX_DEPTH: usize = 100;

/// Replaces values that are nested too deeply with their JSON text.
pub(crate) fn fit(value: &mut Value) {
    fit_below(value, MAX_DEPTH);
}

fn fit_below(value: &mut Value, left: usize) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(_) | Value::Object(_) if left == 0 => *value = Value::String(value.to_string()),
        Value::Array(items) => items.iter_mut().for_each(|item| fit_below(item, left - 1)),
        Value::Object(members) => members.values_mut().for_each(|member| fit_below(member, left - 1)),
    }
}
