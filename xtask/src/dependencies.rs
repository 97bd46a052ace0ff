//! Checks that crates depend on each other downwards only, according to the list in this file.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::Problems;
use crate::cargo::{metadata, packages, text};

/// Each crate with the crates directly below it. It may depend on those and on everything below them.
const HOUSE: &[(&str, &[&str])] = &[
    ("ackclock-core", &[]),
    ("ackclock-link", &["ackclock-core"]),
    ("ackclock-tcp", &["ackclock-core"]),
    ("ackclock-import", &["ackclock-link"]),
    ("ackclock-radio", &["ackclock-import"]),
    ("ackclock-observe", &["ackclock-link"]),
    ("ackclock-edge", &["ackclock-observe", "ackclock-radio"]),
    ("ackclock-scenario", &["ackclock-edge", "ackclock-output", "ackclock-tcp"]),
    ("ackclock-exchange", &["ackclock-scenario"]),
    ("ackclock-live", &["ackclock-edge", "ackclock-netlink"]),
    ("ackclock-box", &["ackclock-edge", "ackclock-netlink"]),
    ("ackclock-c", &["ackclock-edge"]),
    ("ackclock-proxy", &["ackclock-edge", "ackclock-netlink"]),
    ("ackclock-netlink", &[]),
    ("ackclock-output", &[]),
    (
        "ackclock-cli",
        &["ackclock-box", "ackclock-exchange", "ackclock-live", "ackclock-output", "ackclock-proxy"],
    ),
    ("ackclock-py", &["ackclock-exchange", "ackclock-live", "ackclock-output"]),
    (TESTKIT, &[]),
    ("xtask", &[]),
];

/// Only tests may depend on it, in any crate.
const TESTKIT: &str = "ackclock-testkit";

/// Compares cargo's dependencies with the list.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let metadata = metadata(root, "Cargo.toml", &["--no-deps", "--offline"])?;
    let packages = packages(&metadata)?;
    Ok(packages.iter().flat_map(|package| violations(package, packages)).collect())
}

/// Development dependencies count too: a test that needs a higher crate belongs there.
fn violations(package: &Value, packages: &[Value]) -> Problems {
    let name = text(&package["name"]);
    let Some(below) = below(name) else {
        return vec![format!("{name} is not listed in xtask/src/dependencies.rs")];
    };
    let ours: BTreeSet<&str> = packages.iter().map(|package| text(&package["name"])).collect();
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let for_tests = |dependency: &Value| text(&dependency["name"]) == TESTKIT && dependency["kind"] == "dev";
    dependencies
        .iter()
        .filter(|dependency| !for_tests(dependency))
        .map(|dependency| text(&dependency["name"]))
        .filter(|dependency| ours.contains(dependency) && !below.contains(dependency))
        .map(|dependency| format!("{name} must not depend on {dependency}"))
        .collect()
}

/// All crates that a crate may use.
fn below(name: &str) -> Option<BTreeSet<&'static str>> {
    let (_, direct) = HOUSE.iter().find(|(known, _)| *known == name)?;
    let mut all = BTreeSet::new();
    for &lower in *direct {
        all.insert(lower);
        all.extend(below(lower)?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_live_world_never_uses_our_tcp() {
        let live = json!({"name": "ackclock-live", "dependencies": [{"name": "ackclock-tcp"}, {"name": "ackclock-core"}, {"name": "libc"}]});
        let packages = [live.clone(), json!({"name": "ackclock-tcp"}), json!({"name": "ackclock-core"})];
        assert_eq!(violations(&live, &packages), ["ackclock-live must not depend on ackclock-tcp"]);
    }

    #[test]
    fn what_tests_share_stays_with_tests() {
        let use_it =
            |kind| json!({"name": "ackclock-tcp", "dependencies": [{"name": TESTKIT, "kind": kind}]});
        let packages = [json!({"name": "ackclock-tcp"}), json!({"name": TESTKIT})];
        assert!(violations(&use_it(json!("dev")), &packages).is_empty());
        let message = "ackclock-tcp must not depend on ackclock-testkit";
        assert_eq!(violations(&use_it(json!(null)), &packages), [message]);
    }

    #[test]
    fn an_unknown_crate_must_be_given_a_place() {
        assert_eq!(violations(&json!({"name": "ackclock-new"}), &[]).len(), 1);
    }

    #[test]
    fn nobody_uses_the_command_or_the_python_module() {
        for (name, _) in HOUSE {
            let below = below(name).unwrap();
            assert!(!below.contains("ackclock-cli") && !below.contains("ackclock-py"), "{name}");
        }
    }
}
