//! Output files that grow under their final name.

use std::fs::File;
use std::path::Path;

use crate::place::Place;
use crate::{Folders, WriteError};

/// Opens an output file that grows under its final name, so that the user can watch it grow. Earlier contents are
/// removed.
///
/// # Errors
/// Fails if the file cannot be created, or another user has planted a link or file on its path.
pub fn create_in_place(target: &Path) -> Result<File, WriteError> {
    let open = || {
        let place = Place::find(target, Folders::Existing)?;
        if place.is_special() { place.open_special() } else { place.create_emptied() }
    };
    open().map_err(|error| WriteError::new(target, error))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn the_file_behind_own_links_is_emptied_and_filled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("own"), "old text").unwrap();
        symlink(at("own"), at("link")).unwrap();
        create_in_place(&at("link")).unwrap().write_all(b"new").unwrap();
        create_in_place(&at("fresh")).unwrap().write_all(b"new").unwrap();
        assert_eq!([at("own"), at("fresh")].map(|path| fs::read(path).unwrap()), [b"new", b"new"]);
        create_in_place(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn what_takes_the_name_after_the_look_is_neither_followed_nor_filled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(at("precious"), "as it was").unwrap();
        let place = Place::find(&at("log"), Folders::Existing).unwrap();
        symlink("precious", at("log")).unwrap();
        assert!(place.create_emptied().unwrap_err().to_string().starts_with("Too many levels"));
        fs::remove_file(at("log")).unwrap();
        fs::hard_link(at("precious"), at("log")).unwrap();
        assert!(place.create_emptied().unwrap_err().to_string().ends_with("has another name"));
        fs::remove_file(at("log")).unwrap();
        assert!(Command::new("mkfifo").arg(at("log")).status().unwrap().success());
        // Opening a pipe must neither wait for a reader nor write.
        place.create_emptied().unwrap_err();
        assert_eq!(fs::read(at("precious")).unwrap(), b"as it was");
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a skipped test says why")]
    fn links_swapped_in_and_out_never_lead_to_another_file() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can make links of another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(at("precious"), "as it was").unwrap();
        fs::write(at("theirs"), "old").unwrap();
        lchown(at("theirs"), Some(65534), None).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    symlink("precious", at("next")).unwrap();
                    lchown(at("next"), Some(65534), None).unwrap();
                    fs::rename(at("next"), at("log")).unwrap();
                    let _ = fs::remove_file(at("log"));
                }
            });
            for _ in 0..2_000 {
                // The file is refused or created: in both cases no other file changes.
                let _ = create_in_place(&at("log"));
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read(at("precious")).unwrap(), b"as it was");
        let said = create_in_place(&at("theirs")).unwrap_err().to_string();
        assert!(said.ends_with("theirs: cannot be written: it belongs to another user"), "{said}");
        assert_eq!(fs::read(at("theirs")).unwrap(), b"old");
    }
}
