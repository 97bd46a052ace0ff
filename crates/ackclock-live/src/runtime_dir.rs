//! The private run-time folder of a user: no other user except root can create, read or replace files in it.
//!
//! All links of a user share the run-time folder, from all namespaces. File names must not depend on a process number
//! alone, because process numbers differ between process namespaces.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, geteuid};

/// Returns the run-time folder, and creates it if necessary: `/run/ackclock` for root; otherwise `ackclock` in the
/// user's session folder (`$XDG_RUNTIME_DIR`, `/run/user/UID`), or else `/tmp/ackclock-UID`.
///
/// # Errors
/// Fails if no folder can be created, or the last candidate belongs to or is open to another user.
pub fn private() -> io::Result<PathBuf> {
    let user = geteuid();
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for folder in candidates(user, env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)) {
        outcome = made(&folder, user).map(|()| folder);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Possible run-time folders, best first. Root has only one candidate, and its environment has no effect.
fn candidates(user: Uid, session: Option<PathBuf>) -> Vec<PathBuf> {
    let system = user.is_root().then(|| PathBuf::from("/run/ackclock"));
    let sessions = session.into_iter().chain([PathBuf::from(format!("/run/user/{user}"))]);
    let sessions = sessions
        .filter(|folder| folder.is_absolute() && check(folder, user).is_ok())
        .map(|folder| folder.join("ackclock"));
    let last = PathBuf::from(format!("/tmp/ackclock-{user}"));
    system.into_iter().chain(sessions).chain([last]).collect()
}

/// Creates the folder, or accepts an existing folder of this user.
fn made(folder: &Path, user: Uid) -> io::Result<()> {
    match DirBuilder::new().mode(PRIVATE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(named(folder, &error)),
        _ => check(folder, user),
    }
}

/// Checks that the path is a folder and not a symbolic link, belongs to this user, and is closed to other users.
fn check(folder: &Path, user: Uid) -> io::Result<()> {
    let found = fs::symlink_metadata(folder).map_err(|error| named(folder, &error))?;
    let why = if !found.is_dir() {
        "it is not a folder"
    } else if found.uid() != user.as_raw() {
        "it belongs to another user"
    } else if found.mode() & OTHERS != 0 {
        "it is open to other users"
    } else {
        return Ok(());
    };
    Err(named(folder, &io::Error::new(io::ErrorKind::PermissionDenied, why)))
}

fn named(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
}

const PRIVATE: u32 = 0o700;
const OTHERS: u32 = 0o077;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_is_made_for_its_user_alone_and_found_again() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("ackclock");
        for _ in 0..2 {
            made(&folder, geteuid()).unwrap();
            assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, PRIVATE);
        }
    }

    #[test]
    fn what_another_user_made_before_is_not_taken() {
        let around = tempfile::tempdir().unwrap();
        let at = |name: &str| around.path().join(name);
        made(&at("own"), geteuid()).unwrap();
        symlink(at("own"), at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o750)).unwrap();
        for (name, expected) in [
            ("link", "it is not a folder"),
            ("file", "it is not a folder"),
            ("open", "it is open to other users"),
        ] {
            let error = made(&at(name), geteuid()).unwrap_err().to_string();
            assert_eq!(error, format!("{}: {expected}", at(name).display()));
        }
        let stranger = Uid::from_raw(geteuid().as_raw() + 1);
        let error = made(&at("own"), stranger).unwrap_err().to_string();
        assert!(error.ends_with("it belongs to another user"), "{error}");
    }

    #[test]
    fn a_session_counts_only_where_it_is_the_users_own() {
        let session = tempfile::tempdir().unwrap();
        let open_to = |mode| fs::set_permissions(session.path(), fs::Permissions::from_mode(mode)).unwrap();
        open_to(PRIVATE);
        let within = session.path().join("ackclock");
        let offered = || Some(session.path().to_owned());
        assert!(candidates(geteuid(), offered()).contains(&within));
        let stranger = Uid::from_raw(geteuid().as_raw() + 1);
        assert!(!candidates(stranger, offered()).contains(&within));
        open_to(0o755);
        assert!(!candidates(geteuid(), offered()).contains(&within));
        assert!(candidates(stranger, None).ends_with(&[format!("/tmp/ackclock-{stranger}").into()]));
    }
}
