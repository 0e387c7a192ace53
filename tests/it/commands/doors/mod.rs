//! The rules that several commands and methods must keep, and the commands and methods ("doors") that they apply to. The doors
//! are enumerated from the program and its protocols, so a new one fails until its row names the rule that it keeps.

#[cfg(target_os = "linux")]
mod calls;
mod paths;
