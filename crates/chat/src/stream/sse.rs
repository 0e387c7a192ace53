//! Bytes of an event stream → frames.
//!
//! In: reads of any size, split anywhere. Out: one [`Frame`] for every event with data, in order. Every split of the
//! same bytes produces the same frames.
//!
//! Invariants: lines end only at the *bytes* CR, LF or CRLF (U+2028 in a text is text, and a CRLF may be split between
//! two reads). No byte is decoded as UTF-8, so a character that is split between two reads is intact in its frame. A
//! frame that is contained in one read borrows from it. No byte is scanned twice.
//!
//! Extensions of the specification: an event without a closing blank line is emitted at the end of the stream
//! ([`SseParser::finish`]); a field named `error` creates an error frame (llama.cpp until September 2025); a line or an
//! event above the size limit ends the parser.
//!
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation>.

use memchr::memchr2;

/// Maximum size of one line, or of the data of one event, in bytes.
pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Maximum size of the buffer that is kept for the next event.
const MAX_IDLE_BYTES: usize = 64 * 1024;

/// The kind of an event, as far as it matters for chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Data, with any event name.
    Data,
    /// `event: error`, or a field named `error`.
    Error,
    /// A line with an unknown field name, including the name. The specification ignores such lines, but the line may be
    /// data with a damaged name.
    UnknownField,
}

/// One event with data, or one unknown line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The kind.
    pub kind: FrameKind,
    /// The data; several data lines are joined by LF.
    pub data: &'a [u8],
}

/// A line or an event exceeds [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server sent a line or event larger than {limit} bytes, which is not read")]
pub(crate) struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// A parser for server-sent events. It stores the incomplete data between two reads.
#[derive(Debug)]
pub(crate) struct SseParser {
    /// Start of an incomplete line.
    line: Vec<u8>,
    event: OpenEvent,
    /// The last read ended with a CR. An LF at the start of the next read belongs to it.
    after_cr: bool,
    /// A byte order mark may follow.
    at_start: bool,
    limit: usize,
}

/// The event that is being received.
#[derive(Debug, Default)]
struct OpenEvent {
    data: Vec<u8>,
    has_data: bool,
    is_error: bool,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseParser {
    /// Creates a parser with a different size limit.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { line: Vec::new(), event: OpenEvent::default(), after_cr: false, at_start: true, limit }
    }

    /// Takes one read and emits the events that it completes.
    ///
    /// # Errors
    /// A line or an event exceeds the limit. The rest of the stream must not be fed.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        on_frame: &mut dyn FnMut(Frame<'_>),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        // The only data line of the current event, if it is contained in this read. Most events are like that.
        let mut lent: Option<&[u8]> = None;
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let Some((head, ending, tail)) = split_line(rest) else { break };
            rest = tail;
            self.after_cr = ending == b'\r';
            if self.line.is_empty() {
                self.on_line(head, &mut lent, on_frame)?;
            } else {
                // The line began in an earlier read. Its buffer is reused.
                self.grow_line(head)?;
                let mut line = std::mem::take(&mut self.line);
                let mut from_buffer = None;
                let outcome = self.on_line(&line, &mut from_buffer, on_frame);
                if let Some(data) = from_buffer {
                    line.drain(..line.len() - data.len());
                    self.event.keep_buffer(&mut line);
                }
                line.clear();
                self.line = line;
                outcome?;
            }
        }
        if let Some(data) = lent {
            self.event.keep(data);
        }
        self.grow_line(rest)
    }

    /// Ends the stream. Emits an event without a closing blank line, even if its last line has no line end.
    ///
    /// # Errors
    /// The event exceeds the limit.
    pub(crate) fn finish(mut self, on_frame: &mut dyn FnMut(Frame<'_>)) -> Result<(), EventTooLarge> {
        let line = std::mem::take(&mut self.line);
        let mut lent = None;
        if !line.is_empty() {
            self.on_line(&line, &mut lent, on_frame)?;
        }
        self.on_line(b"", &mut lent, on_frame)
    }

    /// Stores the start of a line.
    fn grow_line(&mut self, piece: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + piece.len() > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    /// Takes one complete line. `lent` is the data of the current event if it is a single line that was not copied yet.
    fn on_line<'a>(
        &mut self,
        line: &'a [u8],
        lent: &mut Option<&'a [u8]>,
        on_frame: &mut dyn FnMut(Frame<'_>),
    ) -> Result<(), EventTooLarge> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            self.event.close(lent.take(), on_frame);
            return Ok(());
        }
        let (field, value) = split_field(line);
        match field {
            b"data" => {}
            b"error" => self.event.is_error = true,
            b"event" => {
                self.event.is_error |= value == b"error";
                return Ok(());
            }
            // Comments have an empty field name.
            b"" | b"id" | b"retry" => return Ok(()),
            _ => {
                on_frame(Frame { kind: FrameKind::UnknownField, data: line });
                return Ok(());
            }
        }
        if let Some(first) = lent.take() {
            self.event.keep(first);
        }
        if line.len().max(self.event.data.len() + value.len()) > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        if self.event.has_data {
            self.event.keep(value);
        } else {
            *lent = Some(value);
        }
        Ok(())
    }
}

