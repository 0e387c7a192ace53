//! Scripts held against what they are given: the names they use, what their specs allow, and their types.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A project with one spec file and the scripts given.
fn project(spec: &str, scripts: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("specs")).unwrap();
    fs::create_dir_all(folder.path().join("scripts/lib")).unwrap();
    fs::write(folder.path().join("specs/a.eld"), spec).unwrap();
    for (name, source) in scripts {
        fs::write(folder.path().join("scripts").join(name), source).unwrap();
    }
    folder
}

fn deftool(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deftool")).args(arguments).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

const PLAIN: &str = "(deftool :name \"t\" :description \"Do it.\")\n";

/// The findings of a script, without those of the spec: `line:column: severity[code]: message`.
fn findings(spec: &str, script: &str, options: &[&str]) -> Vec<String> {
    let folder = project(spec, &[("t.lua", script)]);
    let output = deftool(folder.path(), &[&["check", "--format", "concise"], options].concat());
    let lines = stdout(&output);
    lines.lines().filter_map(|line| Some(line.strip_prefix("scripts/t.lua:")?.to_owned())).collect()
}

#[test]
fn globals_that_are_not_there_are_told_where_they_stand() {
    for (script, expected) in [
        (
            "return function()\n  return io.open('x')\nend",
            "2:10: warning[DT420]: there is no `io` in a script",
        ),
        (
            "return function() os.execute('ls') end",
            "1:19: warning[DT420]: there is no `os.execute` in a script",
        ),
        (
            "local t = jsn.decode('1')\nreturn function() return t end",
            "1:11: warning[DT420]: there is no `jsn` in a script",
        ),
        (
            "return function() return json.parse('1') end",
            "1:26: warning[DT420]: there is no `json.parse` in a script",
        ),
        (
            "return function() return loadstring('1') end",
            "1:26: warning[DT420]: there is no `loadstring` in a script",
        ),
        (
            "return function() return json:parse('1') end",
            "1:26: warning[DT420]: there is no `json.parse` in a script",
        ),
        (
            "return function() return (string.trim)(' ') end",
            "1:27: warning[DT420]: there is no `string.trim` in a script",
        ),
    ] {
        let found = findings(PLAIN, script, &[]);
        assert_eq!(found, [expected], "{script}");
    }
}

/// Where the lines of bytecode are told apart by intervals.
#[test]
fn a_global_far_down_has_its_line() {
    let script = format!(
        "{}return function()\n{}  return nope\nend",
        "local a = 1\n".repeat(150),
        "  print(1)\n".repeat(400)
    );
    let found = findings(PLAIN, &script, &[]);
    assert_eq!(found, ["552:10: warning[DT420]: there is no `nope` in a script"]);
}

#[test]
fn what_is_there_is_not_told() {
    for script in [
        // Locals and parameters shadow; fields of locals are not looked into.
        "local io = { open = function() return 1 end }\nreturn function() return io.open() end",
        "return function()\n  local os = {}\n  os.execute = 1\n  return os.execute\nend",
        "local h = json\nreturn function() return h.anything end",
        "local mine = {}\nreturn function(...) return (... or json).parse(1), (mine or json):parse('a', 2, 3) end",
        // Set in this file.
        "function helper() return 1 end\nreturn function() return helper() end",
        "local x = 1\nfunction helper() return x end\nreturn function() return helper() end",
        // Every library.
        "return function()\n  return string.format('%d', math.floor(os.clock())) .. tostring(bit32.band(1, 2)) .. #table.pack(1)\nend",
        "return function() local t = setmetatable({}, { __index = function() return 1 end }) return t.x end",
        "return function() return tool.name, tool.deadline, json.null, _VERSION, _G.print end",
        "return function() return time.now(), typeof(1), utf8.char(64), buffer.create(1), vector.one end",
        // In strings and comments.
        "-- io.open\nreturn function() return 'os.execute' end",
    ] {
        assert_eq!(findings(PLAIN, script, &[]), Vec::<String>::new(), "{script}");
    }
}

#[test]
fn globals_that_are_lost_are_told() {
    for (script, expected) in [
        ("count = 0\nreturn function()\n  count = count + 1\n  return count\nend", "1:1: warning[DT421]"),
        ("return function()\n  local a = 1\n  resul = a\n  return a\nend", "3:3: warning[DT421]"),
        ("return function()\n  function inner() return 1 end\n  return inner()\nend", "2:12: warning[DT421]"),
        ("return function()\n  json = 1\n  return json\nend", "2:3: warning[DT421]"),
    ] {
        let found = findings(PLAIN, script, &[]);
        assert!(matches!(found.as_slice(), [one] if one.starts_with(expected)), "{script}: {found:?}");
    }
}

#[test]
fn a_file_with_many_mistakes_is_told_of_some() {
    let many: Vec<String> = (0..500).map(|number| format!("  print(wrong{number})\n")).collect();
    let found = findings(PLAIN, &format!("return function()\n{}end", many.concat()), &[]);
    assert_eq!(found.len(), 20, "{found:?}");
}

#[test]
fn permissions_and_their_use_are_held_against_each_other() {
    let spec = |allow: &str| format!("(deftool :name \"t\" :description \"Do it.\"{allow})\n");
    let reads = "return function()\n  return fs.read('notes/a')\nend";
    let found = |allow: &str, script: &str| {
        let folder = project(&spec(allow), &[("t.lua", script)]);
        stdout(&deftool(folder.path(), &["check", "--format", "concise"]))
    };
    assert_eq!(
        found("", reads),
        "scripts/t.lua:2:10: warning[DT422]: `fs.read` is refused: the spec of `t` has no `:read` in `:allow`\n"
    );
    assert_eq!(found(" :allow (:read [\"notes/\"])", reads), "");
    assert_eq!(
        found(" :allow (:read [\"notes/\"] :env [\"HOME\"])", reads),
        "specs/a.eld:1:16: note[DT423]: `t` allows `:env`, and its script does not use it\n"
    );
    // What is done with a table that is handed on is not known.
    for script in [
        "local files = fs\nreturn function() return files.read('notes/a') end",
        "local function use(table) return table.read('notes/a') end\nreturn function() return use(fs) end",
        "local name = tostring('read')\nreturn function() return fs[name]('notes/a') end",
        "return function() return _G['fs'].read('notes/a') end",
    ] {
        assert_eq!(found(" :allow (:read [\"notes/\"])", script), "", "{script}");
        assert_eq!(found("", script), "", "{script}");
    }
}

#[test]
fn callbacks_and_parameters() {
    let async_spec = "(deftool :name \"t\" :description \"Do it.\" :async t)\n";
    let found = findings(async_spec, "return function(done)\n  -- done\n  return 'done'\nend", &[]);
    assert!(matches!(found.as_slice(), [one] if one.contains("DT425")), "{found:?}");
    for script in [
        "return function(done) done(1) end",
        "return function(done) task.delay(1, done, 1) end",
        "return function(done) task.spawn(function() done(`a {1}`) end) end",
    ] {
        assert_eq!(findings(async_spec, script, &[]), Vec::<String>::new(), "{script}");
    }
    let spec = "(deftool :name \"t\" :description \"Do it.\" :args ((:name \"user-name\" :type string :description \"Who.\")))\n";
    for (parameter, is_told) in [
        ("user_name", false),
        ("userName", false),
        ("usr_name", true),
        ("_user_name", false),
        ("who", false),
        ("usename", true),
    ] {
        let found = findings(spec, &format!("return function({parameter}) return {parameter} end"), &[]);
        assert_eq!(!found.is_empty(), is_told, "{parameter}: {found:?}");
    }
}

const SCHEMAS: &str = r#"(deftool
 :name "get-weather"
 :description "Tell the weather."
 :args ((:name "location" :type string :description "Where.")
        (:name "unit" :type string :enum ["celsius" "a\"b\\"] :description "Of what." :optional t)
        (:name "end" :type integer :description "When.")
        (:name "days" :type array :items (:type integer) :description "Which.")
        (:name "modes" :type array :items (:type string :enum ["a" "b"]) :description "How.")
        (:name "place-data" :type object :description "More."
         :properties (:name (:type string :description "Of it.") :zip-code (:type string :description "Of it.")
                      :deep (:type object :description "In it." :properties (:x (:type ["number" "null"] :description "Of it."))))
         :required ["name"])
        (:name "anything" :type object :description "Any." :optional t)))
