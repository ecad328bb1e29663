//! Which form a client was served first where the relay decided it: it stays with that, also after a restart of either
//! and after an upgrade of its driver, since its coordinates mean something in that form only.
//!
//! ```text
//! relay.forms      FORM ACCOUNT/UUID        a line each; without a server uuid: ACCOUNT/program_name
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::form::Form;
use crate::relay::lock;

const NAME: &str = "relay.forms";
/// More clients than are remembered: each has chosen its own uuid or program name.
const PINS_MAX: usize = 10_000;

/// Who gets what.
#[derive(Debug)]
pub(crate) struct Pins {
    path: PathBuf,
    forms: Mutex<BTreeMap<String, Form>>,
}

impl Pins {
    /// Those of a directory.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::io(format!("read {}", path.display()))(error)),
        };
        let pin = |line: &str| {
            let (form, key) = line.split_once(' ')?;
            Some((key.to_owned(), Form::of_name(form)?))
        };
        let forms = text
            .lines()
            .map(|line| {
                let unfit = || Error::Refused(format!("{}: {line:?}, expected FORM CLIENT", path.display()));
                pin(line).ok_or_else(unfit)
            })
            .collect::<Result<_>>()?;
        Ok(Pins { path, forms: Mutex::new(forms) })
    }

    /// The form of a client; `decided`, and from now on, if it has none yet.
    pub(crate) fn form(&self, account: &str, who: &str, decided: Form) -> Result<Form> {
        let key: String = format!("{account}/{who}")
            .chars()
            .map(|letter| if letter.is_control() { '?' } else { letter })
            .collect();
        let mut forms = lock(&self.forms);
        if let Some(form) = forms.get(&key) {
            return Ok(*form);
        }
        if forms.len() >= PINS_MAX {
            return Ok(decided);
        }
        forms.insert(key, decided);
        let text: String = forms.iter().map(|(key, form)| format!("{} {key}\n", form.name())).collect();
        let failed = || Error::io(format!("write {}", self.path.display()));
        let new = self.path.with_extension("forms.new");
        let write = || {
            fs::write(&new, &text)?;
            fs::File::open(&new)?.sync_all()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(failed())?;
        Ok(decided)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_client_keeps_its_form() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path()).unwrap();
        assert_eq!(pins.form("repl", "a b", Form::Compressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("repl", "a b", Form::Uncompressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("repl", "c\nd", Form::Uncompressed).unwrap(), Form::Uncompressed);
        let pins = Pins::open(folder.path()).unwrap();
        assert_eq!(pins.form("repl", "a b", Form::Uncompressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("other", "a b", Form::Uncompressed).unwrap(), Form::Uncompressed);
        fs::write(folder.path().join(NAME), "zipped repl/x\n").unwrap();
        assert!(Pins::open(folder.path()).unwrap_err().to_string().contains("expected FORM CLIENT"));
    }
}
