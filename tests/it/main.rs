//! deftool from the outside. One binary; one file a room of the house, and the command last.

mod house;
mod lang;
mod syntax;
