use crate::diagnostic::{Diagnostic, rule};
use crate::script::{is_known_global, known_globals};
use crate::spec::nearest;
use crate::text::Location;

rule! {
    /// a script that uses what scripts do not have
    ///
    /// A script has Luau's libraries without those that reach the machine, and the host tables of `docs/scripting.md`. A global
    /// that nothing sets is nil: calling it or reading its fields ends the call. Often it is a misspelt local, or what other
    /// Lua programs have.
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

/// `path`: the global and the fields that are read of it.
pub(in crate::project) fn finding(at: Location, path: &[String]) -> Diagnostic {
    let shown: Vec<&str> = path.iter().map(String::as_str).collect();
    let known = shown.iter().take(1).filter(|name| is_known_global(&[**name])).count();
    // The first name that is not there; what is read of it says nothing more.
    let name = shown.iter().take(known + 1).copied().collect::<Vec<_>>().join(".");
    let whole = shown.join(".");
    let finding = Diagnostic::new(&UNKNOWN_GLOBAL, at, format!("there is no `{name}` in a script"));
    let instead = [whole.as_str(), name.as_str()].into_iter().find_map(instead_of);
    if let Some(instead) = instead {
        return finding.note(instead);
    }
    let all = known_globals();
    match nearest(&name, all.iter().map(String::as_str)) {
        Some(near) => finding.labelled(format!("did you mean `{near}`?")),
        None if known == 0 => finding.note(format!("nothing sets the global `{name}`, so it is nil")),
        None => finding,
    }
}

/// What to use in place of what other Lua programs, and programs in other languages, have.
fn instead_of(name: &str) -> Option<&'static str> {
    INSTEAD.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
}

const PROCESS: &str = "programs are run with `process.run` under `:allow (:run …)`";
const REQUEST: &str = "requests are made with `http.get` and its like under `:allow (:net …)`";
const NO_CODE: &str = "no code is made while a script runs; what scripts share goes to scripts/lib, see `require`";
const TO_JSON: &str = "`json.encode` makes a text of any value";
const REMOVE: &str = "files are removed and renamed with `fs.remove` and `fs.rename` under `:allow (:write …)`";
const WAIT: &str = "`task.wait` waits a number of seconds";
const LOG: &str = "lines for people are written with `log.info`, `log.warn` and `log.error`";
const MODULES: &str = "`require(\"./lib/name\")` loads scripts/lib/name.lua";
const TRIM: &str = "`string.match(text, \"^%s*(.-)%s*$\")` takes the blanks off both ends";

#[rustfmt::skip]
const INSTEAD: &[(&str, &str)] = &[
    ("io", "files are read with `fs.read` under `:allow (:read …)` and written with `fs.write` under `:allow (:write …)`"),
    ("io.popen", PROCESS),
    ("io.write", LOG),
    ("io.stderr", LOG),
    ("io.stdout", LOG),
    ("io.read", "nobody sits at a script's stdin; what it needs are its arguments"),
    ("os.execute", PROCESS),
    ("os.getenv", "`env.get` reads what `:allow (:env …)` lists"),
    ("os.remove", REMOVE),
    ("os.rename", REMOVE),
    ("os.tmpname", "files are written with `fs.write` under `:allow (:write …)`"),
    ("os.exit", "a script ends by returning from its function; `error(tool.failure(\"…\"))` says why it cannot go on"),
    ("os.sleep", WAIT),
    ("sleep", WAIT),
    ("wait", WAIT),
    ("delay", "`task.delay` calls a function after a number of seconds"),
    ("spawn", "`task.spawn` runs a function beside the current one"),
    ("load", NO_CODE),
    ("loadstring", NO_CODE),
    ("loadfile", NO_CODE),
    ("dofile", NO_CODE),
    ("getfenv", NO_CODE),
    ("setfenv", NO_CODE),
    ("module", MODULES),
    ("package", MODULES),
    ("collectgarbage", "a call's memory is its own and freed after it"),
    ("newproxy", "`setmetatable` gives a table a metatable"),
    ("debug.getinfo", "of `debug` there is `traceback` alone"),
    ("debug.sethook", "of `debug` there is `traceback` alone"),
    ("arg", "arguments are the parameters of the function that the script returns"),
    ("args", "arguments are the parameters of the function that the script returns"),
    ("arguments", "arguments are the parameters of the function that the script returns"),
    ("bit", "Luau's bit operations are in `bit32`"),
    ("lfs", "folders are listed with `fs.list` under `:allow (:read …)`"),
    ("socket", REQUEST),
    ("fetch", REQUEST),
    ("requests", REQUEST),
    ("cjson", "JSON is read with `json.decode` and written with `json.encode`"),
    ("dkjson", "JSON is read with `json.decode` and written with `json.encode`"),
    ("JSON", "JSON is read with `json.decode` and written with `json.encode`"),
    ("json.parse", "JSON is read with `json.decode`"),
    ("json.loads", "JSON is read with `json.decode`"),
    ("json.stringify", TO_JSON),
    ("json.dumps", TO_JSON),
    ("inspect", TO_JSON),
    ("dump", TO_JSON),
    ("warn", LOG),
    ("console", LOG),
    ("printf", LOG),
    ("tick", "`time.now` gives the seconds since 1970"),
    ("game", "these scripts run outside of Roblox; `docs/scripting.md` lists what they have"),
    ("workspace", "these scripts run outside of Roblox; `docs/scripting.md` lists what they have"),
    ("vim", "these scripts run outside of editors; `docs/scripting.md` lists what they have"),
    ("null", "JSON's null is `json.null`, Lua's is `nil`"),
    ("None", "Lua's null is `nil`, JSON's is `json.null`"),
    ("undefined", "Lua's null is `nil`, JSON's is `json.null`"),
    ("True", "Lua writes `true`"),
    ("False", "Lua writes `false`"),
    ("self", "the function that a script returns has its arguments alone"),
    ("env.API_KEY", "variables are read with `env.get(\"API_KEY\")`"),
    ("string.trim", TRIM),
    ("string.strip", TRIM),
    ("string.startswith", "`string.sub(text, 1, #prefix) == prefix` says whether a text starts so"),
    ("string.starts", "`string.sub(text, 1, #prefix) == prefix` says whether a text starts so"),
    ("string.endswith", "`string.sub(text, -#suffix) == suffix` says whether a text ends so"),
    ("string.contains", "`string.find(text, part, 1, true)` finds a text in another"),
    ("string.replace", "`string.gsub` replaces what a pattern matches"),
    ("string.join", "`table.concat` joins texts"),
    ("string.dump", NO_CODE),
    ("table.contains", "`table.find(list, value)` finds a value in an array"),
    ("table.indexof", "`table.find(list, value)` finds a value in an array"),
    ("table.length", "`#list` is the length of an array"),
    ("table.size", "`#list` is the length of an array"),
    ("table.keys", "`for key in map do … end` goes over the keys"),
    ("table.copy", "`table.clone` copies a table"),
    ("table.push", "`table.insert` adds to an array"),
    ("table.append", "`table.insert` adds to an array"),
    ("math.tointeger", "`math.floor` takes the fraction off"),
    ("math.type", "Luau has one type of numbers"),
    ("ngx", REQUEST),
    ("http.fetch", REQUEST),
    ("text.trim", TRIM),
];
