//! Passwords of a program's configuration: from a file that others can't read, or from the environment; never from the configuration
//! itself.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::Password;

/// More than any password.
const SIZE_MAX: u64 = 4096;
/// Reading or writing by users other than the owner and the group.
const OTHERS: u32 = 0o006;

/// The password from the place that the configuration names; `None`: it names none.
///
/// # Errors
///
/// The problem, without the password.
pub fn password(file: Option<&Path>, variable: Option<&str>) -> Result<Option<Password>, String> {
    let password = match (file, variable) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err("password_file and password_env: expected one of them".into()),
        (Some(path), None) => read(path).map_err(|error| format!("{}: {error}", path.display()))?,
        (None, Some(name)) => {
            std::env::var(name).map_err(|_| format!("password_env: the environment has no {name}"))?
        }
    };
    match password.is_empty() {
        true => Err("the password is empty".into()),
        false => Ok(Some(Password::new(password))),
    }
}

/// The file's first and only line.
fn read(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if metadata.permissions().mode() & OTHERS != 0 {
        return Err("others may read or write it: chmod o-rw".into());
    }
    let mut text = String::new();
    file.take(SIZE_MAX).read_to_string(&mut text).map_err(|error| error.to_string())?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    match line.contains('\n') {
        true => Err("has several lines, expected a password alone".into()),
        false => Ok(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_secret_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, "s3cr3t\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(password(Some(&path), None), Ok(Some(Password::new("s3cr3t"))));
        assert_eq!(password(None, None), Ok(None));
        let error = password(None, Some("BINLOGZ_NOT_SET")).unwrap_err();
        assert_eq!(error, "password_env: the environment has no BINLOGZ_NOT_SET");
        assert!(password(Some(&path), Some("PATH")).unwrap_err().contains("one of them"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = password(Some(&path), None).unwrap_err();
        assert!(error.ends_with("others may read or write it: chmod o-rw"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for (text, said) in [("\n", "is empty"), ("a\nb\n", "several lines")] {
            fs::write(&path, text).unwrap();
            assert!(password(Some(&path), None).unwrap_err().contains(said), "{text:?}");
        }
    }
}
