//! Modules: the files in `scripts/lib` that scripts share through `require`.
//!
//! `require` takes a literal path without an extension, relative to the file that contains the call, as in Luau's own
//! tools: `require("./lib/dates")` in `scripts/plan.lua` loads `scripts/lib/dates.lua`. So the modules of a script are
//! known without running it: [`find_requires`] finds them in the source, and the layer that reads the project loads
//! them. A script and its modules are reloaded as one unit. [`vm`](crate::vm) runs them.
//!
//! Source: Luau's rules for require by string (<https://luau.org/require>, 2026), without aliases.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::compile::Compiled;
use super::contract::{Contract, LoadError};
use crate::permission::normalize;

/// Maximum number of modules of a script, including those that its modules require.
pub const MAX_MODULES: usize = 200;

/// A file that scripts require. Immutable and shared.
pub struct Module {
    /// The file name in messages and tracebacks, as in `scripts/lib/dates.lua`.
    pub file: String,
    /// The source.
    pub source: Arc<[u8]>,
    compiled: Compiled,
}

impl Module {
    /// Creates the module of `file`.
    pub fn new(file: impl Into<String>, source: impl AsRef<[u8]>) -> Self {
        Self { file: file.into(), source: Arc::from(source.as_ref()), compiled: Compiled::default() }
    }

    /// Compiles and analyses the module once, without running it. A module that returns nothing cannot be required.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn contract(&self) -> Result<&Contract, &LoadError> {
        self.compiled.contract(&self.file, &self.source)
    }

    /// Returns the path that `require` uses: the file without its extension.
    pub fn path(&self) -> &str {
        without_extension(&self.file)
    }

    pub(crate) fn compiled(&self) -> Result<Arc<[u8]>, LoadError> {
        self.compiled.bytecode(&self.file, &self.source)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A use of `require` in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Require {
    /// The literal path. `None`: cannot be determined without running the script.
    pub path: Option<String>,
    /// The line, from 1.
    pub line: usize,
}

/// Packages that Lua programs often require, and the replacements.
const PACKAGES: [(&[&str], &str); 5] = [
    (&["json", "cjson", "dkjson", "lunajson", "rapidjson"], "`json` is a global of every script"),
    (
        &["http", "socket", "socket.http", "ssl.https", "http.request", "requests", "ltn12"],
        "`http` is a global of every script, and makes requests under `:allow (:net …)`",
    ),
    (
        &["lfs", "io", "path", "pl.path"],
        "`fs` is a global of every script, and reads under `:allow (:read …)`",
    ),
    (
        &["os", "string", "table", "math", "utf8", "bit32", "coroutine"],
        "Luau's libraries are globals of every script",
    ),
    (&["inspect", "serpent", "pl.pretty"], "`json.encode` converts any value to text"),
];

/// Resolves the path `wanted`, which `file` requires, to a path without extension, to compare with [`Module::path`].
///
/// # Errors
/// When `wanted` is invalid. The error is one clause that describes the correct form.
pub fn module_path(file: &str, wanted: &str) -> Result<String, String> {
    if !(wanted.starts_with("./") || wanted.starts_with("../")) {
        if let Some((_, instead)) = PACKAGES.iter().find(|(names, _)| names.contains(&wanted)) {
            return Err(format!("packages are not supported; {instead}"));
        }
        let name = wanted.trim_start_matches(['@', '/']).trim_start_matches("lib/");
        let name = without_extension(name);
        return Err(format!(
            "expected a path that starts with `./` or `../`, as in `require(\"./lib/{name}\")`"
        ));
    }
    if without_extension(wanted) != wanted {
        return Err(format!(
            "expected a path without an extension, as in `require(\"{}\")`",
            without_extension(wanted)
        ));
    }
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    Ok(normalize(&folder.join(wanted)).to_string_lossy().replace('\\', "/"))
}

fn without_extension(file: &str) -> &str {
    file.strip_suffix(".luau").or_else(|| file.strip_suffix(".lua")).unwrap_or(file)
}

/// Returns the uses of `require` in `source`, in order. Ignores comments and strings.
pub fn find_requires(source: &[u8]) -> Vec<Require> {
    let mut found = Vec::new();
    let (mut line, mut counted) = (1, 0);
    each_word(source, |scanner, word, before| {
        // Members and methods of that name are ignored.
        if word == b"require" && !matches!(before, b'.' | b':') {
            line += memchr::memchr_iter(b'\n', source.get(counted..scanner.at).unwrap_or_default()).count();
            counted = scanner.at;
            let path = scanner.read_argument().map(|path| String::from_utf8_lossy(&path).into_owned());
            found.push(Require { path, line });
        }
    });
    found
}

/// A word of a script: a name, a keyword or a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'s> {
    /// The word.
    pub text: &'s str,
    /// The offset of its first byte.
    pub start: usize,
    /// Whether it is the name of a field or method: `t.name`, `t:name()`, `{name = 1}`.
    pub is_field: bool,
}

