//! The Responses API, `POST /v1/responses`: the same conversation and the same events as by chat completions.
//!
//! In: a [`ChatRequest`](super::ChatRequest), encoded as a body; the events of the reply's stream, or a whole response.
//! Out: text, reasoning and calls as they come. Deltas give them; the events that repeat them whole (`….done`,
//! `response.output_item.done`, `response.completed`) add only what no delta brought, so that nothing is said twice and
//! a server that sends no deltas is read all the same. Arguments of a call are those that are JSON, the whole ones
//! before the streamed ones.
//!
//! Absent: the state that a server may keep (`store` is false and no response is continued: the conversation goes
//! along every time), the reasoning of earlier turns, tools of the server's own. Their items are passed over and told.
//!
//! | file | |
//! |---|---|
//! | `body` | request → JSON |
//! | `event` | an event's JSON → its fields, whatever their types |
//! | `slots` | which item an event is about |
//! | `text` | what of a text was said, and what a whole one adds |
//! | `calls` | calls that are put together |
//! | `response` | events → ours |
//!
//! Facts, and where they come from (read in November 2026):
//! - `OpenAI`: a tool without `strict` is made strict, optional arguments and all, so that it is always said
//!   (developers.openai.com, guide "Function calling"); the stream ends with `response.completed`, `.incomplete` or
//!   `.failed` and without `[DONE]`; the id of an assistant's message must begin with `msg_`.
//! - llama.cpp (tools/server/server-chat.cpp, and tried with xllamacpp 2026.10): translates to chat completions. An
//!   assistant's item must say `"type": "message"`; events have no `output_index` and no `sequence_number`; all that
//!   is `….done` comes at the end; a reply that met `max_output_tokens` is `completed` like any other;
//!   `previous_response_id` is a 400; `text.format` is passed over without a word, while members that it does not know
//!   as the API's own (`response_format`, `seed`, `grammar`) work as in chat completions; an object `tool_choice` is
//!   taken for `auto`.
//! - vLLM: checks an assistant's message for `id`, `status` and `annotations` (langchain-ai/langchain#32557); ends a
//!   reply that met its limit with `response.completed` whose status is `incomplete`; gives calls in the last event
//!   other ids than in the stream (vllm-project/vllm#47916); has lost the tail of streamed arguments (#44348).
//! - `OpenRouter`: keeps no state, refuses `store: true` and `previous_response_id`; its error codes are coarse
//!   (`invalid_prompt` for a prompt that is too long), so that messages are read, too (openrouter.ai/docs).
//! - LM Studio: refuses a `text` without `format` (lmstudio-ai/lmstudio-bug-tracker#1576).
//! - GitHub Copilot: another `item_id` in every event, the `output_index` stays (vercel/ai#18548). Gateways: index 0
//!   in all of them (teabranch/open-responses-server#63), a delta that is an object with `text`, a response in place
//!   of an event about it.

mod body;
mod calls;
mod event;
mod response;
mod slots;
mod text;

pub(super) use body::encode_body;
pub(super) use response::Response;
