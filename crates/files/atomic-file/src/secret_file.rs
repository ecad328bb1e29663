//! Opens a file that holds a secret, such as a private key, if it is its owner's alone.
//!
//! As ssh does, a file of the user that runs the program is refused if its group or others may use it. The files of other users are
//! theirs to protect: a key of root's that a group may read is how distributions share one.

use std::error;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Use by the group and by others.
const OTHERS: u32 = 0o077;
/// All that a mode says of who may do what.
const MODE: u32 = 0o7777;

/// Opens a file that holds a secret.
///
/// # Errors
///
/// It can't be opened, or others may use it.
pub fn open_secret(path: &Path) -> Result<File, SecretFileError> {
    let file = File::open(path).map_err(SecretFileError::Io)?;
    let metadata = file.metadata().map_err(SecretFileError::Io)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    match metadata.is_file() && is_ours && metadata.mode() & OTHERS != 0 {
        true => Err(SecretFileError::Shared { path: path.to_owned(), mode: metadata.mode() & MODE }),
        false => Ok(file),
    }
}

/// The reason why a file with a secret is not read.
#[derive(Debug)]
pub enum SecretFileError {
    /// It can't be opened.
    Io(io::Error),
    /// It is no secret.
    Shared {
        /// The file.
        path: PathBuf,
        /// Who may use it.
        mode: u32,
    },
}

impl fmt::Display for SecretFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretFileError::Io(error) => error.fmt(f),
            SecretFileError::Shared { path, mode } => {
                let path = path.display();
                write!(f, "its mode is {mode:04o}: others may use it, expected 0600: chmod 600 {path}")
            }
        }
    }
}

impl error::Error for SecretFileError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            SecretFileError::Io(error) => error.source(),
            SecretFileError::Shared { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_that_others_may_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        assert!(matches!(open_secret(&path), Err(SecretFileError::Io(_))));
        fs::write(&path, "secret").unwrap();
        for mode in [0o600, 0o400, 0o700] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(open_secret(&path).is_ok(), "{mode:o}");
        }
        for bit in 0..6 {
            let mode = 0o600 | 1 << bit;
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = open_secret(&path).unwrap_err().to_string();
            let expected = format!(
                "its mode is {mode:04o}: others may use it, expected 0600: chmod 600 {}",
                path.display()
            );
            assert_eq!(error, expected);
        }
    }
}
