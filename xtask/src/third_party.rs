//! Writes `THIRD-PARTY.txt`: licence texts of the crates linked into the command and the Python module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Problems;
use crate::cargo::{metadata, packages, text};
use crate::licences::{Policy, name};
use crate::source::read;

const FILE: &str = "THIRD-PARTY.txt";

/// Crates that are distributed.
const SHIPPED: [&str; 2] = ["ackclock-cli", "ackclock-py"];

/// Beginnings of the names of files with licence terms of a crate or of the C code inside it.
const BEGINNINGS: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];

const HEAD: &str = "\
Licences of what ackclock contains

The command `ackclock` and its Python module are linked from the crates below; their texts follow. The standard library of
Rust is linked in too, under the MIT licence or the Apache License 2.0; its COPYRIGHT (https://github.com/rust-lang/rust)
names its parts.
Written by `cargo xtask third-party` from the sources that cargo builds.
";

/// Writes the file.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let text = collected(root, &Policy::read(root)?)?;
    fs::write(root.join(FILE), text).map_err(|error| format!("{FILE}: {error}"))
}

/// Reports a problem if the file is out of date.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let stands = fs::read_to_string(root.join(FILE)).unwrap_or_default();
    let fresh = stands == collected(root, &Policy::read(root)?)?;
    Ok(if fresh { Problems::new() } else { vec![format!("{FILE} is out of date: cargo xtask third-party")] })
}

fn collected(root: &Path, policy: &Policy) -> Result<String, String> {
    let metadata = metadata(root, "Cargo.toml", &policy.options())?;
    let linked = linked(&metadata)?;
    let mut file = HEAD.to_owned();
    for package in &linked {
        file += &format!("\n{}: {}", name(package), terms(package));
    }
    file.push('\n');
    let mut texts = Vec::new();
    for package in &linked {
        texts.extend(licence_texts(root, package)?.into_iter().map(|text| (name(package), text)));
    }
    for (names, licence) in grouped(texts) {
        file += &format!("\n{:=<120}\n{names}\n\n{licence}\n", "");
    }
    Ok(file)
}

/// External packages linked into the distributed crates, sorted by name.
fn linked(metadata: &Value) -> Result<Vec<&Value>, String> {
    let packages: BTreeMap<&str, &Value> =
        packages(metadata)?.iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata resolves nothing")?;
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    let shipped =
        |id: &&str| packages.get(id).is_some_and(|package| SHIPPED.contains(&text(&package["name"])));
    let mut open: Vec<&str> = packages.keys().copied().filter(shipped).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(nodes.get(id).into_iter().flat_map(|node| normal(node)));
        }
    }
    let mut linked: Vec<&Value> = seen.iter().filter_map(|id| packages.get(id).copied()).collect();
    linked.retain(|package| !package["source"].is_null());
    linked.sort_by_key(|package| name(package));
    Ok(linked)
}

