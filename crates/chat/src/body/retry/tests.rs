//! Tests of the fallbacks after rejected requests.

use std::sync::Arc;

use super::*;
use crate::message::{Message, MessageToolCall};
use crate::{Api, Tables, classify_http_error};
use serde_json::json;

/// A request with everything that a server may reject: two calls in a message, a late system message, every
/// parameter.
fn request(params: &Value) -> ChatRequest {
    let user = |text: &str| Message::user(text);
    let system = |text: &str| Message::System { content: text.to_owned() };
    let calls = ["1", "2"].map(|id| MessageToolCall::new(id, "g", "{}"));
    let result = |id: &str| Message::tool(id, "3");
    let assistant = Message::Assistant { content: String::new(), tool_calls: calls.to_vec(), received: None };
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    ChatRequest {
        model: String::from("m"),
        source: crate::ReplySource::default(),
        messages: [system("a"), system("b"), user("c"), assistant, result("1"), result("2")]
            .map(Arc::new)
            .into(),
        tools: vec![tool("f"), tool("g")],
        params: params.as_object().cloned().unwrap(),
        ..ChatRequest::default()
    }
}

fn rejection(status: u16, message: &str) -> ServerError {
    let body = if message.starts_with('{') {
        message.to_owned()
    } else {
        json!({"error": {"message": message}}).to_string()
    };
    classify_http_error(Tables::default(), status, body.as_bytes())
}

fn named() -> Value {
    json!({"type": "function", "function": {"name": "f"}})
}

fn form_for(api: Api) -> BodyForm {
    BodyForm { api, ..BodyForm::default() }
}

