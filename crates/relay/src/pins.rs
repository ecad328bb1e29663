//! Which form a client was served first where the relay decided it: it stays with that, also after a restart of either
//! and after an upgrade of its driver, since its coordinates mean something in that form only.
//!
//! ```text
//! relay.forms      FORM ACCOUNT/UUID        a line each; without a server uuid: ACCOUNT/program_name
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use binlogz_store::Storage;

use crate::error::Result;
use crate::form::Form;
use crate::lines::LinesFile;
use crate::relay::lock;

const NAME: &str = "relay.forms";
/// More clients than are remembered: each has chosen its own uuid or program name.
const PINS_MAX: usize = 10_000;
/// Each of them, with its account and program name.
const SIZE_MAX: u64 = 64 << 20;

/// Who gets what.
#[derive(Debug)]
pub(crate) struct Pins {
    file: LinesFile,
    forms: Mutex<BTreeMap<String, Form>>,
}

impl Pins {
    /// Those that are kept there.
    pub(crate) fn open(storage: &Arc<dyn Storage>) -> Result<Self> {
        let storage = Arc::clone(storage);
        let file = LinesFile { storage, name: NAME, size_max: SIZE_MAX, expected: "FORM CLIENT" };
        let forms = file.read(|client, form| Some((client.to_owned(), Form::of_name(form)?)))?;
        Ok(Pins { file, forms: Mutex::new(forms) })
    }

    /// The form that was decided for a client.
    pub(crate) fn known(&self, account: &str, who: &str) -> Option<Form> {
        lock(&self.forms).get(&key_of(account, who)).copied()
    }

    /// The form of a client; `decided`, and from now on, if it has none yet.
    pub(crate) fn form(&self, account: &str, who: &str, decided: Form) -> Result<Form> {
        let key = key_of(account, who);
        let mut forms = lock(&self.forms);
        if let Some(form) = forms.get(&key) {
            return Ok(*form);
        }
        if forms.len() >= PINS_MAX {
            return Ok(decided);
        }
        forms.insert(key.clone(), decided);
        if let Err(error) = self.file.write(&forms, |key, form| format!("{} {key}", form.name())) {
            // Who comes again must not get what a crash would forget.
            forms.remove(&key);
            return Err(error);
        }
        Ok(decided)
    }
}

fn key_of(account: &str, who: &str) -> String {
    let key = format!("{account}/{who}");
    key.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_store::{MemoryStorage, storage};

    use super::*;

    #[test]
    fn a_client_keeps_its_form() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let pins = Pins::open(&storage).unwrap();
        assert_eq!(pins.form("repl", "a b", Form::Compressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("repl", "a b", Form::Uncompressed).unwrap(), Form::Compressed);
        assert_eq!((pins.known("repl", "a b"), pins.known("repl", "c d")), (Some(Form::Compressed), None));
        assert_eq!(pins.form("repl", "c\nd", Form::Uncompressed).unwrap(), Form::Uncompressed);
        let pins = Pins::open(&storage).unwrap();
        assert_eq!(pins.form("repl", "a b", Form::Uncompressed).unwrap(), Form::Compressed);
        assert_eq!(pins.form("other", "a b", Form::Uncompressed).unwrap(), Form::Uncompressed);
        storage::replace(storage.as_ref(), NAME, b"zipped repl/x\n").unwrap();
        assert!(Pins::open(&storage).unwrap_err().to_string().contains("expected FORM CLIENT"));
    }
}
