//! Confirmation prompts: conditions, prompts, refusals and `always`. Uses the real binary, with and without a terminal.

use deftool_lang::schema::compile_tool;
use deftool_lang::spec::{FileKind, lower};
use deftool_lang::text::{SourceFile, Sources};
use deftool_test_support::cpu::assert_linear;
use deftool_test_support::server::{Answer, Server, Texts};
use serde_json::{Value, json};

use crate::support::project::Project;

fn asks(spec: &str, arguments: &Value) -> bool {
    let source = Sources::new().add(SourceFile::new("t.eld", ""));
    let (tree, _) = deftool_lang::syntax::parse(source, spec);
    let (definitions, _) = lower(source, spec, &tree, FileKind::Specs);
    let entry = compile_tool(&definitions.tools[0]);
    let accepted = entry.accept(arguments.clone().try_into().unwrap()).expect("the arguments are valid");
    entry.needs_approval(&accepted)
}

#[test]
fn conditions_select_the_calls_that_need_approval() {
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
        // A pattern matches anywhere, but only in strings.
        ("(:when (:path \"etc\"))", json!({"path": "/etc/passwd"}), true),
        ("(:when (:path \"^etc\"))", json!({"path": "/etc/passwd"}), false),
        ("(:when (:path \"null\"))", json!({"path": null}), false),
        ("(:when (:path :null))", json!({"path": null}), true),
        ("(:when (:path :null))", json!({}), false),
        // Text after a line break is matched, too.
        ("(:when (:path \"^/etc/\"))", json!({"path": "/etc/\n/home"}), true),
        ("(:when (:path \"x$\"))", json!({"path": "x\ny"}), false),
        // All parts of a condition must match, and one condition is enough.
        ("(:when (:path \"a\" :force t))", json!({"path": "a"}), false),
        ("(:when (:path \"a\" :force t))", json!({"path": "a", "force": true}), true),
        ("(:when (:path \"a\" :force t))", json!({"path": "a", "force": false}), false),
        ("(:when (:path \"a\") (:force :json-false))", json!({"force": false}), true),
        ("(:when (:force :json-false))", json!({}), false),
        // Numbers are compared as in JSON Schema.
        ("(:when (:count 2))", json!({"count": 2.0}), true),
        ("(:when (:count 2))", json!({"count": 2.5}), false),
        ("(:when (:count [1 2 3]))", json!({"count": 3}), true),
        ("(:when (:path [\"^a\" :null \"z$\"]))", json!({"path": "xyz"}), true),
        ("(:when (:path [\"^a\" :null \"z$\"]))", json!({"path": "xy"}), false),
        // Items of arrays and members of objects.
        ("(:when (:flags \"^--force$\"))", json!({"flags": ["-v", "--force"]}), true),
        ("(:when (:flags \"^--force$\"))", json!({"flags": []}), false),
        ("(:when (:deep (:on t)))", json!({"deep": {"on": true}}), true),
        ("(:when (:deep (:on t :at \"x\")))", json!({"deep": {"on": true}}), false),
        // A missing argument has its default value.
        ("(:when (:mode \"deep\"))", json!({}), true),
        ("(:when (:mode \"deep\"))", json!({"mode": "flat"}), false),
        ("(:when (:mode \"flat\"))", json!({}), false),
        // An invalid condition matches every call.
        ("(:when (:path \"(\"))", json!({}), true),
        ("(:when (:path \"(?=a)\"))", json!({}), true),
        ("(:when :path \"a\")", json!({}), true),
    ] {
        assert_eq!(asks(&spec(confirm), &arguments), expected, "{confirm} {arguments}");
    }
}

