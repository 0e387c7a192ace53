//! `deftool diff`: changes that a model sees, and changes that break callers.

use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

const OLD: &str = r#"(deftool :name "find" :description "Find notes."
 :args ((:name "words" :type string :maxLength 20 :description "What to look for.")
        (:name "kind" :type string :enum ["note" "task" "mail"] :optional t :description "Kind.")
        (:name "limit" :type integer :optional t :minimum 1 :maximum 50 :description "How many.")
        (:name "within" :type object :optional t :description "Where."
         :properties (:folder (:type string :description "Folder.")) :required [])
        (:name "gone" :type string :optional t :description "Old.")))
(deftool :name "same" :description "Stay the same." :args ((:name "x" :type number :description "X.")))
(deftool :name "left" :description "Go away.")
"#;

const NEW: &str = r#"(deftool :name "find" :description "Find notes and tasks."
 :args ((:name "words" :type ["string" "null"] :maxLength 10 :description "What to look for.")
        (:name "kind" :type string :enum ["note" "task" "event"] :description "Kind.")
        (:name "limit" :type number :optional t :minimum 0 :maximum 100 :description "How many.")
        (:name "within" :type object :optional t :description "Where."
         :properties (:folder (:type string :pattern "^/" :description "A folder.")) :required [])
        (:name "fresh" :type string :optional t :description "New.")))
(deftool :name "same" :description "Stay the same." :args ((:name "x" :type number :description "X.")))
(deftool :name "more" :description "Be new.")
"#;

#[test]
fn changes_are_classified() {
    let project = Project::empty();
    project.write("old.eld", OLD);
    project.write("new/tools.eld", NEW);
    let ended = project.run(&["diff", "old.eld", "new"]);
    let expected = "\
breaks  left: tool removed
model   more: tool added
model   find: description changed
model   find words: type \"null\" added
breaks  find words: `maxLength` changed from 20 to 10
breaks  find kind: value \"mail\" removed
model   find kind: value \"event\" added
model   find limit: type \"number\" added
model   find limit: `minimum` changed from 1 to 0
model   find limit: `maximum` changed from 50 to 100
model   find within.folder: `description` changed
breaks  find within.folder: `pattern` \"^/\" added
breaks  find gone: removed
model   find fresh: added
breaks  find kind: required now
";
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(1), expected, "15 changes, 6 breaking\n")
    );
    // The other way round, what was added is removed.
    let back = project.run(&["diff", "new", "old.eld", "--json"]);
    let report: Value = serde_json::from_str(&back.stdout).unwrap();
    let breaking = |report: &Value| {
        let changes = report["changes"].as_array().unwrap().iter();
        changes
            .filter(|change| change["impact"] == "breaking")
            .map(|change| change["path"].clone())
            .collect::<Vec<_>>()
    };
    let paths = ["", "words", "kind", "limit", "limit", "limit", "fresh"];
    let pointer =
        |name: &&str| if name.is_empty() { json!("") } else { json!(format!("/properties/{name}")) };
    assert_eq!(breaking(&report), paths.iter().map(pointer).collect::<Vec<_>>());
    // A new argument of a tool without arguments, and a new member of an open object.
    let object = |keys: &str| {
        format!(
            "(deftool :name \"o\" :description \"Do.\" :args ((:name \"x\" :type object :additionalProperties t :description \"X.\" :properties ({keys}))))"
        )
    };
    project.write("a.eld", object(":a (:type string)") + "(deftool :name \"n\" :description \"Do.\")");
    project.write("b.eld", object(":a (:type string) :b (:type string)") + "(deftool :name \"n\" :description \"Do.\" :args ((:name \"y\" :type string :optional t :description \"Y.\")))");
    let opened = project.run(&["diff", "a.eld", "b.eld"]).stdout;
    assert!(opened.contains("breaks  o x.b: added\n") && opened.contains("model   n y: added\n"), "{opened}");
    // Compiled definitions are compared like specs.
    project.write("old.json", project.run(&["compile", "old.eld"]).stdout);
    let same = project.run(&["diff", "old.json", "old.eld"]);
    assert_eq!((same.code, same.stderr.as_str()), (Some(0), "no changes\n"));
    project.write("bad.eld", OLD.replace(":type number", ":type numbr"));
    let failed = project.run(&["diff", "old.eld", "bad.eld"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(2), ""), "{failed:?}");
    assert!(
        failed
            .stderr
            .ends_with("\nbad.eld: 1 error; these tools are not compared\nno changes in the other tools\n"),
        "{failed:?}"
    );
    let report: Value =
        serde_json::from_str(&project.run(&["diff", "old.eld", "bad.eld", "--json"]).stdout).unwrap();
    assert_eq!(report["errors"][0]["file"], "bad.eld", "{report}");
}

