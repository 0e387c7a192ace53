//! Redacts secrets in recordings.
//!
//! Secrets are defined by their value (a password in an environment variable of a tool) or by a pattern (set by the
//! user, or built in, such as `Authorization:`). Each secret is replaced by a mark, `[redacted-1]`, that is the same
//! throughout the recording, so that different secrets remain distinct. In a comparison, a mark equals any text, so a
//! replay does not need the secrets.
//!
//! A secret with a known value is found in every form of [`SecretForms`]. A pattern is matched against texts. A text
//! that is itself JSON is matched in its JSON form.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, Mutex};

use deftool_process::lock;
use regex_automata::meta::{BuildError, Regex};
use regex_automata::util::captures::Captures;
use serde_json::{Map, Value};

use super::forms::SecretForms;

/// Minimum length of a secret, in bytes. Shorter values match ordinary words.
const MIN_LITERAL: usize = 6;
/// Maximum length of a value that is searched with the name of its member, in bytes.
const MAX_NAMED: usize = 1024;
/// Maximum number of numbered marks.
const MAX_MARKS: usize = 10_000;

/// Credentials in headers and URLs, also within other text. The first matching group is redacted.
static CREDENTIALS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CREDENTIALS_PATTERN).ok());

const CREDENTIALS_PATTERN: &str = r#"(?ix)
    \b (?: (?:proxy-)?authorization | (?:x-)?(?:goog-)?api-key | x-auth-token ) ["']? \s* [:=] \s* ["']?
        (?: (?:bearer|basic|token) \s+ )? ([a-z0-9+/=_.~%-]{8,})
    | \b bearer \s+ ([a-z0-9+/=_.~-]{20,})
    | :// [^/\s:@"'\\]* : ([^/\s@"'\\]+) @
    | [?&] (?: api[-_]?key | access[-_]?token | auth | key | password | secret | sig | signature | token ) = ([^&\s"'\\\#]{6,})
"#;

/// The ends of the names with which a match of [`CREDENTIALS_PATTERN`] can begin, in lower case.
const CREDENTIAL_NAMES: [&str; 3] = ["authorization", "api-key", "x-auth-token"];

/// Whether a match of [`CREDENTIALS_PATTERN`] can begin with the name of a member.
fn names_credential(name: &str) -> bool {
    let end = |word: &str| name.len().checked_sub(word.len()).and_then(|start| name.get(start..));
    CREDENTIAL_NAMES.iter().any(|word| end(word).is_some_and(|end| end.eq_ignore_ascii_case(word)))
}

/// A word after which a match of [`CREDENTIALS_PATTERN`] may continue.
static OPENING: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(OPENING_PATTERN).ok());

const OPENING_PATTERN: &str =
    r#"(?i)(?:authorization|api-key|x-auth-token|bearer|basic|token)["':=]*$|^["':=]*$"#;

/// Words in the names of variables with secret values.
const SECRET_WORDS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "PRIVATE"];

/// Whether the name of a variable suggests a secret: `GITHUB_TOKEN`, not `HOME`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// The secrets of a user, without the API key.
#[derive(Clone, Default)]
pub struct Secrets {
    literals: Vec<SecretForms>,
    patterns: Vec<Regex>,
}

/// Does not print secrets.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { literals, patterns } = self;
        f.debug_struct("Secrets")
            .field("literals", &literals.len())
            .field("patterns", &patterns.len())
            .finish()
    }
}

impl Secrets {
    /// Adds a secret by its value. Values of fewer than six bytes are ignored.
    pub fn add_value(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= MIN_LITERAL {
            self.literals.push(SecretForms::new(secret));
        }
    }

    /// Adds secrets by a regular expression. If it has groups, the first matching group is the secret.
    ///
    /// # Errors
    /// When the regular expression is invalid or matches the empty string, as a clause.
    pub fn add_pattern(&mut self, pattern: &str) -> Result<(), String> {
        let regex = Regex::new(pattern)
            .map_err(|error| format!("invalid regular expression `{pattern}`: {}", regex_error(&error)))?;
        if regex.is_match("") {
            return Err(format!("regular expression `{pattern}` matches the empty string"));
        }
        self.patterns.push(regex);
        Ok(())
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.literals.is_empty() && self.patterns.is_empty()
    }
}

