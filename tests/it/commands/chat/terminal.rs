//! A chat on a terminal: line editing, type-ahead, Ctrl-C.

use super::*;
use crate::support::terminal::{Piped, Terminal};
use deftool_test_support::server::Texts;

const PROMPT: &str = "> ";

fn start(home: &Home, server: &Server, arguments: &[&str]) -> Terminal {
    let endpoint = server.endpoint();
    let arguments = [&["chat", "--endpoint", &endpoint], arguments].concat();
    let state = home.state.path().to_str().unwrap();
    let mut terminal = Terminal::start_with(&home.project, &arguments, Piped::Nothing, state);
    terminal.wait_for("/help lists the commands");
    terminal
}

#[test]
fn lines_are_edited_and_stored_in_the_history() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let mut terminal = start(&home, &server, &[]);
    terminal.wait_for(PROMPT);
    // Backspace, and a continued line.
    terminal.type_text("hellp\u{7f}o\\\rworld\r");
    terminal.wait_for("One.");
    terminal.wait_for(PROMPT);
    terminal.type_text("```\rcode\r```\r");
    terminal.wait_for("Two.");
    terminal.wait_for(PROMPT);
    // Ctrl-D
    terminal.type_text("\u{4}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("resume it with `deftool chat --resume`"), "{ended:?}");
    assert_eq!(sent(&server, 0), [message("user", "hello\nworld")]);
    assert_eq!(sent(&server, 1)[2], message("user", "```\ncode\n```"));

    // Arrow up recalls the last input of the previous chat.
    let mut terminal = start(&home, &server, &["--resume"]);
    terminal.wait_for("4 messages");
    terminal.wait_for(PROMPT);
    terminal.type_text("\u{1b}[A\r");
    terminal.wait_for("Three.");
    terminal.wait_for(PROMPT);
    terminal.type_text("/quit\r");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(sent(&server, 2).last(), Some(&message("user", "```\ncode\n```")));
}

#[test]
fn pasted_lines_are_processed_in_order() {
    let home = Home::new();
    let server = Server::script(["One.", "Two.", "Three."].map(Answer::text));
    let mut terminal = start(&home, &server, &[]);
    terminal.wait_for(PROMPT);
    terminal.wait_until_raw();
    terminal.type_text("a\nb\nc\n/quit\n");
    for reply in ["One.", "Two.", "Three."] {
        terminal.wait_for(reply);
    }
    assert_eq!(terminal.end().code, Some(0));
    let users: Vec<_> = sent(&server, 2).into_iter().filter(|(role, _)| role == "user").collect();
    assert_eq!(users, [message("user", "a"), message("user", "b"), message("user", "c")]);
}

/// Ctrl-D is also processed in order.
#[test]
fn lines_typed_during_a_reply_are_processed_in_order() {
    let home = Home::new();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let may_go = std::sync::Mutex::new(may_go);
    let server = Server::answering(move |nth, _| {
        if nth == 0 {
            may_go.lock().unwrap().recv().unwrap();
        }
        Answer::text("Whole.")
    });
    let mut terminal = start(&home, &server, &["first", "--model", "demo"]);
    server.wait_for_posts(1);
    terminal.type_text("/model\n/system\nlast\n\u{4}");
    terminal.wait_for("last");
    go.send(()).unwrap();
    terminal.wait_for("Whole.");
    terminal.wait_for("demo\r\n");
    terminal.wait_for("no additional system message");
    terminal.wait_for("Whole.");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(sent(&server, 1)[2], message("user", "last"));
}

#[test]
fn ctrl_c_cancels_a_reply_and_keeps_its_text() {
    let home = Home::new();
    let half = Answer::stream().delta("Half an ans").then(Act::Silence);
    let server = Server::script([half, Answer::text("Whole.")]);
    let mut terminal = start(&home, &server, &["first"]);
    terminal.wait_for("Half an ans");
    terminal.type_text("\u{3}");
    terminal.wait_for("canceled; the text so far is kept");
    terminal.wait_for(PROMPT);
    // Ctrl-C clears the line; twice on an empty line quits.
    terminal.type_text("something\u{3}");
    terminal.wait_for(PROMPT);
    terminal.type_text("second\r");
    terminal.wait_for("Whole.");
    terminal.wait_for(PROMPT);
    terminal.type_text("\u{3}");
    terminal.wait_for("press Ctrl-C again");
    terminal.wait_for(PROMPT);
    terminal.type_text("\u{3}");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(sent(&server, 1)[1], message("assistant", &format!("Half an ans\n\n{INTERRUPTED}")));
    server.posts().iter().for_each(|post| assert_valid(&post.body));
}

#[test]
fn always_is_valid_until_a_reload() {
    let home = Home::new();
    let spec = "(deftool :name \"drop\" :description \"Drop it.\" :confirm t)";
    home.project.write("specs/drop.eld", spec);
    home.project.write("scripts/drop.lua", "return function() return 1 end\n");
    let server = Server::answering(|nth, _| {
        if nth % 2 == 0 { Answer::calls(&[("drop", "{}")]) } else { Answer::text("Done.") }
    });
    let mut terminal = start(&home, &server, &["one"]);
    terminal.wait_for("drop without arguments");
    terminal.wait_for("show] ");
    terminal.type_text("always\n");
    terminal.wait_for("Done.");
    terminal.wait_for(PROMPT);
    terminal.type_text("two\r");
    terminal.wait_for("Done.");
    terminal.wait_for(PROMPT);
    assert_eq!(terminal.output().matches("The model requests to call").count(), 1, "{}", terminal.output());
    let beside = home.project.path("new.lua");
    fs::write(&beside, "return function() return 2 end\n").unwrap();
    fs::rename(beside, home.project.path("scripts/drop.lua")).unwrap();
    terminal.type_text("/reload\r");
    terminal.wait_for("generation 2");
    terminal.wait_for(PROMPT);
    terminal.type_text("three\r");
    terminal.wait_for("drop without arguments");
    terminal.wait_for("show] ");
    terminal.type_text("n not now\n");
    terminal.wait_for("Done.");
    terminal.wait_for(PROMPT);
    terminal.type_text("/quit\r");
    assert_eq!(terminal.end().code, Some(0));
    assert!(server.posts()[5].texts("tool").last().unwrap().contains("not now"));
}

/// SIGTERM also restores the terminal.
#[test]
fn the_terminal_is_restored_if_the_chat_is_terminated() {
    let home = Home::new();
    let server = Server::script([Answer::text("One.")]);
    let mut terminal = start(&home, &server, &[]);
    terminal.wait_for(PROMPT);
    terminal.wait_until_raw();
    let id = terminal.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let master = terminal.master();
    let ended = terminal.end();
    assert_eq!(ended.code, Some(143), "{ended:?}");
    let now = nix::sys::termios::tcgetattr(&master).unwrap();
    assert!(now.local_flags.contains(nix::sys::termios::LocalFlags::ICANON), "{now:?}");
}
