//! Checks dependencies: each has a licence that `deny.toml` allows and comes from an allowed source.

use std::path::Path;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::Problems;
use crate::cargo::{metadata, packages, text};
use crate::source::read;

/// All manifests with a lock file.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "fuzz/Cargo.toml", "benches/criterion/Cargo.toml"];

/// Compares cargo's dependencies of every manifest with the policy.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let policy = Policy::read(root)?;
    let mut problems = Problems::new();
    for manifest in MANIFESTS {
        let metadata = metadata(root, manifest, &policy.options())?;
        let packages = packages(&metadata)?.iter();
        let found = packages.flat_map(|package| policy.violations(root, package));
        problems.extend(found.map(|problem| format!("{manifest}: {problem}")));
    }
    Ok(problems)
}

/// Contents of `deny.toml`.
pub(crate) struct Policy {
    /// Platforms for which ackclock is built.
    pub(crate) targets: Vec<String>,
    allowed: Vec<Licensee>,
    registries: Vec<String>,
}

impl Policy {
    /// Reads `deny.toml` under `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        Self::parse(&read(root, Path::new("deny.toml"))?).map_err(|error| format!("deny.toml: {error}"))
    }

    fn parse(file: &str) -> Result<Self, String> {
        let table: toml::Table = file.parse().map_err(|error| format!("{error}"))?;
        let list = |section: &str, key: &str| -> Result<Vec<String>, String> {
            let array =
                table.get(section).and_then(|section| section.get(key)).and_then(toml::Value::as_array);
            let strings = array.map(|array| array.iter().filter_map(toml::Value::as_str).map(str::to_owned));
            strings.map(Iterator::collect).ok_or_else(|| format!("[{section}] has no list `{key}`"))
        };
        let licensee = |name: &String| Licensee::parse(name).map_err(|error| format!("`{name}`: {error}"));
        Ok(Self {
            targets: list("graph", "targets")?,
            allowed: list("licenses", "allow")?.iter().map(licensee).collect::<Result<_, _>>()?,
            registries: list("sources", "allow-registry")?,
        })
    }

    /// Options that make cargo list dependencies for these platforms.
    pub(crate) fn options(&self) -> Vec<&str> {
        let platforms = self.targets.iter().flat_map(|target| ["--filter-platform", target]);
        ["--locked", "--all-features"].into_iter().chain(platforms).collect()
    }

    fn violations(&self, root: &Path, package: &Value) -> Problems {
        let Some(source) = package["source"].as_str() else {
            let ours = Path::new(text(&package["manifest_path"])).starts_with(root);
            let message = || format!("{} lies outside this repository", name(package));
            return if ours { Problems::new() } else { vec![message()] };
        };
        let known = source
            .strip_prefix("registry+")
            .is_some_and(|url| self.registries.iter().any(|known| known == url));
        let comes_from = (!known).then(|| format!("{} comes from {source}", name(package)));
        comes_from.into_iter().chain(self.refused(package)).collect()
    }

    /// Why the licence of `package` is not allowed; `None` if it is.
    fn refused(&self, package: &Value) -> Option<String> {
        let Some(licence) = package["license"].as_str() else {
            return Some(format!("{} names no licence", name(package)));
        };
        match Expression::parse_mode(licence, ParseMode::LAX) {
            Ok(expression) => {
                let allowed = expression
                    .evaluate(|asked| self.allowed.iter().any(|licensee| licensee.satisfies(asked)));
                (!allowed).then(|| {
                    format!("{} has the licence {licence}, which deny.toml does not allow", name(package))
                })
            }
            Err(error) => {
                Some(format!("{}: its licence `{licence}` cannot be read: {}", name(package), error.reason))
            }
        }
    }
}

/// Name and version of a package.
pub(crate) fn name(package: &Value) -> String {
    format!("{} {}", text(&package["name"]), text(&package["version"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CRATES: &str = "registry+https://github.com/rust-lang/crates.io-index";

    fn violations(package: &Value) -> Problems {
        let file = r#"
            graph.targets = ["x86_64-unknown-linux-gnu"]
            licenses.allow = ["MIT", "Apache-2.0 WITH LLVM-exception"]
            sources.allow-registry = ["https://github.com/rust-lang/crates.io-index"]
        "#;
        Policy::parse(file).unwrap().violations(Path::new("/here"), package)
    }

    fn licensed(licence: &Value) -> Problems {
        violations(&json!({"name": "a", "version": "1.0.0", "source": CRATES, "license": licence}))
    }

    #[test]
    fn one_allowed_licence_of_a_choice_is_enough_and_each_of_a_sum_is_needed() {
        for allowed in ["MIT", "MIT OR GPL-3.0-only", "GPL-3.0-only/MIT", "Apache-2.0 WITH LLVM-exception"] {
            assert!(licensed(&json!(allowed)).is_empty(), "{allowed}");
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0", "(MIT OR ISC) AND Zlib"] {
            let message = format!("a 1.0.0 has the licence {refused}, which deny.toml does not allow");
            assert_eq!(licensed(&json!(refused)), [message]);
        }
    }

    #[test]
    fn a_package_without_a_licence_is_named() {
        assert_eq!(licensed(&json!(null)), ["a 1.0.0 names no licence"]);
        assert!(licensed(&json!("my own"))[0].starts_with("a 1.0.0: its licence `my own` cannot be read"));
    }

    #[test]
    fn a_package_comes_from_the_registry_or_from_this_repository() {
        let from = |source: Value, manifest: &str| {
            violations(
                &json!({"name": "a", "version": "1.0.0", "source": source, "license": "MIT", "manifest_path": manifest}),
            )
        };
        assert!(from(json!(null), "/here/crates/a/Cargo.toml").is_empty());
        assert_eq!(from(json!(null), "/there/Cargo.toml"), ["a 1.0.0 lies outside this repository"]);
        assert_eq!(
            from(json!("git+https://example.org/a"), ""),
            ["a 1.0.0 comes from git+https://example.org/a"]
        );
        let other = "registry+https://example.org/index";
        assert_eq!(from(json!(other), ""), [format!("a 1.0.0 comes from {other}")]);
    }
}
