//! `check` on whole projects: scripts, allow and deny, and `deftool rule`.

use std::fs;
use std::path::Path;
use std::process::Command;

use deftool_lang::schema::Target;
use deftool_test_support::step;

struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn deftool(folder: &Path, arguments: &[&str]) -> Ended {
    let output =
        Command::new(env!("CARGO_BIN_EXE_deftool")).current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Returns the exit code and the output of `check --format concise` in a project with these files.
fn check(files: &[(&str, &str)]) -> (i32, String) {
    let folder = project(files);
    let ended = deftool(folder.path(), &["check", "--format", "concise"]);
    (ended.code, ended.out)
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

const NOW: &str = "(deftool :name \"now\" :description \"Tell the time.\")\n";
const COPY: &str = "(deftool :name \"copy\" :description \"Copy a note.\" :args ((:name \"from_note\" :type string :description \"Which.\") (:name \"to\" :type string :description \"Where to.\")))\n";
const EXIT: &str = "(defexit :name \"done\" :description \"Say that it is done.\")\n";
const SCRIPT: &str = "return function() return 1 end\n";

/// Twelve definitions that each refer to the next one ten times have a million million paths. No command follows them.
#[test]
fn a_costly_schema_is_an_error() {
    let schema = |at: &str| {
        let level = |level: usize| {
            format!(":d{level} (:anyOf [{}])", format!("(:$ref \"#{at}/$defs/d{}\") ", level + 1).repeat(10))
        };
        let levels: String = (0..12).map(level).collect();
        format!(":$ref \"#{at}/$defs/d0\" :$defs ({levels} :d12 (:type string))")
    };
    let (argument, result) = (schema("/properties/x"), schema(""));
    let specs = format!(
        "(deftool :name \"costly\" :description \"Do it.\" :accepts [(:x 5)]
 :args ((:name \"x\" :description \"An x.\" {argument})))
(deftool :name \"results\" :description \"Do it.\" :args () :returns ({result}))\n{NOW}"
    );
    let script = "return function(x) return x end\n";
    let folder = project(&[
        ("specs/a.eld", &specs),
        ("scripts/now.lua", SCRIPT),
        ("scripts/costly.lua", script),
        ("scripts/results.lua", SCRIPT),
    ]);
    let error = "error[DT260]: the schema is too costly to validate: its references expand to more than 100000 subschemas for one value";
    for target in Target::ALL {
        let check = ["check", "--format", "concise", "--target", target.as_str()];
        let ended = deftool(folder.path(), &check);
        let found: Vec<&str> = ended.out.lines().filter(|line| line.contains("DT260")).collect();
        assert_eq!(
            found,
            [format!("specs/a.eld:1:16: {error}"), format!("specs/a.eld:3:66: {error}")],
            "{}",
            ended.out
        );
        deftool(folder.path(), &["compile", "--target", target.as_str()]);
    }
    for (arguments, code) in [
        (&["call", "costly", "{\"x\": 5}"][..], 1),
        (&["call", "results"], 1),
        (&["call", "now"], 0),
        (&["test", "--fuzz", "--cases", "1"], 1),
    ] {
        let ended = deftool(folder.path(), arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {}{}", ended.out, ended.err);
    }
}

/// An inaccessible file is not reported as missing. A circular link behaves like an unreadable folder.
#[cfg(unix)]
#[test]
fn an_inaccessible_script_is_reported_as_unreadable() {
    let folder = project(&[("specs/a.eld", NOW)]);
    fs::create_dir(folder.path().join("scripts")).unwrap();
    std::os::unix::fs::symlink("now.lua", folder.path().join("scripts/now.lua")).unwrap();
    let ended = deftool(folder.path(), &["check", "--format", "concise"]);
    let expected = "specs/a.eld:1:16: error[DT404]: cannot read the script of `now`: scripts/now.lua: ";
    assert!(ended.out.starts_with(expected) && ended.out.lines().count() == 1, "{}", ended.out);
    // The same for modules.
    let script = "local x = require('./lib/x')\nreturn function() return x end\n";
    let folder =
        project(&[("specs/a.eld", NOW), ("scripts/now.lua", script), ("scripts/lib/y.lua", "return 1\n")]);
    std::os::unix::fs::symlink("x.lua", folder.path().join("scripts/lib/x.lua")).unwrap();
    let ended = deftool(folder.path(), &["check", "--format", "concise"]);
    let expected =
        "scripts/now.lua:1:1: error[DT411]: cannot require `./lib/x`: cannot read scripts/lib/x.lua: ";
    assert!(ended.out.starts_with(expected), "{}", ended.out);
}

#[test]
fn scripts_are_checked_against_their_specs() {
    let async_copy = COPY.replace("\"copy\"", "\"copy\" :async t");
    for (files, expected) in [
        (vec![("specs/a.eld", NOW), ("scripts/now.lua", SCRIPT)], ""),
        (
            vec![("specs/a.eld", NOW), ("scripts/Now.lua", SCRIPT)],
            "specs/a.eld:1:16: error[DT401]: missing script of `now`: scripts/now.lua does not exist\n",
        ),
        (
            vec![("specs/a.eld", NOW), ("scripts/now.lua", SCRIPT), ("scripts/old.lua", SCRIPT)],
            "scripts/old.lua:1:1: note[DT408]: no tool uses this script\n",
        ),
        // The script of a tool with an error is unknown.
        (
            vec![("specs/a.eld", "(deftool :name now)"), ("scripts/now.lua", SCRIPT)],
            "specs/a.eld:1:16: error[DT113]: `:name` takes a string, found a symbol\n",
        ),
        // Subfolders are ignored.
        (vec![("specs/a.eld", NOW), ("scripts/now.lua", SCRIPT), ("scripts/lib/x.lua", SCRIPT)], ""),
        (
            vec![("specs/a.eld", NOW), ("scripts/now.lua", SCRIPT), ("scripts/now.luau", SCRIPT)],
            "specs/a.eld:1:16: warning[DT410]: `now` has two scripts: scripts/now.lua is used, scripts/now.luau is ignored\n",
        ),
        (
            vec![
                ("specs/a.eld", COPY),
                ("scripts/copy.lua", "return function(fromNote, to) return to end\n"),
            ],
            "",
        ),
        (vec![("specs/a.eld", COPY), ("scripts/copy.lua", "return function(a, b) return a .. b end\n")], ""),
        (
            vec![
                ("specs/a.eld", COPY),
                ("scripts/copy.lua", "return function(to, from_note) return to end\n"),
            ],
            "scripts/copy.lua:1:1: warning[DT409]: the parameter `to` of `copy` receives the argument `from_note`\n",
        ),
        (
            vec![
                ("specs/a.eld", &async_copy),
                ("scripts/copy.lua", "return function(from_note, to) return to end\n"),
            ],
            "scripts/copy.lua:1:1: error[DT403]: the function of `copy` takes 2 parameters, but the spec has 3 arguments\n",
        ),
        (
            vec![
                ("specs/a.eld", &async_copy),
                ("scripts/copy.lua", "return function(from_note, to, done) done(to) end\n"),
            ],
            "scripts/copy.lua:1:1: warning[DT409]: the parameter `from_note` of `copy` receives the argument `callback`\n",
        ),
        // A script of an exit tool has exactly one finding.
        (
            vec![
                (
                    "specs/a.eld",
                    "(defexit :name \"done\" :description \"Say that it is done.\" :script \"scripts/done.lua\")",
                ),
                ("scripts/done.lua", SCRIPT),
            ],
            "specs/a.eld:1:59: warning[DT122]: `:script` has no effect on an exit tool, which executes nothing\n",
        ),
        // Modules and tests are compiled even if no script uses them.
        (
            vec![
                ("specs/a.eld", NOW),
                ("scripts/now.lua", SCRIPT),
                ("scripts/now_test.lua", "test('a',"),
                ("scripts/lib/deep/m.lua", "return {\n"),
                ("scripts/lib/n.luau", "return {}"),
            ],
            "scripts/lib/deep/m.lua:2:1: error[DT412]: the module does not compile: Expected identifier when parsing expression, got <eof>\nscripts/now_test.lua:1:1: error[DT412]: the test script does not compile: Expected identifier when parsing expression, got <eof>\n",
        ),
        (
            vec![
                ("specs/a.eld", ""),
                ("specs/b.eld", "; nothing yet\n"),
                ("specs/c.eld", NOW),
                ("scripts/now.lua", SCRIPT),
            ],
            "specs/a.eld:1:1: note[DT407]: the file is empty\n",
        ),
    ] {
        assert_eq!(check(&files).1, expected, "{files:?}");
    }
    let folder = project(&[("specs/a.eld", NOW), ("scripts/nwo.lua", SCRIPT)]);
    let ended = deftool(folder.path(), &["check"]);
    assert!(ended.out.contains("found the similar name scripts/nwo.lua"), "{}", ended.out);
    let named = NOW.replace("\"now\"", "\"now\" :script \"scripts/noww.lua\"");
    let folder = project(&[("specs/a.eld", &named), ("scripts/now.lua", SCRIPT)]);
    let ended = deftool(folder.path(), &["check"]);
    assert!(ended.out.contains("did you mean \"scripts/now.lua\"?"), "{}", ended.out);
}

#[test]
fn allow_comments_work_in_scripts() {
    let swapped = "return function(to, from_note) return to end";
    for (script, expected) in [
        (format!("-- deftool: allow(swapped-parameters)\n\n{swapped}\n"), ""),
        (format!("{swapped} -- deftool: allow(DT409)\n"), ""),
        (
            format!(
                "local a, b, c = \"-- a\\\"--b\", '--', [=[--]]]=] --[[ -- ]] {swapped} -- deftool: allow(DT409)\n"
            ),
            "",
        ),
        // A string that looks like a comment is ignored.
        (
            format!("local a = \"-- deftool: allow(DT409)\" {swapped}\n"),
            "scripts/copy.lua:1:1: warning[DT409]: the parameter `to` of `copy` receives the argument `from_note`\n",
        ),
        (
            format!("-- deftool: allow(unused-script)\n{swapped}\n"),
            "scripts/copy.lua:2:1: warning[DT409]: the parameter `to` of `copy` receives the argument `from_note`\n",
        ),
        (
            format!("-- deftool: allow(no-such)\n{swapped}\n"),
            "scripts/copy.lua:1:19: warning[DT125]: unknown rule `no-such`\nscripts/copy.lua:2:1: warning[DT409]: the parameter `to` of `copy` receives the argument `from_note`\n",
        ),
        (
            format!("-- deftool: allow swapped-parameters\n{swapped}\n"),
            "scripts/copy.lua:1:1: warning[DT125]: expected `deftool: allow(rule, …)`, or `deftool: skip` on a line of its own\nscripts/copy.lua:2:1: warning[DT409]: the parameter `to` of `copy` receives the argument `from_note`\n",
        ),
    ] {
        assert_eq!(check(&[("specs/a.eld", COPY), ("scripts/copy.lua", &script)]).1, expected, "{script}");
    }
    let lint = format!("(deflint :allow [swapped-parameters])\n{COPY}");
    assert_eq!(check(&[("specs/a.eld", &lint), ("scripts/copy.lua", swapped)]), (0, String::new()));
    // A missing script is an error, which cannot be allowed.
    let allowed = format!(";; deftool: allow(missing-script)\n{NOW}");
    let (code, out) = check(&[("specs/a.eld", &allowed)]);
    assert_eq!((code, out.lines().count()), (1, 2), "{out}");
    assert!(out.contains("DT127") && out.contains("DT401"), "{out}");
}

#[test]
fn denied_findings_fail_check_only() {
    let spec = "(deftool :name \"silent\")\n";
    let lint = "(deflint :deny [missing-description])\n";
    let files = [("specs/a.eld", spec), ("specs/lint.eld", lint), ("scripts/silent.lua", SCRIPT)];
    let (code, out) = check(&files);
    assert_eq!((code, out.lines().count()), (1, 1), "{out}");
    assert!(out.starts_with("specs/a.eld:1:16: error[DT112]"), "{out}");
    let folder = project(&files);
    let compiled = deftool(folder.path(), &["compile"]);
    assert_eq!((compiled.code, compiled.err.as_str()), (0, ""));
    assert!(compiled.out.contains("silent"));
    let called = deftool(folder.path(), &["call", "silent"]);
    assert_eq!((called.code, called.out.trim()), (0, "1"), "{}", called.err);
}

/// Target findings can be allowed and denied like all others.
#[test]
fn target_findings_can_be_allowed_and_denied() {
    let now = |comment: &str| {
        format!(
            "{comment}\n(deftool :name \"now\" :description \"Tell the time.\" :function 'ignore\n :args ((:name \"zone\" :type string :maxLength 40 :description \"A zone such as CET.\")))\n"
        )
    };
    for (comment, code, expected) in [
        ("", 0, "a.eld:3:36: warning[DT503]: `:maxLength` is dropped for openai-strict\n"),
        (";; deftool: allow(dropped-by-target)", 0, ""),
        ("(deflint :allow [DT503])", 0, ""),
        (
            "(deflint :deny [DT503])",
            1,
            "a.eld:3:36: error[DT503]: `:maxLength` is dropped for openai-strict\n",
        ),
    ] {
        let folder = project(&[("a.eld", &now(comment))]);
        let check = ["check", "--target", "openai-strict", "--format", "concise", "a.eld"];
        let ended = deftool(folder.path(), &check);
        assert_eq!((ended.code, ended.out.as_str()), (code, expected), "{comment}");
        // Denied findings do not prevent compilation.
        let ended = deftool(folder.path(), &["compile", "--target", "openai-strict", "a.eld"]);
        assert_eq!(
            (ended.code, ended.err.contains("DT503")),
            (0, !expected.is_empty()),
            "{comment}: {}",
            ended.err
        );
    }
}

/// Findings about allows can be allowed and denied like all others.
#[test]
fn findings_about_allows_can_be_allowed_and_denied() {
    let unused = |lint: &str| format!("{lint}\n;; deftool: allow(missing-type)\n{EXIT}");
    for (spec, code, expected) in [
        (unused(""), 0, "2:19: note[DT126]: unused allow of `missing-type`\n"),
        (unused("(deflint :allow [unused-allow])"), 0, ""),
        (unused("(deflint :deny [DT126])"), 1, "2:19: error[DT126]: unused allow of `missing-type`\n"),
        (format!("{} ; deftool: allow(missing-type, unused-allow)\n", EXIT.trim_end()), 0, ""),
        (
            format!(";; deftool: allow(unused-allow)\n{EXIT}"),
            0,
            "1:19: note[DT126]: unused allow of `unused-allow`\n",
        ),
        (format!(";; deftool: allow(unknown-allow)\n(deflint :allow [no-such])\n{EXIT}"), 0, ""),
        (
            format!(";; deftool: allow(no-such)\n(deflint :deny [unknown-allow])\n{EXIT}"),
            1,
            "1:19: error[DT125]: unknown rule `no-such`\n",
        ),
    ] {
        let (ended, out) = check(&[("specs/a.eld", &spec)]);
        assert_eq!((ended, out.replace("specs/a.eld:", "").as_str()), (code, expected), "{spec}");
    }
}

/// The project's levels apply to every part of it.
#[test]
fn project_settings_apply_to_single_files() {
    let folder = project(&[
        ("specs/a.eld", "(deftool :name \"silent\")\n"),
        ("specs/b.eld", ";; deftool: allow(missing-type)\n(deftool :name \"b b\") (wrong\n"),
        ("specs/lint/all.eld", "(deflint :deny [missing-description no-such])\n(deftool :name \"silent\")\n"),
        ("scripts/silent.lua", SCRIPT),
    ]);
    let denied = "specs/a.eld:1:16: error[DT112]: `silent` has no `:description`, so the model has to guess when to use it\n";
    for path in ["specs/a.eld", "scripts/silent.lua"] {
        let ended = deftool(folder.path(), &["check", "--format", "concise", path]);
        let of_a: String = ended.out.split_inclusive('\n').filter(|line| line.contains("/a.eld")).collect();
        assert_eq!((ended.code, of_a.as_str()), (1, denied), "{path}");
        // Settings in other files apply, but those files have no findings of their own.
        assert!(!ended.out.contains("/b.eld") && !ended.out.contains("no-such"), "{}", ended.out);
    }
    let alone = deftool(folder.path(), &["check", "--format", "concise", "specs/a.eld"]);
    assert_eq!(alone.out, denied);
    assert!(alone.err.is_empty(), "{}", alone.err);
    let summary = deftool(folder.path(), &["check", "specs/a.eld"]);
    assert!(summary.err.contains("1 tool in 1 file"), "{}", summary.err);
    // An unreadable file that may contain settings does not prevent the check.
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/null", folder.path().join("specs/null.eld")).unwrap();
    assert_eq!(deftool(folder.path(), &["check", "specs/a.eld"]).code, 1);
    // Files outside of the project are not affected.
    fs::write(folder.path().join("loose.eld"), "(deftool :name \"silent\")\n").unwrap();
    assert_eq!(deftool(folder.path(), &["check", "loose.eld"]).code, 0);
}

/// Each project has its own levels, names and scripts.
#[test]
fn projects_in_one_command_are_independent() {
    let folder = project(&[
        ("one/specs/a.eld", "(deflint :deny [missing-description])\n(deftool :name \"silent\")\n"),
        ("one/scripts/silent.lua", SCRIPT),
        ("two/specs/a.eld", "(deflint :allow [missing-description])\n(deftool :name \"silent\")\n"),
        ("two/scripts/silent.lua", SCRIPT),
        ("two/scripts/spare.lua", SCRIPT),
    ]);
    let ended = deftool(folder.path(), &["check", "--format", "concise", "one", "two"]);
    let expected = "one/specs/a.eld:2:16: error[DT112]: `silent` has no `:description`, so the model has to guess when to use it\n\
                    two/scripts/spare.lua:1:1: note[DT408]: no tool uses this script\n";
    assert_eq!((ended.code, ended.out.as_str()), (1, expected));
    let ended = deftool(folder.path(), &["check", "--format", "concise", "one", "two/specs/a.eld"]);
    assert_eq!(ended.out.lines().count(), 1, "{}", ended.out);
    let ended = deftool(folder.path(), &["check", "--format", "concise", "two", "two/specs/a.eld"]);
    assert_eq!((ended.code, ended.out.lines().count()), (0, 1), "{}", ended.out);
}

/// A tool with an error in its schema is left out.
#[test]
fn tools_with_schema_errors_are_left_out() {
    let spec = "(deftool :name \"good\" :description \"Do it.\")\n\
                (deftool :name \"bad\" :description \"Do it.\" :accepts ((:x \"a\"))\n \
                :args ((:name \"x\" :type integer :description \"How many.\")))\n\
                (deftool :name \"worse\" :description \"Do it.\" :rejects ((:x 1))\n \
                :args ((:name \"x\" :type integer :description \"How many.\")))\n";
    let folder = project(&[("a.eld", spec)]);
    let checked = deftool(folder.path(), &["check", "--format", "concise", "a.eld"]);
    assert!(checked.out.contains("error[DT245]") && checked.out.contains("error[DT246]"), "{}", checked.out);
    let compiled = deftool(folder.path(), &["compile", "a.eld"]);
    assert_eq!(compiled.code, 1, "{}", compiled.err);
    let tools: serde_json::Value = serde_json::from_str(&compiled.out).unwrap_or_default();
    let names: Vec<_> =
        tools.as_array().into_iter().flatten().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["good"]);
}

#[test]
fn too_many_tools_are_reported() {
    let one = |n| format!("(defexit :name \"t{n}\" :description \"Say number {n}.\")\n");
    let tools: Vec<String> = (0..130).map(one).collect();
    let tools = tools.concat();
    let (code, out) = check(&[("specs/a.eld", &tools)]);
    assert_eq!(
        (code, out.as_str()),
        (
            0,
            "specs/a.eld:129:16: warning[DT311]: the project has 130 tools, but OpenAI accepts at most 128 in a request\n"
        )
    );
    let few = "(defworker :name \"few\" :exit-tools [\"t1\" \"t2\"])\n(defworker :name \"all\")\n";
    let (_, out) = check(&[("specs/a.eld", &tools), ("specs/b.eld", few)]);
    assert_eq!(
        out,
        "specs/b.eld:2:18: warning[DT311]: worker `all` offers 130 tools, but OpenAI accepts at most 128 in a request\n"
    );
}

#[test]
fn rule_lists_and_explains_rules() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| deftool(folder.path(), arguments);
    let listed = run(&["rule"]);
    let rules = deftool_project::rules::all();
    assert_eq!((listed.code, listed.out.lines().count()), (0, rules.len()));
    assert!(listed.out.contains("DT107  stray-colon"), "{}", listed.out);
    let by_code = run(&["rule", "dt107"]);
    assert_eq!((by_code.code, &by_code.out), (0, &run(&["rule", "stray-colon"]).out));
    assert!(
        by_code.out.starts_with("DT107 stray-colon, warning: a key that ends in a colon\n"),
        "{}",
        by_code.out
    );
    assert!(
        by_code.out.contains("This is wrong:\n\n    (deftool") && !by_code.out.contains("```"),
        "{}",
        by_code.out
    );
    let scripts = run(&["rule", "swapped-parameters"]).out;
    assert!(scripts.contains("with scripts/copy.lua:\n\n    return"), "{scripts}");
    let json: serde_json::Value = serde_json::from_str(&run(&["rule", "DT107", "--json"]).out).unwrap();
    assert_eq!(json["name"], "stray-colon");
    assert_eq!(json["severity"], "warning");
    let all: serde_json::Value = serde_json::from_str(&run(&["rule", "--json"]).out).unwrap();
    assert_eq!(all.as_array().unwrap().len(), rules.len());
    let unknown = run(&["rule", "stray-colom"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert!(unknown.err.contains("did you mean `stray-colon`?"), "{}", unknown.err);
}

#[test]
fn many_allows_are_applied() {
    let many = 10_000 / step(4);
    let text = "(progn\n;; deftool: allow(missing-description)\n".repeat(many)
        + &"(gptel-make-tool :name \"a\")\n".repeat(many)
        + &")".repeat(many);
    let folder = project(&[("nested.el", &text)]);
    let ended = deftool(folder.path(), &["check", "--format", "concise", "nested.el"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    // One allow applies to the first tool, the enclosing one to the others.
    assert_eq!(ended.out.matches("DT126").count(), many - 2);
    let beside = "(gptel-make-tool :name \"a\") ; deftool: allow(DT112, DT129, no-such)\n".repeat(2_000);
    let folder = project(&[("beside.el", &beside)]);
    let ended = deftool(folder.path(), &["check", "--format", "concise", "beside.el"]);
    assert_eq!(ended.out.matches("unknown rule `no-such`").count(), 2_000, "{}", ended.err);
}

const WEATHER: &str = "(deftool :name \"weather\" :description \"Tell the weather.\"
 :args ((:name \"city\" :type string :description \"Where.\") (:name \"max-days\" :type integer :optional t :description \"How long.\")))
(defexit :name \"done\" :description \"End the conversation.\")
(deflint :allow [name-style])\n";
const WEATHER_SCRIPT: &str = "return function(city, max_days) return city end\n";

/// Returns the findings of `check` in a project with `weather` and this test script.
fn check_test(test: &str) -> String {
    let files = [
        ("specs/a.eld", WEATHER),
        ("scripts/weather.lua", WEATHER_SCRIPT),
        ("scripts/deep/weather_test.lua", test),
    ];
    let (_, out) = check(&files);
    out.replace("scripts/deep/weather_test.lua:", "")
}

#[test]
fn test_scripts_are_checked_against_the_tools() {
    for (test, expected) in [
        ("tool.load('wether')", "1:12: error[DT430]: unknown tool `wether`\n"),
        ("tool.load('other')", "1:12: error[DT430]: unknown tool `other`\n"),
        ("tool.load('done')", "1:12: error[DT430]: `done` is an exit tool and cannot be called\n"),
        (
            "tool.load('weather')({ citty = 'a' })",
            "1:24: warning[DT431]: unknown argument `citty` of `weather`\n",
        ),
        (
            "tool.load('weather')({ max_days = 1 })",
            "1:24: warning[DT431]: unknown argument `max_days` of `weather`\n",
        ),
        (
            "tool.load('weather')({ ['max_days'] = 1 })",
            "1:26: warning[DT431]: unknown argument `max_days` of `weather`\n",
        ),
        (
            "local function run(t) return tool.load('weather')(t) end\nrun({ where = 1 })",
            "2:7: warning[DT431]: unknown argument `where` of `weather`\n",
        ),
        ("exepct(1).is(1)", "1:1: warning[DT420]: unknown global `exepct`\n"),
        ("temp.wirte('a', 'b')", "1:1: warning[DT420]: unknown global `temp.wirte`\n"),
        ("tool.laod('weather')", "1:1: warning[DT420]: unknown global `tool.laod`\n"),
        // What a test may do.
        (
            "test('a', function() expect(mock(1)()).is(1) temp.write('a', temp_dir()) expect(temp.list()).equals({}) end)",
            "",
        ),
        ("helper = 1 function other() return helper end test('a', other)", ""),
        ("expect(function() tool.load('other')({ x = 1 }) end).fails('unknown tool')", ""),
        ("expect(function() tool.load('weather')({ x = 1 }) end).fails()", ""),
        (
            "local weather = tool.load('weather', { fs = { read = mock('x') } }) weather({ city = 'a', ['max-days'] = 1 })",
            "",
        ),
        ("for _, name in { 'other' } do tool.load(name)({ x = 1 }) end", ""),
        ("tool.load('weather')({ x = 1 }) -- deftool: allow(unknown-test-argument)", ""),
    ] {
        assert_eq!(check_test(test), expected, "{test}");
    }
}

#[test]
fn findings_in_test_scripts_have_fixes() {
    for (test, fixed) in [
        ("tool.load('wether')", "write `weather`"),
        ("tool.load('weather')({ citty = 'a' })", "write `city`"),
        ("tool.load('weather')({ max_days = 1 })", "write `[\"max-days\"]`"),
        ("tool.load('weather')({ ['max_days'] = 1 })", "write `max-days`"),
    ] {
        let files =
            [("specs/a.eld", WEATHER), ("scripts/weather.lua", WEATHER_SCRIPT), ("scripts/a_test.lua", test)];
        let ended = deftool(project(&files).path(), &["check", "--format", "json"]);
        let checked: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(checked["findings"][0]["fix"]["title"], fixed, "{test}");
    }
}

/// A form that cannot be read may define the tool.
#[test]
fn an_unknown_tool_is_not_reported_if_an_error_may_hide_it() {
    let files = [
        ("specs/a.eld", "(deftool :name \"a\""),
        ("specs/b.eld", WEATHER),
        ("scripts/weather.lua", WEATHER_SCRIPT),
        ("scripts/a_test.lua", "tool.load('b')({ x = 1 }) tool.load('weather')({ x = 1 })"),
    ];
    let (code, out) = check(&files);
    assert_eq!(code, 1);
    assert!(!out.contains("DT430") && out.contains("DT431"), "{out}");
}

/// A tool may be called `run_test`. Its script is not a test script.
#[test]
fn the_script_of_a_tool_is_not_checked_as_a_test_script() {
    let files = [
        ("specs/a.eld", "(deftool :name \"run_test\" :description \"Run the tests.\")\n"),
        ("scripts/run_test.lua", "return function() return expect end\n"),
    ];
    let expected = "scripts/run_test.lua:1:26: warning[DT420]: unknown global `expect`\n";
    assert_eq!(check(&files), (0, String::from(expected)));
}
