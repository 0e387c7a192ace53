//! Loading takes linear time, even for hostile input.

use std::fs;

use deftool_project::{LoadOptions, load_with, resolve_inputs};

/// Loads texts of two sizes as the file `name`.
fn assert_linear(name: &str, many: usize, text: impl Fn(usize) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let excerpt: String = text(many).chars().take(80).collect();
    deftool_test_support::cpu::assert_linear(&excerpt, many, |size| {
        fs::write(folder.path().join(name), text(size)).unwrap();
        let inputs = resolve_inputs(&[name.into()], folder.path()).unwrap();
        let options = LoadOptions { reads_lists: true, ..LoadOptions::default() };
        let load = load_with(&inputs, folder.path(), &options).unwrap();
        // Every text has an error, so a finding shows that it was checked.
        assert!(!load.findings.is_empty(), "{excerpt:?}");
    });
}

/// Returns a tool with one argument that has these keywords.
fn argument(keywords: &str) -> String {
    format!(
        "(deftool :name \"a\" :description \"Do a.\" :args ((:name \"x\" :description \"An x.\" {keywords})))\n"
    )
}

#[test]
fn unterminated_character_names() {
    assert_linear("a.eld", 60_000, |many| format!("(a \"{}\")", "\\N{".repeat(many)));
}

#[test]
fn unterminated_named_characters() {
    assert_linear("a.eld", 60_000, |many| format!("(a {})", "?\\N{ ".repeat(many)));
}

#[test]
fn values_checked_against_types() {
    assert_linear("a.eld", 2_000, |many| {
        argument(&format!(":type [{}] :enum [{}]", "\"string\" ".repeat(many), "1 ".repeat(many)))
    });
}

#[test]
fn words_checked_against_types() {
    assert_linear("a.eld", 4_000, |many| {
        argument(&format!(":type [{} string] :enum [{}]", "integer ".repeat(many), "v ".repeat(many)))
    });
}

#[test]
fn merges_in_strings_with_one_end() {
    assert_linear("a.eld", 3_000, |many| {
        format!("{}>>>>>>> b\n", "<<<<<<< a\n\"\n=======\n\"\n".repeat(many))
    });
}

#[test]
fn merges_in_strings_with_one_middle() {
    assert_linear("a.eld", 3_000, |many| {
        format!("{}=======\n>>>>>>> b\n", "<<<<<<< a\n\"\n||||||| c\n\"\n".repeat(many))
    });
}

#[test]
fn quotes_on_one_line() {
    assert_linear("a.eld", 40_000, |many| format!("({})", ":description '".repeat(many)));
}

#[test]
fn comments_about_one_key() {
    assert_linear("a.eld", 1_200, |many| {
        let allows = ";; deftool: allow(missing-description)\n".repeat(many);
        format!("(deftool :name \"a\"\n{allows}:type\n{}1)\n", "; Between the two.\n".repeat(2 * many))
    });
}

#[test]
fn skipped_forms_among_tools() {
    assert_linear("a.eld", 12_000, |many| {
        format!("{}{}", ";; deftool: skip\n(a)\n".repeat(many), "(deftool :name \"a\")\n".repeat(many / 4))
    });
}

/// Returns a tool with these confirmation conditions and one argument that has these keywords.
fn tool_with_conditions(keywords: &str, conditions: &str) -> String {
    format!(
        "(deftool :name \"a\" :description \"Do a.\" :confirm (:when {conditions})\n\
         :args ((:name \"x\" :description \"An x.\" {keywords})))\n"
    )
}

/// Returns `many` different words, each enclosed in `mark`.
fn words(many: usize, mark: &str) -> String {
    (0..many).map(|index| format!("{mark}{index}{mark} ")).collect::<Vec<_>>().concat()
}

#[test]
fn conditions_with_many_values() {
    assert_linear("a.eld", 1_000, |many| {
        let keywords = format!(":type integer :enum [{}]", words(many, ""));
        tool_with_conditions(&keywords, &format!("(:x [-1 {}])", words(many, "")))
    });
}

