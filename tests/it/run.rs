//! The commands `run` and `call`.
