//! What the decoders of all APIs have in common.

use super::assemble::Assembled;
use super::reply_state::ReplyState;
use super::sink::Sink;
use crate::received::Opaque;

/// Decodes the events of the replies of one API.
pub(super) trait ApiDecoder: std::fmt::Debug + Send + Sync {
    /// Takes the JSON of one event, or of a whole reply.
    ///
    /// # Errors
    /// The bytes are not one JSON value.
    fn read(&mut self, data: &[u8], state: &mut ReplyState, sink: &mut Sink<'_>) -> serde_json::Result<()>;

    /// Returns the bytes that the next event is compared with.
    fn expected(&self) -> &[u8] {
        &[]
    }

    /// Returns the calls, the kinds of the items that were skipped, and the opaque parts; `None` if they are too large.
    fn finish(self: Box<Self>, empty_is_complete: bool) -> (Assembled, Vec<String>, Option<Opaque>);
}
