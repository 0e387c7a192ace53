//! `deftool call` loads only the named tool, however its name is written.

use crate::support::project::Project;

const SPECS: &str = r#"
(deftool :name "one" :description "Return one." :args ())
(deftool :name (concat "t" "wo") :description "Return two." :args ())
(deftool :name "thr\145e" :description "Return three." :args ())
(deftool :name "bad" :description "Bad." :args ((:name "x" :type strng :description "X.")))
(defworker :name "one" :endpoint "not a URL")
"#;

#[test]
fn a_tool_is_found_by_its_name_and_other_forms_do_not_matter() {
    let project = Project::empty();
    project.write("specs/a.eld", SPECS);
    project
        .write("specs/b.eld", "(deftool :name \"two\" :description \"Return it again.\" :args ())\n(deftool");
    for name in ["one", "two", "three"] {
        project.write(&format!("scripts/{name}.lua"), format!("return function() return \"{name}\" end\n"));
    }
    for (name, expected) in [
        ("one", "\"one\"\n"),
        // The first of two tools with this name.
        ("two", "\"two\"\n"),
        ("three", "\"three\"\n"),
        (
            "bad",
            "error[load]: the spec of `bad` has errors: specs/a.eld:5:66: error[DT204]: unknown type `strng`\n",
        ),
        ("oen", "error[unknown_tool]: unknown tool `oen`; did you mean `one`?\n"),
    ] {
        let ended = project.command(&["call", name]).output().unwrap();
        let printed = [ended.stdout, ended.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&printed), expected, "{name}");
    }
}
