//! One test binary, one module per promise.

mod optim;