/// Patterns that take exponential time in a backtracking engine.
#[test]
fn a_hostile_argument_is_matched_in_linear_time() {
    let spec = "(deftool :name \"a\" :description \"Do it.\" :confirm (:when (:path \"^(a+)+$\") (:path \"(x+x+)+y\"))
      :args ((:name \"path\" :type string :description \"Where.\")))";
    for letter in ["a", "x"] {
        assert_linear(letter, 50_000, |size| {
            let path = letter.repeat(size) + "!";
            assert!(!asks(spec, &json!({ "path": path })));
        });
    }
}

/// Strict mode writes null for omitted arguments. The condition sees the arguments as the tool receives them.
#[test]
fn conditions_see_the_final_arguments() {
    let spec = "(deftool :name \"a\" :description \"Do it.\" :confirm (:when (:path :null) (:force t))
      :args ((:name \"path\" :type string :optional t :description \"Where.\")
             (:name \"force\" :type boolean :optional t :description \"Whether.\")))";
    let source = Sources::new().add(SourceFile::new("t.eld", ""));
    let (tree, _) = deftool_lang::syntax::parse(source, spec);
    let (definitions, _) = lower(source, spec, &tree, FileKind::Specs);
    let entry = compile_tool(&definitions.tools[0]).into_strict();
    for (arguments, expected) in
        [(json!({"path": null, "force": null}), false), (json!({"path": null, "force": true}), true)]
    {
        let accepted = entry.accept(arguments.try_into().unwrap()).unwrap();
        assert_eq!(entry.needs_approval(&accepted), expected, "{accepted}");
    }
}

/// Creates a project with a tool `drop` that has this `:confirm` and returns its arguments.
fn project(confirm: &str) -> Project {
    let project = Project::empty();
    project.write(
        "specs/drop.eld",
        format!(
            "(deftool :name \"drop\" :description \"Drop a file.\" :confirm {confirm}
              :args ((:name \"path\" :type string :description \"Which.\")
                     (:name \"force\" :type boolean :optional t :description \"Whether.\")))"
        ),
    );
    project.write(
        "scripts/drop.lua",
        "return function(path, force) return { dropped = #path, force = force } end\n",
    );
    project
}

fn calls_then(arguments: &[Value], text: &str) -> Server {
    let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
    let calls: Vec<(&str, &str)> = arguments.iter().map(|text| ("drop", text.as_str())).collect();
    Server::script([Answer::calls(&calls), Answer::text(text)])
}

/// Returns the tool results that were sent to the model.
fn results(server: &Server) -> Vec<Value> {
    let contents = server.posts().last().unwrap().texts("tool");
    contents.iter().map(|content| serde_json::from_str(content).unwrap()).collect()
}

#[test]
fn without_a_terminal_calls_are_refused_with_one_note() {
    let project = project("t");
    let arguments = [json!({"path": "/etc/passwd"}), json!({"path": "b"})];
    for json in [&[][..], &["--json"]] {
        let server = calls_then(&arguments, "As you wish.");
        let endpoint = server.endpoint();
        let run = [&["run", "hello", "--endpoint", &endpoint], json].concat();
        let ended = project.run(&run);
        assert_eq!(ended.code, Some(0), "a refusal is a tool result: {ended:?}");
        assert_eq!(ended.stderr.matches("--yes allows them").count(), 1, "{ended:?}");
        let refused = json!({"refused": "the user did not allow this call", "reason": "no user is available to confirm the call"});
        assert_eq!(results(&server), [refused.clone(), refused]);

        let server = calls_then(&arguments, "Done.");
        let endpoint = server.endpoint();
        let ended = project.run(&[&["run", "hello", "--yes", "--endpoint", &endpoint], json].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stderr.contains("--yes"), "{ended:?}");
        assert_eq!(results(&server), [json!({"dropped": 11}), json!({"dropped": 1})]);
        if !json.is_empty() {
            let asked: Vec<Value> =
                ended.events().into_iter().filter(|event| event["type"] == "approval").collect();
            assert_eq!(asked.len(), 4, "{asked:?}");
            assert_eq!(asked[0]["arguments"], arguments[0]);
            assert_eq!(asked[1]["answer"]["answer"], "allowed");
        }
    }
}

#[test]
fn only_calls_that_match_a_condition_need_approval() {
    let project = project("(:when (:path \"^/etc/\") (:force t))");
    let server = calls_then(
        &[json!({"path": "/etc/x"}), json!({"path": "a"}), json!({"path": "a", "force": true})],
        "Done.",
    );
    let ended = project.run(&["run", "hello", "--endpoint", &server.endpoint()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let is_refused: Vec<bool> =
        results(&server).iter().map(|result| result.get("refused").is_some()).collect();
    assert_eq!(is_refused, [true, false, true]);
    // A call by the user needs no approval.
    let ended = project.run(&["call", "drop", r#"{"path": "/etc/x"}"#]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn compiling_for_gptel_warns_about_conditions_of_a_function_in_emacs_lisp() {
    let project = Project::empty();
    project.write(
        "lisp.eld",
        "(deftool :name \"drop\" :description \"Drop a file.\" :function drop-file\n \
         :confirm (:when (:path \"^/etc/\")) :args ((:name \"path\" :type string :description \"Which.\")))",
    );
    let ended = project.run(&["compile", "--target", "gptel", "lisp.eld"]);
    assert!(ended.stdout.contains(" :confirm t"), "{ended:?}");
    assert!(
        ended.stderr.contains("`:confirm` applies to every call, because gptel has no conditions"),
        "{ended:?}"
    );
}

#[cfg(target_os = "linux")]
mod terminal {
    use deftool_test_support::server::Act;

    use super::*;
    use crate::support::terminal::{Piped, Terminal};

    const PROMPT: &str = "Allow it? [y/N/always, n REASON, show] ";

    fn start(project: &Project, server: &Server, piped: Piped) -> Terminal {
        Terminal::start(project, &["run", "hello", "--endpoint", &server.endpoint()], piped)
    }

    #[test]
    fn the_prompt_shows_the_arguments_and_yes_makes_the_call() {
        let project = project("t");
        let server = calls_then(&[json!({"path": "/etc/passwd", "force": true})], "Done.");
        let mut terminal = start(&project, &server, Piped::Stdout);
        terminal.wait_for(
            "The model requests to call drop with\r\n  path   \"/etc/passwd\"\r\n  force  true\r\n",
        );
        terminal.wait_for(PROMPT);
        terminal.type_text("y\n");
        let ended = terminal.end();
        assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), "Done."), "{ended:?}");
        assert_eq!(results(&server), [json!({"dropped": 11, "force": true})]);
        // The prompt uses the terminal even if stdin is a pipe.
        let server = calls_then(&[json!({"path": "b"})], "Done.");
        let mut terminal = start(&project, &server, Piped::StdinAndStdout);
        terminal.wait_for(PROMPT);
        terminal.type_text("yes\n");
        let ended = terminal.end();
        assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), "Done."), "{ended:?}");
        assert_eq!(results(&server), [json!({"dropped": 1})]);
    }

    #[test]
    fn a_refusal_is_sent_to_the_model_with_its_reason() {
        let project = project("t");
        // 4: Ctrl-D, the end of input.
        for (typed, reason) in [
            ("n\n", None),
            ("\n", None),
            ("no, not that file\n", Some("not that file")),
            ("\u{4}", Some("the user gave no answer")),
        ] {
            let server = calls_then(&[json!({"path": "a"})], "As you wish.");
            let mut terminal = start(&project, &server, Piped::Stdout);
            terminal.wait_for(PROMPT);
            terminal.type_text(typed);
            let ended = terminal.end();
            assert_eq!(
                (ended.code, ended.stdout.trim_end()),
                (Some(0), "As you wish."),
                "{typed:?} {ended:?}"
            );
            let results = results(&server);
            assert_eq!(results[0].get("reason").and_then(Value::as_str), reason, "{results:?}");
            assert!(results[0].get("refused").is_some(), "{results:?}");
        }
    }

    #[test]
    fn always_prompts_once_and_an_unclear_answer_prompts_again() {
        let project = project("t");
        let server = calls_then(&[json!({"path": "a"}), json!({"path": "bb"})], "Done.");
        let mut terminal = start(&project, &server, Piped::Stdout);
        terminal.wait_for(PROMPT);
        terminal.type_text("perhaps\n");
        terminal.wait_for("n REASON: refuse and send the reason to the model");
        terminal.wait_for(PROMPT);
        terminal.type_text("always\n");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stderr.matches("The model requests to call").count(), 1, "{ended:?}");
        assert_eq!(results(&server), [json!({"dropped": 1}), json!({"dropped": 2})]);
    }

    #[test]
    fn a_long_argument_is_truncated_and_show_prints_it_in_full() {
        let project = project("t");
        let path = format!("{}MIDDLE{}", "x".repeat(3_000), "y".repeat(3_000));
        let server = calls_then(&[json!({ "path": path })], "Done.");
        let mut terminal = start(&project, &server, Piped::Stdout);
        terminal.wait_for(PROMPT);
        let said = terminal.output();
        let cut = said.replace("\r\n    ", "");
        assert!(cut.contains("(5458 of 6008 characters omitted; `show` prints all)"), "{said}");
        assert!(!cut.contains("MIDDLE"), "{said}");
        terminal.type_text("show\n");
        terminal.wait_for(PROMPT);
        assert!(terminal.output().replace("\r\n    ", "").contains("MIDDLE"));
        terminal.type_text("n\n");
        assert_eq!(terminal.end().code, Some(0));
    }

    #[test]
    fn ctrl_c_at_the_prompt_cancels_the_request() {
        let project = project("t");
        let server = calls_then(&[json!({"path": "a"})], "Done.");
        let mut terminal = start(&project, &server, Piped::Stdout);
        terminal.wait_for(PROMPT);
        terminal.type_text("\u{3}");
        let ended = terminal.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
        assert_eq!(server.posts().len(), 1, "no further request may be sent");
    }

    /// Input typed before the prompt is not an answer.
    #[test]
    fn input_typed_before_the_prompt_is_discarded() {
        let project = project("t");
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let told = std::sync::Mutex::new(told);
        let wait = Act::Do(std::sync::Arc::new(move || {
            let _ = told.lock().unwrap().recv();
        }));
        let arguments = json!({"path": "a"}).to_string();
        let call = Answer::stream()
            .then(wait)
            .chunk(&deftool_test_support::server::call(0, "drop", &arguments))
            .chunk(&deftool_test_support::server::finish("tool_calls"))
            .done()
            .end();
        let server = Server::script([call, Answer::text("As you wish.")]);
        let mut terminal = start(&project, &server, Piped::Stdout);
        server.wait_for_posts(1);
        terminal.type_text("y\n");
        // Once it is echoed, the terminal has the input.
        terminal.wait_for("y\r\n");
        tell.send(()).unwrap();
        terminal.wait_for(PROMPT);
        terminal.type_text("n\n");
        assert_eq!(terminal.end().code, Some(0));
        assert!(results(&server)[0].get("refused").is_some());
    }

    #[test]
    fn arguments_cannot_imitate_the_prompt() {
        let project = project("t");
        let forged = format!(
            "{}\r\nThe model requests to call look with\n  path \"notes\"\n{PROMPT}y\n\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}",
            "x".repeat(90)
        );
        let server = calls_then(&[json!({"path": forged})], "Done.");
        let mut terminal = start(&project, &server, Piped::Stdout);
        terminal.wait_for(&format!("\r\n{PROMPT}"));
        terminal.type_text("show\n");
        terminal.wait_for(&format!("\r\n{PROMPT}"));
        terminal.type_text("n\n");
        let ended = terminal.end();
        let said = ended.stderr;
        // No line begins with text of the model, and no control sequence is executed.
        let said = said.replace("\u{1b}[2K", "\n");
        let begins = |text: &str| said.lines().filter(|line| line.starts_with(text)).count();
        assert_eq!((begins("The model requests to call drop"), begins("Allow it?")), (2, 2), "{said}");
        assert!(
            !said.contains("\u{1b}[2J") && !said.contains("\u{1b}]0") && !said.contains('\u{202e}'),
            "{said:?}"
        );
    }

    /// A failed call ends the request while one prompt is shown and another waits. All output is shown, without new
    /// prompts.
    #[test]
    fn prompts_end_with_their_request() {
        let project = project("t");
        project.write("specs/worker.eld", "(defworker :name \"w\" :parallel t)");
        let spec = "(deftool :name \"fail\" :description \"Fail.\" :allow (:read [\"asked\"]))";
        project.write("specs/fail.eld", spec);
        let script = "return function()\n while not fs.stat(\"asked\") do task.wait(0.01) end\n error('no luck')\nend\n";
        project.write("scripts/fail.lua", script);
        let calls = [("fail", "{}"), ("drop", r#"{"path": "a"}"#), ("drop", r#"{"path": "bb"}"#)];
        for json in [&[][..], &["--json"]] {
            let server = Server::script([Answer::calls(&calls)]);
            let endpoint = server.endpoint();
            let run = [&["run", "hello", "--endpoint", &endpoint], json].concat();
            let mut terminal = Terminal::start(&project, &run, Piped::Stdout);
            terminal.wait_for(PROMPT);
            project.write("asked", "");
            let ended = terminal.end();
            std::fs::remove_file(project.path("asked")).unwrap();
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert_eq!(ended.stderr.matches("The model requests to call").count(), 1, "{ended:?}");
            assert!(ended.stderr.contains(PROMPT), "{ended:?}");
            if json.is_empty() {
                assert!(ended.stderr.contains("error[script]: fail: "), "{ended:?}");
            } else {
                let events = ended.events();
                let asked = events.iter().filter(|event| event["type"] == "approval").count();
                assert_eq!((asked, &events.last().unwrap()["type"]), (2, &json!("finished")), "{events:?}");
            }
        }
    }

    /// With `:parallel t` one prompt is shown at a time, and other output follows it.
    #[test]
    fn parallel_calls_are_confirmed_one_at_a_time() {
        let project = project("t");
        project.write("specs/worker.eld", "(defworker :name \"w\" :parallel t)");
        let server = calls_then(&[json!({"path": "a"}), json!({"path": "bb"})], "Done.");
        let mut terminal = start(&project, &server, Piped::Stdout);
        terminal.wait_for("path  \"a\"");
        terminal.wait_for(PROMPT);
        terminal.type_text("y\n");
        terminal.wait_for("path  \"bb\"");
        terminal.wait_for(PROMPT);
        terminal.type_text("n\n");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let results = results(&server);
        assert_eq!(results[0], json!({"dropped": 1}));
        assert!(results[1].get("refused").is_some(), "{results:?}");
    }
}
