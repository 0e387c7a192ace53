//! Holds back the end of a streamed reply while it may be the beginning of the API key, spelled over several deltas.
//!
//! In: the bytes of an event stream, the key already redacted where it is written in one piece. Out: the same bytes, up to
//! the event in which a channel of text begins that could go on to be the key. When the stream is interrupted there, that
//! beginning is removed, so that neither events nor recordings nor sessions hold a part of the key; when the key is
//! completed, it is removed, and the reply is to be ended.
//!
//! It stands before the decoder and the recorder, so that a replay reads what the request read.

use super::recording::{Frame, frames_of, rewrite_texts, texts_of};
use super::redact::{REDACTED, Redactor};
use super::secrets::Hit;
use super::transport::Transport;
use crate::chat::sse::MAX_EVENT_BYTES;

/// More is not held back: the beginning of a key that so much follows is removed.
const MAX_HELD: usize = 64 << 10;

/// The end of one reply.
pub(super) struct KeyTail<'t> {
    transport: &'t dyn Transport,
    /// Whole lines behind the place where a key may begin, and the beginning of a line.
    held: Vec<u8>,
}

/// What may go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// These bytes.
    Pass(Vec<u8>),
    /// These bytes, from which the key was removed. Nothing may follow.
    Spelled(Vec<u8>),
}

impl<'t> KeyTail<'t> {
    pub(super) fn new(transport: &'t dyn Transport) -> Self {
        Self { transport, held: Vec::new() }
    }

    /// Takes one read.
    pub(super) fn feed(&mut self, bytes: Vec<u8>) -> Fed {
        if self.transport.longest_secret() == 0 {
            return Fed::Pass(bytes);
        }
        self.held.extend(bytes);
        let whole = self.whole_lines();
        let lines = self.held.get(..whole).unwrap_or_default();
        if texts_of(events_of(lines)).iter().any(|channel| self.transport.holds_secret(&channel.text)) {
            let lines: Vec<u8> = self.held.drain(..).take(whole).collect();
            return Fed::Spelled(self.without_keys(lines, ""));
        }
        // Text that ended is decided: a server may say nothing more for as long as the connection lasts.
        let decided = end_of_text(lines);
        let mut open_from = whole;
        for channel in texts_of(frames_of(lines.get(decided..).unwrap_or_default())) {
            if let Some(start) = self.transport.secret_start(&channel.text) {
                let frame = decided + channel.frame_at(start);
                let before = lines.get(..frame).unwrap_or_default();
                let line = memchr::memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1);
                open_from = open_from.min(line.max(decided));
            }
        }
        if self.held.len() - open_from > MAX_HELD && open_from < whole {
            return Fed::Pass(self.cut());
        }
        Fed::Pass(self.held.drain(..open_from).collect())
    }

    /// The stream is complete: returns what was held back.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// The stream was interrupted: returns what was held back, without the beginning of a key.
    pub(super) fn cut(&mut self) -> Vec<u8> {
        let whole = self.whole_lines();
        let mut lines = std::mem::take(&mut self.held);
        let rest = lines.split_off(whole);
        let before = lines.clone();
        let mut left = self.without_keys(lines, REDACTED);
        // A line that was cut may go on with the key, or end in it.
        if left == before {
            let rest = String::from_utf8_lossy(&rest).into_owned();
            let start = self.transport.secret_start(&rest);
            match start.filter(|start| Redactor::is_telling(rest.len() - start)) {
                Some(start) => {
                    left.extend([rest.get(..start).unwrap_or_default(), REDACTED].concat().bytes());
                }
                None => left.extend(rest.bytes()),
            }
        }
        left
    }

    /// `lines` whose texts end where a key begins, or the beginning of one that is long enough to tell; there is `mark`.
    fn without_keys(&self, lines: Vec<u8>, mark: &str) -> Vec<u8> {
        if events_of(&lines).is_empty() {
            return lines;
        }
        rewrite_texts(lines, |text| {
            let is_key =
                |start: &usize| Redactor::is_telling(text.len() - start) || self.transport.holds_secret(text);
            let start = self.transport.secret_start(text).filter(is_key);
            start.map(|start| Hit { range: start..text.len(), mark: mark.to_owned() }).into_iter().collect()
        })
    }

    /// Where the last line begins that may become an event and is not whole.
    fn whole_lines(&self) -> usize {
        const DATA: &[u8] = b"data:";
        let start = memchr::memrchr2(b'\n', b'\r', &self.held).map_or(0, |end| end + 1);
        let last = self.held.get(start..).unwrap_or_default();
        let is_event = last.starts_with(DATA) || DATA.starts_with(last);
        if is_event && last.len() <= MAX_EVENT_BYTES { start } else { self.held.len() }
    }
}

/// Where the last event ends that ends the texts before it: one that is no delta, such as `[DONE]`.
fn end_of_text(lines: &[u8]) -> usize {
    let mut end = 0;
    let mut at = 0;
    for line in lines.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        at += line.len();
        if line.starts_with(b"data:") && !frames_of(line).iter_mut().any(Frame::is_delta) {
            end = at;
        }
    }
    end
}

