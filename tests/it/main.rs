//! deftool from the outside. One binary, one file a room of the house.

mod chat;
mod house;
mod lang;
mod record;
mod request;
mod run;
mod script;
mod support;
mod syntax;
mod worker;
