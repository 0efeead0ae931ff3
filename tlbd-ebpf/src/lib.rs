//! Empty: a library target lets `tlbd`'s build script depend on this package, so that cargo
//! rebuilds the programs when they change.
#![no_std]
