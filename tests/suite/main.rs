//! One test binary, one module per promise.
#![allow(clippy::unwrap_used)]

mod kernels;
mod kit;
mod text;