/// Returns the cause of a regex error as a clause: the last line of the parser's message.
fn regex_error(error: &BuildError) -> String {
    let message = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    let last = message.trim().lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Replaces secrets in texts and values, and assigns their marks.
pub struct Mask {
    secrets: Secrets,
    marks: Mutex<HashMap<Vec<u8>, usize>>,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

/// The position of a secret, and its mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The position in bytes.
    pub range: Range<usize>,
    /// The text that replaces the secret.
    pub mark: String,
}

impl Mask {
    /// Creates a mask without assigned marks.
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, marks: Mutex::default() }
    }

    /// Whether there are user secrets, which may be split over several chunks of a reply.
    pub fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// Returns the length of the prefix of `text` that can be redacted without the text that follows: no secret starts
    /// in this prefix and ends after it. `from`: earlier calls returned 0 for the text before this offset.
    pub fn redactable_prefix(&self, text: &str, from: usize) -> usize {
        // A user's secret may contain any text.
        let (false, Some(opening)) = (self.has_secrets(), OPENING.as_ref()) else { return 0 };
        let new = text.get(from..).unwrap_or_default();
        let blanks = new.char_indices().rev().filter(|(_, c)| c.is_whitespace());
        let mut ends = blanks.map(|(at, _)| from + at);
        let closes = |end: &usize| {
            let before = text.get(..*end).unwrap_or_default();
            before.rsplit(char::is_whitespace).next().is_some_and(|word| !opening.is_match(word))
        };
        ends.find(closes).unwrap_or(0)
    }

    /// Returns all secrets in `text`, in order, without overlaps.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Hit> {
        let mut found: Vec<(Range<usize>, Option<usize>)> = Vec::new();
        self.find_values(text, &mut found);
        self.find_patterns(text, &mut found);
        self.hits(text, found)
    }

    /// Returns only secrets with a known value. A pattern might match JSON syntax.
    pub(crate) fn find_known(&self, text: &[u8]) -> Vec<Hit> {
        let mut found = Vec::new();
        self.find_values(text, &mut found);
        self.hits(text, found)
    }

    fn find_values(&self, text: &[u8], found: &mut Vec<(Range<usize>, Option<usize>)>) {
        for (number, secret) in self.secrets.literals.iter().enumerate() {
            let at = |at| secret.match_at(text, at).end.map(|end| (at..end, Some(number)));
            found.extend((0..text.len()).filter_map(at));
        }
    }

    fn find_patterns(&self, text: &[u8], found: &mut Vec<(Range<usize>, Option<usize>)>) {
        for pattern in self.secrets.patterns.iter().chain(CREDENTIALS.as_ref()) {
            find_pattern(pattern, text, found);
        }
    }

    fn hits(&self, text: &[u8], mut found: Vec<(Range<usize>, Option<usize>)>) -> Vec<Hit> {
        found.retain(|(range, _)| !range.is_empty());
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut merged: Vec<(Range<usize>, Option<usize>)> = Vec::new();
        for (range, number) in found {
            match merged.last_mut() {
                // Overlapping secrets are merged: the rest of a secret is also secret.
                Some((last, _)) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push((range, number)),
            }
        }
        let mut marks = lock(&self.marks);
        let hits = merged.into_iter().map(|(range, number)| {
            // All forms of a known value are one secret.
            let known = number.and_then(|number| self.secrets.literals.get(number));
            let bytes = text.get(range.clone()).unwrap_or_default();
            let secret = known.map_or(bytes, SecretForms::secret);
            Hit { range, mark: mark(&mut marks, secret) }
        });
        hits.collect()
    }

    /// Returns `text` without secrets.
    pub fn text(&self, text: &str) -> String {
        let hits = self.find(text.as_bytes());
        if hits.is_empty() {
            text.to_owned()
        } else {
            String::from_utf8_lossy(&replace(text.as_bytes(), &hits)).into_owned()
        }
    }

    /// Like [`Mask::text`], for bytes.
    pub(crate) fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let hits = self.find(&bytes);
        if hits.is_empty() { bytes } else { replace(&bytes, &hits) }
    }

    /// Redacts all strings, member names and numbers of a value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.in_place(text),
            Value::Number(number) => {
                let text = number.to_string();
                if !self.find(text.as_bytes()).is_empty() {
                    *value = Value::String(self.text(&text));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                for (name, member) in &mut *members {
                    self.value(member);
                    self.named(name, member);
                }
                if members.keys().any(|key| !self.find(key.as_bytes()).is_empty()) {
                    let renamed = std::mem::take(members).into_iter();
                    *members = renamed.map(|(key, value)| (self.text(&key), value)).collect::<Map<_, _>>();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Redacts what a pattern that includes the name of a member finds in its value. Searches the JSON text of the member.
    fn named(&self, name: &str, value: &mut Value) {
        let is_searched = match &*value {
            Value::String(text) => text.len() <= MAX_NAMED,
            Value::Number(_) => true,
            _ => false,
        };
        let built_in = CREDENTIALS.as_ref().filter(|_| names_credential(name));
        let patterns = self.secrets.patterns.iter().chain(built_in);
        if !is_searched || patterns.clone().next().is_none() {
            return;
        }
        for separator in [": ", ":"] {
            let name = format!("{}{separator}", Value::from(name));
            let text = format!("{name}{value}");
            let mut found = Vec::new();
            for pattern in patterns.clone() {
                find_pattern(pattern, text.as_bytes(), &mut found);
            }
            found.retain(|(range, _)| range.end > name.len());
            let hits = self.hits(text.as_bytes(), found);
            let Some(Hit { range, mark }) = hits.first() else { continue };
            let masked = replace(text.as_bytes(), &hits);
            // What is left may not be a value: a match may contain a quotation mark, or be a number.
            let rest = masked.get(name.len()..).filter(|_| range.start >= name.len());
            let rest = rest.and_then(|rest| serde_json::from_slice(rest).ok());
            *value = rest.unwrap_or_else(|| Value::from(mark.as_str()));
        }
    }

    /// Replaces the secrets in a text.
    pub fn in_place(&self, text: &mut String) {
        let hits = self.find(text.as_bytes());
        if !hits.is_empty() {
            *text = String::from_utf8_lossy(&replace(text.as_bytes(), &hits)).into_owned();
        }
    }
}

/// Replaces each hit in `text` with its mark.
pub(crate) fn replace(text: &[u8], hits: &[Hit]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for Hit { range, mark } in hits {
        out.extend_from_slice(text.get(at..range.start).unwrap_or_default());
        out.extend_from_slice(mark.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    out
}

fn mark(marks: &mut HashMap<Vec<u8>, usize>, secret: &[u8]) -> String {
    // Existing marks are not changed.
    if let Ok(text) = std::str::from_utf8(secret)
        && is_placeholder(text)
    {
        return text.to_owned();
    }
    let next = marks.len() + 1;
    if !marks.contains_key(secret) && next > MAX_MARKS {
        return String::from("[redacted]");
    }
    let number = marks.entry(secret.to_vec()).or_insert(next);
    format!("[redacted-{number}]")
}

fn find_pattern(pattern: &Regex, text: &[u8], found: &mut Vec<(Range<usize>, Option<usize>)>) {
    if pattern.captures_len() == 1 {
        found.extend(pattern.find_iter(text).map(|found| (found.range(), None)));
        return;
    }
    let secret = |captures: &Captures| {
        let group = (1..captures.group_len()).find_map(|group| captures.get_group(group));
        group.or_else(|| captures.get_match().map(|found| found.span())).map(|span| span.range())
    };
    found.extend(pattern.captures_iter(text).filter_map(|captures| Some((secret(&captures)?, None))));
}

/// Returns the positions of marks in `text`.
fn marks_in(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = memchr::memmem::find_iter(text.as_bytes(), b"[redacted");
    starts.filter_map(|start| {
        let rest = text.get(start + "[redacted".len()..)?;
        let digits =
            rest.strip_prefix('-').map_or(0, |rest| 1 + rest.bytes().take_while(u8::is_ascii_digit).count());
        let end = start + "[redacted".len() + digits;
        (text.as_bytes().get(end) == Some(&b']') && digits != 1).then_some(start..end + 1)
    })
}

/// Whether `text` is exactly one mark.
pub(crate) fn is_placeholder(text: &str) -> bool {
    text.starts_with("[redacted") && marks_in(text).next() == Some(0..text.len())
}

/// Whether `value` contains a mark.
pub fn holds_redacted(value: &Value) -> bool {
    match value {
        Value::String(text) => marks_in(text).next().is_some(),
        Value::Array(items) => items.iter().any(holds_redacted),
        Value::Object(members) => {
            members.iter().any(|(key, member)| marks_in(key).next().is_some() || holds_redacted(member))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether `now` equals the recorded text. A mark equals any text.
pub(crate) fn is_same_text(recorded: &str, now: &str) -> bool {
    if recorded == now {
        return true;
    }
    let mut at = 0;
    let mut rest = now;
    let mut is_first = true;
    for mark in marks_in(recorded) {
        let piece = recorded.get(at..mark.start).unwrap_or_default();
        let found = if std::mem::take(&mut is_first) {
            rest.starts_with(piece).then_some(0)
        } else {
            memchr::memmem::find(rest.as_bytes(), piece.as_bytes())
        };
        let Some(found) = found else { return false };
        rest = rest.get(found + piece.len()..).unwrap_or_default();
        at = mark.end;
    }
    !is_first && rest.ends_with(recorded.get(at..).unwrap_or_default())
}

/// Creates a mask of these values and patterns, for tests.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) fn mask(values: &[&str], patterns: &[&str]) -> Mask {
    let mut secrets = Secrets::default();
    for value in values {
        secrets.add_value(value);
    }
    for pattern in patterns {
        secrets.add_pattern(pattern).unwrap();
    }
    Mask::new(secrets)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_secret_has_the_same_mark_in_every_form() {
        let mask = mask(&["hunter/2\"x", "other-secret"], &[]);
        let text =
            r#"a hunter/2"x b hunter/2\"x c hunter\/2"x d hunter%2F2%22x e other-secret f hunter/2\\\"x"#;
        let marked =
            "a [redacted-1] b [redacted-1] c [redacted-1] d [redacted-1] e [redacted-2] f [redacted-1]";
        assert_eq!(mask.text(text), marked);
        // In base64, after any prefix: `user:hunter/2"x`.
        for coded in ["aHVudGVyLzIieA==", "dTpodW50ZXIvMiJ4", "dXNlcjpodW50ZXIvMiJ4"] {
            let left = mask.text(coded);
            assert!(left.contains("[redacted-1]") && left.len() < coded.len() + 4, "{coded}: {left}");
        }
        assert_eq!(mask.text(marked), marked);
    }

    #[test]
    fn a_pattern_redacts_its_group_or_all_of_it() {
        let mask = mask(&[], &[r"ghp_[0-9a-z]{8}", r#""pin": ?"?(\d+)"#]);
        assert_eq!(
            mask.text(r#"ghp_01234567 {"pin": 9876} ghp_01234568 ghp_01234567"#),
            r#"[redacted-1] {"pin": [redacted-2]} [redacted-3] [redacted-1]"#
        );
        for (bad, why) in [
            ("(", "invalid regular expression `(`: unclosed group"),
            ("[a", "unclosed character class"),
            ("a{2,1}", "invalid repetition count range"),
            ("(?:a{1000}){1000}", "invalid regular expression"),
            ("a*", "matches the empty string"),
        ] {
            let error = Secrets::default().add_pattern(bad).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn credentials_are_detected_by_the_text_before_them() {
        let mask = mask(&[], &[]);
        for (text, marked) in [
            ("Authorization: Bearer abcdefgh1234", "Authorization: Bearer [redacted-1]"),
            (r#"{"authorization": "Basic dXNlcjpwYXNz"}"#, r#"{"authorization": "Basic [redacted-2]"}"#),
            ("curl -H 'X-Api-Key: 0123456789'", "curl -H 'X-Api-Key: [redacted-3]'"),
            (
                "https://me:s3cret@host/x?a=1&api_key=abcdef99#f",
                "https://me:[redacted-4]@host/x?a=1&api_key=[redacted-5]#f",
            ),
            ("Bearer of bad news; authorization: none", "Bearer of bad news; authorization: none"),
            ("at 10:30 mail me@host", "at 10:30 mail me@host"),
        ] {
            assert_eq!(mask.text(text), marked);
        }
    }

    #[test]
    fn credentials_are_found_for_any_chunks_if_the_final_prefix_is_redacted() {
        let credentials = mask(&[], &[]);
        for text in [
            "It says: Authorization: Bearer abcdefgh1234, and ends.",
            "a \"authorization\"  =\n 'basic\n\tdXNlcjpwYXNz' b",
            "the bearer\n\n abcdefghijklmnopqrst is here",
            "X-API-Key : token 0123456789 x-auth-token= 0123456789 c",
            "curl https://me:s3cret@host/x?a=1&api_key=abcdef99#f and more",
            "Bearer bearer Bearer abcdefghijklmnopqrst token",
        ] {
            let whole = credentials.text(text);
            assert!(whole.contains("[redacted-"), "{text}");
            for size in 1..=text.len() {
                let (mut out, mut waiting) = (String::new(), String::new());
                for piece in text.as_bytes().chunks(size) {
                    let from = waiting.len();
                    waiting.push_str(std::str::from_utf8(piece).unwrap());
                    let rest = waiting.split_off(credentials.redactable_prefix(&waiting, from));
                    out.push_str(&credentials.text(&std::mem::replace(&mut waiting, rest)));
                }
                assert_eq!(out + &credentials.text(&waiting), whole, "{text} by {size}");
            }
        }
        // Without user secrets, other words are retained only up to their end.
        assert_eq!(credentials.redactable_prefix("It is thr", 0), 5);
        assert_eq!(credentials.redactable_prefix("a bearer of", 0), 1);
        assert_eq!(mask(&["hunter22"], &[]).redactable_prefix("It is thr", 0), 0);
    }

    #[test]
    fn member_names_and_numbers_are_redacted() {
        let mask = mask(&["12345678", "hunter22"], &[]);
        let mut value = json!({"pin": 12_345_678, "hunter22": ["x hunter22", true], "n": 1});
        mask.value(&mut value);
        assert_eq!(value, json!({"pin": "[redacted-1]", "[redacted-2]": ["x [redacted-2]", true], "n": 1}));
    }

    /// The same pattern finds a member in the text of a reply, and in the value that is parsed from it.
    #[test]
    fn a_pattern_may_include_the_name_of_a_member() {
        let mask = mask(&[], &[r#""pin": "(\d+)""#, r#""code":"?\d+"#, r#""note":\s*"a\\nb (\w+)"#]);
        let mut value = json!({
            "pin": "9876", "pins": "9876", "code": 12, "in": [{"code": "34 5"}], "note": "a\nb c d",
            "Authorization": "Basic dXNlcjpwYXNz", "x-api-key": 123_456_789,
        });
        mask.value(&mut value);
        let expected = json!({
            "pin": "[redacted-1]", "pins": "9876", "code": "[redacted-2]", "in": [{"code": "[redacted-3]"}],
            "note": "a\nb [redacted-4] d", "Authorization": "Basic [redacted-5]", "x-api-key": "[redacted-6]",
        });
        assert_eq!(value, expected);
        mask.value(&mut value);
        assert_eq!(value, expected);
    }

    #[test]
    fn a_mark_equals_any_text() {
        for (recorded, now, same) in [
            ("a", "a", true),
            ("[redacted]", "", true),
            ("a [redacted-1] b [redacted-2]", "a x b y", true),
            ("a [redacted-1] b", "a x c", false),
            ("[redacted-1]a[redacted-1]", "bab", true),
            ("[redacted-1]aa", "a", false),
            ("x [redacted-] y", "x 1 y", false),
            ("x [redacted-1", "x 1", false),
        ] {
            assert_eq!(is_same_text(recorded, now), same, "{recorded} {now}");
        }
        assert!(is_placeholder("[redacted-12]") && !is_placeholder("[redacted-12] "));
        assert!(holds_redacted(&json!({"x": ["a [redacted] b"]})) && !holds_redacted(&json!("[redact]")));
    }

    #[test]
    fn secret_variables_are_detected_by_name() {
        for (name, secret) in
            [("GITHUB_TOKEN", true), ("db_password", true), ("HOME", false), ("LANG", false)]
        {
            assert_eq!(is_secret_name(name), secret, "{name}");
        }
    }
}
