//! The command line itself: help, completions, `tools`, arguments of calls, and the selection of findings.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::project::Project;

const SPEC: &str = r#"(deftool
 :name "greet"
 :description "Greet a person."
 :args ((:name "name" :type string :description "Who to greet.")
        (:name "times" :type integer :optional t :default 1 :description "How often.")
        (:name "style" :type string :optional t :enum ["short" "long"] :description "How."))
 :allow (:read ["notes/"] :env ["USER"]))
(defexit :name "done" :description "End the work.")
"#;

const SCRIPT: &str =
    "return function(name, times, style) return { name = name, times = times, style = style } end";

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC);
    project.write("scripts/greet.lua", SCRIPT);
    project
}

#[test]
fn help_lists_every_command_in_a_group() {
    let project = Project::empty();
    let help = project.run(&["--help"]).stdout;
    let completions = project.run(&["completions", "fish"]).stdout;
    let prefix = "-a \"";
    let names: Vec<&str> = completions
        .lines()
        .filter(|line| line.contains("__fish_deftool_needs_command"))
        .filter_map(|line| line.split(prefix).nth(1)?.split('"').next())
        // Values of options.
        .filter(|name| !name.contains('\\'))
        .collect();
    // `man` is for packagers, and `help` is an option of each command.
    let (hidden, listed): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| ["help", "man"].contains(name));
    assert!((21..=26).contains(&listed.len()), "{listed:?}");
    for (names, expected) in [(hidden, 0), (listed, 1)] {
        for name in names {
            assert_eq!(help.matches(&format!("\n  {name} ")).count(), expected, "{name}\n{help}");
        }
    }
    assert!(help.contains("\nExamples:\n"));
    // Internal commands, which deftool starts itself, are not suggested.
    let unknown = project.run(&["script-hosts"]);
    assert!(unknown.code == Some(2) && !unknown.stderr.contains("similar"), "{unknown:?}");
}

