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
use super::tokens::{TokenKind, Tokens};
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

pub(crate) fn without_extension(file: &str) -> &str {
    file.strip_suffix(".luau").or_else(|| file.strip_suffix(".lua")).unwrap_or(file)
}

/// Returns the uses of `require` in `source`, in order. Ignores comments and strings.
pub fn find_requires(source: &[u8]) -> Vec<Require> {
    let mut found = Vec::new();
    if memchr::memmem::find(source, b"require").is_none() {
        return found;
    }
    let source = String::from_utf8_lossy(source);
    let tokens = Tokens::of(&source);
    let (mut line, mut counted) = (1, 0);
    for (index, token) in tokens.iter() {
        // Members and methods of that name are ignored.
        if tokens.code(index) != "require" || tokens.is_member(index) {
            continue;
        }
        let start = token.span.start as usize;
        line += source.get(counted..start).unwrap_or_default().matches('\n').count();
        counted = start;
        let has_parentheses = tokens.code(index + 1) == "(";
        let argument = index + 1 + usize::from(has_parentheses);
        let is_literal = tokens.is_kind(argument, TokenKind::PlainString)
            && (!has_parentheses || tokens.code(argument + 1) == ")");
        let path = tokens.get(argument).filter(|_| is_literal).map(|argument| argument.text.to_owned());
        found.push(Require { path, line });
    }
    found
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
            ("return 'a' .. require('b')", &["1 b"]),
            ("require('unclosed", &["1 ?"]),
            ("require", &["1 ?"]),
        ] {
            assert_eq!(paths(source), expected, "{source}");
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
