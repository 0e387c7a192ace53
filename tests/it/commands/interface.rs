//! The command line itself: help and completions.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::project::Project;

const SPEC: &str = r#"(deftool
 :name "greet"
 :description "Greet a person."
 :args ((:name "name" :type string :description "Who to greet."))
 :accepts [(:name "Ada")])
"#;

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC);
    project.write("scripts/greet.lua", "return function(name) return 'Hello ' .. name end\n");
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
        (&["watch"][..], "use `deftool test --watch`"),
        (&["requests", "list", "j"], "use `deftool journal`"),
        (&["resume", "j"], "use `deftool journal resume`"),
        (&["targets"], "use `deftool compile --list-targets`"),
        (&["lint", "specs"], "use `deftool check`"),
        (&["serve", "mcp"], "use `deftool mcp`"),
        (
            &["serve", "--port", "1"],
            "use `deftool mcp`, `rpc`, `acp` or `lsp`, or the program `deftool-serve`",
        ),
        (&["run", "hello", "--output=done"], "use `--result`"),
        (&["run", "hello", "--result", "done", "--output-retries", "1"], "use `--result-retries`"),
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
        &["trust"],
        &["trust", "grant", "--dry-run"],
        &["doctor"],
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
