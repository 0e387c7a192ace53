//! The images and audio in request bodies. A recording contains their bytes once, beside the bodies.

use deftool_lang::text::{from_base64, sha256_hex};
use serde_json::{Map, Value};

/// The part of a data URL before its data.
const BASE64: &str = ";base64,";

/// Replaces the data of images and audio in a body by their digests, in place: `data:image/png;base64,…` becomes
/// `data:image/png;sha256,…`. Equal bodies stay equal, and different ones different.
pub(crate) fn refer_to_media(body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(refer_to_media),
        Value::Object(members) => {
            refer_in_part(members);
            members.values_mut().for_each(refer_to_media);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces the data of a part: `url` of chat completions, `image_url` of the responses API, or `data` of audio and of
/// the Messages API.
fn refer_in_part(members: &mut Map<String, Value>) {
    for name in ["url", "image_url"] {
        if let Some(Value::String(url)) = members.get_mut(name)
            && url.starts_with("data:")
            && let Some((media_type, data)) = url.split_once(BASE64)
            && let Some(bytes) = from_base64(data)
        {
            *url = format!("{media_type};sha256,{}", sha256_hex(&bytes));
        }
    }
    let has_data = members.contains_key("media_type") || members.contains_key("format");
    if let Some(Value::String(data)) = members.get_mut("data")
        && has_data
        && let Some(bytes) = from_base64(data)
    {
        *data = format!("sha256,{}", sha256_hex(&bytes));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_data_of_media_is_replaced() {
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for (part, expected) in [
            (
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}}),
                json!({"type": "image_url", "image_url": {"url": format!("data:image/png;sha256,{digest}")}}),
            ),
            (
                json!({"type": "input_image", "image_url": "data:image/png;base64,YWJj", "detail": "auto"}),
                json!({"type": "input_image", "image_url": format!("data:image/png;sha256,{digest}"), "detail": "auto"}),
            ),
            (
                json!({"type": "base64", "media_type": "image/png", "data": "YWJj"}),
                json!({"type": "base64", "media_type": "image/png", "data": format!("sha256,{digest}")}),
            ),
            (
                json!({"data": "YWJj", "format": "wav"}),
                json!({"data": format!("sha256,{digest}"), "format": "wav"}),
            ),
            (json!({"data": "YWJj"}), json!({"data": "YWJj"})),
            (json!({"url": "https://a/b"}), json!({"url": "https://a/b"})),
            (json!({"text": "data:image/png;base64,YWJj"}), json!({"text": "data:image/png;base64,YWJj"})),
        ] {
            let (mut body, expected) = (json!({"messages": [part]}), json!({"messages": [expected]}));
            refer_to_media(&mut body);
            assert_eq!(body, expected);
            refer_to_media(&mut body);
            assert_eq!(body, expected);
        }
    }
}
