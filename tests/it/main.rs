//! deftool from the outside. One binary, one file a room of the house.

mod chat;
mod damage;
mod house;
mod inputs;
mod lang;
mod request;
mod script;
mod syntax;
mod values;
