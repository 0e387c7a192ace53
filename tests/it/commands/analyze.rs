//! `deftool check --types`. Checks of scripts without types, and `deftool types`, are in `tests/commands/types.md`.

/// Without the analyzer, the error explains how to install it.
#[cfg(not(feature = "analyze"))]
#[test]
fn types_are_not_checked_without_an_analyzer() {
    let project = crate::support::project::Project::new();
    let output = project.command(&["check", "--types"]).env("PATH", "").output().unwrap();
    // An analyzer from an earlier build in deftool's folder is used.
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_deftool")).with_file_name("deftool-analyze");
    if !beside.exists() {
        let says = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && says.contains("cargo install --path . --features analyze"),
            "{says}"
        );
    }
}

#[cfg(feature = "analyze")]
mod checked {
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};
    use std::time::Duration;

    use deftool_script::{Analysed, Definitions, ModuleText, ScriptUnit, TypeProblem};

    use crate::scripts::runtime::sources::hostile_sources;

    /// Creates a project with one spec file and these scripts.
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

    /// Returns the findings in a script, without those in the spec: `line:column: severity[code]: message`.
    fn findings(spec: &str, script: &str, options: &[&str]) -> Vec<String> {
        let folder = project(spec, &[("t.lua", script)]);
        let output = deftool(folder.path(), &[&["check", "--format", "concise"], options].concat());
        let lines = stdout(&output);
        lines.lines().filter_map(|line| Some(line.strip_prefix("scripts/t.lua:")?.to_owned())).collect()
    }

    const SCHEMAS: &str = r#"(deftool
 :name "get-weather"
 :description "Tell the weather."
 :returns (:type object :properties (:celsius (:type number)) :required ["celsius"])
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

    fn unit(file: &str, text: &str) -> ScriptUnit {
        ScriptUnit {
            file: file.to_owned(),
            text: text.into(),
            modules: std::sync::Arc::new([]),
            parameters: vec![Some(String::from("string"))],
            is_test: false,
        }
    }

    /// Checks units with the definitions of a project without tools.
    fn check_with(program: &str, units: &[ScriptUnit], limit: Duration) -> Vec<Analysed<Vec<TypeProblem>>> {
        deftool_script::check_types(Path::new(program), &Definitions::of([]), units, limit)
    }

    fn check_types(units: &[ScriptUnit], limit: Duration) -> Vec<Analysed<Vec<TypeProblem>>> {
        check_with(env!("CARGO_BIN_EXE_deftool-analyze"), units, limit)
    }

    /// The time limit in tests. Sources above it are far above the real limit, too.
    const LIMIT: Duration = Duration::from_secs(1);

    #[test]
    fn a_hostile_source_does_not_crash_the_analyzer() {
        // This size is enough to test depth and length, and keeps the test fast.
        let units: Vec<ScriptUnit> =
            hostile_sources(12 << 10).into_iter().map(|(name, source)| unit(name, &source)).collect();
        for (unit, result) in units.iter().zip(check_types(&units, LIMIT)) {
            if let Err(why) = &result {
                assert!(why.contains("took longer"), "{}: {why}", unit.file);
            }
        }
    }

    /// A type function is a program. None is run, neither in a script nor in its modules.
    #[test]
    fn type_functions_are_refused() {
        // It would exhaust the memory.
        let bomb = "type function Bomb(t)\n  local s = 'x'\n  while true do s ..= s end\n  return t\nend\n";
        let script = format!("{bomb}return function(text: Bomb<string>) return text.nothing end");
        let mut in_module =
            unit("requires", "local m = require('./lib/m')\nreturn function(text) return m end");
        in_module.file = String::from("scripts/requires.lua");
        let text = format!("local a = 1\n{bomb}return a").into();
        in_module.modules =
            std::sync::Arc::new([ModuleText { file: String::from("scripts/lib/m.lua"), text }]);
        let refused = |file: &str, line| {
            let message = "type functions are not run, and so the types of this script are not checked";
            let columns = (0, "type function".len());
            Ok(vec![TypeProblem { file: file.to_owned(), line, columns, message: message.to_owned() }])
        };
        let found = check_types(&[unit("bomb", &script), in_module], LIMIT * 20);
        assert_eq!(found, [refused("bomb", 1), refused("scripts/lib/m.lua", 2)]);
    }

    /// The analyzer has the limits of a script host and crashes alone.
    #[test]
    fn a_crash_of_the_analyzer_is_isolated() {
        let units = [unit("any", "return function(text) return text.nothing end")];
        for (program, why) in [
            ("/bin/false", "cannot start the analyzer `/bin/false`: the process exited"),
            ("/no/such/program", "cannot start the analyzer `/no/such/program`: No such file"),
            (env!("CARGO_BIN_EXE_deftool"), "cannot start the analyzer"),
        ] {
            let found = check_with(program, &units, LIMIT);
            assert!(matches!(&found[..], [Err(reason)] if reason.contains(why)), "{found:?}");
        }
    }

    #[test]
    fn a_script_above_the_time_limit_is_skipped() {
        let limit = LIMIT / 4;
        let slow = "a=b ".repeat(15_000);
        let fine = "return function(text) return text.nothing end";
        let mut units = vec![unit("slow", &slow), unit("slower", &slow), unit("long", &" ".repeat(1 << 20))];
        units.extend((0..20).map(|number| unit(&format!("fine{number}"), fine)));
        // A busy machine may be slow once. Each script must be checked in one of several attempts.
        let mut missing: Vec<String> = (0..20).map(|number| format!("fine{number}")).collect();
        for _ in 0..5 {
            for (unit, result) in units.iter().zip(check_types(&units, limit)) {
                match (unit.file.as_str(), result) {
                    ("slow" | "slower", _) => {}
                    ("long", Err(why)) => assert!(why.contains("64 KiB"), "{why}"),
                    (file, Ok(problems)) => {
                        assert_eq!(problems.len(), 1, "{file} {problems:?}");
                        missing.retain(|name| name != file);
                    }
                    (file, Err(why)) => assert!(why.contains("took longer"), "{file}: {why}"),
                }
            }
            if missing.is_empty() {
                return;
            }
        }
        panic!("never checked: {missing:?}");
    }

    /// The analyzer must not report false type findings for scripts with unusual code.
    #[test]
    fn attack_scripts_have_no_type_findings() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
        let mut units = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let source = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            let mut unit = unit(&path.file_name().unwrap().to_string_lossy(), &source);
            if source.contains("-- async: true") {
                unit.parameters.insert(0, None);
            }
            units.push(unit);
        }
        // Deliberately wrong arguments of host functions are expected to be reported.
        units.retain(|unit| !unit.file.contains("lying"));
        let results = check_types(&units, LIMIT * 20);
        let wrong: Vec<_> = units
            .iter()
            .zip(results)
            .filter(|(_, result)| *result != Ok(Vec::new()))
            .map(|(unit, result)| format!("{}: {result:?}", unit.file))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    const SPEC: &str = r#"(deftool :name "t" :description "Do it." :allow (:read ["notes/"])
 :args ((:name "location" :type string :description "Where.")
        (:name "unit" :type string :enum ["celsius" "fahrenheit"] :description "Of what." :optional t)
        (:name "place" :type object :description "More."
         :properties (:name (:type string :description "Of it.") :zip (:type integer :description "Of it.")
                      :inner (:type object :description "In it." :properties (:x (:type string :description "X."))))
         :required ["name"])))
