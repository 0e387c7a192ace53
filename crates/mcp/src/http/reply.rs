//! Replies in few packets. The library streams each reply, and most are complete after a moment: without this, the head,
//! each event and the end are a write, a packet and a wake of the client each.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::Response;
use hyper::body::{Bytes, Frame};
use tokio_util::bytes::BytesMut;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Time in which a reply must be complete to be sent whole. Afterwards, it is streamed.
const LIMIT: Duration = Duration::from_millis(20);

/// Waits for the body of a reply. What has arrived after [`LIMIT`] becomes its first frame; usually this is all.
pub(super) async fn gathered(reply: Answer) -> Answer {
    let (head, mut body) = reply.into_parts();
    let mut first = BytesMut::new();
    let gathering = async {
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref() {
                first.extend_from_slice(data);
            }
        }
    };
    let is_complete = tokio::time::timeout(LIMIT, gathering).await.is_ok();
    let first = first.freeze();
    if is_complete {
        return Response::from_parts(head, Full::new(first).boxed());
    }
    let first = futures_util::stream::iter([Ok(Frame::data(first))]);
    let rest = StreamBody::new(first.chain(BodyStream::new(body)));
    Response::from_parts(head, BodyExt::boxed(rest))
}
