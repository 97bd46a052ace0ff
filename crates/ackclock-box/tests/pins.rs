//! Folders of pins that another user planted, owns or can change; the file system of the pins is open to all users here.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use ackclock_box::clip::{Clip, Pins};
use ackclock_link::Side;

use crate::inside::inside;

const PINS: &str = "/sys/fs/bpf/ackclock";

/// Folder of another user's files, in a BPF file system too, so that a pin could be made in it.
fn victim() -> PathBuf {
    let folder = PathBuf::from("/sys/fs/bpf/victim");
    DirBuilder::new().mode(0o700).create(&folder).unwrap();
    symlink("target", folder.join("precious")).unwrap();
    folder
}

/// Whether nothing in the victim's folder was removed or added.
fn is_untouched(victim: &Path) -> bool {
    let names: Vec<_> = fs::read_dir(victim).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names == ["precious"]
}

/// What every way to the pins says.
fn refusals() -> Vec<String> {
    let of = Pins::of("lo").and_then(|pins| {
        pins.remove()?;
        pins.is_attached()?;
        Clip::attach(&pins, Side::Mobile, false).map(drop)
    });
    vec![of.unwrap_err().to_string()]
}

fn make(path: &Path, mode: u32) {
    DirBuilder::new().mode(0o700).create(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_of_another_user_is_neither_used_nor_emptied() {
    if !inside("pins::a_folder_of_another_user_is_neither_used_nor_emptied") {
        return;
    }
    let (pins, victim) = (Path::new(PINS), victim());
    let refused = |expected: &str| {
        for said in refusals() {
            assert!(said.contains(expected), "{said} lacks {expected}");
        }
        assert!(is_untouched(&victim));
    };
    // A link in place of the folder.
    symlink(&victim, pins).unwrap();
    refused("ackclock: it is no folder");
    fs::remove_file(pins).unwrap();
    // The folder of another user, as well after its mode was changed.
    make(pins, 0o700);
    chown(pins, Some(65534), None).unwrap();
    refused("it belongs to user 65534, not to user 0");
    chown(pins, Some(0), Some(65534)).unwrap();
    for mode in [0o770, 0o1777, 0o702] {
        fs::set_permissions(pins, Permissions::from_mode(mode)).unwrap();
        refused("other users can write in it");
    }
    fs::set_permissions(pins, Permissions::from_mode(0o700)).unwrap();
    // Links and folders of others below a folder that was open before.
    let own = pins.join(format!("{}:6", Pins::of("lo").unwrap().name()));
    symlink(&victim, &own).unwrap();
    refused("it is no folder");
    fs::remove_file(&own).unwrap();
    make(&own, 0o700);
    symlink(&victim, own.join("knobs")).unwrap();
    symlink("added", own.join("other")).unwrap();
    chown(&own, Some(65534), None).unwrap();
    refused("it belongs to user 65534");
    chown(&own, Some(0), None).unwrap();
    // The links themselves are removed, not what they lead to.
    assert!(Pins::of("lo").unwrap().remove().unwrap());
    assert!(is_untouched(&victim) && !pins.exists());
}

/// Without the sticky bit, other users may move the folder of the pins away.
#[test]
fn a_file_system_in_which_others_may_move_the_pins_is_refused() {
    if !inside("pins::a_file_system_in_which_others_may_move_the_pins_is_refused") {
        return;
    }
    let (root, pins) = (Path::new("/sys/fs/bpf"), || Pins::of("lo").unwrap());
    for mode in [0o777, 0o775] {
        fs::set_permissions(root, Permissions::from_mode(mode)).unwrap();
        let refused = Pins::of("lo").unwrap_err().to_string();
        assert_eq!(
            refused,
            format!(
                "/sys/fs/bpf: other users can write in it (mode 0{mode:o}); as root: chmod go-w /sys/fs/bpf"
            )
        );
    }
    fs::set_permissions(root, Permissions::from_mode(0o1777)).unwrap();
    let (_clip, taken_over) = Clip::attach(&pins(), Side::Mobile, false).unwrap();
    assert!(!taken_over && pins().is_attached().unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(Path::new(PINS)), 0o700);
    assert!(pins().remove().unwrap() && !pins().is_attached().unwrap());
}
