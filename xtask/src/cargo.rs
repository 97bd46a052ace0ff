//! Queries cargo about manifests.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// `cargo metadata` of `manifest` (relative to `root`) with further options.
pub(crate) fn metadata(root: &Path, manifest: &str, options: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--manifest-path", manifest])
        .args(options)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Packages listed by `cargo metadata`.
pub(crate) fn packages(metadata: &Value) -> Result<&[Value], String> {
    metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| "cargo metadata names no packages".to_owned())
}

/// A JSON string; empty if missing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
