//! The replies of the Responses API, `POST /v1/responses`, with the same events as chat completions.
//!
//! In: the events of the reply's stream, or a complete response.
//! Out: text, reasoning and calls as they arrive, from deltas. Events that repeat the complete content
//! (`….done`, `response.output_item.done`, `response.completed`) add only what no delta contained, so nothing is
//! emitted twice and servers without deltas are supported. The arguments of a call are the text that parses as JSON;
//! complete arguments take precedence over streamed arguments.
//!
//! Completed items are also kept whole, because reasoning must come back with the calls that follow it.
//!
//! Not supported: state on the server (`store` is false and no response is continued; the conversation is sent every
//! time), and the server's own tools. Their items are reported.
//!
//! | file | |
//! |---|---|
//! | `event` | an event's JSON → its fields, of any type |
//! | `slots` | matching of events to items |
//! | `calls` | assembly of calls |
//! | `response` | API events → [`ChatEvent`](crate::ChatEvent)s, without repeated text |
//!
//! Server behaviour, also for request bodies (`body::responses`), and its sources (read in November 2026):
//! - `OpenAI`: a tool without `strict` becomes strict, including its optional arguments, so `strict` is always sent
//!   (developers.openai.com, guide "Function calling"). The stream ends with `response.completed`, `.incomplete` or
//!   `.failed` and without `[DONE]`. The id of an assistant message must begin with `msg_`.
//! - llama.cpp (tools/server/server-chat.cpp, and tried with xllamacpp 2026.10): translates to chat completions. An
//!   assistant item must contain `"type": "message"`. Events have no `output_index` and no `sequence_number`. All
//!   `….done` events come at the end. A reply that reached `max_output_tokens` is `completed` like any other.
//!   `previous_response_id` is answered with 400. `text.format` is silently ignored, while members that are not part of
//!   the API (`response_format`, `seed`, `grammar`) work as in chat completions. An object as `tool_choice` is read as
//!   `auto`.
//! - vLLM: checks an assistant message for `id`, `status` and `annotations` (langchain-ai/langchain#32557). It ends a
//!   reply that reached its limit with a `response.completed` whose status is `incomplete`. The final event has
//!   different call ids than the stream (vllm-project/vllm#47916). It has lost the end of streamed arguments (#44348).
//! - `OpenRouter`: stores no state and rejects `store: true` and `previous_response_id`. Its error codes are coarse
//!   (`invalid_prompt` for a prompt that is too long), so the messages are read as well (openrouter.ai/docs).
//! - LM Studio: rejects a `text` without `format` (lmstudio-ai/lmstudio-bug-tracker#1576).
//! - GitHub Copilot: sends a different `item_id` in every event with the same `output_index` (vercel/ai#18548).
//! - Gateways: send index 0 in all events (teabranch/open-responses-server#63), a delta that is an object with `text`,
//!   or a response instead of an event that contains the response.

mod calls;
mod event;
mod response;
mod slots;

pub(super) use response::Response;