#[test]
fn a_rejection_is_recognised_by_the_member_it_names() {
    let sent = request(&json!({
        "tool_choice": named(), "max_tokens": 9, "parallel_tool_calls": true, "return_progress": true,
    }));
    let pairs = include_str!("../../../tests/wire/llama-cpp-special/99_llama31_two_calls_one_message.json");
    let alternate = "Jinja Exception: After the optional system message, conversation roles must alternate";
    // The fallback for chat completions and the one for responses.
    let both = |fallback: BodyFallback| (Some(fallback), Some(fallback));
    let completions_only = |fallback: BodyFallback| (Some(fallback), None);
    let neither = (None, None);
    let cases = [
        (
            400,
            "Unrecognized request argument supplied: stream_options",
            completions_only(BodyFallback::without("stream_options")),
        ),
        (401, "stream_options", neither),
        (500, "stream_options", neither),
        (
            400,
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            completions_only(BodyFallback::UseMaxCompletionTokens),
        ),
        // Rejected values: a different name might disable the limit.
        (400, "max_tokens is too large: 9. This model supports at most 8 completion tokens", neither),
        (400, "'max_tokens' or 'max_completion_tokens' is too large: 9.", neither),
        (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", neither),
        (400, "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens", neither),
        (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", neither),
        (400, "max_tokens must be an integer", neither),
        // A context overflow that names the limit.
        (
            400,
            r#"{"error": {"message": "Reduce the prompt or max_tokens.", "code": "context_length_exceeded"}}"#,
            neither,
        ),
        // A member that was not sent cannot be rejected.
        (422, "max_completion_tokens: Extra inputs are not permitted", neither),
        (400, "parallel_tool_calls is not supported", both(BodyFallback::without("parallel_tool_calls"))),
        (400, "unknown field `return_progress`", both(BodyFallback::without("return_progress"))),
        (
            400,
            "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
            both(BodyFallback::ToolAlone),
        ),
        (
            404,
            "No endpoints found that support the provided 'tool_choice' value.",
            both(BodyFallback::ToolAlone),
        ),
        (404, "no such model: tool_choice", neither),
        (400, pairs, both(BodyFallback::CallPairs)),
        (500, alternate, both(BodyFallback::SystemFirst)),
        (400, "Jinja Exception: System message must be at the beginning.", both(BodyFallback::SystemFirst)),
        (400, "System role not supported", both(BodyFallback::SystemAsUser)),
        (429, "System role not supported", neither),
        (400, "bad seed", neither),
    ];
    for (status, message, (completions, responses)) in cases {
        let error = rejection(status, message);
        for (api, expected) in [(Api::ChatCompletions, completions), (Api::Responses, responses)] {
            let mut form = form_for(api);
            let found = next_body_fallback(&sent, form, &error);
            assert_eq!(found, expected, "{api:?}: {status} {message}");
            // Each fallback is applied once and no body is repeated.
            let mut bodies = vec![sent.encode_body(form)];
            while let Some(fallback) = next_body_fallback(&sent, form, &error) {
                form.fallbacks = form.fallbacks.with(fallback);
                bodies.push(sent.encode_body(form));
                assert!(!bodies[..bodies.len() - 1].contains(&bodies[bodies.len() - 1]), "{message}");
            }
            assert!(bodies.len() <= 3, "{message}");
        }
    }
}

/// Rejections of the state of earlier replies: whether it was sent, the status, the message, and what helps.
const STATE_CASES: [(Api, bool, u16, &str, Option<BodyFallback>); 20] = {
    use Api::{ChatCompletions, Responses};
    use BodyFallback::{
        EmptyReasoning, NoEarlierState, NoEncryptedReasoning, NoItemIds, NoSignatureCheck, NoState,
        PortableIds,
    };
    const GROQ: &str = "for 'role:assistant' the following must be satisfied[('messages.1' : property \
                        'reasoning_content' is unsupported)]";
    [
        (
            ChatCompletions,
            false,
            400,
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            Some(EmptyReasoning),
        ),
        (
            ChatCompletions,
            false,
            400,
            "reasoning_content is missing in assistant tool call message at index 2",
            Some(EmptyReasoning),
        ),
        (
            ChatCompletions,
            false,
            400,
            "Function call is missing a thought_signature in functionCall parts",
            Some(NoSignatureCheck),
        ),
        (ChatCompletions, true, 400, GROQ, Some(NoState)),
        (
            ChatCompletions,
            true,
            422,
            r#"{"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 2, "assistant", "reasoning_content"], "msg": "Extra inputs are not permitted"}]}"#,
            Some(NoState),
        ),
        (
            ChatCompletions,
            true,
            400,
            "property 'messages.2.assistant.reasoning_content' is unsupported",
            Some(NoState),
        ),
        (
            Responses,
            true,
            400,
            r#"{"error": {"message": "Invalid request.", "code": "invalid_encrypted_content"}}"#,
            Some(NoEarlierState),
        ),
        (Responses, false, 400, "Unknown parameter: 'include'.", Some(NoEncryptedReasoning)),
        // Nothing was sent that could be rejected.
        (ChatCompletions, false, 400, GROQ, None),
        (
            ChatCompletions,
            true,
            400,
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            Some(NoEarlierState),
        ),
        (Responses, true, 400, "The encrypted content gAAA could not be verified.", Some(NoEarlierState)),
        (Responses, true, 404, "The encrypted content gAAA could not be verified.", None),
        (
            Responses,
            true,
            400,
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            Some(NoEarlierState),
        ),
        (
            Responses,
            true,
            400,
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
            Some(NoItemIds),
        ),
        (
            Responses,
            true,
            404,
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
            Some(NoItemIds),
        ),
        (Responses, true, 400, "item['content'] is not an array", Some(NoEarlierState)),
        (
            Responses,
            false,
            400,
            "Encrypted content is not supported with this model.",
            Some(NoEncryptedReasoning),
        ),
        (
            ChatCompletions,
            false,
            400,
            "Tool call id was functions.f:0 but must be a-z, A-Z, 0-9, with a length of 9.",
            Some(PortableIds),
        ),
        (
            ChatCompletions,
            false,
            400,
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
            Some(PortableIds),
        ),
        (
            ChatCompletions,
            false,
            400,
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            Some(PortableIds),
        ),
    ]
};

#[test]
fn a_rejection_of_the_state_of_earlier_replies_is_recognised() {
    use crate::received::{Opaque, Received};

    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "g", "arguments": "{}"});
    let parts = Opaque {
        members: json!({"reasoning_content": "hm"}).as_object().cloned().unwrap(),
        items: vec![reasoning, call("1"), call("2")],
        ..Opaque::default()
    };
    for (api, has_state, status, message, expected) in STATE_CASES {
        let mut sent = request(&json!({}));
        for message in sent.messages.iter_mut().map(Arc::make_mut) {
            if let Message::Assistant { received, .. } = message
                && has_state
            {
                *received = Some(Arc::new(Received {
                    source: sent.source.clone(),
                    parts: parts.clone(),
                    ..Received::default()
                }));
            }
        }
        let error = rejection(status, message);
        let form = form_for(api);
        let found = next_body_fallback(&sent, form, &error);
        assert_eq!(found, expected, "{api:?}: {message}");
        if let Some(fallback) = found {
            let after = form.after(fallback, &sent);
            // If the ids are not the reason, the items are.
            let next = (fallback == BodyFallback::NoItemIds).then_some(BodyFallback::NoEarlierState);
            assert_eq!(next_body_fallback(&sent, after, &error), next, "twice: {message}");
        }
    }
}

