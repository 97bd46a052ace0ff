//! One binary for all tests of real packets, since each would be linked with everything.

mod allocation;
mod kernel;
mod logs;
mod support;
mod windows;
mod worlds;