/// Returns the words of `source` outside of comments and strings, in order.
pub fn words(source: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    each_word(source.as_bytes(), |scanner, word, before| {
        let Some(text) = source.get(scanner.at - word.len()..scanner.at) else { return };
        let after = scanner.rest().trim_ascii_start();
        let is_key = matches!(before, b'{' | b',' | b';')
            && scanner.is_in_braces()
            // A type: `{name: string}`. A blank distinguishes it from a method: `{name:trim()}`.
            && ((after.starts_with(b"=") && !after.starts_with(b"==")) || after.starts_with(b": "));
        let is_field = matches!(before, b'.' | b':') || is_key;
        // `..` is an operator.
        let is_field =
            is_field && !source.get(..scanner.at - word.len()).unwrap_or("").trim_end().ends_with("..");
        found.push(Word { text, start: scanner.at - text.len(), is_field });
    });
    found
}

/// Counts the occurrences of `name` as a word in `source`, outside of comments and strings.
pub fn count_word(source: &[u8], name: &str) -> usize {
    let mut count = 0;
    each_word(source, |_, word, _| count += usize::from(word == name.as_bytes()));
    count
}

/// Calls `visit` with every word outside of comments and strings, and with the last byte before it that is not blank.
fn each_word<'s>(source: &'s [u8], mut visit: impl FnMut(&mut Scanner<'s>, &'s [u8], u8)) {
    let mut scanner = Scanner::new(source);
    // For each open expression of an interpolated string: the number of open braces inside it.
    let mut interpolations: Vec<usize> = Vec::new();
    let mut before = b' ';
    while let Some(byte) = scanner.peek() {
        match byte {
            b'-' if scanner.starts_with(b"--") => scanner.skip_comment(),
            b'"' | b'\'' => drop(scanner.read_string()),
            b'[' if scanner.long_bracket().is_some() => drop(scanner.read_long_string()),
            b'`' => {
                scanner.at += 1;
                if scanner.skip_interpolated() {
                    interpolations.push(0);
                }
            }
            b'(' | b'[' => {
                scanner.at += 1;
                scanner.brackets.push(byte);
            }
            b')' | b']' => {
                scanner.at += 1;
                scanner.brackets.pop();
            }
            b'{' => {
                scanner.at += 1;
                scanner.brackets.push(byte);
                if let Some(open) = interpolations.last_mut() {
                    *open += 1;
                }
            }
            b'}' => {
                scanner.at += 1;
                match interpolations.last_mut() {
                    // The end of an expression, which did not begin with a bracket of its own.
                    Some(0) => {
                        interpolations.pop();
                        if scanner.skip_interpolated() {
                            interpolations.push(0);
                        }
                    }
                    Some(open) => {
                        *open -= 1;
                        scanner.brackets.pop();
                    }
                    None => drop(scanner.brackets.pop()),
                }
            }
            _ if is_word(byte) => {
                let word = scanner.read_word();
                visit(&mut scanner, word, before);
            }
            _ => scanner.at += 1,
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

pub(super) struct Scanner<'s> {
    source: &'s [u8],
    pub(super) at: usize,
    /// The open brackets. Only [`each_word`] maintains them.
    brackets: Vec<u8>,
}

impl<'s> Scanner<'s> {
    pub(super) fn new(source: &'s [u8]) -> Self {
        Self { source, at: 0, brackets: Vec::new() }
    }

    fn is_in_braces(&self) -> bool {
        self.brackets.last() == Some(&b'{')
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.source.get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'s [u8] {
        self.source.get(self.at..).unwrap_or_default()
    }

    pub(super) fn starts_with(&self, text: &[u8]) -> bool {
        self.rest().starts_with(text)
    }

    pub(super) fn read_word(&mut self) -> &'s [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn skip_to(&mut self, found: Option<usize>, past: usize) {
        self.at = found.map_or(self.source.len(), |at| self.at + at + past);
    }

    pub(super) fn skip_comment(&mut self) {
        self.at += 2;
        if self.long_bracket().is_some() {
            drop(self.read_long_string());
        } else {
            self.skip_to(memchr::memchr(b'\n', self.rest()), 1);
        }
    }

    /// Returns the number of `=` in the long bracket that starts here.
    pub(super) fn long_bracket(&self) -> Option<usize> {
        let rest = self.rest().strip_prefix(b"[")?;
        let level = rest.iter().position(|byte| *byte != b'=')?;
        (rest.get(level) == Some(&b'[')).then_some(level)
    }

    pub(super) fn read_long_string(&mut self) -> Option<Vec<u8>> {
        let level = self.long_bracket()?;
        self.at += level + 2;
        let close = [b"]".as_slice(), &vec![b'='; level], b"]"].concat();
        let rest = self.rest();
        let end = memchr::memmem::find(rest, &close);
        self.skip_to(end, close.len());
        // A newline right after the bracket is not part of the text.
        let text = rest.get(..end?)?;
        Some(text.strip_prefix(b"\n").unwrap_or(text).to_vec())
    }

    /// Skips a quoted string. Returns its text if it has no escapes.
    pub(super) fn read_string(&mut self) -> Option<Vec<u8>> {
        let quote = self.peek()?;
        self.at += 1;
        let start = self.at;
        let mut is_plain = true;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => {
                    is_plain = false;
                    self.at += 2;
                }
                b'\n' => return None,
                _ if byte == quote => {
                    let text = self.source.get(start..self.at)?;
                    self.at += 1;
                    return is_plain.then(|| text.to_vec());
                }
                _ => self.at += 1,
            }
        }
        None
    }

    /// Skips the text of an interpolated string. Returns whether it stopped after an opening brace.
    pub(super) fn skip_interpolated(&mut self) -> bool {
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'{' => return true,
                b'`' => return false,
                _ => {}
            }
        }
        false
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Returns the argument of `require` if it is a single literal.
    fn read_argument(&mut self) -> Option<Vec<u8>> {
        self.skip_blanks();
        let has_parentheses = self.peek() == Some(b'(');
        if has_parentheses {
            self.at += 1;
            self.skip_blanks();
        }
        let text = match self.peek()? {
            b'"' | b'\'' => self.read_string()?,
            b'[' => self.read_long_string()?,
            _ => return None,
        };
        if has_parentheses {
            self.skip_blanks();
            return (self.peek() == Some(b')')).then_some(text);
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_literal_paths_and_reports_other_arguments() {
        let paths = |source: &str| {
            let found = find_requires(source.as_bytes());
            let shown = found
                .into_iter()
                .map(|found| format!("{} {}", found.line, found.path.unwrap_or_else(|| String::from("?"))));
            shown.collect::<Vec<_>>()
        };
        for (source, expected) in [
            ("local d = require('./lib/d')", &["1 ./lib/d"][..]),
            ("\n\nlocal d = require \"./lib/d\" .x", &["3 ./lib/d"]),
            ("require [[./lib/d]] require([==[./e]==])", &["1 ./lib/d", "1 ./e"]),
            ("-- require('a')\n--[[ require('b')\n]] require('c')", &["3 c"]),
            ("print('require(\"a\")', [[require('b')]])", &[]),
            ("t.require('a') t:require('b') my_require('c') required('d')", &[]),
            ("local r = require r('a')", &["1 ?"]),
            ("require(name) require('a' .. b) require('\\97')", &["1 ?", "1 ?", "1 ?"]),
            ("print(`a {require('b')} {{1, {2}}} {`{require('c')}`} require('d')`)", &["1 b", "1 c"]),
            ("require('unclosed", &["1 ?"]),
            ("require", &["1 ?"]),
        ] {
            assert_eq!(paths(source), expected, "{source}");
        }
    }

    #[test]
    fn words_are_variables_or_fields() {
        let shown = |source| {
            let words = words(source).into_iter();
            words.map(|word| if word.is_field { format!(".{}", word.text) } else { word.text.to_owned() })
        };
        for (source, expected) in [
            ("a.b:c(d) -- e", "a .b .c d"),
            ("t = {a = a, b == c, d; e = 1, [f] = g}", "t .a a b c d .e 1 f g"),
            ("f(a, b) {x, y}", "f a b x y"),
            ("type T = {a: number, b: string} {c:trim()}", "type T .a .number .b .string c .trim"),
            ("a .. b ..c `x {d} {{e = f}}` 'g'", "a b c d .e f"),
        ] {
            assert_eq!(shown(source).collect::<Vec<_>>().join(" "), expected, "{source}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        for (file, wanted, path) in [
            ("scripts/a.lua", "./lib/d", Ok("scripts/lib/d")),
            ("scripts/lib/d.lua", "./e", Ok("scripts/lib/e")),
            ("scripts/lib/net/d.lua", "../e", Ok("scripts/lib/e")),
            ("../p/scripts/a.lua", "./lib/d", Ok("../p/scripts/lib/d")),
            ("scripts/a.lua", "d", Err("./lib/d")),
            ("scripts/a.lua", "cjson", Err("`json` is a global")),
            ("scripts/a.lua", "lib/d.lua", Err("./lib/d")),
            ("scripts/a.lua", "./lib/d.lua", Err("./lib/d")),
        ] {
            match (module_path(file, wanted), path) {
                (Ok(found), Ok(path)) => assert_eq!(found, path),
                (Err(message), Err(fragment)) => assert!(message.contains(fragment), "{message}"),
                (found, _) => panic!("{file} {wanted}: {found:?}"),
            }
        }
    }
}
