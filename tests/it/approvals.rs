//! Calls that a person is asked about: which they are, and how they are asked, refused and remembered. The real binary, on
//! a terminal and without one.

use deftool::schema::compile_tool;
use deftool::spec::{FileKind, lower};
use deftool::text::{SourceFile, Sources};
use serde_json::{Value, json};

fn asks(spec: &str, arguments: &Value) -> bool {
    let source = Sources::new().add(SourceFile::new("t.eld", ""));
    let (tree, _) = deftool::syntax::parse(source, spec);
    let (definitions, _) = lower(source, spec, &tree, FileKind::Specs);
    let entry = compile_tool(&definitions.tools[0]);
    let accepted = entry.accept(arguments.clone()).expect("the arguments are valid");
    entry.needs_approval(accepted.as_object().unwrap())
}

#[test]
fn which_calls_are_asked_about() {
    let spec = |confirm: &str| {
        format!(
            "(deftool :name \"a\" :description \"Do it.\" :confirm {confirm} :args (
               (:name \"path\" :type [\"string\" \"null\"] :optional t :description \"Where.\")
               (:name \"force\" :type boolean :optional t :description \"Whether.\")
               (:name \"mode\" :type string :optional t :default \"deep\" :description \"How.\")
               (:name \"count\" :type number :optional t :description \"How often.\")
               (:name \"flags\" :type array :items (:type string) :optional t :description \"More.\")
               (:name \"deep\" :type object :optional t :description \"More.\" :properties (:on (:type boolean) :at (:type string)))))"
        )
    };
    for (confirm, arguments, expected) in [
        ("t", json!({}), true),
        ("nil", json!({}), false),
        (":json-false", json!({}), false),
        ("\"yes\"", json!({}), true),
        // A pattern is found anywhere, and only in a text.
        ("(:when (:path \"etc\"))", json!({"path": "/etc/passwd"}), true),
        ("(:when (:path \"^etc\"))", json!({"path": "/etc/passwd"}), false),
        ("(:when (:path \"null\"))", json!({"path": null}), false),
        ("(:when (:path :null))", json!({"path": null}), true),
        ("(:when (:path :null))", json!({}), false),
        // A line end in an argument hides nothing behind it.
        ("(:when (:path \"^/etc/\"))", json!({"path": "/etc/\n/home"}), true),
        ("(:when (:path \"x$\"))", json!({"path": "x\ny"}), false),
        // All of a condition, any of the conditions.
        ("(:when (:path \"a\" :force t))", json!({"path": "a"}), false),
        ("(:when (:path \"a\" :force t))", json!({"path": "a", "force": true}), true),
        ("(:when (:path \"a\" :force t))", json!({"path": "a", "force": false}), false),
        ("(:when (:path \"a\") (:force :json-false))", json!({"force": false}), true),
        ("(:when (:force :json-false))", json!({}), false),
        // Numbers are equal as JSON Schema has it.
        ("(:when (:count 2))", json!({"count": 2.0}), true),
        ("(:when (:count 2))", json!({"count": 2.5}), false),
        ("(:when (:count [1 2 3]))", json!({"count": 3}), true),
        ("(:when (:path [\"^a\" :null \"z$\"]))", json!({"path": "xyz"}), true),
        ("(:when (:path [\"^a\" :null \"z$\"]))", json!({"path": "xy"}), false),
        // One item of an array, a member of an object.
        ("(:when (:flags \"^--force$\"))", json!({"flags": ["-v", "--force"]}), true),
        ("(:when (:flags \"^--force$\"))", json!({"flags": []}), false),
        ("(:when (:deep (:on t)))", json!({"deep": {"on": true}}), true),
        ("(:when (:deep (:on t :at \"x\")))", json!({"deep": {"on": true}}), false),
        // What is left out is what its default says.
        ("(:when (:mode \"deep\"))", json!({}), true),
        ("(:when (:mode \"deep\"))", json!({"mode": "flat"}), false),
        ("(:when (:mode \"flat\"))", json!({}), false),
        // What cannot be read asks about every call.
        ("(:when (:path \"(\"))", json!({}), true),
        ("(:when (:path \"(?=a)\"))", json!({}), true),
        ("(:when :path \"a\")", json!({}), true),
    ] {
        assert_eq!(asks(&spec(confirm), &arguments), expected, "{confirm} {arguments}");
    }
}

/// Patterns that others match in exponential time.
#[test]
fn a_hostile_argument_is_matched_in_linear_time() {
    let spec = "(deftool :name \"a\" :description \"Do it.\" :confirm (:when (:path \"^(a+)+$\") (:path \"(x+x+)+y\"))
      :args ((:name \"path\" :type string :description \"Where.\")))";
    let started = std::time::Instant::now();
    for letter in ["a", "x"] {
        let path = letter.repeat(200_000) + "!";
        assert!(!asks(spec, &json!({ "path": path })));
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

/// Strict mode writes null where nothing is meant: the condition sees the arguments as the tool gets them.
#[test]
fn conditions_see_what_the_tool_gets() {
    let spec = "(deftool :name \"a\" :description \"Do it.\" :confirm (:when (:path :null) (:force t))
      :args ((:name \"path\" :type string :optional t :description \"Where.\")
             (:name \"force\" :type boolean :optional t :description \"Whether.\")))";
    let source = Sources::new().add(SourceFile::new("t.eld", ""));
    let (tree, _) = deftool::syntax::parse(source, spec);
    let (definitions, _) = lower(source, spec, &tree, FileKind::Specs);
    let entry = compile_tool(&definitions.tools[0]).into_strict();
    for (arguments, expected) in
        [(json!({"path": null, "force": null}), false), (json!({"path": null, "force": true}), true)]
    {
        let accepted = entry.accept(arguments).unwrap();
        assert_eq!(entry.needs_approval(accepted.as_object().unwrap()), expected, "{accepted}");
    }
}
