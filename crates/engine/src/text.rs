//! Text for messages.

/// Quotes a word for a shell, if it has characters with a meaning there.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:\\".contains(c);
    if word.is_empty() || !word.chars().all(is_plain) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    String::from(word)
}
