//! `:command`: the program that a tool runs in place of a script, and the words that a call passes to it.
//!
//! `{name}` in a word is a placeholder for the value of an argument, `{name?}` one for the value of an optional argument.
//! `{{` and `}}` are literal braces. There is no shell: a value is never split, and never starts another word.

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use crate::syntax::quoted;
use crate::text::{Span, Spanned};

/// The program that a tool runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCommand {
    /// Span of the value of `:command`.
    pub span: Span,
    /// The program and its arguments. The program has no placeholders.
    pub words: Vec<Spanned<Template>>,
    /// The standard input, if the spec has one.
    pub stdin: Option<CommandInput>,
    /// Whether every value may begin with `-`.
    pub allows_dash: bool,
    /// Whether the output is JSON. Otherwise it is text.
    pub prints_json: bool,
    /// The working directory, if the spec has one.
    pub cwd: Option<String>,
    /// The exit codes of a success; empty: only 0.
    pub ok_codes: Vec<u8>,
}

/// The standard input of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandInput {
    /// All arguments, as one JSON object.
    Json,
    /// Text with placeholders.
    Text(Spanned<Template>),
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template(Vec<Piece>);

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

/// A placeholder for the value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The name of the argument.
    pub name: String,
    /// Whether the word is dropped if the argument is absent.
    pub optional: bool,
}

/// The words and the input of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The standard input.
    pub stdin: Option<String>,
}

/// A value that cannot be a word, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableValue {
    /// The argument.
    pub argument: String,
    /// What is wrong with its value.
    pub problem: &'static str,
}

/// The problem of a value that a program could read as an option.
pub const BEGINS_WITH_DASH: &str = "begins with `-`, which the program could read as an option";

const BEGINS_WITH_SLASH: &str = "begins with `/`, but completes a path";

const LEAVES_FOLDER: &str = "adds a `..` segment to a path";

impl ToolCommand {
    /// Returns the name or path of the program.
    pub fn program(&self) -> &str {
        self.words.first().and_then(|word| word.value.literal()).unwrap_or_default()
    }

    /// Whether the program succeeded if it ended with this exit code.
    pub fn accepts_code(&self, code: i32) -> bool {
        let is_listed = self.ok_codes.iter().any(|listed| i32::from(*listed) == code);
        is_listed || (self.ok_codes.is_empty() && code == 0)
    }

    /// Whether an argument of the program begins with the home folder.
    pub fn names_home(&self) -> bool {
        self.words.iter().skip(1).any(|word| word.value.is_in_home())
    }

    /// Returns the words and the input for a call with valid `arguments`, an object. A string is inserted as it is, any
    /// other value as JSON. An array that is a whole word becomes one word for each element. `home` replaces the `~` of
    /// an argument of the program that begins with `~/` in the spec.
    ///
    /// # Errors
    /// If a value contains a NUL character or begins with `-`, if it completes a path and begins with `/` or has a `..`
    /// segment, or if an array is only a part of a word.
    pub fn fill(&self, arguments: &Value, home: &str) -> Result<FilledCommand, UnusableValue> {
        let mut words = Vec::new();
        let mut allows_dash = self.allows_dash;
        for Spanned { value: template, .. } in &self.words {
            let before = words.len();
            match template.whole().map(|placeholder| arguments.get(&placeholder.name)) {
                Some(Some(Value::Array(items))) => words.extend(items.iter().map(text_of)),
                Some(value) => words.extend(value.map(text_of)),
                None if before > 0 && template.is_in_home() => {
                    let in_home = |word: String| word.replacen('~', home, 1);
                    words.extend(template.fill_word(arguments)?.map(in_home));
                }
                None => words.extend(template.fill_word(arguments)?),
            }
            let added = words.get(before..).unwrap_or_default();
            if let Some(Piece::Placeholder(first)) = template.0.first().filter(|_| !allows_dash)
                && added.iter().any(|word| word.starts_with('-'))
            {
                return Err(first.unusable(BEGINS_WITH_DASH));
            }
            if let Some(placeholder) = template.placeholders().next()
                && added.iter().any(|word| word.contains('\0'))
            {
                return Err(placeholder.unusable("contains a NUL character"));
            }
            allows_dash |= template.literal() == Some("--");
        }
        let stdin = match &self.stdin {
            None => None,
            Some(CommandInput::Json) => Some(arguments.to_string()),
            Some(CommandInput::Text(text)) => text.value.fill(arguments)?.or_else(|| Some(String::new())),
        };
        Ok(FilledCommand { words, stdin })
    }

