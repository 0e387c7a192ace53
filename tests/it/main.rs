//! deftool from the outside. One binary, one file a room of the house, and the real server last.

mod chat;
mod house;
mod lang;
mod readme;
mod real;
mod request;
mod script;
mod syntax;
