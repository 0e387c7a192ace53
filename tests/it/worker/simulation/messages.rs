//! Replies in the Messages API format: events, or a whole message.

use serde_json::{Value, json};

use super::reply::{Reply, pieces};
use super::script::{Frame, PROMPT_TOKENS, ReplyEnd, ScriptedCall, Tail};

/// The variations of servers in their events.
#[derive(Debug, Clone, Copy)]
struct BlockStyle {
    /// Events contain the index of their block.
    has_indices: bool,
    /// Blocks have an end.
    has_stops: bool,
    /// The start of a call contains its arguments.
    has_whole_calls: bool,
}

fn delta(kind: &str, member: &str, piece: &str) -> Value {
    json!({"type": kind, member: piece})
}

/// Returns a call. Arguments that are not JSON are sent as a string.
fn tool_use(call: &ScriptedCall, input: Value) -> Value {
    let mut block = json!({"type": "tool_use", "name": call.name, "input": input});
    if let Some(id) = &call.id {
        block["id"] = json!(id);
    }
    block
}

impl Reply<'_, '_> {
    /// Returns the whole reply.
    pub(super) fn message(&self) -> Value {
        let content = &self.script.content;
        let text = content.text();
        let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
        let calls = content.calls.iter().map(|call| {
            let input = call.arguments.clone().unwrap_or_else(|| json!(call.text));
            tool_use(call, input)
        });
        let blocks: Vec<Value> = text.into_iter().chain(calls).collect();
        json!({"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"})
    }

    pub(super) fn push_message_text(&mut self, piece: &str) {
        let data = json!({"type": "content_block_delta", "delta": delta("text_delta", "text", piece)});
        self.push(&data, Frame { is_token: true, text: piece.len(), ..Frame::default() });
    }

    pub(super) fn write_blocks(&mut self, kind: &'static str) {
        let style = BlockStyle {
            has_indices: self.dice.chance(75),
            has_stops: self.dice.chance(80),
            has_whole_calls: self.dice.chance(15),
        };
        for (is_there, feature) in [
            (!style.has_indices, "blocks: no index"),
            (!style.has_stops, "blocks: no ends"),
            (style.has_whole_calls, "blocks: calls in one piece"),
        ] {
            if is_there {
                self.count(feature);
            }
        }
        if self.dice.chance(80) {
            let message = json!({"id": "msg_1", "role": "assistant", "model": "scripted", "content": []});
            self.push(&json!({"type": "message_start", "message": message}), Frame::default());
        }
        self.write_content(style);
        if self.ends_without_finish(kind) {
            return;
        }
        if kind == "reply: error in the stream" {
            self.write_error();
        } else {
            self.write_stop();
        }
    }

    fn write_content(&mut self, style: BlockStyle) {
        let mut index = 0;
        if self.dice.chance(25) {
            self.count("reasoning");
            let words = self.words();
            let start = json!({"type": "thinking", "thinking": "", "signature": ""});
            let deltas = vec![
                (delta("thinking_delta", "thinking", &words), Frame { is_token: true, ..Frame::default() }),
                (delta("signature_delta", "signature", "SIG"), Frame::default()),
            ];
            self.write_block(style, &mut index, (&start, false), deltas);
        }
        let text = self.script.content.text();
        if !text.is_empty() {
            let frame = |piece: &str| Frame { is_token: true, text: piece.len(), ..Frame::default() };
            let pieces = pieces(self.dice, &text);
            let deltas =
                pieces.iter().map(|piece| (delta("text_delta", "text", piece), frame(piece))).collect();
            self.write_block(style, &mut index, (&json!({"type": "text", "text": ""}), false), deltas);
        }
        for call in self.script.content.calls.clone() {
            let whole = call.arguments.clone().filter(|input| style.has_whole_calls && *input != json!({}));
            let is_whole = whole.is_some();
            let start = tool_use(&call, whole.unwrap_or_else(|| json!({})));
            let pieces = if is_whole { Vec::new() } else { pieces(self.dice, &call.text) };
            let frame = || Frame { is_token: true, ..Frame::default() };
            let deltas = pieces
                .iter()
                .map(|piece| (delta("input_json_delta", "partial_json", piece), frame()))
                .collect();
            self.write_block(style, &mut index, (&start, true), deltas);
        }
    }

    /// Appends the events of a block. `start`: the block, and whether it is a token.
    fn write_block(
        &mut self,
        style: BlockStyle,
        index: &mut usize,
        (start, is_token): (&Value, bool),
        deltas: Vec<(Value, Frame)>,
    ) {
        let indexed = |mut event: Value| {
            if style.has_indices {
                event["index"] = json!(*index);
            }
            event
        };
        let frame = Frame { is_token, ..Frame::default() };
        self.push(&indexed(json!({"type": "content_block_start", "content_block": start})), frame);
        for (delta, frame) in deltas {
            self.push(&indexed(json!({"type": "content_block_delta", "delta": delta})), frame);
        }
        if style.has_stops {
            self.push(&indexed(json!({"type": "content_block_stop"})), Frame::default());
        }
        *index += 1;
    }

    fn write_error(&mut self) {
        let overflow = self.dice.chance(30);
        self.script.content.end = if overflow { ReplyEnd::Overflow } else { ReplyEnd::ServerError };
        let (kind, message) = if overflow {
            ("invalid_request_error", "prompt is too long")
        } else {
            ("api_error", "it broke")
        };
        let data = json!({"type": "error", "error": {"type": kind, "message": message}});
        self.push(&data, Frame { is_last: true, ..Frame::default() });
    }

    /// Appends the stop reason, the end, or only one of them.
    fn write_stop(&mut self) {
        let reason = match self.script.content.calls.is_empty() {
            _ if self.script.content.end == ReplyEnd::Truncated => "max_tokens",
            true => *self.dice.pick(&["end_turn", "end_turn", "max_tokens", "stop_sequence"]),
            false => "tool_use",
        };
        let how = self.dice.below(0..6);
        if how != 0 {
            let mut data =
                json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}});
            let is_usage = self.dice.chance(60);
            if is_usage {
                self.count("usage");
                data["usage"] = json!({"input_tokens": PROMPT_TOKENS, "output_tokens": 7});
            }
            self.push(&data, Frame { is_finish: true, is_usage, ..Frame::default() });
        } else if self.script.frames.iter().all(|frame| !frame.is_token) {
            self.script.content.end = ReplyEnd::Empty;
        }
        match how {
            1 => return self.count("stop: no message_stop"),
            2 | 3 => {
                self.count("stop: open or broken after the reason");
                self.script.tail = if how == 2 { Tail::Silence } else { Tail::Break };
                return;
            }
            4 => {
                self.count("stop: stays open");
                self.script.tail = Tail::Silence;
            }
            _ => self.count(if how == 0 { "stop: only message_stop" } else { "stop: complete" }),
        }
        self.push(&json!({"type": "message_stop"}), Frame { is_last: true, ..Frame::default() });
    }
}
