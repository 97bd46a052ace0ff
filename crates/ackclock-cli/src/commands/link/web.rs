//! `--control`: the address and the token with which programs control the link by HTTP.

use std::env;
use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener};

use ackclock_live::web_control;

use crate::failure::Failure;

/// Control of the link by HTTP, at the same loopback address on the machine and inside.
pub(super) struct WebControl {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

impl WebControl {
    /// Listens on the machine. The token is $ACKCLOCK_TOKEN, if set, so that programs outside know it too.
    ///
    /// # Errors
    /// Fails if the address cannot be used, or if the kernel provides no random bits.
    pub(super) fn listen(address: SocketAddr) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Input(format!("--control {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let given = env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let token = given.map_or_else(web_control::token, Ok).map_err(failed)?;
        Ok(Self { listener, address, token })
    }

    /// Environment variables with which the command finds the address and the token.
    pub(super) fn environment(&self) -> [(String, OsString); 2] {
        let url = format!("http://{}", self.address);
        [("ACKCLOCK_CONTROL", url), (TOKEN, self.token.clone())]
            .map(|(name, value)| (name.to_owned(), value.into()))
    }
}

/// Environment variable with the token that a request by HTTP needs.
const TOKEN: &str = "ACKCLOCK_TOKEN";
