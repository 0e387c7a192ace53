//! The connection to a model server: sends request bodies, returns the responses, and keeps the API key out of them.
//!
//! | file | |
//! |---|---|
//! | `interface` | the [`Transport`] interface |
//! | `http` | a transport to an HTTP server |
//! | `client` | the HTTP client and the causes of its errors |
//! | `url` | URLs of a server |
//! | `probe` | requests that do not involve a model |
//! | `replay` | answers requests from a recording |

mod client;
mod http;
mod interface;
mod probe;
mod replay;
mod url;

pub use http::HttpTransport;
pub use interface::{Incoming, Outgoing, Page, PageResponse, Transport, TransportError};
pub use probe::{Credentials, ProbeError};
pub use replay::ReplayTransport;

pub use client::{http_client, root_cause};
pub use url::shown_url;

pub(crate) use interface::api_path;
pub(crate) use probe::{Answer, Prober, busy_slots};
pub(crate) use url::{endpoint_url, has_user, is_on_this_machine, is_version, server_page};
