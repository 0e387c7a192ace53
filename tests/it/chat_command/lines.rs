//! The lines of stdin: which are one message, and what ends them.

use std::io::Read;

use super::*;

/// What the people of a chat with these lines of stdin said.
fn said_by_people(lines: &str) -> Vec<String> {
    let home = Home::new();
    let server = Server::answering(|_, _| Answer::text("Yes."));
    let ended = home.chat(&server, &["--no-save"], lines);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last = sent(&server, server.posts().len() - 1);
    last.into_iter().filter(|(role, _)| role == "user").map(|(_, content)| content).collect()
}

/// It is no fence: no backtick follows the first ones of a block.
#[test]
fn a_line_that_begins_with_a_span_of_code_is_a_message() {
    let said = said_by_people("```ls -la``` what does this do?\nsecond\n/tools\nthird\n");
    assert_eq!(said, ["```ls -la``` what does this do?", "second", "third"]);
}

/// A block in a block, as people quote Markdown.
#[test]
fn a_block_ends_with_as_many_backticks_as_it_began_with() {
    let said = said_by_people("````\n```\none\n````\ntwo\n");
    assert_eq!(said, ["````\n```\none\n````", "two"]);
}

#[test]
fn lines_that_end_as_windows_has_it_go_on_as_others_do() {
    let said = said_by_people("one\\\r\ntwo\r\n```\r\nthree\\\r\n```\r\n/tools\r\n");
    assert_eq!(said, ["one\ntwo", "```\nthree\\\n```"]);
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_interrupts_the_chat() {
    let home = Home::new();
    let endless = (0..2000).fold(Answer::stream(), |answer, _| answer.delta("word ").wait_ms(5));
    let server = Server::script([endless]);
    let mut child = home.command(&server, &[]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hi\nnot sent\n").unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(130), ""), "{ended:?}");
    assert_eq!(server.posts().len(), 1);
    let kept = fs::read_to_string(home.only_session()).unwrap();
    assert!(kept.contains(INTERRUPTED), "{kept}");
}
