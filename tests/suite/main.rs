//! One test binary, one module per promise.
#![allow(clippy::unwrap_used)]

mod bad_data;
mod tables;
mod times;
