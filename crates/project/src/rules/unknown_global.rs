use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::nearest;
use deftool_lang::text::Location;
use deftool_script::{is_known_global, is_known_test_global, known_globals, known_test_globals};

rule! {
    /// an unknown global
    ///
    /// A script has Luau's libraries, except for those that access the system, and the host tables in
    /// `docs/scripting.md`. A global that is never assigned is nil, so a call or a field access on it ends the call.
    /// The cause is often a misspelt local or a function of other Lua programs. Test scripts have the functions in
    /// `docs/testing.md`, too.
    ///
    /// ```eld fails
    /// (deftool :name "today" :description "Read the notes of today." :allow (:read ["notes/"]))
    /// ```
    ///
    /// ```lua scripts/today.lua fails
    /// return function()
    ///   local file = io.open("notes/today.md")
    ///   return fs.read("notes/today.md")
    /// end
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "today" :description "Read the notes of today." :allow (:read ["notes/"]))
    /// ```
    ///
    /// ```lua scripts/today.lua repaired
    /// return function()
    ///   return fs.read("notes/today.md")
    /// end
    /// ```
    pub(crate) UNKNOWN_GLOBAL, "DT420", "unknown-global", Warning
}

/// `path`: the global and the accessed fields. `is_test`: whether a test script uses it.
pub(crate) fn finding(at: Location, path: &[String], is_test: bool) -> Diagnostic {
    let is_known = if is_test { is_known_test_global } else { is_known_global };
    let shown: Vec<&str> = path.iter().map(String::as_str).collect();
    let known = shown.iter().take(1).filter(|name| is_known(&[**name])).count();
    // The first unknown name. Its fields are not relevant.
    let name = shown.iter().take(known + 1).copied().collect::<Vec<_>>().join(".");
    let whole = shown.join(".");
    let finding = Diagnostic::new(&UNKNOWN_GLOBAL, at, format!("unknown global `{name}`"));
    let instead = [whole.as_str(), name.as_str()].into_iter().find_map(instead_of);
    if let Some(instead) = instead {
        return finding.note(instead);
    }
    let all = if is_test { known_test_globals() } else { known_globals() };
    match nearest(&name, all.iter().map(String::as_str)) {
        Some(near) => finding.labelled(format!("did you mean `{near}`?")),
        None if known == 0 => finding.note(format!("`{name}` is never assigned, so it is nil")),
        None => finding,
    }
}

/// Returns the replacement for a name that exists in other Lua environments or languages.
fn instead_of(name: &str) -> Option<&'static str> {
    INSTEAD.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
}

const PROCESS: &str = "to run programs, use `process.run`, which requires `:allow (:run …)`";
const REQUEST: &str =
    "to send requests, use `http.get` and related functions, which require `:allow (:net …)`";
const NO_CODE: &str =
    "scripts cannot load code at run time; put shared code in scripts/lib and use `require`";
const TO_JSON: &str = "to convert a value to text, use `json.encode`";
const REMOVE: &str =
    "to remove or rename files, use `fs.remove` or `fs.rename`, which require `:allow (:write …)`";
const WAIT: &str = "to wait, use `task.wait` with a number of seconds";
const LOG: &str = "to write log messages, use `log.info`, `log.warn` or `log.error`";
const MODULES: &str = "to load scripts/lib/name.lua, use `require(\"./lib/name\")`";
const TRIM: &str = "to trim a string, use `string.match(text, \"^%s*(.-)%s*$\")`";

