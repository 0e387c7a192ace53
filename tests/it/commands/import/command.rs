//! The `deftool import` command: files, stdin, and invalid input.

use super::*;
use crate::support::project::Ended;

const TWO: &str = r#"[{"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}},
 {"name": "say", "description": "Say it.", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}]"#;

#[test]
fn files_are_written_and_never_overwritten() {
    let project = Project::new();
    project.write("tools.json", TWO);
    let run = |arguments: &[&str]| {
        let output = project.command(arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said) = run(&["import", "tools.json", "--output", "new/specs"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "created  new/specs/now.eld\ncreated  new/specs/say.eld\n2 tools imported\n")
    );
    fs::remove_file(project.path("new/specs/now.eld")).unwrap();
    project.write("new/specs/say.eld", "mine");
    let (code, said) = run(&["import", "tools.json", "--output", "new/specs"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("new/specs/say.eld already exists; nothing was written"), "{said}");
    assert!(!project.path("new/specs/now.eld").exists());
    assert_eq!(fs::read_to_string(project.path("new/specs/say.eld")).unwrap(), "mine");
    // The file is replaced, not overwritten: a hard link still has the old text.
    fs::hard_link(project.path("new/specs/say.eld"), project.path("old.eld")).unwrap();
    let (code, said) = run(&["import", "tools.json", "--output", "new/specs", "--force"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "created  new/specs/now.eld\nreplaced new/specs/say.eld\n2 tools imported\n")
    );
    assert!(fs::read_to_string(project.path("new/specs/say.eld")).unwrap().starts_with("(deftool"));
    assert_eq!(fs::read_to_string(project.path("old.eld")).unwrap(), "mine");
    // The output passes the check, except for the missing scripts.
    assert_eq!(run(&["compile", "new/specs/now.eld", "new/specs/say.eld"]).0, Some(0));
}

/// A read-only file makes the command fail and is not changed.
#[test]
fn scripts_are_written_for_tools_without_one() {
    let project = Project::empty();
    project.write("tools.json", TWO.replace("\"text\"", "\"the text\""));
    project.write("scripts/now.luau", "return function() return 1 end\n");
    let ended = project.run(&["import", "tools.json", "--output", "specs", "--scripts"]);
    let expected = "created  specs/now.eld\ncreated  specs/say.eld\nkept     scripts/now.luau\ncreated  scripts/say.lua\n2 tools imported\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), expected));
    let script = "-- Arguments arrive in :args order. Return any JSON value.
return function(the_text)
  error(tool.failure(\"say is not implemented\"))
end
";
    assert_eq!(fs::read_to_string(project.path("scripts/say.lua")).unwrap(), script);
    let called = project.run(&["call", "say", "{\"the text\": \"hi\"}"]);
    assert_eq!((called.code, called.stderr.as_str()), (Some(1), "error[failure]: say is not implemented\n"));
    // `new` does the same for one tool.
    fs::remove_file(project.path("scripts/say.lua")).unwrap();
    assert_eq!(project.run(&["new", "say"]).stderr, "created  scripts/say.lua\n");
    assert_eq!(fs::read_to_string(project.path("scripts/say.lua")).unwrap(), script);
    let again = project.run(&["new", "say"]);
    assert!(again.code == Some(2) && again.stderr.contains("duplicate tool `say`"), "{again:?}");
    let alone = project.run(&["import", "tools.json", "--scripts"]);
    assert_eq!(alone.code, Some(2));
}

#[test]
fn force_overwrites_no_protected_file_and_no_file_twice() {
    let project = Project::new();
    project.write("tools.json", TWO);
    project.write("out/say.eld", "mine");
    let path = project.path("out/say.eld");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let import = ["import", "tools.json", "--output", "out", "--force"];
    let ended = project.run(&import);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("out/say.eld: the file is read-only"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert!(fs::read_to_string(project.path("out/now.eld")).unwrap().starts_with("(deftool"));
    assert_eq!(fs::read_dir(project.path("out")).unwrap().count(), 2);
    #[cfg(unix)]
    {
        project.write("linked/now.eld", "mine");
        std::os::unix::fs::symlink("now.eld", project.path("linked/say.eld")).unwrap();
        let ended = project.run(&["import", "tools.json", "--output", "linked", "--force"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("linked/now.eld and linked/say.eld are the same file"),
            "{}",
            ended.stderr
        );
        assert_eq!(fs::read_to_string(project.path("linked/now.eld")).unwrap(), "mine");
    }
}

#[test]
fn reads_stdin_and_imports_tools_without_errors() {
    let project = Project::new();
    for arguments in [&["import"][..], &["import", "-"]] {
        let text = format!(
            "\u{feff}{TWO}\n{{\"name\": \"a b\", \"input_schema\": {{}}}}\n{{\"name\": \"now\"}}\n{{"
        );
        let Ended { code, stdout: out, stderr: said } = project.run_with_stdin(arguments, text.as_bytes());
        assert_eq!(code, Some(1));
        assert_eq!(out.matches("(deftool").count(), 2, "{out}");
        for part in [
            "stdin:3:10",
            "error[DT110]",
            "duplicate tool `now`",
            "error[DT601]",
            "2 tools imported: 2 errors, 1 warning",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
}

#[test]
fn unreadable_input_is_reported() {
    let project = Project::new();
    project.write("utf16.json", b"\xff\xfe{\0}\0");
    project.write("latin.json", b"{\"name\": \"now\", \"description\": \"\xe9\"}");
    for (arguments, code, said) in [
        (&["import", "none.json"][..], 2, "cannot read"),
        (&["import", "specs"], 2, "not a regular file"),
        (&["import", "latin.json", "--from", "yaml"], 2, "invalid value 'yaml'"),
        (&["import", "latin.json"], 1, "invalid UTF-8"),
        (&["import", "utf16.json"], 1, "0 tools imported: 1 error;"),
    ] {
        let output = project.command(arguments).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}