(deftool :name "get_weather" :description "Tell it later." :async t
 :args ((:name "42nd street" :type boolean :description "Whether." :optional t)))
(defexit :name "done" :description "Say that it is done.")
"#;

#[test]
fn definitions_say_what_schemas_say() {
    let folder = project(SCHEMAS, &[]);
    let output = deftool(folder.path(), &["types"]);
    let text = stdout(&output);
    let tools = text
        .split_once("\nexport type GetWeatherUnit")
        .map(|(_, tools)| format!("\nexport type GetWeatherUnit{tools}"));
    assert_eq!(
        tools.unwrap_or(text),
        r#"
export type GetWeatherUnit = ("celsius" | "a\"b\\")
export type GetWeatherModes = { ("a" | "b") }
export type GetWeatherPlaceData = { name: string, ["zip-code"]: string?, deep: { x: any }? }
export type GetWeatherAnything = { [string]: any }
--- The function that the script of `get-weather` returns.
export type GetWeather = (location: string, unit: GetWeatherUnit?, _end: number, days: { number }, modes: GetWeatherModes, place_data: GetWeatherPlaceData, anything: GetWeatherAnything?) -> ...any

--- The function that the script of `get_weather` returns.
export type GetWeather2 = (callback: (result: any) -> (), _42nd_street: boolean?) -> ()
"#
    );
}

