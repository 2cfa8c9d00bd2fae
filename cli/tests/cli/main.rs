//! The binary, run: exit codes, JSON, streams, hostile inputs, long work, and every console block of `docs/cli.md`.
#![allow(clippy::unwrap_used)]

mod hostile;
mod inpaint;
mod kit;
mod long;
mod page;
mod results;
mod schema;
mod usage;
