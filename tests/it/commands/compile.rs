//! `deftool compile`: output files, omitted tools and Emacs Lisp.

use serde_json::Value;

use crate::support::project::{Ended, Project};

const TOOLS: &str = r#"(defconst my-dir "~/notes")
(gptel-make-tool :name "find" :category "notes" :description (concat "Search " my-dir ".") :function (lambda (query) ; search
    (my-search query))
  :args (list '(:name "query" :type string :description "What to look for."))
  :confirm (lambda (query) (string-empty-p query)))
(gptel-make-tool :name "find" :category "mail" :description "Search mail." :function #'my-mail)
(llm-make-tool :name "now" :function 'my-now)
(deftool :name "open" :description "Open a note." :function my-open :timeout "3s" :allow (:read ["notes/"]))
"#;

fn compile(project: &Project, arguments: &[&str]) -> Ended {
    project.run(&[&["compile"], arguments].concat())
}

fn read(project: &Project) -> String {
    std::fs::read_to_string(project.path("tools.json")).unwrap()
}

#[test]
fn an_output_file_is_written_and_compared() {
    let project = Project::empty();
    project.write("specs/a.eld", r#"(deftool :name "now" :description "Tell the time." :function f)"#);
    let missing = compile(&project, &["--check", "tools.json"]);
    assert_eq!(missing.code, Some(1));
    assert_eq!(missing.stderr, "tools.json does not exist; create it with `deftool compile -o tools.json`\n");
    let written = compile(&project, &["-o", "tools.json"]);
    assert_eq!((written.code, written.stderr.as_str()), (Some(0), "created  tools.json\n"));
    assert_eq!(read(&project), compile(&project, &[]).stdout);
    let same = compile(&project, &["--check", "tools.json"]);
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""));
    project.write("specs/a.eld", r#"(deftool :name "now" :description "Tell the date." :function f)"#);
    let other = compile(&project, &["--check", "tools.json"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stdout.contains(
        "\n-      \"description\": \"Tell the time.\",\n+      \"description\": \"Tell the date.\",\n"
    ));
    assert_eq!(other.stderr, "tools.json is out of date; update it with `deftool compile -o tools.json`\n");
    // A link keeps its target's place, and a device is written to.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("tools.json", project.path("link.json")).unwrap();
        assert_eq!(compile(&project, &["-o", "link.json"]).code, Some(0));
        assert!(project.path("link.json").is_symlink());
        assert_eq!(read(&project), compile(&project, &[]).stdout);
        std::os::unix::fs::symlink("/dev/stdout", project.path("out")).unwrap();
        let streamed = compile(&project, &["-o", "out"]);
        assert_eq!((streamed.code, streamed.stdout), (Some(0), read(&project)), "{}", streamed.stderr);
        assert!(project.path("out").is_symlink());
    }
    // With an error, the file stays complete.
    project.write("specs/b.eld", r#"(deftool :name "b" :description "Do b." :timeout x :function f)"#);
    let before = read(&project);
    let failed = compile(&project, &["-o", "tools.json"]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.ends_with("1 error; these tools are omitted\ntools.json was not written\n"));
    assert_eq!(read(&project), before);
}

#[test]
fn gptel_output_keeps_functions_and_reports_what_is_lost() {
    let project = Project::empty();
    project.write("specs/a.el", TOOLS);
    let ended = compile(&project, &["--target", "gptel"]);
    assert_eq!(ended.code, Some(0));
    let expected = r#";; -*- lexical-binding: t; coding: utf-8-unix; -*-

(gptel-make-tool
 :name "find"
 :function (lambda (query) ; search
    (my-search query))
 :description "Search ~/notes."
 :args (list '(:name "query" :type string :description "What to look for."))
 :category "notes"
 :confirm (lambda (query) (string-empty-p query)))

(gptel-make-tool
 :name "find"
 :function #'my-mail
 :description "Search mail."
 :category "mail")

(gptel-make-tool
 :name "now"
 :function 'my-now)

(gptel-make-tool
 :name "open"
 :function #'my-open
 :description "Open a note.")
"#;
    assert_eq!(ended.stdout, expected);
    assert_eq!(ended.stderr, "note: `open` in gptel: without `:timeout`, `:allow`\n");
}

/// gptel sends `{}` for a missing description.
#[test]
fn a_request_contains_each_name_once() {
    let project = Project::empty();
    project.write("specs/a.el", TOOLS);
    let ended = compile(&project, &["--target", "openai-responses"]);
    let tools: Value = serde_json::from_str(&ended.stdout).unwrap();
    let of = |key: &str| -> Vec<Value> {
        tools.as_array().unwrap().iter().map(|tool| tool[key].clone()).collect()
    };
    assert_eq!(of("name"), ["find", "now", "open"]);
    assert_eq!(
        of("description"),
        [Value::from("Search ~/notes."), Value::Object(<_>::default()), Value::from("Open a note.")]
    );
    let note = "note: omitted `find` at specs/a.el:6:24: a request can contain one tool of this name, and specs/a.el:2:24 defines the first\n";
    assert_eq!(ended.stderr, note);
    project.write("tools.json", ended.stdout);
    let imported = project.run(&["import", "tools.json"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert!(imported.stdout.contains("(deftool\n :name \"now\""), "{}", imported.stdout);
}

/// A tool with values that are only available in a running Emacs is omitted.
#[test]
fn a_tool_with_unknown_values_is_omitted() {
    let project = Project::empty();
    project.write(
        "specs/a.el",
        "(gptel-make-tool :name \"a\" :description (my-text) :function #'f :args my-args)\n",
    );
    let ended = compile(&project, &["-o", "tools.json"]);
    assert_eq!((ended.code, project.path("tools.json").exists()), (Some(1), false));
    assert!(
        ended.stderr.contains("this value and others in the form are only available in a running Emacs"),
        "{}",
        ended.stderr
    );
    assert_eq!(project.run(&["check"]).code, Some(0));
}
