//! The names of the Luau libraries that are available to scripts, for findings about unknown names.
//!
//! `vm/sandbox.lua` and `vm/sandbox.rs` determine which names are available. A test compares this list with a script's
//! globals.

use super::host::host_tables;

/// Globals that are not tables.
const GLOBALS: &[&str] = &[
    "_G",
    "_VERSION",
    "assert",
    "error",
    "gcinfo",
    "getmetatable",
    "ipairs",
    "next",
    "pairs",
    "pcall",
    "print",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "require",
    "select",
    "setmetatable",
    "tonumber",
    "tostring",
    "type",
    "typeof",
    "unpack",
    "xpcall",
];

/// Libraries and their fields.
#[rustfmt::skip]
const LIBRARIES: &[(&str, &[&str])] = &[
    ("bit32", &[
        "arshift", "band", "bnot", "bor", "btest", "bxor", "byteswap", "countlz", "countrz", "extract", "lrotate",
        "lshift", "replace", "rrotate", "rshift",
    ]),
    ("buffer", &[
        "copy", "create", "fill", "fromstring", "len", "readbits", "readf32", "readf64", "readi16", "readi32", "readi8",
        "readstring", "readu16", "readu32", "readu8", "tostring", "writebits", "writef32", "writef64", "writei16",
        "writei32", "writei8", "writestring", "writeu16", "writeu32", "writeu8",
    ]),
    ("coroutine", &["close", "create", "isyieldable", "resume", "running", "status", "wrap", "yield"]),
    ("debug", &["traceback"]),
    ("math", &[
        "abs", "acos", "asin", "atan", "atan2", "ceil", "clamp", "cos", "cosh", "deg", "e", "exp", "floor", "fmod",
        "frexp", "huge", "isfinite", "isinf", "isnan", "ldexp", "lerp", "log", "log10", "map", "max", "min", "modf", "nan",
        "noise", "phi", "pi", "pow", "rad", "random", "randomseed", "round", "sign", "sin", "sinh", "sqrt", "sqrt2", "tan",
        "tanh", "tau",
    ]),
    ("os", &["clock", "date", "difftime", "time"]),
    ("string", &[
        "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "pack", "packsize", "rep", "reverse",
        "split", "sub", "unpack", "upper",
    ]),
    ("table", &[
        "clear", "clone", "concat", "create", "find", "foreach", "foreachi", "freeze", "getn", "insert", "isfrozen",
        "maxn", "move", "pack", "remove", "sort", "unpack",
    ]),
    ("utf8", &["char", "charpattern", "codepoint", "codes", "len", "offset"]),
    ("vector", &[
        "abs", "angle", "ceil", "clamp", "create", "cross", "dot", "floor", "lerp", "magnitude", "max", "min",
        "normalize", "one", "sign", "zero",
    ]),
];

/// The globals that only test scripts have, and the fields that tests may use. `testing` defines them.
const TEST_GLOBALS: &[(&str, &[&str])] = &[
    ("expect", &[]),
    ("mock", &[]),
    ("temp", &["list", "read", "write"]),
    ("temp_dir", &[]),
    ("test", &[]),
    ("tool", &["load"]),
];

/// Returns whether `path`, as in `["http", "get"]`, may exist in a script's globals. Only the first two names are
/// checked.
pub fn is_known_global(path: &[&str]) -> bool {
    match path {
        [] => true,
        [name] => GLOBALS.contains(name) || fields(name).is_some(),
        [name, field, ..] => match fields(name) {
            Some(fields) => fields.contains(field),
            None => GLOBALS.contains(name),
        },
    }
}

/// Returns whether `path` may exist in the globals of a test script.
pub fn is_known_test_global(path: &[&str]) -> bool {
    let is_test = |(name, fields): &(&str, &[&str])| match path {
        [first] => first == name,
        [first, field, ..] => first == name && (fields.is_empty() || fields.contains(field)),
        [] => false,
    };
    is_known_global(path) || TEST_GLOBALS.iter().any(is_test)
}

/// Returns all globals of a test script, and all fields of those that are tables.
pub fn known_test_globals() -> Vec<String> {
    let of_tests = TEST_GLOBALS.iter().flat_map(|(name, fields)| {
        let fields = fields.iter().map(move |field| format!("{name}.{field}"));
        std::iter::once((*name).to_owned()).chain(fields)
    });
    let mut all = known_globals();
    all.extend(of_tests.filter(|name| name != "tool"));
    all
}

/// Returns all globals of a script, and all fields of those that are tables, as in `http.get`.
pub fn known_globals() -> Vec<String> {
    let tables = LIBRARIES.iter().map(|(name, _)| *name).chain(host_tables().iter().map(|doc| doc.name));
    let fields = tables.flat_map(|name| {
        let fields = fields(name).unwrap_or_default();
        std::iter::once(name.to_owned()).chain(fields.into_iter().map(move |field| format!("{name}.{field}")))
    });
    GLOBALS.iter().map(|name| (*name).to_owned()).chain(fields).collect()
}

/// Returns the fields of a library or host table.
pub(crate) fn fields(table: &str) -> Option<Vec<&'static str>> {
    if let Some((_, fields)) = LIBRARIES.iter().find(|(name, _)| *name == table) {
        return Some(fields.to_vec());
    }
    let doc = host_tables().iter().find(|doc| doc.name == table)?;
    let functions = doc.functions.iter().map(|function| function.name);
    Some(functions.chain(doc.values.iter().map(|value| value.name)).collect())
}