/// Linked dependencies of a package; those of its build script or tests are omitted.
fn normal(node: &Value) -> impl Iterator<Item = &str> {
    let is_normal = |dependency: &&Value| {
        dependency["dep_kinds"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    node["deps"].as_array().into_iter().flatten().filter(is_normal).map(|dependency| text(&dependency["pkg"]))
}

/// Licence and homepage of a package.
fn terms(package: &Value) -> String {
    let home = text(&package["repository"]);
    format!("{}{}{home}", text(&package["license"]), if home.is_empty() { "" } else { ", " })
}

/// Each text once, below the packages that have it.
fn grouped(texts: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut groups: Vec<(String, Vec<String>, String)> = Vec::new();
    for (name, licence) in texts {
        let words = licence.split_whitespace().collect::<Vec<_>>().join(" ");
        match groups.iter_mut().find(|(known, ..)| *known == words) {
            Some((_, names, _)) if names.last() == Some(&name) => {}
            Some((_, names, _)) => names.push(name),
            None => groups.push((words, vec![name], licence)),
        }
    }
    groups.into_iter().map(|(_, names, licence)| (names.join(", "), licence)).collect()
}

/// Licence texts in a package's sources, or the text of its licence if it comes without one.
fn licence_texts(root: &Path, package: &Value) -> Result<Vec<String>, String> {
    let folder = Path::new(text(&package["manifest_path"])).parent().ok_or("a package without a folder")?;
    let mut files = Vec::new();
    find(folder, &mut files).map_err(|error| format!("{}: {error}", folder.display()))?;
    files.sort();
    if files.is_empty() {
        return plain_mit(root, package).map(|text| vec![text]);
    }
    let text = |file: &PathBuf| fs::read(file).map_err(|error| format!("{}: {error}", file.display()));
    files.iter().map(|file| Ok(tidy(&String::from_utf8_lossy(&text(file)?)))).collect()
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let begins = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_dir() {
            find(&entry.path(), files)?;
        } else if BEGINNINGS.iter().any(|beginning| begins.starts_with(beginning)) && !begins.ends_with(".rs")
        {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Our MIT licence text with the package's authors as holders.
fn plain_mit(root: &Path, package: &Value) -> Result<String, String> {
    let licence = text(&package["license"]);
    if !licence.split([' ', '/']).any(|word| word == "MIT") {
        return Err(format!("{} ({licence}) comes without the text of its licence", name(package)));
    }
    let authors: Vec<&str> = package["authors"].as_array().into_iter().flatten().map(text).collect();
    let holder =
        if authors.is_empty() { format!("the authors of {}", name(package)) } else { authors.join(", ") };
    let own = read(root, Path::new("LICENSE-MIT"))?;
    let line = |line: &str| {
        if line.starts_with("Copyright") { format!("Copyright (c) {holder}") } else { line.to_owned() }
    };
    Ok(tidy(&own.lines().map(line).collect::<Vec<_>>().join("\n")))
}

/// Text without trailing spaces and surrounding empty lines.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_build_script_or_a_test_needs_is_not_linked_in() {
        let package = |name: &str, source: Value| json!({"id": name, "name": name, "version": "1.0.0", "source": source});
        let to = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let elsewhere = json!("registry");
        let metadata = json!({
            "packages": [
                package("ackclock-cli", json!(null)), package("ackclock-core", json!(null)), package("b", elsewhere.clone()),
                package("a", elsewhere.clone()), package("cc", elsewhere.clone()), package("proptest", elsewhere),
            ],
            "resolve": {"nodes": [
                {"id": "ackclock-cli", "deps": [to("ackclock-core", json!(null)), to("proptest", json!("dev"))]},
                {"id": "ackclock-core", "deps": [to("b", json!(null))]},
                {"id": "b", "deps": [to("a", json!(null)), to("cc", json!("build"))]},
            ]},
        });
        let names: Vec<String> = linked(&metadata).unwrap().into_iter().map(name).collect();
        assert_eq!(names, ["a 1.0.0", "b 1.0.0"]);
    }

    #[test]
    fn a_crate_without_a_text_is_under_mit_in_the_name_of_its_authors_or_refused() {
        let root = crate::workspace_root();
        let package = |licence: &str| json!({"name": "a", "version": "1.0.0", "license": licence, "authors": ["A. Author"]});
        let text = plain_mit(&root, &package("MIT OR Apache-2.0")).unwrap();
        assert!(
            text.starts_with("MIT License\n\nCopyright (c) A. Author\n\nPermission is hereby granted"),
            "{text}"
        );
        let message = "a 1.0.0 (Zlib) comes without the text of its licence";
        assert_eq!(plain_mit(&root, &package("Zlib")), Err(message.to_owned()));
    }

    #[test]
    fn equal_texts_stand_once_however_their_lines_are_broken() {
        let text = |name: &str, licence: &str| (name.to_owned(), licence.to_owned());
        let texts = vec![
            text("a 1", "You may\npass it on."),
            text("b 1", "Keep it."),
            text("c 1", "You may pass\nit on."),
        ];
        assert_eq!(grouped(texts), [text("a 1, c 1", "You may\npass it on."), text("b 1", "Keep it.")]);
    }
}
