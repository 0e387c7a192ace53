//! Events of a stream with arbitrary bytes as text, for any API.

use deftool_chat::Api;

/// The part of a text event before its text.
pub(super) fn text_event_prefix(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"",
        Api::Responses => {
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_0\",\
             \"output_index\":0,\"content_index\":0,\"delta\":\""
        }
        Api::Messages => {
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\
             \"text\":\""
        }
    }
}

/// The part of a text event after its text.
fn text_event_suffix(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "\"}}]}\n\n",
        Api::Responses => "\"}\n\n",
        Api::Messages => "\"}}\n\n",
    }
}

/// Returns a text event. `text` is written between the quotes without escaping.
pub(super) fn text_event(api: Api, text: &[u8]) -> Vec<u8> {
    [text_event_prefix(api).as_bytes(), text, text_event_suffix(api).as_bytes()].concat()
}

/// Whether an event contains text of the reply.
pub(super) fn is_text_event(api: Api, event: &[u8]) -> bool {
    let marker: &[u8] = match api {
        Api::ChatCompletions => b"\"content\":\"",
        Api::Responses => b"\"response.output_text.delta\"",
        Api::Messages => b"\"text_delta\"",
    };
    memchr::memmem::find(event, marker).is_some()
}

/// Returns the events that start a call of `example`. Its arguments end inside a string.
pub(super) fn call_start(api: Api) -> Vec<u8> {
    match api {
        Api::ChatCompletions => {
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call00000\",\"type\":\
              \"function\",\"function\":{\"name\":\"example\",\"arguments\":\"{\\\"at\\\":\\\"\"}}]}}]}\n\n"
                .to_vec()
        }
        Api::Responses => {
            b"data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\
              \"id\":\"fc_1\",\"call_id\":\"call00000\",\"name\":\"example\",\"arguments\":\"\"}}\n\n\
              data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"item_id\":\"fc_1\",\
              \"delta\":\"{\\\"at\\\":\\\"\"}\n\n"
                .to_vec()
        }
        Api::Messages => {
            b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\
              \"id\":\"call00000\",\"name\":\"example\",\"input\":{}}}\n\n\
              event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\
              \"partial_json\":\"{\\\"at\\\":\\\"\"}}\n\n"
                .to_vec()
        }
    }
}

/// Returns an event that continues the string that [`call_start`] left open.
pub(super) fn call_continuation(api: Api, arguments: &str) -> Vec<u8> {
    let event = match api {
        Api::ChatCompletions => format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\
             \"{arguments}\"}}}}]}}}}]}}\n\n"
        ),
        Api::Responses => format!(
            "data: {{\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"item_id\":\"fc_1\",\
             \"delta\":\"{arguments}\"}}\n\n"
        ),
        Api::Messages => format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{{\"type\":\"input_json_delta\",\
             \"partial_json\":\"{arguments}\"}}}}\n\n"
        ),
    };
    event.into_bytes()
}