/// Messages of Anthropic's API: whether the replies had thinking, the status, the message, and what helps.
fn messages_cases() -> [(bool, u16, &'static str, Option<BodyFallback>); 17] {
    use BodyFallback::{CallPairs, NoEarlierState, NoToolChoice, PlainRoles, PortableIds};
    const NO_THOUGHT: &str = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. \
                              When `thinking` is enabled, a final `assistant` message must start with a thinking block";
    [
        (true, 400, "messages.1.content.0: Invalid `signature` in `thinking` block", Some(NoEarlierState)),
        (
            true,
            400,
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
             modified. These blocks must remain as they were in the original response.",
            Some(NoEarlierState),
        ),
        (true, 400, "messages.1.content.0.thinking.signature: Field required", Some(NoEarlierState)),
        (
            true,
            400,
            "messages.1: The final block in an assistant message cannot be `thinking`.",
            Some(NoEarlierState),
        ),
        (false, 400, "messages.1.content.0: Invalid `signature` in `thinking` block", None),
        // Without calls, no message must start with thinking.
        (true, 400, NO_THOUGHT, Some(NoEarlierState)),
        (false, 400, NO_THOUGHT, Some(PlainRoles)),
        (
            false,
            400,
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: 1.",
            Some(CallPairs),
        ),
        (
            false,
            400,
            "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: 1. Each `tool_result` block must \
             have a corresponding `tool_use` block in the previous message.",
            Some(CallPairs),
        ),
        (
            false,
            400,
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            Some(PortableIds),
        ),
        (
            false,
            400,
            "system.0.cache_control: Extra inputs are not permitted",
            Some(BodyFallback::without("cache_control")),
        ),
        (
            false,
            400,
            "`temperature` is deprecated for this model.",
            Some(BodyFallback::without("temperature")),
        ),
        (
            false,
            400,
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            Some(BodyFallback::without("temperature")),
        ),
        (false, 400, "Thinking may not be enabled when tool_choice forces tool use.", Some(NoToolChoice)),
        (
            false,
            400,
            "temperature: Input should be less than or equal to 1",
            Some(BodyFallback::without("temperature")),
        ),
        // The value is wrong, or nothing was sent that could be rejected.
        (false, 400, "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens", None),
        (false, 400, "messages: text content blocks must be non-empty", None),
    ]
}

#[test]
fn rejections_of_the_messages_api_are_recognised() {
    use crate::received::{Opaque, Received};

    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "g", "input": {}});
    let parts = Opaque { items: vec![thought, call("1"), call("2")], ..Opaque::default() };
    for (has_state, status, message, expected) in messages_cases() {
        let mut sent = request(&json!({"temperature": 0, "top_p": 1, "tool_choice": "required"}));
        let source = sent.source.clone();
        if let Message::Assistant { received, .. } = Arc::make_mut(&mut sent.messages[3])
            && has_state
        {
            *received = Some(Arc::new(Received { source, parts: parts.clone(), lines: String::new() }));
        }
        let error = rejection(status, message);
        let form = form_for(Api::Messages);
        let found = next_body_fallback(&sent, form, &error);
        assert_eq!(found, expected, "{message}");
        // No body is sent twice.
        let mut bodies = vec![sent.encode_body(form)];
        let mut form = form;
        while let Some(fallback) = next_body_fallback(&sent, form, &error) {
            form = form.after(fallback, &sent);
            bodies.push(sent.encode_body(form));
            assert!(!bodies[..bodies.len() - 1].contains(&bodies[bodies.len() - 1]), "{message}");
        }
        assert!(bodies.len() <= 3, "{message}: {}", bodies.len());
    }
}

