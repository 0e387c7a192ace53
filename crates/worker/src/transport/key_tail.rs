//! Retains the end of a streamed reply while it may be a prefix of the API key that is split over several deltas.
//!
//! Input: the bytes of an event stream, in which complete keys are already redacted. Output: the same bytes, up to the
//! first event that contains the start of such a prefix. If the stream is interrupted there, the prefix is removed, so
//! that events, recordings and sessions contain no part of the key. If the key is completed, it is removed and the
//! caller ends the reply.
//!
//! This filter runs before the decoder and the recorder, so that a replay reads the same bytes as the request.

use bytes::Bytes;
use deftool_chat::MAX_EVENT_BYTES;
use deftool_record::Redactor;
use deftool_record::secrets::{Channel, Frame, Hit, REDACTED, frames_of, rewrite_texts, texts_of};

/// Maximum number of retained bytes. If more bytes follow a prefix of the key, the prefix is removed.
const MAX_HELD: usize = 64 << 10;

/// The retained bytes of one reply.
pub(crate) struct KeyTail<'t> {
    redactor: &'t Redactor,
    /// Complete lines from the first possible start of the key, then the last line if it is incomplete.
    held: Vec<u8>,
    /// Start of the last line of `held`, in bytes.
    last_line: usize,
}

/// The bytes that may be decoded and recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// Bytes without the key. More may follow.
    Pass(Bytes),
    /// Bytes from which the completed key was removed. The reply ends here.
    KeyCompleted(Bytes),
}

impl<'t> KeyTail<'t> {
    pub(crate) fn new(redactor: &'t Redactor) -> Self {
        Self { redactor, held: Vec::new(), last_line: 0 }
    }

    /// Takes one read and returns the bytes that may pass.
    pub(crate) fn feed(&mut self, bytes: Bytes) -> Fed {
        if self.redactor.is_empty() {
            return Fed::Pass(bytes);
        }
        if let Some(end) = memchr::memrchr2(b'\n', b'\r', &bytes) {
            self.last_line = self.held.len() + end + 1;
        }
        self.held.extend(bytes);
        let whole = self.whole_lines();
        let lines = self.held.get(..whole).unwrap_or_default();
        if texts_of(events_of(lines)).iter().any(|channel| self.redactor.is_in(&channel.text)) {
            let mut lines = self.finish();
            lines.truncate(whole);
            return Fed::KeyCompleted(self.without_keys(lines, "").into());
        }
        // Texts that ended are not retained: the server may send no further bytes while the connection is open.
        let decided = end_of_text(lines);
        let channels = texts_of(frames_of(lines.get(decided..).unwrap_or_default()));
        let newest = channels.iter().map(Channel::last_frame).max();
        let mut open_from = whole;
        for channel in &channels {
            let Some(start) = self.redactor.start_in(&channel.text) else { continue };
            // Reasoning may happen to end with the first letters of the key, and the text after it must be shown while
            // it streams.
            if Some(channel.last_frame()) < newest && !Redactor::is_distinctive(channel.text.len() - start) {
                continue;
            }
            let frame = decided + channel.frame_at(start);
            let before = lines.get(..frame).unwrap_or_default();
            let line = memchr::memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1);
            open_from = open_from.min(line.max(decided));
        }
        if self.held.len() - open_from > MAX_HELD && open_from < whole {
            let lines = self.take(whole);
            return Fed::Pass(self.without_keys(lines, REDACTED).into());
        }
        Fed::Pass(self.take(open_from).into())
    }

    /// Ends a complete stream: returns the retained bytes.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.take(self.held.len())
    }

    /// Ends an interrupted stream: returns the retained bytes, without a prefix of the key.
    pub(crate) fn cut(&mut self) -> Vec<u8> {
        let mut whole = self.whole_lines();
        // The last event of a stream may have no line break.
        if !frames_of(self.held.get(whole..).unwrap_or_default()).is_empty() {
            whole = self.held.len();
        }
        let lines = self.take(whole);
        let rest = self.finish();
        let is_open =
            texts_of(events_of(&lines)).iter().any(|channel| self.redactor.start_in(&channel.text).is_some());
        let before = lines.clone();
        let mut left = self.without_keys(lines, REDACTED);
        // The incomplete line may continue the key, or end with a prefix of it.
        if left == before {
            let rest = String::from_utf8_lossy(&rest).into_owned();
            let start = self.redactor.start_in(&rest);
            match start.filter(|start| Redactor::is_distinctive(rest.len() - start)) {
                Some(start) => {
                    left.extend([rest.get(..start).unwrap_or_default(), REDACTED].concat().bytes());
                }
                None if is_open && rest.contains('"') => {
                    left.extend(["data: ", REDACTED].concat().bytes());
                }
                None => left.extend(rest.bytes()),
            }
        }
        left
    }

    /// Removes the first `length` bytes of `held` and returns them.
    fn take(&mut self, length: usize) -> Vec<u8> {
        self.last_line = self.last_line.saturating_sub(length);
        self.held.drain(..length).collect()
    }

    /// Returns `lines` with each text cut where the key or a distinctive prefix of the key begins (see
    /// [`Redactor::is_distinctive`]). `mark` replaces the part that is removed.
    fn without_keys(&self, lines: Vec<u8>, mark: &str) -> Vec<u8> {
        if events_of(&lines).is_empty() {
            return lines;
        }
        rewrite_texts(lines, |text| {
            let is_key =
                |start: &usize| Redactor::is_distinctive(text.len() - start) || self.redactor.is_in(text);
            let start = self.redactor.start_in(text).filter(is_key);
            start.map(|start| Hit { range: start..text.len(), mark: mark.to_owned() }).into_iter().collect()
        })
    }

    /// Returns the length of `held` without an incomplete last line that may become an event.
    fn whole_lines(&self) -> usize {
        const DATA: &[u8] = b"data:";
        let last = self.held.get(self.last_line..).unwrap_or_default();
        let is_event = last.starts_with(DATA) || DATA.starts_with(last);
        if is_event && last.len() <= MAX_EVENT_BYTES { self.last_line } else { self.held.len() }
    }
}

