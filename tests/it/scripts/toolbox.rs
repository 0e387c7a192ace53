//! The toolbox: the tools of this repository, which `deftool init --toolbox` copies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn here(arguments: &[&str]) -> Ended {
    Ended::of(command_in(&repository(), arguments).env_remove("CLICOLOR_FORCE").output().unwrap())
}

/// Returns the paths of all toolbox files in the repository.
fn shipped() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["specs", "scripts", "scripts/lib"] {
        for entry in fs::read_dir(repository().join(folder)).unwrap().flatten() {
            if entry.path().is_file() {
                found.insert(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    found
}

#[test]
fn the_toolbox_is_without_findings_and_passes_its_tests() {
    let ended = here(&["check", "--strict"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    #[cfg(feature = "types")]
    {
        let ended = here(&["check", "--strict", "--types"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let ended = here(&["fmt", "--check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The tests require no trust: they use only their own folders.
    let ended = here(&["test", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let summary = &report["summary"];
    assert_eq!(summary["without_tests"].as_u64().unwrap_or(0), 0, "{summary}");
    assert!(summary["tests"].as_u64().unwrap() >= 40, "{summary}");
}

#[test]
fn the_toolbox_passes_fuzzing() {
    let project = Project::empty();
    assert_eq!(project.run(&["init", "--toolbox"]).code, Some(0));
    let ended = project.run(&["test", "--fuzz", "--cases", "60", "--seed", "4"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn init_copies_the_whole_toolbox() {
    let project = Project::empty();
    let ended = project.run(&["init", "--toolbox"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for name in shipped() {
        let copy = fs::read_to_string(project.path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(copy, fs::read_to_string(repository().join(&name)).unwrap(), "{name}");
    }
    assert_eq!(project.run(&["check", "--strict"]).code, Some(0));
    let ended = project.run(&["call", "calculate", r#"{"expression": "2 ^ 10"}"#, "--json"]);
    assert_eq!(result(&ended), json!({"result": 1024}));
    // A second run changes nothing.
    let again = project.run(&["init", "--toolbox"]);
    assert!(again.code == Some(0) && !again.stderr.contains("created"), "{again:?}");
}

#[test]
fn existing_tools_of_a_project_are_kept() {
    let project = Project::empty();
    assert_eq!(project.run(&["init"]).code, Some(0));
    let ended = project.run(&["init", "--toolbox"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("skipped  task_complete: already defined at "), "{ended:?}");
    assert!(!project.path("specs/task_complete.eld").exists());
    let ended = project.run(&["check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(project.path("specs/read_file.eld").is_file());
}

fn result(ended: &Ended) -> Value {
    let report: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(report["ok"], json!(true), "{report}");
    report["result"].clone()
}

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"];
    let ended = Command::new("git").current_dir(folder).args(identity).args(arguments).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

/// Uses a real repository and the real git.
#[test]
fn the_git_tools_read_a_real_repository() {
    if Command::new("git").arg("--version").output().is_err() {
        println!("skipped: no git");
        return;
    }
    let project = Project::empty();
    assert_eq!(project.run(&["init", "--toolbox"]).code, Some(0));
    let call = |tool: &str, arguments: Value| {
        result(&project.run(&["call", tool, &arguments.to_string(), "--json", "--trust"]))
    };
    let ended = project.run(&["call", "git_status", "{}", "--trust"]);
    assert!(ended.stderr.contains("the project is not in a git repository"), "{ended:?}");
    git(&project.path("."), &["init", "-q"]);
    git(&project.path("."), &["add", "."]);
    git(&project.path("."), &["commit", "-q", "-m", "first"]);
    assert_eq!(call("git_status", json!({}))["clean"], json!(true));
    project.write("a file.txt", "new\n");
    project.write(".gitignore", "*.recording.jsonl\n*.tmp\n");
    project.write("x.tmp", "ignored");
    let status = call("git_status", json!({}));
    assert_eq!(status["branch"], json!("main"));
    assert_eq!(status["untracked"], json!(["a file.txt"]));
    assert_eq!(status["changed"], json!([{"change": "modified", "path": ".gitignore"}]));
    let diff = call("git_diff", json!({"path": ".gitignore"}))["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("\n+*.tmp\n"), "{diff}");
    git(&project.path("."), &["mv", "specs/calculate.eld", "specs/sums.eld"]);
    let status = call("git_status", json!({}));
    let renamed = json!([{"change": "renamed", "from": "specs/calculate.eld", "path": "specs/sums.eld"}]);
    assert_eq!(status["staged"], renamed);
}

/// Configuration and attributes of an untrusted repository can name programs.
#[test]
fn the_git_tools_run_no_program_of_the_repository() {
    if Command::new("git").arg("--version").output().is_err() {
        println!("skipped: no git");
        return;
    }
    let project = Project::empty();
    assert_eq!(project.run(&["init", "--toolbox"]).code, Some(0));
    git(&project.path("."), &["init", "-q"]);
    project.write("a.txt", "one\n");
    git(&project.path("."), &["add", "."]);
    git(&project.path("."), &["commit", "-q", "-m", "first"]);
    project.write("evil.sh", "#!/bin/sh\ntouch owned\ncat\n");
    Command::new("chmod").arg("+x").arg(project.path("evil.sh")).status().unwrap();
    let evil = project.path("evil.sh").to_string_lossy().into_owned();
    for key in [
        "filter.e.clean",
        "filter.e.x.process",
        "diff.e.textconv",
        "diff.e.command",
        "core.fsmonitor",
        "core.pager",
    ] {
        git(&project.path("."), &["config", key, &evil]);
    }
    project.write(".gitattributes", "*.txt filter=e diff=e\n*.md filter=e.x\n");
    project.write("a.txt", "two\n");
    for tool in ["git_status", "git_diff"] {
        let changed = result(&project.run(&["call", tool, "{}", "--json", "--trust"]));
        assert!(changed.to_string().contains("a.txt"), "{changed}");
    }
    assert!(!project.path("owned").exists(), "a program of the repository was run");
}

/// A typical sequence of calls by a model.
#[test]
fn the_file_tools_work_together() {
    let project = Project::empty();
    assert_eq!(project.run(&["init", "--toolbox"]).code, Some(0));
    let call = |tool: &str, arguments: Value| {
        result(&project.run(&["call", tool, &arguments.to_string(), "--json", "--trust"]))
    };
    let text = "fn main() {\n    println!(\"hello\");\n}\n";
    let written = call("write_file", json!({"path": "src/main.rs", "text": text}));
    assert_eq!(written, json!({"bytes": text.len(), "created": true, "path": "src/main.rs"}));
    let found = call("search_text", json!({"pattern": "println!\\(", "files": "**/*.rs"}));
    assert_eq!(found["matches"][0]["line"], json!(2), "{found}");
    let edited =
        call("edit_file", json!({"path": "src/main.rs", "old_text": "hello", "new_text": "good day"}));
    assert_eq!(edited, json!({"first_line": 2, "path": "src/main.rs", "replaced": 1}));
    let read = call("read_file", json!({"path": "src/main.rs", "first_line": 2, "line_count": 1}));
    assert_eq!(read["text"], json!("     2\t    println!(\"good day\");"));
    let found = call("find_files", json!({"pattern": "*.rs"}));
    assert_eq!(found, json!({"paths": ["src/main.rs"]}));
    let listed = call("list_directory", json!({"path": "src"}));
    assert_eq!(listed["entries"][0]["name"], json!("main.rs"));
}
