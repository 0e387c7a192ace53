//! Strings that often cause failures: empty, very long, unusual characters, and syntax of patterns, shells and paths.

use super::pattern;
use super::schema::count;
use serde_json::Value;

/// Maximum length in characters if the schema sets no limit.
const LONG: usize = 20_000;
/// Maximum length in characters if the schema sets a limit.
const LONGEST: usize = 200_000;

const ODD: [&str; 44] = [
    "",
    " ",
    "a",
    "0",
    "-1",
    "1e400",
    "NaN",
    "null",
    "true",
    "nil",
    "\u{0}",
    "a\u{0}b",
    "\n",
    "\r\n",
    "a\nb\n",
    "\t",
    "\u{1b}[31m",
    "\u{7f}",
    "é",
    "e\u{301}",
    "a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}",
    "שלום",
    "\u{202e}abc\u{202c}",
    "日本語",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "ǅ",
    "ß",
    "İ",
    "\u{feff}",
    "\u{d7ff}\u{e000}",
    "\u{ffff}",
    "\u{fffd}",
    "\u{10ffff}",
    "%",
    "%d%s%n",
    "[a",
    "(",
    "a%b",
    "../../etc/passwd",
    "/",
    "--help",
    "'; \"$(x)`",
    "\\",
];

/// Valid samples for each format.
const FORMATS: [(&str, &[&str]); 19] = [
    ("date", &["2024-02-29", "0001-01-01", "9999-12-31", "1969-12-31"]),
    (
        "date-time",
        &["2024-02-29T23:59:59Z", "1970-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999999-12:00"],
    ),
    ("time", &["00:00:00Z", "23:59:59.999Z", "12:30:00+01:00"]),
    ("duration", &["P1D", "PT0S", "P1Y2M3DT4H5M6S", "P52W"]),
    ("email", &["a@b.co", "first.last+tag@example.org", "x@[127.0.0.1]"]),
    ("idn-email", &["a@b.co", "用户@例子.广告"]),
    ("hostname", &["a", "example.org", "xn--nxasmq6b.example", "127.0.0.1"]),
    ("idn-hostname", &["example.org", "例子.广告"]),
    ("ipv4", &["0.0.0.0", "255.255.255.255", "127.0.0.1"]),
    ("ipv6", &["::", "::1", "2001:db8::ff00:42:8329", "::ffff:192.0.2.1"]),
    ("uri", &["http://a", "https://user@example.org:8080/p?q=%20#f", "urn:x:y", "file:///etc/passwd"]),
    ("uri-reference", &["", "../x", "https://example.org", "#f"]),
    ("iri", &["http://例子.广告/é"]),
    ("iri-reference", &["é", "http://例子.广告/é"]),
    ("uuid", &["00000000-0000-0000-0000-000000000000", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"]),
    ("uri-template", &["http://a/{x}", "{x}"]),
    ("json-pointer", &["", "/a~0b/0"]),
    ("relative-json-pointer", &["0", "1/a"]),
    ("regex", &["a", "^[0-9]+$", ""]),
];

/// Generates a string for `schema`, using its length limits, pattern and format.
pub(super) fn text(schema: &Value, random: &mut fastrand::Rng) -> String {
    let least = count(schema, "minLength").unwrap_or(0).min(LONGEST);
    let limit = count(schema, "maxLength");
    if let Some(samples) = samples(schema) {
        return random.choice(samples).copied().unwrap_or_default().to_owned();
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Some(text) = pattern::matching(pattern, random)
    {
        return text;
    }
    let most = limit.unwrap_or(LONG).min(LONGEST).max(least);
    let odd = || ODD.iter().copied().filter(|text| (least..=most).contains(&text.chars().count()));
    match random.u32(..10) {
        0..=4 => {
            let fitting: Vec<&str> = odd().collect();
            match random.choice(&fitting) {
                Some(text) => (*text).to_owned(),
                None => of_length(least, random),
            }
        }
        5 => of_length(least, random),
        // The maximum length: usually ASCII, sometimes wide characters.
        6 => of_length(most, random),
        _ => {
            let length = random.usize(least..=most.min(least.saturating_add(40)));
            of_length(length, random)
        }
    }
}

/// Returns the longest or the shortest string, for the first cases.
pub(super) fn extreme(schema: &Value, random: &mut fastrand::Rng, fullest: bool) -> String {
    let least = count(schema, "minLength").unwrap_or(0).min(LONGEST);
    let most = count(schema, "maxLength").unwrap_or(LONG).min(LONGEST).max(least);
    if samples(schema).is_some() || schema.get("pattern").is_some() {
        return text(schema, random);
    }
    "a".repeat(if fullest { most } else { least })
}

fn samples(schema: &Value) -> Option<&'static [&'static str]> {
    let format = schema.get("format")?.as_str()?;
    FORMATS.iter().find(|(name, _)| *name == format).map(|(_, samples)| *samples)
}

/// Generates a string of `length` characters.
fn of_length(length: usize, random: &mut fastrand::Rng) -> String {
    match random.u32(..4) {
        0 => (0..length).map(|_| random.char(..)).collect(),
        1 => "🦀".repeat(length),
        _ => (0..length).map(|_| char::from(random.u8(b' '..=b'~'))).collect(),
    }
}
