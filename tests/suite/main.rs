//! One test binary, one module per promise.
#![allow(clippy::unwrap_used)]

mod architecture;
mod averages;
mod bad_data;
mod golden;
mod grid;
mod inducing;
mod iterative;
mod kernels;
mod kit;
mod learning;
mod linalg;
mod models;
mod optim;
mod paper;
mod plots;
mod scale;
mod series;
mod sparse;
mod tables;
mod text;
mod times;
mod transforms;