#[test]
fn an_old_name_is_answered_with_the_new_one() {
    let project = Project::empty();
    for (arguments, expected) in [
        (&["bench", "greet"][..], "use `deftool call TOOL --repeat N`"),
        (&["watch"], "use `deftool test --watch`"),
        (&["requests", "list", "j"], "use `deftool journal`"),
        (&["resume", "j"], "use `deftool journal resume`"),
        (&["targets"], "use `deftool compile --list-targets`"),
        (&["check", "--project", "x"], "use `--directory`"),
        (&["replay", "x", "--replay-lenient"], "use `--lenient`"),
        (
            &["run", "--replay-tools"],
            "use `--recorded-tools` of `deftool run`; `deftool replay` runs no tools",
        ),
    ] {
        let ended = project.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(&format!("  tip: {expected}\n")), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches("tip:").count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn the_folder_of_the_project_comes_before_or_after_the_command() {
    let project = Project::empty();
    project.write("sub/specs/a.eld", SPEC);
    let expected = project.run(&["tools", "-C", "sub"]);
    assert!(expected.code == Some(0) && expected.stdout.contains(" sub/specs/a.eld:2:8\n"), "{expected:?}");
    for arguments in
        [&["-C", "sub", "tools"][..], &["--directory", "sub", "tools"], &["-C", "x", "tools", "-C", "sub"]]
    {
        assert_eq!(project.run(arguments).stdout, expected.stdout, "{arguments:?}");
    }
    let ended = project.run(&["-C", "sub", "journal", "list", "j"]);
    let message = "error: `deftool journal list` does not use a project; omit `-C`\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), message));
}

#[test]
fn json_is_a_format_of_every_command_with_data() {
    let project = project();
    project.write("calls.jsonl", r#"{"tool": "greet", "arguments": {"name": "a"}}"#);
    for arguments in [
        &["check"][..],
        &["test"],
        &["test", "--list"],
        &["tools"],
        &["rule"],
        &["rule", "DT204"],
        &["diff", "specs", "specs"],
        &["compile", "--list-targets"],
        &["stub", "--list"],
        &["replay", "--specs", "calls.jsonl"],
    ] {
        let short = project.run(&[arguments, &["--json"]].concat());
        let long = project.run(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str::<Value>(&short.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {short:?}"));
        assert_eq!((short.code, short.stdout), (long.code, long.stdout), "{arguments:?}");
    }
    for (arguments, expected) in [
        (&["check", "--json", "--format", "github"][..], "'--json' cannot be used with '--format <FORMAT>'"),
        (&["compile", "--json"], "--list-targets"),
        (&["stub", "--format", "json"], "--list"),
    ] {
        let ended = project.run(arguments);
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn progress_and_summaries_can_be_hidden() {
    let project = project();
    for arguments in [
        &["check"][..],
        &["test"],
        &["fmt"],
        &["init", "new"],
        &["new", "greet_again"],
        &["types", "-o", "types/t.luau"],
        &["compile", "-o", "tools.json"],
        &["diff", "specs", "specs"],
        &["trust", "grant"],
    ] {
        let ended = project.run(&[arguments, &["-q"]].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn completions_are_valid_shell_code() {
    let script = Project::empty().run(&["completions", "bash"]).stdout;
    let Ok(mut shell) = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn() else { return };
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
}

#[test]
fn tools_are_listed_and_described() {
    let project = project();
    let expected = "\
NAME              ARGUMENTS             PERMISSIONS            DEFINED AT
greet             name [times] [style]  read notes/; env USER  specs/a.eld:2:8
done (exit tool)                                               specs/a.eld:8:16
";
    assert_eq!(project.run(&["tools"]).stdout, expected);
    let json: Value = serde_json::from_str(&project.run(&["tools", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["permissions"]["read"], json!(["notes/"]));
    assert_eq!((&json[0]["arguments"][1]["optional"], &json[1]["kind"]), (&json!(true), &json!("exit")));
    let help = project.run(&["call", "greet", "--help"]);
    let expected = "Greet a person.

Usage: deftool call greet name=STRING [times=INTEGER] [style=STRING]

Arguments:
  name   Who to greet.
  times  How often. [default: 1]
  style  How. [values: short, long]

Permissions: read notes/; env USER

Defined at specs/a.eld:2:8
";
    assert_eq!((help.code, help.stdout.as_str()), (Some(0), expected));
    assert!(project.run(&["call", "--help"]).stdout.contains("deftool call [OPTIONS]"));
}

#[test]
fn calls_take_pairs_or_json() {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC.replace(" :allow (:read [\"notes/\"] :env [\"USER\"])", ""));
    project.write("scripts/greet.lua", SCRIPT);
    let call = |arguments: &[&str]| project.run(&[&["call", "greet"], arguments].concat());
    for arguments in [&["name=1 = 1", "times=2"][..], &[r#"{"name": "1 = 1", "times": 2}"#]] {
        let ended = call(arguments);
        let result: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        assert_eq!(result, json!({"name": "1 = 1", "times": 2}), "{arguments:?}");
    }
    for (arguments, expected) in [
        (&["name=a", "name=b"][..], "duplicate argument `name`"),
        (&["name=a", "times"], "must be KEY=VALUE pairs or one JSON object, not `times`"),
        (&["name=a", "times=x"], "\"x\" is not of type \"integer\""),
        (&["name=a", "other=1"], "'other' was unexpected"),
        (&[r#"{"name": "a", "name": "b"}"#], "duplicate member `name`"),
        (&["name"], "must be KEY=VALUE pairs or one JSON object, not `name`"),
        (&["{name"], "are not JSON"),
        (&["1"], "must be a JSON object"),
    ] {
        let ended = call(arguments);
        assert!(ended.code == Some(1) && ended.stderr.contains(expected), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn findings_are_selected() {
    let project = Project::empty();
    project.write("specs/a.eld", "(deftool :name \"aB\" :args ((:name \"x\" :type strng)))\n");
    let codes = |arguments: &[&str]| {
        let ended = project.run(&[&["check", "--format", "concise"], arguments].concat());
        let code = |line: &str| Some(line.split('[').nth(1)?.split(']').next()?.to_owned());
        (ended.code.unwrap(), ended.stdout.lines().filter_map(code).collect::<Vec<_>>().join(" "))
    };
    let all = (1, String::from("DT112 DT259 DT204"));
    assert_eq!(codes(&[]), all);
    assert_eq!(codes(&["--select", "DT2"]), (1, String::from("DT259 DT204")));
    assert_eq!(codes(&["--ignore", "unknown-type,DT112"]), (0, String::from("DT259")));
    assert_eq!(codes(&["--select", "DT2", "--ignore", "DT259", "--exit-zero"]), (0, String::from("DT204")));
    let unknown = project.run(&["check", "--ignore", "unknwn-type"]);
    assert_eq!(unknown.stderr, "error: unknown rule `unknwn-type`; did you mean `unknown-type`?\n");
    assert_eq!(project.run(&["check", "-q"]).stderr, "");

    // Known findings move with the text; new ones fail.
    project.write("known.json", project.run(&["check", "--format", "json"]).stdout);
    assert_eq!(codes(&["--baseline", "known.json"]), (0, String::new()));
    project.write(
        "specs/a.eld",
        "\n\n(deftool :name \"aB\" :args ((:name \"x\" :type strng) (:name \"y\" :type strng)))\n",
    );
    assert_eq!(codes(&["--baseline", "known.json"]), (1, String::from("DT259 DT204")));
    let invalid = project.run(&["check", "--baseline", "specs/a.eld"]);
    assert!(invalid.code == Some(2) && invalid.stderr.contains("--baseline"), "{invalid:?}");

    // Only the selected fixes are applied.
    let diff = project.run(&["check", "--diff", "--unsafe-fixes", "--format", "json", "--select", "DT204"]);
    let report: Value = serde_json::from_str(&diff.stdout).unwrap();
    assert_eq!((diff.code, &report["changes"][0]["fixes"]), (Some(1), &json!(2)));
    assert!(report["changes"][0]["diff"].as_str().unwrap().contains("+(deftool :name \"aB\""));
    let none = project.run(&["check", "--diff", "--unsafe-fixes", "--ignore", "DT204"]);
    assert_eq!((none.code, none.stderr.as_str()), (Some(0), "nothing to fix\n"));
}

#[test]
fn init_copies_selected_tools_with_their_modules() {
    let project = Project::empty();
    let ended = project.run(&["init", "new", "--toolbox", "calculate,task_complete"]);
    let created: Vec<&str> =
        ended.stderr.lines().filter_map(|line| line.strip_prefix("created  new/")).collect();
    assert_eq!(
        created,
        [
            "specs/calculate.eld",
            "scripts/calculate.lua",
            "scripts/calculate_test.lua",
            "specs/task_complete.eld",
            "scripts/lib/expression.lua",
            "specs/worker.eld",
            ".gitignore"
        ]
    );
    assert_eq!(project.run(&["check", "-C", "new", "--strict"]).code, Some(0));
    assert_eq!(project.run(&["test", "-C", "new"]).code, Some(0));
    let unknown = project.run(&["init", "--toolbox", "calulate"]);
    assert_eq!(unknown.stderr, "error: unknown toolbox tool `calulate`; did you mean `calculate`?\n");
}