    /// Returns the templates with their placeholders: the words, then the input.
    pub fn templates(&self) -> impl Iterator<Item = &Spanned<Template>> {
        let input = match &self.stdin {
            Some(CommandInput::Text(text)) => Some(text),
            Some(CommandInput::Json) | None => None,
        };
        self.words.iter().chain(input)
    }
}

/// Formats the command in the syntax of a spec. Different commands have different texts.
impl fmt::Display for ToolCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words.iter().map(|word| quoted(&word.value.to_string())).collect();
        write!(f, "[{}]", words.join(" "))?;
        match &self.stdin {
            None => {}
            Some(CommandInput::Json) => f.write_str(" :stdin json")?,
            Some(CommandInput::Text(text)) => write!(f, " :stdin {}", quoted(&text.value.to_string()))?,
        }
        f.write_str(if self.allows_dash { " :dash t" } else { "" })?;
        if let Some(folder) = &self.cwd {
            write!(f, " :cwd {}", quoted(folder))?;
        }
        if !self.ok_codes.is_empty() {
            let codes: Vec<String> = self.ok_codes.iter().map(u8::to_string).collect();
            write!(f, " :ok-codes [{}]", codes.join(" "))?;
        }
        f.write_str(if self.prints_json { " :returns json" } else { "" })
    }
}

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// If a brace is not part of a placeholder.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                literal.extend(from.chars().next());
                rest = after;
                continue;
            }
            let inside = from.strip_prefix('{').ok_or("`}` without `{`")?;
            let (name, after) = inside.split_once('}').ok_or("`{` without `}`")?;
            let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
            if name.is_empty() || name.contains('{') {
                return Err("`{` without the name of an argument");
            }
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Placeholder(Placeholder { name: name.to_owned(), optional }));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Self(pieces))
    }

    /// Returns the positions of the placeholders of an argument in `text`, the source of a template.
    pub fn find(text: &str, name: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        for piece in Self::parse(text).unwrap_or_default().0 {
            let end = start + piece.to_string().len();
            if matches!(&piece, Piece::Placeholder(placeholder) if placeholder.name == name) {
                found.push(start..end);
            }
            start = end;
        }
        found
    }

    /// Returns the placeholders, in order.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Placeholder(placeholder) => Some(placeholder),
            Piece::Text(_) => None,
        })
    }

    /// Returns the placeholder, if it is the whole text.
    pub(super) fn whole(&self) -> Option<&Placeholder> {
        self.placeholders().next().filter(|_| self.0.len() == 1)
    }

    /// Returns the text before the first placeholder, without escapes.
    pub(super) fn start(&self) -> &str {
        match self.0.first() {
            Some(Piece::Text(text)) => text,
            Some(Piece::Placeholder(_)) | None => "",
        }
    }

    /// Whether the text begins with the home folder: `~` or `~/`.
    fn is_in_home(&self) -> bool {
        self.literal() == Some("~") || self.start().starts_with("~/")
    }

    /// Returns the text without escapes, if it has no placeholders.
    pub(super) fn literal(&self) -> Option<&str> {
        self.placeholders().next().is_none().then(|| self.start())
    }

    /// Returns the text without escapes, with `mark` in place of each placeholder.
    pub(super) fn with_placeholders_as(&self, mark: char) -> String {
        let mut marked = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => marked.push_str(text),
                Piece::Placeholder(_) => marked.push(mark),
            }
        }
        marked
    }

    /// Returns this text with `placeholder` in place of each placeholder called `name`.
    pub(super) fn renamed(&self, name: &str, placeholder: &Placeholder) -> Self {
        let renamed = |piece: &Piece| match piece {
            Piece::Placeholder(found) if found.name == name => Piece::Placeholder(placeholder.clone()),
            Piece::Placeholder(_) | Piece::Text(_) => piece.clone(),
        };
        Self(self.0.iter().map(renamed).collect())
    }

    /// Like [`fill`](Self::fill), for a word. After literal text with `/`, a value must stay below that text.
    fn fill_word(&self, arguments: &Value) -> Result<Option<String>, UnusableValue> {
        let Some(filled) = self.fill(arguments)? else { return Ok(None) };
        let mut start = 0;
        let (mut is_path, mut is_url) = (false, false);
        for piece in &self.0 {
            let rest = filled.get(start..).unwrap_or_default();
            match piece {
                Piece::Text(text) => {
                    start += text.len();
                    is_path |= text.contains('/');
                    is_url |= text.contains("://");
                }
                Piece::Placeholder(placeholder) => {
                    let value = arguments.get(&placeholder.name).map(text_of).unwrap_or_default();
                    if is_path && !is_url && rest.starts_with('/') && !value.is_empty() {
                        return Err(placeholder.unusable(BEGINS_WITH_SLASH));
                    }
                    let range = start..start + value.len();
                    start = range.end;
                    if is_path && has_parent_segment(&filled, range) {
                        return Err(placeholder.unusable(LEAVES_FOLDER));
                    }
                }
            }
        }
        Ok(Some(filled))
    }

    /// Returns the text with values in place of the placeholders, or `None` if a value is absent.
    fn fill(&self, arguments: &Value) -> Result<Option<String>, UnusableValue> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Placeholder(placeholder) => match arguments.get(&placeholder.name) {
                    None => return Ok(None),
                    Some(Value::Array(_)) => {
                        return Err(placeholder.unusable("is an array, which can only be a whole word"));
                    }
                    Some(value) => filled.push_str(&text_of(value)),
                },
            }
        }
        Ok(Some(filled))
    }
}

