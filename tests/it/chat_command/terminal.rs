//! A chat at a terminal: editing, typing ahead, Ctrl-C.

use super::*;
use crate::support::terminal::{Piped, Terminal};

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
fn messages_are_edited_and_remembered() {
    let home = Home::new();
    let server = Server::script([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let mut terminal = start(&home, &server, &[]);
    terminal.wait_for(PROMPT);
    // A letter is taken away, and the line goes on in the next.
    terminal.type_text("hellp\u{7f}o\\\rworld\r");
    terminal.wait_for("One.");
    terminal.wait_for(PROMPT);
    terminal.type_text("```\rcode\r```\r");
    terminal.wait_for("Two.");
    terminal.wait_for(PROMPT);
    // 4: Ctrl-D.
    terminal.type_text("\u{4}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("`deftool chat --resume` goes on"), "{ended:?}");
    assert_eq!(sent(&server, 0), [said("user", "hello\nworld")]);
    assert_eq!(sent(&server, 1)[2], said("user", "```\ncode\n```"));

    // The arrow upwards brings back what was typed last, in the next chat, too.
    let mut terminal = start(&home, &server, &["--resume"]);
    terminal.wait_for("4 messages");
    terminal.wait_for(PROMPT);
    terminal.type_text("\u{1b}[A\r");
    terminal.wait_for("Three.");
    terminal.wait_for(PROMPT);
    terminal.type_text("/quit\r");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(sent(&server, 2).last(), Some(&said("user", "```\ncode\n```")));
}

#[test]
fn lines_that_come_at_once_are_taken_in_order() {
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
    assert_eq!(users, [said("user", "a"), said("user", "b"), said("user", "c")]);
}

/// Ctrl-D, too, is in its place.
#[test]
fn lines_that_are_typed_during_a_reply_are_taken_in_order() {
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
    terminal.wait_for("there is no system message");
    terminal.wait_for("Whole.");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(sent(&server, 1)[2], said("user", "last"));
}

#[test]
fn ctrl_c_ends_a_reply_and_keeps_what_came() {
    let home = Home::new();
    let half = Answer::stream().delta("Half an ans").then(Act::Silence);
    let server = Server::script([half, Answer::text("Whole.")]);
    let mut terminal = start(&home, &server, &["first"]);
    terminal.wait_for("Half an ans");
    terminal.type_text("\u{3}");
    terminal.wait_for("canceled; the text so far is kept");
    terminal.wait_for(PROMPT);
    // With something on the line Ctrl-C takes that away; twice at an empty prompt it leaves.
    terminal.type_text("something\u{3}");
    terminal.wait_for(PROMPT);
    terminal.type_text("second\r");
    terminal.wait_for("Whole.");
    terminal.wait_for(PROMPT);
    terminal.type_text("\u{3}");
    terminal.wait_for("Ctrl-C again");
    terminal.wait_for(PROMPT);
    terminal.type_text("\u{3}");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(sent(&server, 1)[1], said("assistant", &format!("Half an ans\n\n{INTERRUPTED}")));
    server.posts().iter().for_each(|post| assert_valid(&post.body));
}

#[test]
fn always_holds_until_the_project_is_another() {
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
    assert_eq!(terminal.said().matches("The model wants").count(), 1, "{}", terminal.said());
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
    assert!(server.posts()[5].contents("tool").last().unwrap().contains("not now"));
}

/// The terminal is left as it was, whoever ends the chat.
#[test]
fn a_chat_that_is_ended_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    let server = Server::script([Answer::text("One.")]);
    let mut terminal = start(&home, &server, &[]);
    terminal.wait_for(PROMPT);
    terminal.wait_until_raw();
    let id = terminal.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let master = terminal.master();
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let now = nix::sys::termios::tcgetattr(&master).unwrap();
    assert!(now.local_flags.contains(nix::sys::termios::LocalFlags::ICANON), "{now:?}");
}
