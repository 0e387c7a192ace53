//! `deftool diff`: changes that a model sees, and changes that break callers.

use serde_json::{Value, json};

use crate::support::project::Project;

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
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""), "{failed:?}");
    assert!(
        failed.stderr.ends_with("\nbad.eld: 1 error; these tools are not compared\nno changes\n"),
        "{failed:?}"
    );
    assert_eq!(project.run(&["diff", "old.eld", "none"]).code, Some(2));
}
