//! Configuration and key files of the proxy: mistakes end it before it listens.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::Folder;

const FILE: &str = r#"
[proxy]
listen = ["127.0.0.1:0"]

[proxy.reports]
listen = "127.0.0.1:0"
keys = "radio.keys"

[relay]
steering = "rnf"
"#;

#[test]
fn a_mistake_in_a_file_is_one_line_with_file_key_and_allowed_values() {
    let folder = Folder::new();
    let secret = "0f".repeat(32);
    folder.write("proxy.toml", FILE);
    let fails = |expected: &str| {
        let ended = folder.run(&["proxy", "proxy.toml"]);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(expected), "{}", ended.err);
        assert!(!ended.err.contains(&secret), "the error shows the secret");
    };
    fails("radio.keys");
    folder.write("radio.keys", format!("1 {secret} 10.0.0.0/24\n"));
    let mode =
        |mode| fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    fails("radio.keys: other users can access the keys (mode 640): chmod 600");
    mode(0o600);
    folder.write("radio.keys", format!("1 {secret}0 10.0.0.0/24\n"));
    fails("radio.keys: line 1: the secret is not 64 hexadecimal digits");
    folder.write("proxy.toml", FILE.replace("\"rnf\"", "{ kind = \"rnf\", gain = 2.5 }"));
    fails("proxy.toml: relay.steering.gain: 2.5 is not from 0 to below 2");
    folder.write("proxy.toml", FILE.replace("[\"127.0.0.1:0\"]", "[\"0.0.0.0:0\"]"));
    folder.write("radio.keys", format!("1 {secret} 10.0.0.0/24\n"));
    fails("proxy.toml: proxy.listen: 0.0.0.0:0 can be reached from other machines");
}
