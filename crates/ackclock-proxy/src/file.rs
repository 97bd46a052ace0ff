//! Configuration file of the proxy.

use std::net::SocketAddr;
use std::path::PathBuf;

use ackclock_core::{Component, ConfigError, Prefix, SteeringConfig, name_of};
use ackclock_edge::STEERINGS;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::reports::keys::Key;
use crate::server::{Options, Reports};

/// Configuration file: where the proxy listens, and the controller of its windows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The `[proxy]` table.
    pub proxy: ProxyTable,
    /// The `[relay]` table, as in a scenario.
    #[serde(default)]
    pub relay: RelayTable,
}

/// The `[proxy]` table of the configuration file of `ackclock proxy`. `[relay]` in the same file is that of a scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProxyTable {
    /// Addresses on which the proxy listens for requests.
    #[serde(default)]
    pub listen: Vec<SocketAddr>,
    /// Addresses at which the proxy takes connections that the firewall diverts (TPROXY).
    #[serde(default)]
    pub transparent: Vec<SocketAddr>,
    /// Networks whose clients may use the proxy, in addition to this machine's own programs.
    #[serde(default)]
    pub allow: Vec<Prefix>,
    /// Maximum number of simultaneous connections.
    #[serde(default = "connections")]
    pub max_connections: u32,
    /// Radio reports.
    #[serde(default)]
    pub reports: Option<ReportsTable>,
}

/// The `[proxy.reports]` table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportsTable {
    /// UDP address at which the reports arrive.
    pub listen: SocketAddr,
    /// File with the keys of the radios, relative to the folder of the configuration file.
    pub keys: PathBuf,
}

/// The `[relay]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayTable {
    /// Controller of the windows, as in a scenario.
    pub steering: Component<dyn SteeringConfig>,
}

impl Default for RelayTable {
    fn default() -> Self {
        Self { steering: "none".into() }
    }
}

const fn connections() -> u32 {
    1024
}

/// Allowed values of `max_connections`.
const CONNECTIONS: std::ops::RangeInclusive<u32> = 4..=100_000;

impl File {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// Fails with the key and the allowed values.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let table: toml::Table =
            toml::from_str(text).map_err(|error| ConfigError::new("", error.to_string().trim_end()))?;
        let file: Self = serde_path_to_error::deserialize(table).map_err(|error| {
            ConfigError::new(error.path().to_string(), error.inner().to_string().trim_end())
        })?;
        let most = file.proxy.max_connections;
        if !CONNECTIONS.contains(&most) {
            return Err(ConfigError::new("proxy.max_connections", format!("{most} is not from 4 to 100000")));
        }
        if file.proxy.listen.is_empty() && file.proxy.transparent.is_empty() {
            return Err(ConfigError::new("proxy.listen", "no address, for example [\"127.0.0.1:8080\"]"));
        }
        let name = name_of(&file.relay.steering);
        let steering = file.relay.steering.config(&STEERINGS);
        let steering = steering.map_err(|error| error.under("relay.steering"))?;
        match (steering.patience(), &file.proxy.reports) {
            (Some(_), None) => {
                let message = format!("`{name}` needs radio reports: set `[proxy.reports]`");
                Err(ConfigError::new("relay.steering", message))
            }
            (None, Some(_)) => {
                let message = "`relay.steering` is \"none\" and uses no reports, set \"rnf\"";
                Err(ConfigError::new("proxy.reports", message))
            }
            _ => Ok(file),
        }
    }

    /// Settings of the proxy, with the keys from the key file.
    ///
    /// # Errors
    /// Fails if the steering is invalid, which [`parse`](Self::parse) has checked.
    pub fn options(self, keys: Vec<Key>) -> Result<Options, ConfigError> {
        let steering = self.relay.steering.config(&STEERINGS)?.clone();
        let ProxyTable { listen, transparent, allow, max_connections, reports } = self.proxy;
        let reports = reports.map(|reports| Reports { listen: reports.listen, keys, steering });
        Ok(Options { listen, transparent, allow, max_connections: max_connections as usize, reports })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_key_the_value_and_what_is_allowed() {
        let reports = "[proxy.reports]\nlisten = \"127.0.0.1:7301\"\nkeys = \"radio.keys\"\n";
        let proxy = "[proxy]\nlisten = [\"127.0.0.1:8080\"]\n";
        for (text, expected) in [
            (String::new(), "missing field `proxy`"),
            ("[proxy]\nlisten = []".to_owned(), "proxy.listen: no address"),
            ("[proxy]\nlisten = [\"here\"]".to_owned(), "proxy.listen[0]: "),
            ("[proxy]\ntransparent = [\"7300\"]".to_owned(), "proxy.transparent[0]: "),
            (format!("{proxy}max_connections = 3"), "proxy.max_connections: 3 is not from 4 to 100000"),
            (format!("{proxy}allow = [\"10.0.0.0/33\"]"), "proxy.allow[0]: `10.0.0.0/33` is not a network"),
            (format!("{proxy}lisen = 1"), "unknown field `lisen`"),
            (format!("{proxy}{reports}"), "proxy.reports: `relay.steering` is \"none\""),
            (format!("{proxy}[relay]\nsteering = \"rnf\""), "relay.steering: `rnf` needs radio reports"),
            (format!("{proxy}{reports}[relay]\nsteering = \"rnp\""), "relay.steering"),
            (
                format!("{proxy}{reports}[relay]\nsteering = {{ kind = \"rnf\", gain = 3.0 }}"),
                "relay.steering.gain: 3",
            ),
        ] {
            let error = File::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let file = File::parse(&format!("{proxy}{reports}[relay]\nsteering = \"rnf\"")).unwrap();
        assert!(file.options(Vec::new()).unwrap().reports.is_some());
    }
}