/// Formats the template as it is written in a spec.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| write!(f, "{piece}"))
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Self::Placeholder(placeholder) => write!(f, "{placeholder}"),
        }
    }
}

impl Placeholder {
    fn unusable(&self, problem: &'static str) -> UnusableValue {
        UnusableValue { argument: self.name.clone(), problem }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}{}}}", self.name, if self.optional { "?" } else { "" })
    }
}

impl fmt::Display for UnusableValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value {}", self.problem)
    }
}

/// Whether a segment of `path` that overlaps or touches `range` is `..`, also as it is written in URLs.
fn has_parent_segment(path: &str, range: Range<usize>) -> bool {
    let is_end = |c: char| matches!(c, '/' | '\\' | '?' | '#');
    let (before, rest) = path.split_at_checked(range.start).unwrap_or_default();
    let start = before.rfind(is_end).map_or(0, |at| at + 1);
    let after = rest.get(range.len()..).unwrap_or_default();
    let end = range.end + after.find(is_end).unwrap_or(after.len());
    let segments = path.get(start..end).unwrap_or_default().split(is_end);
    segments.map(|segment| segment.to_ascii_lowercase().replace("%2e", ".")).any(|segment| segment == "..")
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn command(words: &[&str]) -> ToolCommand {
        let words = words.iter().map(|word| Spanned::new(Template::parse(word).unwrap(), Span::default()));
        ToolCommand { words: words.collect(), ..ToolCommand::default() }
    }

    fn filled(words: &[&str], arguments: &Value) -> Result<Vec<String>, String> {
        let filled = command(words).fill(arguments, "/home/me").map_err(|error| error.to_string())?;
        Ok(filled.words)
    }

    #[test]
    fn braces() {
        for text in ["", "a", "{a}", "{a?}", "{{", "}}{{", "{{a}}", "x{{{a}}}y{b?}", "--max={n}"] {
            assert_eq!(Template::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Template::find(r#""é{{a}}{a}{b}{a?}""#, "a"), [8..11, 14..18]);
        assert_eq!(Template::parse("{{{a}}}").unwrap().fill(&json!({"a": 1})).unwrap().unwrap(), "{1}");
        for text in ["{", "}", "{}", "{?}", "{a", "a}", "{{a}", "{a}}", "{a{b}}", "{\"a\": 1"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_fill_words() {
        let arguments = json!({
            "s": "a b; $(c) *", "n": 1.5, "t": true, "z": null, "o": {"k": [1, "x"]}, "list": ["a", 2, ["b"]], "empty": [],
        });
        for (words, expected) in [
            (&["{s}"][..], &["a b; $(c) *"][..]),
            (&["--n={n}", "{t}", "{z}"], &["--n=1.5", "true", "null"]),
            (&["{o}", "x{o}"], &[r#"{"k":[1,"x"]}"#, r#"x{"k":[1,"x"]}"#]),
            (&["{list}", "{empty}", "y"], &["a", "2", r#"["b"]"#, "y"]),
            (&["{absent?}", "--max={absent?}", "{s}{absent?}", "y"], &["y"]),
            (&["{{s}}"], &["{s}"]),
            (
                &["~/bin/x", "~", "~/{n}", "~x", "-f~/a", "{s}"],
                &["~/bin/x", "/home/me", "/home/me/1.5", "~x", "-f~/a", "a b; $(c) *"],
            ),
        ] {
            assert_eq!(filled(words, &arguments).unwrap(), expected, "{words:?}");
        }
        assert!(filled(&["x{list}"], &arguments).unwrap_err().contains("can only be a whole word"));
    }

    #[test]
    fn values_cannot_become_options() {
        let arguments = json!({"a": "-rf", "list": ["x", "-y"], "n": -1, "e": "", "nul": "a\0b"});
        for words in
            [&["{a}"][..], &["{list}"], &["{n}"], &["{a}.txt"], &["{e}{a}"], &["x--", "{a}"], &["{a}", "--"]]
        {
            assert!(filled(words, &arguments).unwrap_err().contains("begins with `-`"), "{words:?}");
        }
        for words in [&["--", "{a}"][..], &["--", "x", "{list}"], &["--a={a}"], &["./{a}"], &["-{a}"]] {
            assert!(filled(words, &arguments).is_ok(), "{words:?}");
        }
        let dash = ToolCommand { allows_dash: true, ..command(&["{a}"]) };
        assert_eq!(dash.fill(&arguments, "").unwrap().words, ["-rf"]);
        for words in [["{nul}"], ["x{nul}"]] {
            assert!(filled(&words, &arguments).unwrap_err().contains("NUL"));
        }
    }

    #[test]
    fn values_stay_below_literal_paths() {
        let with = |word: &str, a: &str, b: &str| filled(&[word], &json!({"a": a, "b": b}));
        for (word, a, b, expected) in [
            ("notes/{a}", "x/y..z/...", "", "notes/x/y..z/..."),
            ("notes/{a}", "", "", "notes/"),
            ("../{a}", "x", "", "../x"),
            ("notes/../{a}{b}", ".", "x", "notes/../.x"),
            ("{a}/x", "/etc/..", "", "/etc/../x"),
            ("{a}", "../x", "", "../x"),
            ("file.{a}", "/../x", "", "file./../x"),
            ("https://h{a}?q={b}", "/x", "/y", "https://h/x?q=/y"),
            ("https://h/?q={a}", "a..b", "", "https://h/?q=a..b"),
        ] {
            assert_eq!(with(word, a, b).unwrap(), [expected], "{word} {a}");
        }
        for (word, a, b, expected) in [
            ("notes/{a}", "..", "", LEAVES_FOLDER),
            ("notes/{a}", "x/../../y", "", LEAVES_FOLDER),
            ("notes/{a}/y", "x/..", "", LEAVES_FOLDER),
            ("notes/.{a}", ".", "", LEAVES_FOLDER),
            ("notes/{a}.", ".", "", LEAVES_FOLDER),
            ("notes/..{a}", "/x", "", BEGINS_WITH_SLASH),
            ("notes/..{a}", "", "", LEAVES_FOLDER),
            ("notes/{a}{b}", ".", ".", LEAVES_FOLDER),
            ("--out=notes/{a}", "../x", "", LEAVES_FOLDER),
            ("~/{a}", "..\\x", "", LEAVES_FOLDER),
            ("{a}/x/{b}", "..", "..", LEAVES_FOLDER),
            ("https://h/a/{a}", "../b", "", LEAVES_FOLDER),
            ("https://h/a/{a}", "%2E./b", "", LEAVES_FOLDER),
            ("https://h/a/{a}", "..?b", "", LEAVES_FOLDER),
            ("notes/{a}", "/etc/passwd", "", BEGINS_WITH_SLASH),
            ("notes/{a}{b}", "", "/x", BEGINS_WITH_SLASH),
            ("~/{a}", "/x", "", BEGINS_WITH_SLASH),
        ] {
            assert!(with(word, a, b).unwrap_err().contains(expected), "{word} {a} {b}");
        }
    }

    #[test]
    fn input() {
        let arguments = json!({"a": "x\n", "b": [1]});
        let stdin = |input| {
            ToolCommand { stdin: Some(input), ..command(&["cat"]) }.fill(&arguments, "").map(|f| f.stdin)
        };
        let text =
            |text: &str| CommandInput::Text(Spanned::new(Template::parse(text).unwrap(), Span::default()));
        assert_eq!(stdin(CommandInput::Json).unwrap().unwrap(), r#"{"a":"x\n","b":[1]}"#);
        assert_eq!(stdin(text("<{a}>")).unwrap().unwrap(), "<x\n>");
        assert_eq!(stdin(text("{c?}")).unwrap().unwrap(), "");
        assert!(stdin(text("{b}")).is_err());
    }
}
