//! Images of tools and prompts: what the server receives, and what is stored.

use std::sync::Arc;

use deftool_chat::Dialect;
use deftool_chat::request::Event;
use deftool_chat::{Api, Capabilities, Message};
use deftool_lang::tool::{
    Attachment, CallContext, ToolCall, ToolError, ToolOutput, ToolRunner, Toolbox, attach,
};
use deftool_test_support::server::{Answer, Server, call, finish as end};
use deftool_worker::{SubmitRequest, Worker, WorkerConfig};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::harness::*;

/// A PNG image of 64 by 64 pixels with `size` bytes.
fn image(size: usize) -> Attachment {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x40".to_vec();
    bytes.resize(size, 7);
    Attachment::new(bytes, "image/png").unwrap()
}

/// A tool that returns the same image each time.
struct Camera;

impl ToolRunner for Camera {
    fn run(&self, _: ToolCall, _: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let mut attachments = Vec::new();
        let line = attach(&mut attachments, Ok(image(3_000)));
        let value = json!({"picture": line});
        std::future::ready(Ok(ToolOutput { value, attachments })).boxed()
    }
}

fn camera() -> Arc<Toolbox> {
    toolbox(Camera)
}

fn looks() -> Answer {
    Answer::chunks(&[call(0, "look", "{}"), end("tool_calls")])
}

fn prompt(attachments: Vec<Attachment>) -> SubmitRequest {
    let content = attachments.iter().map(Attachment::line).collect();
    let messages = vec![Message::User { content, attachments }];
    SubmitRequest { messages, ..SubmitRequest::default() }
}

const LINE: &str = "[image: image/png, 64×64, 3 kB]";

#[tokio::test]
async fn the_image_of_a_result_is_sent_beside_its_text() {
    let server = Server::script([looks(), Answer::text("A cat.")]);
    let worker = Worker::start(config(), camera(), http(&server.endpoint(), None));
    let ended = ask(&worker).await;
    assert_eq!((ended.text(), ended.warnings()), ("A cat.", vec![]));
    let finished = ended.events.iter().find_map(|event| match event {
        Event::ToolFinished { result, attachments, .. } => Some((result.clone(), attachments.clone())),
        _ => None,
    });
    assert_eq!(finished, Some((Some(json!({"picture": LINE})), vec![image(3_000)])));
    let body = &server.posts()[1].body;
    let messages = body["messages"].as_array().unwrap();
    let [.., result, follow] = &messages[..] else { panic!("{body}") };
    assert!(
        result["content"].as_str().unwrap().starts_with(&format!("{{\"picture\":\"{LINE}\"}}")),
        "{result}"
    );
    assert_eq!(follow["role"], "user");
    assert_eq!(follow["content"][1]["image_url"]["url"], json!(image(3_000).data_url()));
}

#[tokio::test]
async fn a_server_without_images_gets_the_text_after_one_more_request() {
    let has_image = |body: &Value| body.to_string().contains("image_url");
    let server = Server::answering(move |_, request| match (&request.body, has_image(&request.body)) {
        (_, true) => Answer::error(400, &[], "image_url is only supported by certain models"),
        (body, false) if body["messages"].as_array().unwrap().len() < 4 => looks(),
        _ => Answer::text("fine"),
    });
    let worker = Worker::start(config(), camera(), http(&server.endpoint(), None));
    let ended = ask(&worker).await;
    assert_eq!(ended.text(), "fine");
    let [(2, 0, detail)] = ended.retries()[..] else { panic!("{:?}", ended.retries()) };
    assert!(detail.starts_with("sent again without images: "), "{detail}");
    let unsent = "image: image/png, 64×64, 3 kB; not sent: the server takes no images";
    assert_eq!(ended.warnings(), [unsent]);
    let posts = server.posts();
    let last = &posts.last().unwrap().body;
    assert!(last.to_string().contains(unsent), "{last}");

    // The next request of the worker begins without images.
    let id = worker.submit(prompt(vec![image(3_000)])).unwrap();
    let again = finish(&worker, &id).await;
    assert_eq!((again.retries(), again.warnings()), (vec![], vec![unsent, unsent]));
}

/// One damaged image says nothing about the others.
#[tokio::test]
async fn an_image_that_the_server_rejects_is_left_out_alone() {
    let bad = image(2_000).data_url().unwrap();
    let is_rejected = bad.clone();
    let server = Server::answering(move |_, request| {
        if request.body.to_string().contains(&is_rejected) {
            Answer::error(400, &[], "Could not process image")
        } else {
            Answer::text("fine")
        }
    });
    let worker = Worker::start(config(), camera(), http(&server.endpoint(), None));
    let unsent = "image: image/png, 64×64, 2 kB; not sent: the server rejected the request with it";
    let mut request = prompt(vec![image(2_000)]);
    for (size, retries, expected) in [(2_000, 1, &[unsent][..]), (3_000, 0, &[]), (2_000, 1, &[unsent])] {
        if let Some(Message::User { attachments, .. }) = request.messages.last_mut() {
            *attachments = vec![image(size)];
        }
        let id = worker.submit(request.clone()).unwrap();
        let ended = finish(&worker, &id).await;
        assert_eq!((ended.text(), ended.retries().len()), ("fine", retries), "{:?}", ended.events);
        assert_eq!(ended.warnings(), expected);
        // The conversation continues with the images that were accepted.
        request.messages = worker.conversation(&id).unwrap();
        request.messages.push(Message::user(image(3_000).line()));
    }
    let last = server.posts().last().unwrap().body.to_string();
    assert_eq!((last.contains(&bad), last.contains(&image(3_000).data_url().unwrap())), (false, true));
}

#[tokio::test]
async fn a_model_that_is_known_to_take_no_images_gets_none() {
    let server = Server::script([Answer::text("fine")]);
    let capable = Capabilities { images: Some(false), ..Capabilities::of(Dialect::named("llama-cpp")) };
    let worker = worker(&server, WorkerConfig { server: capable, api: Api::ChatCompletions, ..config() });
    let ended = finish(&worker, &worker.submit(prompt(vec![image(3_000)])).unwrap()).await;
    assert_eq!(ended.text(), "fine");
    assert_eq!(ended.warnings().len(), 1, "{:?}", ended.events);
    assert_eq!(server.posts().len(), 1);
}

/// An image of 6 MB was a request of 6 MB of text.
#[tokio::test]
async fn a_large_image_is_sent_once_in_each_request() {
    let server = Server::script([looks(), looks(), Answer::text("fine")]);
    let worker = Worker::start(config(), camera(), http(&server.endpoint(), None));
    let id = worker.submit(prompt(vec![image(6_000_000)])).unwrap();
    assert_eq!(finish(&worker, &id).await.text(), "fine");
    for post in server.posts() {
        let body = post.body.to_string();
        assert!(body.len() < 8_050_000, "{}", body.len());
        assert_eq!(
            body.matches("image/png;base64").count(),
            post.body.to_string().matches("\"image_url\":{").count()
        );
    }
}