#[test]
fn definitions_are_written_and_compared() {
    let folder = project(PLAIN, &[("t.lua", "return function() end")]);
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let run = |arguments: &[&str]| {
        let output = deftool(folder.path(), arguments);
        (output.status.code(), stdout(&output), said(&output))
    };
    let (code, _, says) = run(&["types", "--output", "types", "--check"]);
    assert!(code == Some(1) && says.contains("types/deftool.d.luau is not there"), "{says}");
    let (code, out, says) = run(&["types", "--output", "types"]);
    assert!(code == Some(0) && out.is_empty() && says.contains("created  types/deftool.d.luau"), "{says}");
    let (code, _, says) = run(&["types", "--output", "types", "--check"]);
    assert!(code == Some(0), "{says}");
    let (code, _, says) = run(&["types", "--output", "types"]);
    assert!(code == Some(0) && says.contains("unchanged"), "{says}");
    let (_, printed, _) = run(&["types"]);
    assert_eq!(fs::read_to_string(folder.path().join("types/deftool.d.luau")).unwrap(), printed);
    fs::write(folder.path().join("specs/a.eld"), "(deftool :name \"other\" :description \"Do it.\")")
        .unwrap();
    let (code, _, says) = run(&["types", "--output", "types", "--check"]);
    assert!(code == Some(1) && says.contains("is not what the specs say"), "{says}");
    let (code, _, says) = run(&["types", "--output", "types"]);
    assert!(code == Some(0) && says.contains("written"), "{says}");
    let (code, _, _) = run(&["types", "--check"]);
    assert_eq!(code, Some(2));
    // Tools with errors are left out and told.
    fs::write(
        folder.path().join("specs/a.eld"),
        "(deftool :name \"x\" :description \"Do it.\" :args ((:name \"a\" :type strin)))",
    )
    .unwrap();
    let (code, out, says) = run(&["types"]);
    assert!(code == Some(1) && !out.contains("export type X") && says.contains("left out"), "{says}");
}