/// A version that cannot be read is not an old version without changes.
#[test]
fn what_cannot_be_compared_is_an_error() {
    let project = Project::empty();
    project.write("new.eld", NEW);
    project.write("empty.eld", "");
    project.write("empty.json", "[]");
    project.write("broken.json", "{");
    for (old, new, expected) in [
        ("empty.eld", "new.eld", "error: `empty.eld` contains no tools to compare with\n"),
        ("empty.json", "new.eld", "error: `empty.json` contains no tools to compare with\n"),
        ("broken.json", "new.eld", "broken.json: 1 error; these tools are not compared\n"),
        ("new.eld", "none", "none: No such file or directory"),
        ("none", "new.eld", "error: `none` does not exist, and this is not a git repository\n"),
    ] {
        let ended = project.run(&["diff", old, new]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
    // A wrong sample call says nothing about the schema.
    let tool = |arguments: &str| {
        format!("(deftool :name \"t\" :description \"Do it.\" :accepts [()] :args ({arguments}))")
    };
    project.write("without.eld", tool(""));
    project.write("with.eld", tool("(:name \"x\" :type string :description \"X.\")"));
    let ended = project.run(&["diff", "without.eld", "with.eld"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("breaks  t x: required now\n"), "{ended:?}");
}

#[test]
fn a_git_revision_is_compared_with_the_project() {
    let project = Project::empty();
    let git = |arguments: &[&str]| {
        let user = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let mut command = std::process::Command::new("git");
        let ended = command.args(user).args(arguments).current_dir(project.path("")).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    };
    let run_in = |folder: &str, arguments: &[&str]| {
        Ended::of(project.command(arguments).current_dir(project.path(folder)).output().unwrap())
    };
    let folder = |name: &str| project.path(name).to_str().unwrap().to_owned();
    git(&["init", "-q"]);
    let tool = |kind: &str| {
        format!(
            "(deftool :name \"t\" :description \"Do it.\" :args ((:name \"x\" :type {kind} :description \"X.\")))"
        )
    };
    project.write("tools/specs/a.eld", tool("string"));
    project.write("tools/specs/.hidden.eld", "(broken");
    project.write("tools/old.json", "[]");
    std::os::unix::fs::symlink("/etc/passwd", project.path("tools/specs/link.eld")).unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "old"]);
    project.write("tools/specs/a.eld", tool("number"));
    project.write("tools/specs/b.eld", tool("string").replace("\"t\"", "\"u\""));
    std::fs::remove_file(project.path("tools/specs/link.eld")).unwrap();
    // What a repository configures to run is not run.
    let marker = project.path("ran");
    let run = format!("touch {}", marker.display());
    for (key, value) in [
        ("core.fsmonitor", run.as_str()),
        ("filter.f.smudge", &run),
        ("diff.f.textconv", &run),
        ("core.pager", &run),
        ("core.sshCommand", &run),
    ] {
        git(&["config", key, value]);
    }
    project.write(".gitattributes", "*.eld filter=f diff=f");
    let tools = folder("tools");
    let breaks = "breaks  t x: type \"string\" removed";
    for (from, arguments) in [
        ("tools", &["diff", "HEAD"][..]),
        ("tools/specs", &["diff", "main"]),
        ("tools", &["diff", "HEAD", "specs/a.eld"]),
        ("", &["diff", "HEAD", "tools"]),
        ("", &["diff", "HEAD", &tools]),
        ("", &["diff", "HEAD", "tools/specs"]),
    ] {
        let ended = run_in(from, arguments);
        assert_eq!(ended.code, Some(1), "{arguments:?}: {ended:?}");
        assert!(ended.stdout.contains(breaks), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout.contains("u: tool added"), !arguments.contains(&"specs/a.eld"), "{ended:?}");
    }
    assert!(!marker.exists());
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "new"]);
    let same = run_in("tools", &["diff", "HEAD"]);
    assert_eq!((same.code, same.stderr.as_str()), (Some(0), "no changes\n"));
    assert_eq!(run_in("tools", &["diff", "HEAD~1"]).code, Some(1));
    for (arguments, expected) in [
        (&["diff", "HEAD~9"][..], "error: `HEAD~9` is neither a path nor a git revision\n"),
        (&["diff", "HEAD..HEAD~1"], "error: `HEAD..HEAD~1` is neither a path nor a git revision\n"),
        (&["diff", "--", "--output=x"], "error: `--output=x` is neither a path nor a git revision\n"),
        (&["diff", "HEAD~1", "specs/b.eld"], "error: `HEAD~1` contains no tools to compare with\n"),
        (&["diff", "HEAD~1", "old.json"], "error: `HEAD~1` contains no tools to compare with\n"),
    ] {
        let ended = run_in("tools", arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), expected), "{ended:?}");
    }
    // An existing path wins.
    project.write("tools/HEAD/a.eld", tool("number"));
    assert_eq!(run_in("tools", &["diff", "HEAD", "specs"]).stdout, "model   u: tool added\n");
}
