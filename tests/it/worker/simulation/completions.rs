//! Replies in the chat completions format: chunks, or a whole completion.

use serde_json::{Value, json};

use super::reply::{Reply, pieces};
use super::script::{Frame, PROMPT_TOKENS, ReplyContent, ReplyEnd, Tail};

/// Returns the whole reply.
pub(super) fn completion(content: &ReplyContent) -> Value {
    let call = |call: &super::script::ScriptedCall| {
        let function = json!({"name": call.name, "arguments": call.text});
        json!({"id": call.id, "type": "function", "function": function})
    };
    let calls: Vec<Value> = content.calls.iter().map(call).collect();
    let message = json!({"role": "assistant", "content": content.text(), "tool_calls": calls});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
}

impl Reply<'_, '_> {
    pub(super) fn push_text(&mut self, piece: &str) {
        self.push_delta(&json!({"content": piece}), Frame { text: piece.len(), ..Frame::default() });
    }

    fn push_delta(&mut self, delta: &Value, frame: Frame) {
        let data = json!({
            "id": "c", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]
        });
        self.push(&data, Frame { is_token: true, ..frame });
    }

    pub(super) fn write_chunks(&mut self, kind: &'static str) {
        if self.dice.chance(15) {
            self.count("progress");
            for processed in 0..3 {
                let data = json!({"choices": [], "prompt_progress": {"processed": processed, "total": 100}});
                self.push(&data, Frame { is_progress: true, ..Frame::default() });
            }
        }
        if self.dice.chance(25) {
            self.count("reasoning");
            let words = self.words();
            self.push_delta(&json!({"reasoning_content": words}), Frame::default());
        }
        for piece in pieces(self.dice, &self.script.content.text()) {
            self.push_text(&piece);
        }
        for (index, call) in self.script.content.calls.clone().iter().enumerate() {
            let function = json!({"name": call.name, "arguments": ""});
            let mut delta = json!({"index": index, "type": "function", "function": function});
            if let Some(id) = &call.id {
                delta["id"] = json!(id);
            }
            self.push_delta(&json!({"tool_calls": [delta]}), Frame::default());
            for piece in pieces(self.dice, &call.text) {
                let delta = json!({"index": index, "function": {"arguments": piece}});
                self.push_delta(&json!({"tool_calls": [delta]}), Frame::default());
            }
        }
        if self.ends_without_finish(kind) {
            return;
        }
        if kind == "reply: error in the stream" {
            let overflow = self.dice.chance(30);
            self.script.content.end = if overflow { ReplyEnd::Overflow } else { ReplyEnd::ServerError };
            let data = if overflow {
                json!({"error": {"message": "too long", "type": "exceed_context_size_error", "code": 400}})
            } else {
                json!({"error": {"message": "it broke", "code": 500}})
            };
            self.push(&data, Frame { is_last: true, ..Frame::default() });
        } else {
            self.write_finish();
        }
    }

    fn write_finish(&mut self) {
        let cut = self.script.content.end == ReplyEnd::Truncated;
        let reason = match self.script.content.calls.is_empty() {
            _ if cut => "length",
            true => *self.dice.pick(&["stop", "stop", "length", "eos"]),
            false => *self.dice.pick(&["tool_calls", "stop", "function_call"]),
        };
        let how = self.dice.below(0..6);
        if how != 0 {
            let data = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
            self.push(&data, Frame { is_finish: true, ..Frame::default() });
        }
        if self.dice.chance(50) {
            self.count("usage");
            let usage =
                json!({"choices": [], "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": 7}});
            self.push(&usage, Frame { is_usage: true, ..Frame::default() });
        }
        if how == 0 && self.script.frames.iter().all(|frame| !frame.is_token) {
            self.script.content.end = ReplyEnd::Empty;
        }
        match how {
            0 => self.count("finish: only [DONE]"),
            1 => return self.count("finish: no [DONE]"),
            2 => {
                self.count("finish: stays open");
                self.script.tail = Tail::Silence;
                return;
            }
            3 => {
                self.count("finish: breaks after it");
                self.script.tail = Tail::Break;
                return;
            }
            4 => {
                self.count("finish: stays open after [DONE]");
                self.script.tail = Tail::Silence;
            }
            _ => self.count("finish: complete"),
        }
        let frame = Frame { bytes: b"data: [DONE]\n\n".to_vec(), is_last: true, ..Frame::default() };
        self.script.frames.push(frame);
    }
}
