//! One test binary, one module per promise.
#![allow(clippy::unwrap_used)]

mod golden;
mod kernels;
mod kit;
mod paper;
mod text;