#[rustfmt::skip]
const INSTEAD: &[(&str, &str)] = &[
    ("io", "to access files, use `fs.read` with `:allow (:read …)` or `fs.write` with `:allow (:write …)`"),
    ("io.popen", PROCESS),
    ("io.write", LOG),
    ("io.stderr", LOG),
    ("io.stdout", LOG),
    ("io.read", "scripts have no stdin; pass the data as an argument"),
    ("os.execute", PROCESS),
    ("os.getenv", "to read environment variables, use `env.get`, which requires `:allow (:env …)`"),
    ("os.remove", REMOVE),
    ("os.rename", REMOVE),
    ("os.tmpname", "to write files, use `fs.write`, which requires `:allow (:write …)`"),
    ("os.exit", "to end a call, return from the function; to fail, use `error(tool.failure(\"…\"))`"),
    ("os.sleep", WAIT),
    ("sleep", WAIT),
    ("wait", WAIT),
    ("delay", "to call a function later, use `task.delay`"),
    ("spawn", "to run a function concurrently, use `task.spawn`"),
    ("load", NO_CODE),
    ("loadstring", NO_CODE),
    ("loadfile", NO_CODE),
    ("dofile", NO_CODE),
    ("getfenv", NO_CODE),
    ("setfenv", NO_CODE),
    ("module", MODULES),
    ("package", MODULES),
    ("collectgarbage", "memory is freed after each call"),
    ("newproxy", "use `setmetatable` on a table"),
    ("debug.getinfo", "only `debug.traceback` is available"),
    ("debug.sethook", "only `debug.traceback` is available"),
    ("arg", "arguments are the parameters of the returned function"),
    ("args", "arguments are the parameters of the returned function"),
    ("arguments", "arguments are the parameters of the returned function"),
    ("bit", "for bit operations, use `bit32`"),
    ("lfs", "to list folders, use `fs.list`, which requires `:allow (:read …)`"),
    ("socket", REQUEST),
    ("fetch", REQUEST),
    ("requests", REQUEST),
    ("cjson", "for JSON, use `json.decode` and `json.encode`"),
    ("dkjson", "for JSON, use `json.decode` and `json.encode`"),
    ("JSON", "for JSON, use `json.decode` and `json.encode`"),
    ("json.parse", "to parse JSON, use `json.decode`"),
    ("json.loads", "to parse JSON, use `json.decode`"),
    ("json.stringify", TO_JSON),
    ("json.dumps", TO_JSON),
    ("inspect", TO_JSON),
    ("dump", TO_JSON),
    ("warn", LOG),
    ("console", LOG),
    ("printf", LOG),
    ("tick", "for the seconds since 1970, use `time.now`"),
    ("game", "scripts do not run in Roblox; `deftool types` prints the available functions"),
    ("workspace", "scripts do not run in Roblox; `deftool types` prints the available functions"),
    ("vim", "scripts do not run in an editor; `deftool types` prints the available functions"),
    ("null", "use `json.null` for JSON null, or `nil`"),
    ("None", "use `nil`, or `json.null` for JSON null"),
    ("undefined", "use `nil`, or `json.null` for JSON null"),
    ("True", "use `true`"),
    ("False", "use `false`"),
    ("self", "the returned function receives only the arguments"),
    ("env.API_KEY", "use `env.get(\"API_KEY\")`"),
    ("string.trim", TRIM),
    ("string.strip", TRIM),
    ("string.startswith", "use `string.sub(text, 1, #prefix) == prefix`"),
    ("string.starts", "use `string.sub(text, 1, #prefix) == prefix`"),
    ("string.endswith", "use `string.sub(text, -#suffix) == suffix`"),
    ("string.contains", "use `string.find(text, part, 1, true)`"),
    ("string.replace", "use `string.gsub`, which replaces pattern matches"),
    ("string.join", "use `table.concat`"),
    ("string.dump", NO_CODE),
    ("table.contains", "use `table.find(list, value)`"),
    ("table.indexof", "use `table.find(list, value)`"),
    ("table.length", "use `#list`"),
    ("table.size", "use `#list`"),
    ("table.keys", "use `for key in map do … end`"),
    ("table.copy", "use `table.clone`"),
    ("table.push", "use `table.insert`"),
    ("table.append", "use `table.insert`"),
    ("math.tointeger", "use `math.floor`"),
    ("math.type", "Luau has only one number type"),
    ("ngx", REQUEST),
    ("http.fetch", REQUEST),
    ("text.trim", TRIM),
];
