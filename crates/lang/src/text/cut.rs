//! The beginning of a text that may be long.

use std::fmt::{self, Display, Write};

/// Returns a value as text of at most `limit` characters, followed by `…` if there are more, which are not formatted.
pub fn cut(value: &(impl Display + ?Sized), limit: usize) -> String {
    let mut start = Start { text: String::new(), left: limit };
    // The error: there is more.
    if write!(start, "{value}").is_err() {
        start.text.push('…');
    }
    start.text
}

struct Start {
    text: String,
    /// The number of characters that still fit.
    left: usize,
}

impl fmt::Write for Start {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        match more.char_indices().nth(self.left) {
            Some((end, _)) => {
                self.text.push_str(more.get(..end).unwrap_or_default());
                self.left = 0;
                Err(fmt::Error)
            }
            None => {
                self.text.push_str(more);
                self.left -= more.chars().count();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_cut_after_characters() {
        for (text, limit, shown) in
            [("", 0, ""), ("é", 0, "…"), ("éa", 1, "é…"), ("éa", 2, "éa"), ("éa", 9, "éa")]
        {
            assert_eq!(cut(text, limit), shown);
        }
        assert_eq!(cut(&json!({"a": ["xyz", 1]}), 9), r#"{"a":["xy…"#);
        assert_eq!(cut(&json!({"a": [1]}), usize::MAX), r#"{"a":[1]}"#);
    }
}
