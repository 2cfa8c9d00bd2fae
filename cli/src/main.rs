//! The command line of covary.
fn main() {}
