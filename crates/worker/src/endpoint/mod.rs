//! The endpoint of a model: finds it, detects its dialect and capabilities, and examines it for diagnostics.
//!
//! | file | |
//! |---|---|
//! | `find` | the configured endpoint, or a server on this machine |
//! | `detect` | the dialect and the capabilities of a server |
//! | `examine` | a report about a server, with a specific error for each kind of wrong base URL |

mod detect;
mod examine;
mod find;

pub use detect::{Detected, Evidence};
pub use examine::{Examination, ExamineOptions, Model, examine_endpoint};
pub use find::{ANY_MODEL, Endpoint, EndpointError, EndpointOptions, api_of, find_endpoint};

pub(crate) use find::is_default_local_url;
