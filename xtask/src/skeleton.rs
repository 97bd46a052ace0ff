//! `cargo xtask new KIND NAME`: one file, its `mod` line and its registry line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::read;

/// A kind of component: its registration and its template.
struct Kind {
    name: &'static str,
    /// The file with the `mod` lines; the new file goes beside it.
    modules: &'static str,
    /// The `mod` line without the name; public if a registry in another crate uses the module.
    line: &'static str,
    /// File and name of the registry.
    registry: (&'static str, &'static str),
    /// Type in the registry entry, with MODULE for the module.
    row: &'static str,
    template: &'static str,
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "regulator",
        modules: "crates/ackclock-edge/src/lib.rs",
        line: "mod",
        registry: ("crates/ackclock-edge/src/registry.rs", "REGULATORS"),
        row: "crate::MODULE::Config",
        template: include_str!("../templates/regulator.rs"),
    },
    Kind {
        name: "steering",
        modules: "crates/ackclock-edge/src/lib.rs",
        line: "mod",
        registry: ("crates/ackclock-edge/src/registry.rs", "STEERINGS"),
        row: "crate::MODULE::Config",
        template: include_str!("../templates/steering.rs"),
    },
    Kind {
        name: "link",
        modules: "crates/ackclock-link/src/lib.rs",
        line: "pub mod",
        registry: ("crates/ackclock-edge/src/registry.rs", "LINKS"),
        row: "ackclock_link::MODULE::Config",
        template: include_str!("../templates/link.rs"),
    },
    Kind {
        name: "bearer",
        modules: "crates/ackclock-link/src/bearer/mod.rs",
        line: "pub mod",
        registry: ("crates/ackclock-edge/src/registry.rs", "BEARERS"),
        row: "ackclock_link::bearer::MODULE::Config",
        template: include_str!("../templates/bearer.rs"),
    },
    Kind {
        name: "queue",
        modules: "crates/ackclock-link/src/queue/mod.rs",
        line: "pub mod",
        registry: ("crates/ackclock-edge/src/registry.rs", "QUEUES"),
        row: "ackclock_link::queue::MODULE::Config",
        template: include_str!("../templates/queue.rs"),
    },
    Kind {
        name: "scheduler",
        modules: "crates/ackclock-radio/src/scheduler/mod.rs",
        line: "mod",
        registry: ("crates/ackclock-radio/src/scheduler/registry.rs", "SCHEDULERS"),
        row: "super::MODULE::Config",
        template: include_str!("../templates/scheduler.rs"),
    },
    Kind {
        name: "error-process",
        modules: "crates/ackclock-link/src/errors/mod.rs",
        line: "mod",
        registry: ("crates/ackclock-link/src/errors/registry.rs", "ERRORS"),
        row: "super::MODULE::Config",
        template: include_str!("../templates/error_process.rs"),
    },
    Kind {
        name: "congestion-control",
        modules: "crates/ackclock-tcp/src/cc/mod.rs",
        line: "pub mod",
        registry: ("crates/ackclock-tcp/src/senders.rs", "SENDERS"),
        row: "Row<crate::cc::MODULE::Sender>",
        template: include_str!("../templates/congestion_control.rs"),
    },
];

/// Kinds with a skeleton.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// Writes the skeleton and returns its path relative to `root`.
///
/// Writes either all changes or none.
pub(crate) fn write(root: &Path, kind: &str, name: &str) -> Result<PathBuf, String> {
    let Some(kind) = KINDS.iter().find(|known| known.name == kind) else {
        let known: Vec<_> = kinds().collect();
        return Err(format!("`{kind}` is not a kind of component; there are {}", known.join(", ")));
    };
    check_name(name)?;
    let module = name.replace('-', "_");
    let file = Path::new(kind.modules).with_file_name(format!("{module}.rs"));
    if root.join(&file).exists() || root.join(file.with_extension("")).exists() {
        return Err(format!("{} exists already", file.display()));
    }
    let mut texts = BTreeMap::from([(file.clone(), filled(kind.template, name))]);
    let (registry_file, registry) = kind.registry;
    let row = format!("\"{name}\" => {},", kind.row.replace("MODULE", &module));
    texts.insert(registry_file.into(), with_row(&read(root, Path::new(registry_file))?, registry, &row)?);
    let modules = match texts.remove(Path::new(kind.modules)) {
        Some(text) => text,
        None => read(root, Path::new(kind.modules))?,
    };
    texts.insert(kind.modules.into(), with_module(&modules, kind.line, &module)?);
    for (file, text) in texts {
        fs::write(root.join(&file), text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
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

/// The template with NAME and STRUCT replaced by the title and the type name.
fn filled(template: &str, name: &str) -> String {
    template.replace("NAME", &title(name)).replace("STRUCT", &type_name(name))
}

/// `ack-regulator` becomes `AckRegulator`.
fn type_name(name: &str) -> String {
    name.split('-').filter(|word| !word.is_empty()).map(title).collect()
}

/// `ack-regulator` becomes `Ack regulator`.
fn title(name: &str) -> String {
    let words = name.replace('-', " ");
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

/// Adds an entry at the end of the registry.
fn with_row(text: &str, registry: &str, row: &str) -> Result<String, String> {
    let start =
        text.find(&format!("pub static {registry}:")).ok_or_else(|| format!("no registry {registry}"))?;
    let end = text[start..]
        .find("\n    }")
        .ok_or_else(|| format!("{registry} does not end with a brace of its own"))?;
    let (before, after) = text.split_at(start + end);
    let name = row.split(" =>").next().unwrap_or(row);
    if before[start..].contains(&format!("{name} =>")) {
        return Err(format!("{registry} has a row {name} already"));
    }
    Ok(format!("{before}\n        {row}{after}"))
}

/// Adds the `mod` line in alphabetical order.
fn with_module(text: &str, line: &str, module: &str) -> Result<String, String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let modules: Vec<usize> = (0..lines.len()).filter(|&at| module_name(lines[at]).is_some()).collect();
    let last = modules.last().ok_or("the file of the registry has no `mod` line")?;
    let after = |at: usize| module_name(lines[at]).is_some_and(|name| name > module);
    let place = modules.iter().copied().find(|&at| after(at)).unwrap_or(last + 1);
    let line = format!("{line} {module};");
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
        let text = with_module(
            &with_row(FILE, "REGULATORS", "\"be-ta\" => be_ta::Config,").unwrap(),
            "mod",
            "be_ta",
        )
        .unwrap();
        assert!(text.contains("mod alpha;\nmod be_ta;\npub mod gamma;\n"));
        assert!(text.contains("alpha::Config,\n        \"be-ta\" => be_ta::Config,\n    }\n"));
    }

    #[test]
    fn what_exists_is_never_overwritten() {
        assert!(with_row(FILE, "REGULATORS", "\"alpha\" => alpha::Config,").is_err());
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