/// The events of `lines`. A body that is JSON as a whole goes on in no other.
fn events_of(lines: &[u8]) -> Vec<Frame> {
    let mut frames = frames_of(lines);
    frames.retain(|frame| frame.range.start > 0);
    frames
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    use super::super::transport::{Incoming, Outgoing, TransportError};
    use super::*;
    use crate::chat::Api;

    struct Keyed(Redactor);

    impl Transport for Keyed {
        fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
            std::future::pending().boxed()
        }

        fn url(&self, _: Api) -> &'static str {
            ""
        }

        fn holds_secret(&self, text: &str) -> bool {
            self.0.is_in(text)
        }

        fn secret_start(&self, text: &str) -> Option<usize> {
            self.0.start_in(text)
        }

        fn longest_secret(&self) -> usize {
            self.0.longest()
        }
    }

    fn deltas(texts: &[&str]) -> String {
        let line = |text: &&str| {
            let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
            format!("data: {delta}\n\n")
        };
        texts.iter().map(line).collect()
    }

    #[test]
    fn the_beginning_of_a_key_waits_for_its_decision() {
        let transport = Keyed(Redactor::new(Some("sk-secret-key")));
        for (texts, passed, cut) in [
            (&["one ", "two"][..], 2, &["one ", "two"][..]),
            (&["one s", "ix"], 2, &["one s", "ix"]),
            (&["one s", "k"], 0, &["one s", "k"]),
            (&["one ", "s", "k-se", "cr"], 1, &["one ", "[redacted]", "", ""]),
            (&["one sk-secr", "", "et-ke"], 0, &["one [redacted]", "", ""]),
            (&["one sk-secr", "ed"], 2, &["one sk-secr", "ed"]),
        ] {
            let all = deltas(texts);
            for size in [1, 7, all.len()] {
                let mut tail = KeyTail::new(&transport);
                let mut out = Vec::new();
                for piece in all.as_bytes().chunks(size) {
                    let Fed::Pass(bytes) = tail.feed(piece.to_vec()) else { panic!("{texts:?}") };
                    out.extend(bytes);
                }
                let held = deltas(&texts[passed..]);
                assert!(all.ends_with(&held) && out.len() <= all.len() - held.trim_end().len(), "{texts:?}");
                out.extend(tail.cut());
                assert_eq!(String::from_utf8(out).unwrap(), deltas(cut), "{texts:?} by {size}");
            }
            let mut tail = KeyTail::new(&transport);
            let Fed::Pass(mut out) = tail.feed(all.clone().into_bytes()) else { panic!("{texts:?}") };
            out.extend(tail.finish());
            assert_eq!(String::from_utf8(out).unwrap(), all);
        }
    }

    #[test]
    fn what_ends_a_text_decides_it_at_once() {
        let transport = Keyed(Redactor::new(Some("sk-secret-key")));
        for end in [
            r#"{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#,
            r#"{"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "length"}]}"#,
            r#"{"type": "response.completed", "response": {"output": [{"content": [{"text": "a sk-se"}]}]}}"#,
            r#"{"error": {"message": "no"}}"#,
            "[DONE]",
        ] {
            let mut tail = KeyTail::new(&transport);
            let text = format!("{}: ping\n\n", deltas(&["a sk-se", ""]));
            assert_eq!(tail.feed(text.clone().into_bytes()), Fed::Pass(Vec::new()));
            let end = format!("data: {end}\n");
            assert_eq!(tail.feed(end.clone().into_bytes()), Fed::Pass((text + &end).into_bytes()), "{end}");
        }
    }

    #[test]
    fn a_key_that_is_completed_is_removed() {
        let transport = Keyed(Redactor::new(Some("sk-secret-key")));
        let mut tail = KeyTail::new(&transport);
        let first = deltas(&["one ", "two sk-sec"]);
        assert_eq!(tail.feed(first.into_bytes()), Fed::Pass(deltas(&["one "]).into_bytes()));
        let spelled = tail.feed(deltas(&["ret-key three"]).into_bytes());
        assert_eq!(spelled, Fed::Spelled(deltas(&["two ", ""]).into_bytes()));
    }

    #[test]
    fn other_bytes_pass_at_once_and_little_is_held() {
        let transport = Keyed(Redactor::new(Some("sk-secret-key")));
        for body in ["<html>", "{\"choices\": [{\"message\": {\"content\": \"a sk-se", ": ping", "event: x"] {
            let mut tail = KeyTail::new(&transport);
            assert_eq!(tail.feed(body.as_bytes().to_vec()), Fed::Pass(body.as_bytes().to_vec()), "{body}");
        }
        let mut tail = KeyTail::new(&transport);
        tail.feed(deltas(&["a sk-se"]).into_bytes());
        let Fed::Pass(out) = tail.feed(b": ping\n".repeat(MAX_HELD / 7 + 1)) else { panic!() };
        assert!(out.starts_with(deltas(&["a [redacted]"]).as_bytes()));
        // A line that was cut in the middle of the key goes with it.
        let mut tail = KeyTail::new(&transport);
        tail.feed(format!("{}data: {{\"content\":\"ret-k", deltas(&["a sk-sec"])).into_bytes());
        assert_eq!(tail.cut(), deltas(&["a [redacted]"]).into_bytes());
        let mut tail = KeyTail::new(&transport);
        tail.feed(b"data: {\"content\":\"a sk-secr".to_vec());
        assert_eq!(tail.cut(), b"data: {\"content\":\"a [redacted]");
    }
}
