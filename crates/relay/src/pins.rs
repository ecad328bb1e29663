//! Which form a client was served first where the relay decided it: it stays with that, also after a restart of either
//! and after an upgrade of its driver, since its coordinates mean something in that form only.
//!
//! ```text
//! relay.forms      FORM ACCOUNT/UUID        a line each; without a server uuid: ACCOUNT/program_name
//! ```

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use binlogz_store::{Storage, storage};

use crate::error::{Error, Result};
use crate::form::Form;
use crate::relay::lock;

const NAME: &str = "relay.forms";
/// More clients than are remembered: each has chosen its own uuid or program name.
const PINS_MAX: usize = 10_000;
/// Each of them, with its account and program name.
const SIZE_MAX: u64 = 64 << 20;

/// Who gets what.
#[derive(Debug)]
pub(crate) struct Pins {
    storage: Arc<dyn Storage>,
    forms: Mutex<BTreeMap<String, Form>>,
}

impl Pins {
    /// Those that are kept there.
    pub(crate) fn open(storage: &Arc<dyn Storage>) -> Result<Self> {
        let file = storage.open(NAME, false);
        let bytes = match file.and_then(|file| storage::read_all(file.as_ref(), SIZE_MAX)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io(format!("read {NAME}"))(error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        let pin = |line: &str| {
            let (form, key) = line.split_once(' ')?;
            Some((key.to_owned(), Form::of_name(form)?))
        };
        let forms = text
            .lines()
            .map(|line| {
                let unfit = || Error::Refused(format!("{NAME}: {line:?}, expected FORM CLIENT"));
                pin(line).ok_or_else(unfit)
            })
            .collect::<Result<_>>()?;
        Ok(Pins { storage: Arc::clone(storage), forms: Mutex::new(forms) })
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
        forms.insert(key.clone(), decided);
        let text: String = forms.iter().map(|(key, form)| format!("{} {key}\n", form.name())).collect();
        if let Err(error) = storage::replace(self.storage.as_ref(), NAME, text.as_bytes()) {
            // Who comes again must not get what a crash would forget.
            forms.remove(&key);
            return Err(Error::io(format!("write {NAME}"))(error));
        }
        Ok(decided)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn a_client_keeps_its_form() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let pins = Pins::open(&storage).unwrap();
        assert_eq!(pins.form("repl", "a b", Form::Compressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("repl", "a b", Form::Uncompressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("repl", "c\nd", Form::Uncompressed).unwrap(), Form::Uncompressed);
        let pins = Pins::open(&storage).unwrap();
        assert_eq!(pins.form("repl", "a b", Form::Uncompressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("other", "a b", Form::Uncompressed).unwrap(), Form::Uncompressed);
        storage::replace(storage.as_ref(), NAME, b"zipped repl/x\n").unwrap();
        assert!(Pins::open(&storage).unwrap_err().to_string().contains("expected FORM CLIENT"));
    }
}