#[test]
fn conditions_with_many_patterns() {
    assert_linear("a.eld", 500, |many| {
        let keywords = format!(":type string :enum [{}]", words(many, "\""));
        tool_with_conditions(&keywords, &format!("(:x [{}])", "\"z\" ".repeat(many)))
    });
}

#[test]
fn conditions_on_many_members() {
    assert_linear("a.eld", 4_000, |many| {
        let members: Vec<_> = (0..many).map(|index| format!(":m{index} (:type string) ")).collect();
        let conditions: Vec<_> = (0..many).rev().map(|index| format!("(:x (:m{index} 1)) ")).collect();
        tool_with_conditions(
            &format!(":type object :properties ({})", members.concat()),
            &conditions.concat(),
        )
    });
}

#[test]
fn lists_with_many_tools_and_arguments() {
    let tool = |number: usize, properties: &str| {
        format!(
            r#"{{"name": "t{number}", "inputSchema": {{"type": "object", "properties": {{{properties}"x": {{}}}}}}}}"#
        )
    };
    assert_linear("a.json", 2_000, |many| {
        let tools: Vec<_> = (0..many).map(|number| tool(number, "")).collect();
        format!("[{}]", tools.join(", "))
    });
    assert_linear("a.json", 8_000, |many| {
        let properties: Vec<String> = (0..many).map(|number| format!(r#""p{number}": {{}}, "#)).collect();
        let properties = properties.concat();
        format!("[{}]", tool(0, &properties))
    });
}

#[test]
fn tools_with_many_asks() {
    let with = |asks: &str| {
        format!(
            "(deftool :name \"a\" :description \"{}\" :args ((:name \"x\" :description \"An x.\" :type integer)) :asks [{asks}])",
            "Do it again. ".repeat(20)
        )
    };
    assert_linear("a.eld", 5_000, |many| with(&"(\"Do it.\" :call (:x 1)) ".repeat(many)));
    assert_linear("a.eld", 5_000, |many| {
        let asks =
            (0..many).map(|number| format!("(\"Do {number}.\" :call (:y{number} 1) :ignore (z{number})) "));
        with(&asks.collect::<String>())
    });
    assert_linear("a.eld", 5_000, |many| {
        with(&format!("(\"Do it.\" :call (:x (any {})))", "\"1\" ".repeat(many)))
    });
    assert_linear("a.eld", 5_000, |many| {
        let calls = (0..many).map(|number| format!("(b{number} :call t) "));
        format!("(defask :prompt \"p\" :calls [{}] :calls t)", calls.collect::<String>())
    });
    assert_linear("a.eld", 5_000, |many| {
        with(&format!("(\"Do it.\" :call (:x {}1{}))", "(any ".repeat(many), ")".repeat(many)))
    });
    assert_linear("a.eld", 5_000, |many| "(defask :prompt \"p\" :call none)\n".repeat(many));
}

#[test]
fn nested_allows() {
    assert_linear("a.el", 2_000, |many| {
        let allows = "(progn\n;; deftool: allow(missing-description)\n".repeat(many);
        format!("{allows}{}{}", "(gptel-make-tool :name \"a\")\n".repeat(many), ")".repeat(many))
    });
}

#[test]
fn wrappers_and_tables_of_tools() {
    assert_linear("a.el", 3_000, |many| {
        let wrappers = (0..many).map(|number| {
            format!("(defun f{number} (&rest args) (apply #'gptel-make-tool args)) (f{number} :name \"a\")\n")
        });
        let loops = "(dolist (spec specs) (apply #'gptel-make-tool spec))\n".repeat(many);
        format!(
            "(defvar specs '({}))\n{loops}{}",
            "(:name \"x\") ".repeat(many),
            wrappers.collect::<String>()
        )
    });
    assert_linear("a.el", 20_000, |many| {
        let nested = "(let ((specs nil)) (dolist (spec specs) (apply #'gptel-make-tool spec)".repeat(many);
        format!("{nested}{}", "))".repeat(many))
    });
}
