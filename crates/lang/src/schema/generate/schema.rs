//! Access to the keywords of a JSON Schema.

use serde_json::Value;

/// Follows the `$ref` of `schema` inside `root`, up to 32 references.
pub(super) fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    for _ in 0..32 {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else { return schema };
        let Some(pointer) = target.strip_prefix('#') else { return schema };
        match root.pointer(pointer) {
            Some(found) => schema = found,
            None => return schema,
        }
    }
    schema
}

/// Returns the type names in `type`.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(word)) => vec![word.as_str()],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// Returns the value of a count keyword such as `minLength`.
pub(super) fn count(schema: &Value, key: &str) -> Option<usize> {
    let number = schema.get(key)?;
    let whole = number.as_u64().and_then(|count| usize::try_from(count).ok());
    // 3.0 is also a valid count. A cast from float saturates.
    #[allow(clippy::cast_sign_loss)]
    whole.or_else(|| {
        let number = number.as_f64().filter(|count| count.fract() == 0.0 && *count >= 0.0);
        number.map(|count| count as usize)
    })
}
