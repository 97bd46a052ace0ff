//! `cargo xtask new KIND NAME`: one file, its `mod` line and its registry line.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::tracked;

/// A kind of component: where its registry stands, and what a new one looks like.
struct Kind {
    name: &'static str,
    /// The folder of the crate, or of the part of it.
    folder: &'static str,
    /// The registry; new files go beside the file that declares it.
    registry: &'static str,
    template: &'static str,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "regulator",
        folder: "crates/ackclock-edge/src",
        registry: "REGULATORS",
        template: include_str!("../templates/regulator.rs"),
    },
    Kind {
        name: "link",
        folder: "crates/ackclock-link/src",
        registry: "LINKS",
        template: include_str!("../templates/link.rs"),
    },
    Kind {
        name: "queue",
        folder: "crates/ackclock-link/src/queue",
        registry: "QUEUES",
        template: include_str!("../templates/queue.rs"),
    },
    Kind {
        name: "congestion-control",
        folder: "crates/ackclock-tcp/src/cc",
        registry: "CONGESTION_CONTROLS",
        template: include_str!("../templates/congestion_control.rs"),
    },
];

/// The kinds of which there are skeletons.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// Writes the skeleton and gives its path relative to `root`.
///
/// Nothing is written unless everything can be.
pub(crate) fn write(root: &Path, kind: &str, name: &str) -> Result<PathBuf, String> {
    let Some(kind) = KINDS.iter().find(|known| known.name == kind) else {
        let known: Vec<_> = kinds().collect();
        return Err(format!("`{kind}` is not a kind of component; there are {}", known.join(", ")));
    };
    check_name(name)?;
    let registry_file = registry_file(root, kind)?;
    let registry_text = crate::source::read(root, &registry_file)?;
    let module = name.replace('-', "_");
    let file = registry_file.with_file_name(format!("{module}.rs"));
    if root.join(&file).exists() {
        return Err(format!("{} exists already", file.display()));
    }
    let with_row = with_row(&registry_text, kind.registry, name, &module)?;
    let registered = with_module(&with_row, &module)?;
    let store = |file: &Path, text: &str| {
        fs::write(root.join(file), text).map_err(|error| format!("{}: {error}", file.display()))
    };
    store(&file, &kind.template.replace("NAME", &title(name)))?;
    store(&registry_file, &registered)?;
    Ok(file)
}

fn check_name(name: &str) -> Result<(), String> {
    let letters = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let ends = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-');
    if letters && ends {
        Ok(())
    } else {
        Err(format!("`{name}` is not a name: small letters, digits and hyphens, beginning with a letter"))
    }
}

fn registry_file(root: &Path, kind: &Kind) -> Result<PathBuf, String> {
    let declaration = format!("pub static {}:", kind.registry);
    for file in tracked(root, ".rs")? {
        if file.starts_with(kind.folder) && crate::source::read(root, &file)?.contains(&declaration) {
            return Ok(file);
        }
    }
    Err(format!("no `{declaration}` under {}", kind.folder))
}

/// `ack-regulator` becomes `Ack regulator`.
fn title(name: &str) -> String {
    let words = name.replace('-', " ");
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

/// Adds the last row of the registry.
fn with_row(text: &str, registry: &str, name: &str, module: &str) -> Result<String, String> {
    let start = text.find(&format!("pub static {registry}:")).ok_or("the registry vanished")?;
    let end = text[start..]
        .find("\n    }\n")
        .ok_or_else(|| format!("{registry} does not end with a brace of its own"))?;
    let row = format!("\n        \"{name}\" => {module}::Config,");
    let (before, after) = text.split_at(start + end);
    if before[start..].contains(&format!("\"{name}\" =>")) {
        return Err(format!("{registry} has a row `{name}` already"));
    }
    Ok(format!("{before}{row}{after}"))
}

/// Adds the `mod` line at its place in the alphabet.
fn with_module(text: &str, module: &str) -> Result<String, String> {
    let line = format!("mod {module};");
    let mut lines: Vec<&str> = text.lines().collect();
    let modules: Vec<usize> = (0..lines.len()).filter(|&at| module_name(lines[at]).is_some()).collect();
    let last = modules.last().ok_or("the file of the registry has no `mod` line")?;
    let after = |at: usize| module_name(lines[at]).is_some_and(|name| name > module);
    let place = modules.iter().copied().find(|&at| after(at)).unwrap_or(last + 1);
    lines.insert(place, &line);
    Ok(lines.join("\n") + "\n")
}

fn module_name(line: &str) -> Option<&str> {
    line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "//! X\n\nmod alpha;\npub mod gamma;\n\nregistry! {\n    /// Every one.\n    pub static REGULATORS: dyn X = \"x\" {\n        \"alpha\" => alpha::Config,\n    }\n}\n";

    #[test]
    fn the_mod_line_and_the_row_find_their_places() {
        let text = with_module(&with_row(FILE, "REGULATORS", "be-ta", "be_ta").unwrap(), "be_ta").unwrap();
        assert!(text.contains("mod alpha;\nmod be_ta;\npub mod gamma;\n"));
        assert!(text.contains("alpha::Config,\n        \"be-ta\" => be_ta::Config,\n    }\n"));
    }

    #[test]
    fn what_exists_is_never_overwritten() {
        assert!(with_row(FILE, "REGULATORS", "alpha", "alpha").is_err());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let refusal = write(root, "regulator", "none").unwrap_err();
        assert!(refusal.contains("exists already"), "{refusal}");
    }

    #[test]
    fn a_wrong_kind_or_name_is_refused_with_what_is_allowed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(write(root, "sender", "x").unwrap_err().contains("congestion-control"));
        for name in ["", "Upper", "-x", "x-", "a b", "a/b"] {
            assert!(write(root, "regulator", name).is_err(), "{name}");
        }
    }
}