#[test]
fn a_rejected_tool_choice_is_simplified_step_by_step() {
    let error = rejection(400, "tool_choice must be a string");
    for (choice, expected) in [
        (json!("required"), vec![BodyFallback::NoToolChoice]),
        (named(), vec![BodyFallback::ToolAlone, BodyFallback::NoToolChoice]),
        // The choice names no tool that could be offered alone.
        (json!({"type": "auto"}), vec![BodyFallback::NoToolChoice]),
    ] {
        for api in [Api::ChatCompletions, Api::Responses] {
            let sent = request(&json!({"tool_choice": choice}));
            let mut form = form_for(api);
            let mut fallbacks = Vec::new();
            while let Some(fallback) = next_body_fallback(&sent, form, &error) {
                form.fallbacks = form.fallbacks.with(fallback);
                fallbacks.push(fallback);
            }
            assert_eq!(fallbacks, expected, "{api:?}: {choice}");
            assert_eq!(sent.encode_body(form).get("tool_choice"), None);
        }
    }
}

#[test]
fn the_token_limit_is_renamed_once_in_either_direction() {
    let error = rejection(400, "max_tokens? max_completion_tokens?");
    for (params, fallback) in [
        (json!({"max_tokens": 9}), BodyFallback::UseMaxCompletionTokens),
        (json!({"max_completion_tokens": 9}), BodyFallback::UseMaxTokens),
    ] {
        let sent = request(&params);
        assert_eq!(next_body_fallback(&sent, BodyForm::default(), &error), Some(fallback));
        let form = BodyForm { fallbacks: BodyFallbacks::default().with(fallback), ..BodyForm::default() };
        assert_eq!(next_body_fallback(&sent, form, &error), None, "renamed twice: {params}");
    }
}

#[test]
fn a_rejected_image_is_left_out() {
    let image = deftool_lang::tool::Attachment::new(b"\x89PNG\r\n\x1a\n".to_vec(), "").unwrap();
    let mut request = request(&json!({}));
    if let Some(Message::Tool { attachments, .. }) = request.messages.last_mut().map(Arc::make_mut) {
        attachments.push(image);
    }
    let without = self::request(&json!({}));
    let (images, of_results) = (Some(BodyFallback::NoImages), Some(BodyFallback::NoResultImages));
    let new_images = Some(BodyFallback::NoNewImages);
    for (status, message, expected) in [
        (400, "Invalid content type. image_url is only supported by certain models.", images),
        (
            400,
            "Failed to deserialize the JSON body into the target type: messages[3]: unknown variant `image_url`, expected `text` at line 1 column 4198046",
            images,
        ),
        (404, "No endpoints found that support image input", images),
        (
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            images,
        ),
        (400, "m is not a multimodal model", images),
        (400, "'messages.5' : for 'role:user' the content must be a string", images),
        (
            400,
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6129904 bytes > 5242880 bytes",
            new_images,
        ),
        (413, "Request payload is too large", new_images),
        (400, "messages.0.content.1.image.source.base64.data: Could not process image", new_images),
        (
            400,
            "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
            new_images,
        ),
        (400, "Failed to load image or audio file", new_images),
        (400, "At most 1 image(s) may be provided in one prompt.", new_images),
        (400, "At most 0 image(s) may be provided in one prompt.", images),
        (400, "Unexpected role 'user' after role 'tool'", of_results),
        (401, "no access to image models", None),
        (403, "image input is not supported", None),
        (429, "too many images", None),
        (400, "System message must be at the beginning.", Some(BodyFallback::SystemFirst)),
    ] {
        let form = BodyForm::default();
        let error = rejection(status, message);
        assert_eq!(next_body_fallback(&request, form, &error), expected, "{message}");
        let is_about_images = [images, new_images, of_results].contains(&expected);
        let next = next_body_fallback(&without, form, &error);
        assert!(!is_about_images || next != expected, "{message}: no image was sent");
    }
}

#[test]
fn images_before_the_last_reply_are_left_out_last() {
    let image = |size| {
        let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![0; size]].concat();
        deftool_lang::tool::Attachment::new(bytes, "").unwrap()
    };
    let mut request = request(&json!({}));
    request
        .messages
        .insert(0, Arc::new(Message::User { content: String::new(), attachments: vec![image(1)] }));
    if let Some(Message::Tool { attachments, .. }) = request.messages.last_mut().map(Arc::make_mut) {
        attachments.push(image(2));
    }
    let error = rejection(400, "Could not process image");
    let mut form = BodyForm::default();
    let fallbacks = std::iter::from_fn(|| {
        let fallback = next_body_fallback(&request, form, &error)?;
        form = form.after(fallback, &request);
        Some(fallback)
    });
    assert_eq!(
        fallbacks.take(5).collect::<Vec<_>>(),
        [BodyFallback::NoNewImages, BodyFallback::NoEarlierImages]
    );
    assert!(form.fallbacks.is_empty(), "remembered for later requests");
}
