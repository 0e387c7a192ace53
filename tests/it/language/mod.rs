//! Specs: findings, damaged files, generated grammars.

pub(crate) mod damage;
mod findings;
mod lang;
mod linear;
pub(crate) mod llama_cpp;
mod rules;
