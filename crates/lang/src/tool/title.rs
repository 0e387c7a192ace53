//! A call on one line, for people.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use crate::text::{cut, exact};

/// Returns a call on one line, as in `find words: "a", limit: 5`, of at most `limit` characters. A person may decide whether
/// it runs, so the text has an escape for each character that cannot be seen or told apart.
pub fn call_title(name: &str, arguments: &Value, limit: usize) -> String {
    cut(&exact(&cut(&CallTitle { name, arguments }, limit)), limit)
}

struct CallTitle<'c> {
    name: &'c str,
    arguments: &'c Value,
}

impl Display for CallTitle<'_> {
    fn fmt(&self, title: &mut Formatter<'_>) -> fmt::Result {
        title.write_str(self.name)?;
        match self.arguments {
            Value::Null => Ok(()),
            Value::Object(arguments) => {
                for (index, (name, value)) in arguments.iter().enumerate() {
                    title.write_str(if index == 0 { " " } else { ", " })?;
                    write_name(name, title)?;
                    write!(title, ": {value}")?;
                }
                Ok(())
            }
            // Arguments that could not be read.
            Value::String(text) => write!(title, " {text}"),
            other => write!(title, " {other}"),
        }
    }
}

/// Writes the name of an argument, with quotation marks if it is not a word.
fn write_name(name: &str, title: &mut Formatter<'_>) -> fmt::Result {
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if is_word { title.write_str(name) } else { write!(title, "{}", Value::from(name)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_shown_on_one_line() {
        for (arguments, limit, shown) in [
            (json!({}), 99, "find"),
            (json!(null), 99, "find"),
            (json!({"words": "a\nb", "in": ["x"]}), 99, r#"find words: "a\nb", in: ["x"]"#),
            (json!({"a: b, c": 1, "": 2}), 99, r#"find "a: b, c": 1, "": 2"#),
            (json!({"a": "\u{202e}"}), 99, r#"find a: "\u{202e}""#),
            (json!({"a": "\u{202e}"}), 12, r#"find a: "\u{…"#),
            (json!("{\"a\": "), 99, "find {\"a\": "),
            (json!({"words": "abc"}), 6, "find w…"),
        ] {
            assert_eq!(call_title("find", &arguments, limit), shown);
        }
    }
}
