//! Every model file says where the model comes from, what it does, how it differs, and how it was validated.

use std::path::{Path, PathBuf};

use crate::Problems;
use crate::source::{read, tracked};

const HEADINGS: [&str; 4] = ["Source", "What it does", "Differences from the source", "Validation"];

/// Folders in which every file but `mod.rs` is a model. Elsewhere a model is what a registry row names, and whatever
/// begins to name its source.
const MODEL_FOLDERS: [&str; 4] = [
    "crates/ackclock-link/src/queue",
    "crates/ackclock-tcp/src/cc",
    "crates/ackclock-tcp/src/recovery",
    "crates/ackclock-tcp/src/undo",
];

/// Checks every model file.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let files = tracked(root, ".rs")?;
    let mut models: Vec<PathBuf> = files.iter().filter(|file| in_model_folder(file)).cloned().collect();
    for file in files.iter().filter(|file| file.starts_with("crates")) {
        let text = read(root, file)?;
        models.extend(registered(root, file, &text));
        if text.lines().any(|line| line == "//! ## Source") {
            models.push(file.clone());
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

/// The files of the modules that the rows of a registry name: `"name" => module::Type`.
fn registered(root: &Path, file: &Path, text: &str) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let rows = text.split("registry! {").skip(1).filter(|_| !file.ends_with("registry.rs"));
    let modules = rows.flat_map(|block| {
        block.lines().take_while(|line| !line.starts_with('}')).filter_map(|line| {
            let (_, path) = line.trim().strip_prefix('"')?.split_once("\" => ")?;
            path.split_once("::").map(|(module, _)| module.to_owned())
        })
    });
    modules
        .flat_map(|module| [folder.join(format!("{module}.rs")), folder.join(module).join("mod.rs")])
        .filter(|candidate| root.join(candidate).is_file())
        .collect()
}

/// What the module documentation of a model lacks.
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
    fn a_registry_row_names_the_file_of_its_model() {
        let text =
            "registry! {\n    pub static X: dyn Y = \"x\" {\n        \"lines\" => lines::Config,\n    }\n}\n";
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(registered(root, Path::new("src/lib.rs"), text), [PathBuf::from("src/lines.rs")]);
    }
}
