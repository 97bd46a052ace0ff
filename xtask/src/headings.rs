//! Checks that every model file states its source, its behaviour, its differences from the source, and its validation.

use std::path::{Path, PathBuf};

use crate::Problems;
use crate::source::{read, tracked};

const HEADINGS: [&str; 4] = ["Source", "What it does", "Differences from the source", "Validation"];

/// Folders in which every file except `mod.rs` is a model.
const MODEL_FOLDERS: [&str; 3] =
    ["crates/ackclock-tcp/src/cc", "crates/ackclock-tcp/src/recovery", "crates/ackclock-tcp/src/undo"];

/// Registries whose entries are models wherever they are: the file that declares the type of an entry.
const MODEL_REGISTRIES: [(&str, &str); 5] = [
    ("crates/ackclock-edge/src/registry.rs", "LINKS"),
    ("crates/ackclock-edge/src/registry.rs", "QUEUES"),
    ("crates/ackclock-edge/src/registry.rs", "REGULATORS"),
    ("crates/ackclock-radio/src/scheduler/registry.rs", "SCHEDULERS"),
    ("crates/ackclock-link/src/errors/registry.rs", "ERRORS"),
];

/// Checks the files above and every other file with a `## Source` heading.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let files = tracked(root, ".rs")?;
    let mut models: Vec<PathBuf> = files.iter().filter(|file| in_model_folder(file)).cloned().collect();
    for file in files.iter().filter(|file| file.starts_with("crates")) {
        if read(root, file)?.lines().any(|line| line == "//! ## Source") {
            models.push(file.clone());
        }
    }
    for (lib, registry) in MODEL_REGISTRIES {
        let lib = Path::new(lib);
        let text = read(root, lib)?;
        for path in &row_types(&text, registry) {
            models.push(declaring_file(root, lib, path, &files)?);
        }
    }
    models.sort();
    models.dedup();
    let mut problems = Problems::new();
    for model in models {
        problems.extend(missing(&read(root, &model)?).map(|what| format!("{}: {what}", model.display())));
    }
    Ok(problems)
}

fn in_model_folder(file: &Path) -> bool {
    let model_folder =
        file.parent().is_some_and(|parent| MODEL_FOLDERS.iter().any(|folder| parent == Path::new(folder)));
    model_folder && file.file_name().is_some_and(|name| name != "mod.rs")
}

/// Types named by the entries of a registry.
fn row_types(text: &str, registry: &str) -> Vec<String> {
    let rows = text.split(&format!("pub static {registry}:")).nth(1).unwrap_or_default();
    let rows = rows.lines().skip(1).map(str::trim).take_while(|line| line.starts_with('"'));
    rows.filter_map(|line| line.split_once("\" => "))
        .map(|(_, path)| path.trim_end_matches(',').to_owned())
        .collect()
}

/// File that declares an entry's type: the file of the module in its path, or the one with its declaration.
fn declaring_file(root: &Path, lib: &Path, path: &str, files: &[PathBuf]) -> Result<PathBuf, String> {
    let mut modules: Vec<&str> = path.split("::").collect();
    let name = modules.pop().unwrap_or_default();
    let home = match modules.first().and_then(|first| first.strip_prefix("ackclock_")) {
        Some(other) => PathBuf::from(format!("crates/ackclock-{other}/src")),
        None => lib.components().take(3).collect(),
    };
    if let Some(module) = modules.last() {
        let is_module = |file: &&PathBuf| {
            file.ends_with(format!("{module}.rs")) || file.ends_with(format!("{module}/mod.rs"))
        };
        let mut found = files.iter().filter(|file| file.starts_with(&home)).filter(is_module);
        return found.next().cloned().ok_or_else(|| format!("{}: no module {module}", home.display()));
    }
    let declaration = format!("struct {name} ");
    for file in files.iter().filter(|file| file.starts_with("crates")) {
        if read(root, file)?.contains(&declaration) {
            // The model of a folder is described in its `mod.rs`.
            let is_config = file.ends_with("config.rs");
            return Ok(if is_config { file.with_file_name("mod.rs") } else { file.clone() });
        }
    }
    Err(format!("{}: nothing declares {path}", lib.display()))
}

/// Missing parts of a model's module documentation.
fn missing(text: &str) -> impl Iterator<Item = String> {
    let documentation: Vec<&str> = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .map(|line| line.trim_start_matches("//!").trim())
        .collect();
    let title = documentation.first().is_none_or(|line| !line.starts_with("# "));
    let title = title.then(|| "its documentation does not begin with `# Name`".to_owned());
    let sections = HEADINGS.into_iter().filter_map(move |heading| {
        let at = documentation.iter().position(|line| line.strip_prefix("## ") == Some(heading));
        match at.and_then(|at| documentation[at + 1..].iter().find(|line| !line.is_empty())) {
            Some(line) if !line.starts_with("## ") => None,
            Some(_) => Some(format!("`## {heading}` says nothing")),
            None => Some(format!("`## {heading}` is missing or says nothing")),
        }
    });
    title.into_iter().chain(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_not_allowed() {
        let whole = "//! # X\n//!\n//! ## Source\n//! A.\n//!\n//! ## What it does\n//! B.\n//! ## Differences from the source\n//! None.\n//! ## Validation\n//! None yet.\nfn x() {}\n";
        assert_eq!(missing(whole).count(), 0);
        assert_eq!(missing(&whole.replace("//! None yet.\n", "")).count(), 1);
        assert_eq!(missing(&whole.replace("//! B.\n", "")).count(), 1);
        assert_eq!(missing(&whole.replace("//! # X", "//! X")).count(), 1);
        assert_eq!(missing("fn x() {}\n").count(), 5);
    }

    #[test]
    fn a_registry_names_the_types_of_its_rows() {
        let text = "registry! {\n    pub static X: dyn Y = \"x\" {\n        \"a\" => a::Config,\n        \"b\" => B,\n    }\n}\n";
        assert_eq!(row_types(text, "X"), ["a::Config", "B"]);
    }
}
