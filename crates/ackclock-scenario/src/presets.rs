//! Defaults by name: the settings of the source documents, and of today.
//!
//! A preset is a scenario with gaps. What its `[flow]` table says holds for every flow, and what its `[sender]` table says
//! for every sender, whichever it is.

use ackclock_core::ConfigError;
use serde_json::Value;

use crate::tree::{Origin, Tree};

/// One preset.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name in scenario files.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../presets/", $name, ".toml")) }),*]
    };
}

/// Every preset.
pub static PRESETS: &[Preset] = presets!["cr02", "cr04", "ac06", "l02", "m05", "linux"];

/// The layers of the preset that a scenario calls `name`: what lies below the options of a file, and the options of every sender,
/// which stay whichever sender the file chooses.
pub(crate) fn layers(name: &Value) -> Result<(Tree, Tree), ConfigError> {
    let Some(name) = name.as_str() else {
        return Err(ConfigError::new("preset", format!("{name} is not the name of a preset")));
    };
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        let message = format!("unknown preset `{name}`; known are {}", names.join(", "));
        return Err(ConfigError::new("preset", message));
    };
    let mut tree = Tree::parse(preset.name, preset.text)
        .map_err(|error| ConfigError::new("preset", format!("{name} is broken: {error}")))?;
    tree.set_origin(&Origin::Preset(preset.name.into()));
    let options = tree.take("sender").unwrap_or_else(|| Tree::empty(tree.origin.clone()));
    Ok((tree, options.nested("flow.sender")))
}
