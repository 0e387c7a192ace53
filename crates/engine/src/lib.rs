//! Opens the workers of projects, for commands, servers and other programs.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = deftool_engine::open("path/to/project").endpoint("http://localhost:8080/v1").start().await?;
//! println!("{}", worker.ask("What is the weather in Paris?").await?.text);
//! # Ok(())
//! # }
//! ```
//!
//! [`WorkerProject`] is the project of a worker, with the user's own beside it ([`ProjectRoots`]). Its [`Plan`] names what a
//! worker requires. With a [`TrustSource`](deftool_worker::TrustSource), it becomes a [`PreparedWorker`] without the tools and MCP
//! servers that are not trusted. [`Servers`] starts the MCP servers, and [`Connection`] finds or starts the model server.
//! [`open`] does all of it for a library, and [`ProjectWorkers`] for a program with several workers.
//!
//! Nothing here asks or prints: messages go to [`Notices`].

mod connection;
mod folders;
mod notices;
mod open;
mod plan;
mod project;
mod roots;
mod scripts;
mod secrets;
mod servers;
mod signals;
pub mod telemetry;
pub mod text;
mod trust;
mod workers;

pub use connection::{Connection, EndpointOrigin, ready_or_stopped};
pub use folders::{config_folder, environment, folder_variables, state_folder};
pub use notices::Notices;
pub use open::{OpenError, OpenWorker, open};
pub use plan::{Plan, PreparedWorker};
pub use project::{Choice, WorkerProject, is_usable, is_user_worker};
pub use roots::{ProjectRoots, inside_project, user_dialects};
pub use scripts::{prepare, script_line, serve_parent, start_scripts};
pub use secrets::secrets;
pub use servers::{AddedServer, Servers, join};
pub use signals::Signals;
pub use trust::{ProjectTrust, Projects, Store, StoreError, command_of, store_key, stored_trust, untrusted};
pub use workers::{OpenedWorker, ProjectWorkers, close_remote};