/// Returns the end of the last event that ends the texts before it: an event that is not a delta, such as `[DONE]`.
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

/// Returns the events of `lines`, without a body that is one JSON value: no delta continues it.
fn events_of(lines: &[u8]) -> Vec<Frame> {
    let mut frames = frames_of(lines);
    frames.retain(|frame| frame.range.start > 0);
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deltas(texts: &[&str]) -> String {
        let line = |text: &&str| {
            let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
            format!("data: {delta}\n\n")
        };
        texts.iter().map(line).collect()
    }

    #[test]
    fn a_possible_prefix_of_the_key_is_held_back() {
        let redactor = Redactor::new(Some("sk-secret-key"));
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
                let mut tail = KeyTail::new(&redactor);
                let mut out = Vec::new();
                for piece in all.as_bytes().chunks(size) {
                    let Fed::Pass(bytes) = tail.feed(piece.to_vec().into()) else { panic!("{texts:?}") };
                    out.extend(bytes);
                }
                let held = deltas(&texts[passed..]);
                assert!(all.ends_with(&held) && out.len() <= all.len() - held.trim_end().len(), "{texts:?}");
                out.extend(tail.cut());
                assert_eq!(String::from_utf8(out).unwrap(), deltas(cut), "{texts:?} by {size}");
            }
            let mut tail = KeyTail::new(&redactor);
            let Fed::Pass(passed) = tail.feed(all.clone().into()) else { panic!("{texts:?}") };
            let out = [&*passed, &tail.finish()].concat();
            assert_eq!(String::from_utf8(out).unwrap(), all);
        }
    }

    #[test]
    fn a_short_prefix_does_not_hold_back_another_text() {
        let redactor = Redactor::new(Some("sk-secret-key"));
        for (thought, is_held) in [("list the files", false), ("list the sk-se", true)] {
            let delta =
                serde_json::json!({"choices": [{"index": 0, "delta": {"reasoning_content": thought}}]});
            let reasoning = format!("data: {delta}\n\n");
            let text = deltas(&["one "]);
            let mut tail = KeyTail::new(&redactor);
            assert_eq!(tail.feed(reasoning.clone().into()), Fed::Pass(Bytes::new()));
            let passed = if is_held { String::new() } else { reasoning + &text };
            assert_eq!(tail.feed(text.into()), Fed::Pass(passed.into()), "{thought}");
        }
    }

    #[test]
    fn removing_a_prefix_keeps_the_next_line() {
        let redactor = Redactor::new(Some("sk-secret-key"));
        let mut tail = KeyTail::new(&redactor);
        let next = deltas(&["two"]);
        let (start, end) = next.split_at(20);
        let held = deltas(&["a sk-se"]) + &": ping\n".repeat(MAX_HELD / 7 + 1);
        let Fed::Pass(out) = tail.feed((held.clone() + start).into()) else { panic!() };
        let Fed::Pass(rest) = tail.feed(end.as_bytes().to_vec().into()) else { panic!() };
        let out = [out, rest].concat();
        assert_eq!(String::from_utf8(out).unwrap(), held.replace("sk-se", REDACTED) + &next);
    }

    #[test]
    fn an_event_that_ends_a_text_releases_it() {
        let redactor = Redactor::new(Some("sk-secret-key"));
        for end in [
            r#"{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#,
            r#"{"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "length"}]}"#,
            r#"{"type": "response.completed", "response": {"output": [{"content": [{"text": "a sk-se"}]}]}}"#,
            r#"{"error": {"message": "no"}}"#,
            "[DONE]",
        ] {
            let mut tail = KeyTail::new(&redactor);
            let text = format!("{}: ping\n\n", deltas(&["a sk-se", ""]));
            assert_eq!(tail.feed(text.clone().into()), Fed::Pass(Bytes::new()));
            let end = format!("data: {end}\n");
            assert_eq!(tail.feed(end.clone().into()), Fed::Pass((text + &end).into()), "{end}");
        }
    }

    #[test]
    fn a_completed_key_is_removed() {
        let redactor = Redactor::new(Some("sk-secret-key"));
        let mut tail = KeyTail::new(&redactor);
        let first = deltas(&["one ", "two sk-sec"]);
        assert_eq!(tail.feed(first.into()), Fed::Pass(deltas(&["one "]).into()));
        let completed = tail.feed(deltas(&["ret-key three"]).into());
        assert_eq!(completed, Fed::KeyCompleted(deltas(&["two ", ""]).into()));
    }

    #[test]
    fn other_bytes_pass_immediately_and_the_buffer_is_bounded() {
        let redactor = Redactor::new(Some("sk-secret-key"));
        for body in ["<html>", "{\"choices\": [{\"message\": {\"content\": \"a sk-se", ": ping", "event: x"] {
            let mut tail = KeyTail::new(&redactor);
            assert_eq!(tail.feed(body.to_owned().into()), Fed::Pass(body.to_owned().into()), "{body}");
        }
        let mut tail = KeyTail::new(&redactor);
        tail.feed(deltas(&["a sk-se"]).into());
        let Fed::Pass(out) = tail.feed(b": ping\n".repeat(MAX_HELD / 7 + 1).into()) else { panic!() };
        assert!(out.starts_with(deltas(&["a [redacted]"]).as_bytes()));
        // An incomplete line that continues the key is removed with it.
        let mut tail = KeyTail::new(&redactor);
        tail.feed(format!("{}data: {{\"content\":\"ret-k", deltas(&["a sk-sec"])).into());
        assert_eq!(tail.cut(), deltas(&["a [redacted]"]).into_bytes());
        let mut tail = KeyTail::new(&redactor);
        tail.feed(format!("{}data: {{\"content\":\"-secr", deltas(&["a sk"])).into());
        assert_eq!(tail.cut(), (deltas(&["a sk"]) + "data: [redacted]").into_bytes());
        // An event without a line break is kept.
        let all = deltas(&["a sk", "ip"]);
        let mut tail = KeyTail::new(&redactor);
        tail.feed(all.trim_end().as_bytes().to_vec().into());
        assert_eq!(tail.cut(), all.trim_end().as_bytes());
        let mut tail = KeyTail::new(&redactor);
        tail.feed(b"data: {\"content\":\"a sk-secr".to_vec().into());
        assert_eq!(tail.cut(), b"data: {\"content\":\"a [redacted]");
    }
}
