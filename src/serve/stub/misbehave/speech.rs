//! Events of a stream whose text is bytes, whatever they are, in the words of either API.

use crate::chat::Api;

/// What stands before the text in an event that says something.
pub(super) fn before_text(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"",
        Api::Responses => {
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_0\",\
             \"output_index\":0,\"content_index\":0,\"delta\":\""
        }
    }
}

/// What stands behind it.
fn after_text(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "\"}}]}\n\n",
        Api::Responses => "\"}\n\n",
    }
}

/// An event whose text these bytes are, as they stand between the quotes.
pub(super) fn said(api: Api, text: &[u8]) -> Vec<u8> {
    [before_text(api).as_bytes(), text, after_text(api).as_bytes()].concat()
}

/// Whether an event says something.
pub(super) fn is_said(api: Api, event: &[u8]) -> bool {
    let mark: &[u8] = match api {
        Api::ChatCompletions => b"\"content\":\"",
        Api::Responses => b"\"response.output_text.delta\"",
    };
    memchr::memmem::find(event, mark).is_some()
}

/// The events with which a call of `example` begins, its arguments up to the middle of a text.
pub(super) fn call_begins(api: Api) -> Vec<u8> {
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
    }
}

/// The event with which that text goes on.
pub(super) fn call_goes_on(api: Api, arguments: &str) -> Vec<u8> {
    let event = match api {
        Api::ChatCompletions => format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\
             \"{arguments}\"}}}}]}}}}]}}\n\n"
        ),
        Api::Responses => format!(
            "data: {{\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"item_id\":\"fc_1\",\
             \"delta\":\"{arguments}\"}}\n\n"
        ),
    };
    event.into_bytes()
}
