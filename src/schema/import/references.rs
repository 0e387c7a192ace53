//! What a `$ref` refers to, inside the schema that it stands in.

use std::collections::HashMap;

use crate::spec::{Json, JsonKind};

/// The definitions of one schema.
pub(super) struct References<'j> {
    root: &'j Json,
    /// By container and name, so that many references into many definitions stay cheap.
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

    /// What `reference`, such as `#/$defs/Colour`, refers to; `None` for what is not there.
    pub(super) fn find(&self, reference: &str) -> Option<&'j Json> {
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() {
            return Some(self.root);
        }
        let steps: Vec<String> = pointer.strip_prefix('/')?.split('/').map(decode).collect();
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
            found = match &found.kind {
                JsonKind::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                JsonKind::Object(_) => &found.get(step)?.value,
                JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {
                    return None;
                }
            };
        }
        Some(found)
    }
}

/// One step of a JSON pointer in a URI fragment: `%25`, then `~1` and `~0`.
fn decode(step: &str) -> String {
    let mut bytes = Vec::with_capacity(step.len());
    let mut rest = step.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&bytes).replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn steps() {
        for (step, key) in
            [("a", "a"), ("a~1b~0c", "a/b~c"), ("~01", "~1"), ("a%20b%2", "a b%2"), ("%C3%A9%zz", "é%zz")]
        {
            assert_eq!(decode(step), key);
        }
    }
}
