//! One file a command; each opens, reads, computes, writes.

pub mod bench;
pub mod demo;
pub mod evaluate;
pub mod fit;
pub mod forecast;
pub mod inpaint;
pub mod kernels;
pub mod pages;
pub mod predict;
pub mod reproduce;
