//! Names that model APIs accept: at most 64 letters, digits, `_` and `-`.

use super::hash::fnv1a;

/// Maximum length of a name in a request to a model.
pub const MAX_NAME: usize = 64;

/// Returns `name` with `_` for each character that APIs reject.
pub fn portable(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
}

/// Returns the beginning of a portable name with a hash of `whole`, so that it differs from other names with this beginning.
/// It is the same in every version of deftool.
pub fn distinct(name: &str, whole: &str) -> String {
    let hash = format!("_{:08x}", fnv1a(whole.bytes()) & 0xffff_ffff);
    name.chars().take(MAX_NAME - hash.len()).chain(hash.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset basis of FNV-1a is 0xcbf29ce484222325, and its hash of `a` 0xaf63dc4c8601ec8c.
    #[test]
    fn names_are_portable_and_distinct() {
        assert_eq!(portable("a.b é/c-d_1"), "a_b___c-d_1");
        assert_eq!(distinct("x", ""), "x_84222325");
        assert_eq!(distinct(&"x".repeat(80), "a"), format!("{}_8601ec8c", "x".repeat(55)));
    }
}