impl OpenEvent {
    /// Appends a data line.
    fn keep(&mut self, value: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }

    /// Takes the buffer of the first data line, which may be large, in exchange for its own.
    fn keep_buffer(&mut self, value: &mut Vec<u8>) {
        self.has_data = true;
        std::mem::swap(&mut self.data, value);
    }

    /// Takes the blank line at the end of an event. Emits the event if it has data, and begins the next one.
    fn close(&mut self, lent: Option<&[u8]>, on_frame: &mut dyn FnMut(Frame<'_>)) {
        let kind = if std::mem::take(&mut self.is_error) { FrameKind::Error } else { FrameKind::Data };
        if let Some(data) = lent {
            on_frame(Frame { kind, data });
        } else if std::mem::take(&mut self.has_data) {
            on_frame(Frame { kind, data: &self.data });
            self.data.clear();
            self.data.shrink_to(MAX_IDLE_BYTES);
        } else if kind == FrameKind::Error {
            // `event: error` without data is an error, too.
            on_frame(Frame { kind, data: b"" });
        }
    }
}

/// Returns the first line, its ending byte, and the rest.
fn split_line(bytes: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let (head, tail) = bytes.split_at_checked(memchr2(b'\n', b'\r', bytes)?)?;
    let (ending, tail) = tail.split_first()?;
    Some((head, *ending, tail))
}

/// Returns name and value of a field, without the space after the colon.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    // Fast path: almost every line is data.
    if let Some(value) = line.strip_prefix(b"data:") {
        return (b"data", value.strip_prefix(b" ").unwrap_or(value));
    }
    match memchr::memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) {
        Some((field, value)) => {
            let value = value.strip_prefix(b":").unwrap_or(value);
            (field, value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames_of(stream: &[u8], step: usize) -> Vec<(FrameKind, String)> {
        let mut found = Vec::new();
        let mut on_frame =
            |frame: Frame<'_>| found.push((frame.kind, String::from_utf8_lossy(frame.data).into_owned()));
        let mut parser = SseParser::default();
        for piece in stream.chunks(step) {
            parser.feed(piece, &mut on_frame).unwrap();
        }
        parser.finish(&mut on_frame).unwrap();
        found
    }

    #[test]
    fn every_kind_of_line_is_parsed_at_every_split() {
        let cases: &[(&str, &[&str])] = &[
            ("data: a\n\ndata:b\r\n\r\ndata:  c\r\r", &["a", "b", " c"]),
            ("\u{feff}data: a\n\n\u{feff}data: lost\n\n", &["a", "\u{feff}data: lost"]),
            (": ping\n\n:\n\nid: 1\nretry: 5\nevent: x\ndata: a\n\n", &["a"]),
            ("data: a\ndata:\ndata: b\n\n", &["a\n\nb"]),
            ("data\n\n", &[""]),
            ("data: a\u{2028}b\n\n", &["a\u{2028}b"]),
            ("data: a", &["a"]),
            ("data: a\ndata: b", &["a\nb"]),
            ("event: x\n\n\n\n", &[]),
            ("", &[]),
        ];
        for (stream, expected) in cases {
            for step in 1..=stream.len().max(1) {
                let texts: Vec<_> =
                    frames_of(stream.as_bytes(), step).into_iter().map(|(_, text)| text).collect();
                assert_eq!(&texts, expected, "{stream:?} in steps of {step}");
            }
        }
    }

    #[test]
    fn unknown_fields_are_reported_with_their_names() {
        for step in [1, 7, 100] {
            let found = frames_of(b"data: a\ndat: {\"b\"}\n\n{\"c\":1}\n\nid: 1\n\n", step);
            let kinds: Vec<_> = found.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
            assert_eq!(
                kinds,
                [
                    (FrameKind::UnknownField, "dat: {\"b\"}"),
                    (FrameKind::Data, "a"),
                    (FrameKind::UnknownField, "{\"c\":1}")
                ]
            );
        }
    }

    #[test]
    fn errors_are_recognised_by_event_name_and_by_field() {
        use FrameKind::{Data, Error};
        for step in [1, 7, 100] {
            let found = frames_of(
                b"event: error\ndata: a\n\ndata: b\n\nerror: c\n\nevent: error\n\ndata: d\n\n",
                step,
            );
            let kinds: Vec<_> = found.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
            assert_eq!(kinds, [(Error, "a"), (Data, "b"), (Error, "c"), (Error, ""), (Data, "d")]);
        }
    }

    #[test]
    fn the_size_limit_applies_to_lines_and_to_events() {
        for stream in
            ["data: 0123456789abcdef", "data: 01234567\ndata: 89abcdef\n\n", ": 0123456789abcdefghi"]
        {
            for step in [1, 7, 100] {
                let mut parser = SseParser::with_limit(14);
                let outcome: Result<Vec<()>, _> =
                    stream.as_bytes().chunks(step).map(|piece| parser.feed(piece, &mut |_| {})).collect();
                assert_eq!(outcome, Err(EventTooLarge { limit: 14 }), "{stream:?} in steps of {step}");
            }
        }
    }
}