"#;

    /// Returns the type findings in the body of the tool's function.
    fn type_findings(body: &str) -> Vec<String> {
        let script = format!("return function(location, unit, place)\n{body}\nend");
        findings(SPEC, &script, &["--types"])
            .into_iter()
            .filter_map(|line| line.split_once(": warning[DT427]: ").map(|(at, says)| format!("{at} {says}")))
            .collect()
    }

    #[test]
    fn type_errors_are_reported() {
        for (body, expected) in [
            ("return place.nmae", "2:8 key `nmae` not found in table `TPlace`"),
            (
                "return unit == \"kelvin\"",
                "2:8 this is never \"kelvin\": it is \"celsius\" or \"fahrenheit\"",
            ),
            (
                "unit = unit or \"celsius\"\nif \"kelvin\" ~= unit then return 1 end",
                "3:4 this is never \"kelvin\"",
            ),
            ("return fs.read(3)", "2:16 expected this to be `string`, but got `number`"),
            ("return fs.read()", "2:8 argument count mismatch."),
            ("task.wait(\"1\")", "2:11 expected this to be `number?`, but got `string`"),
            ("return string.upper(unit)", "2:21 expected this to be `string`, but got `"),
            ("return 1 + place.zip", "2:8 operator `+` could not be applied"),
            ("return place.inner.x", "2:8 value of type"),
            (
                "for _, entry in fs.list(\"notes\") do print(entry.nam) end",
                "2:43 key `nam` not found in table `FileEntry`",
            ),
            (
                "local entries = fs.list(location)\nreturn entries[1].kind == \"folder\"",
                "3:8 this is never \"folder\"",
            ),
            ("local x: Plce = place\nreturn x", "2:10 unknown type `Plce`"),
        ] {
            let found = type_findings(body);
            assert!(matches!(found.as_slice(), [one] if one.starts_with(expected)), "{body}: {found:?}");
        }
    }

    #[test]
    fn correct_and_unknown_types_are_not_reported() {
        for body in [
            "unit = unit or \"celsius\"\nreturn unit == \"fahrenheit\"",
            "unit = string.upper(unit or \"celsius\")\nreturn unit == \"KELVIN\"",
            "if unit then unit = unit .. \"x\" end\nreturn unit",
            "location = { location }\nreturn location[1]",
            "local t = {}\nt[location] = true\nt.more = 1\nreturn t.less",
            "local r = json.array({})\ntable.insert(r, 1)\ntable.insert(r, \"a\")\nreturn r",
            "local data = json.decode(location)\nreturn data.a.b.c + 1, data:x()",
            "return string.upper(string.match(location, \"a\"))",
            "return string.rep(\"x\", tonumber(location))",
            "if place.zip then return place.zip + 1 end",
            "local zip = place.zip or 0\nreturn zip + 1",
            "local function walk(node, depth)\n  if type(node) ~= \"table\" then return node end\n  for k, v in pairs(node) do node[k] = walk(v, depth + 1) end\n  return node\nend\nreturn walk(place, 0)",
            "local list = {}\nlist[#list + 1] = { name = place.name, n = 1 }\ntable.sort(list, function(a, b) return a.n < b.n end)\nlocal best\nfor _, item in ipairs(list) do if not best or item.n > best.n then best = item end end\nreturn best",
            "local ok, why = pcall(fs.read, location)\nif not ok then error(tool.failure(tostring(why))) end\nreturn why",
            "task.spawn(fs.read, location)\ntask.delay(1, function() return 1 end)\nreturn time.iso(), time.format(\"%F\", nil, \"UTC\")",
            "local function new() return { history = {}, total = 0 } end\nlocal order = new()\nreturn { history = json.array(order.history) }",
            "local function new(): { history: { any }? } return { history = {} } end\nlocal order = new()\nreturn json.array(order.history)",
            "log.info(location, unit, place)\nprint(nil, 1)\ntool.progress(nil, \"a\")\nreturn tool.name .. tool.deadline",
        ] {
            assert_eq!(type_findings(body), Vec::<String>::new(), "{body}");
        }
    }

    #[test]
    fn strict_and_nocheck_comments_are_respected() {
        let strict =
            "--!strict\nreturn function(location, unit, place)\n  local t = { a = 1 }\n  return t.b\nend";
        let found = findings(SPEC, strict, &["--types"]);
        assert!(
            matches!(found.as_slice(), [one] if one.starts_with("4:10: warning[DT427]: key `b`")),
            "{found:?}"
        );
        let none = "--!nocheck\nreturn function(location, unit, place)\n  return place.nmae\nend";
        assert_eq!(findings(SPEC, none, &["--types"]), Vec::<String>::new());
    }

    #[test]
    fn type_annotations_are_checked_with_known_definitions() {
        for (script, is_told) in [
            ("local run: T = function(location, unit, place)\n  return place.nmae\nend\nreturn run", true),
            ("local function run(location, unit, place)\n  return place.nmae\nend\nreturn run", true),
            ("local run = function(location, unit, place)\n  return place.nmae\nend\nreturn (run)", true),
            ("return function(location: string, unit: TUnit?, place: any)\n  return place.nmae\nend", false),
            ("return function(location, unit, place: TPlace): string?\n  return place.nmae\nend", true),
        ] {
            let found = findings(SPEC, script, &["--types"]);
            assert_eq!(!found.is_empty(), is_told, "{script}: {found:?}");
        }
    }

    #[test]
    fn an_unknown_global_is_reported_once() {
        let found = findings(
            SPEC,
            "return function(location, unit, place)\n  return fs.red(location)\nend",
            &["--types"],
        );
        assert!(matches!(found.as_slice(), [one] if one.contains("DT420")), "{found:?}");
    }

    #[test]
    fn the_analyzer_accepts_the_definitions() {
        let folder = project(
            SCHEMAS,
            &[("get-weather.lua", "return function(a, b, c, d, e, f, g) return f.nmae end")],
        );
        let found = stdout(&deftool(folder.path(), &["check", "--types", "--format", "concise"]));
        assert!(
            found.contains("scripts/get-weather.lua:1:45: warning[DT427]: key `nmae` not found"),
            "{found}"
        );
        for example in ["quickstart", "from-gptel"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
            let found = stdout(&deftool(&folder, &["check", "--types", "--format", "concise"]));
            assert!(!found.contains("DT427"), "{found}");
        }
    }
}
