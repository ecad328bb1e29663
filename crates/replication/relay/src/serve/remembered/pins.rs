//! Remembers the form that the relay chose for each client. A client keeps its form, even after a restart of either
//! side or an upgrade of its driver, since its coordinates are valid in that form only.
//!
//! ```text
//! relay.forms      FORM ACCOUNT/UUID             a line each; without a server uuid: ACCOUNT/program_name
//!                  FORM ACCOUNT/sha256:HASH      of ACCOUNT/program_name, where that is long
//! ```
//!
//! Lines are in the order of their last use. Clients choose their own names, so both a key's length and the number of
//! keys are bounded. When there are too many, the account with the most keys loses its least recently used one. So no
//! account can evict another account's replicas.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use binlogz_relay_log::{Form, LinesFile};
use binlogz_store::Storage;
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::serve::remembered::recent::Recent;

const NAME: &str = "relay.forms";
/// More clients than we remember: each chooses its own uuid or program name.
const PINS_MAX: usize = 10_000;
/// Bytes of a key: a server's longest account name, a uuid or a hash, and some slack.
const KEY_SIZE_MAX: usize = 160;
/// Bytes of an account's name before a hash; a server's has 32 characters at most.
const ACCOUNT_SIZE_MAX: usize = KEY_SIZE_MAX - "/sha256:".len() - 64;

#[derive(Debug)]
pub(crate) struct Pins {
    file: LinesFile,
    /// Never more than [`PINS_MAX`].
    forms: Mutex<Recent<String, Form>>,
}

impl Pins {
    /// Reads the stored forms.
    pub(crate) fn open(storage: &Arc<dyn Storage>) -> Result<Self> {
        let file = LinesFile { storage: Arc::clone(storage), name: NAME, expected: "FORM CLIENT" };
        let mut forms = Recent::new();
        file.read(|form, client| {
            forms.put(bounded(client), Form::of_name(form)?);
            if forms.len() > 2 * PINS_MAX {
                shrink(&mut forms);
            }
            Some(())
        })?;
        shrink(&mut forms);
        Ok(Pins { file, forms: Mutex::new(forms) })
    }

    /// The form chosen for a client.
    pub(crate) fn known(&self, account: &str, who: &str) -> Option<Form> {
        self.forms.lock().get(&key_of(account, who)).copied()
    }

    /// A client's form; if it has none yet, `decided`, which it then keeps.
    pub(crate) fn form(&self, account: &str, who: &str, decided: Form) -> Result<Form> {
        let key = key_of(account, who);
        let mut forms = self.forms.lock();
        if let Some(form) = forms.touch(&key) {
            return Ok(*form);
        }
        let mut next = forms.clone();
        next.put(key, decided);
        shrink(&mut next);
        // When the client reconnects, it must not get another form because of a crash: only what is written counts.
        self.file.write(next.in_order().into_iter().map(|(key, form)| format!("{} {key}", form.name())))?;
        *forms = next;
        Ok(decided)
    }
}

fn key_of(account: &str, who: &str) -> String {
    bounded(&format!("{account}/{who}"))
}

/// A key as it is stored: on one line, and no longer than [`KEY_SIZE_MAX`]. Applying it to its own result changes
/// nothing.
fn bounded(key: &str) -> String {
    let key: String = key.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if key.len() <= KEY_SIZE_MAX {
        return key;
    }
    let hash: String = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let account = account_of(&key);
    let end = (0..=ACCOUNT_SIZE_MAX).rev().find(|end| account.is_char_boundary(*end)).unwrap_or_default();
    let account = account.get(..end).unwrap_or_default();
    format!("{account}/sha256:{hash}")
}

fn account_of(key: &str) -> &str {
    key.split_once('/').map_or(key, |(account, _)| account)
}

/// Removes those over the limit.
fn shrink(forms: &mut Recent<String, Form>) {
    let too_many = forms.len().saturating_sub(PINS_MAX);
    let mut accounts: HashMap<&str, VecDeque<&String>> = HashMap::new();
    for (key, _) in forms.in_order() {
        accounts.entry(account_of(key)).or_default().push_back(key);
    }
    let mut removed = Vec::new();
    while removed.len() < too_many {
        let most = accounts.values_mut().max_by_key(|keys| keys.len());
        let Some(oldest) = most.and_then(VecDeque::pop_front) else { break };
        removed.push(oldest.clone());
    }
    removed.iter().for_each(|key| forms.remove(key));
}

#[cfg(test)]
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

    fn size(storage: &Arc<dyn Storage>) -> u64 {
        storage.open(NAME, false).unwrap().size().unwrap()
    }

    /// Larger than the file can be.
    const FILE_SIZE_MAX: usize = PINS_MAX * (KEY_SIZE_MAX + "uncompressed \n".len());

    #[test]
    fn whatever_clients_are_called_the_file_can_be_read_back() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let pins = Pins::open(&storage).unwrap();
        let long = "p".repeat(60 << 10);
        let names: Vec<String> = ["", " ", "/", "\n", "\r", "a\nb c", "\u{85}\u{2028}\0", "é", "\u{fffd}"]
            .into_iter()
            .map(str::to_owned)
            .chain((0..40).map(|last| format!("{long}{last}")))
            .chain(
                (KEY_SIZE_MAX - 10..KEY_SIZE_MAX + 10)
                    .map(|size| "é".repeat(size / 2) + &"x".repeat(size % 2)),
            )
            .collect();
        for account in ["repl", "re/pl", "", &"é".repeat(1000)] {
            for (index, who) in names.iter().enumerate() {
                let first = Form::ALL[index % 3];
                let form = pins.form(account, who, first).unwrap();
                assert_eq!(pins.form(account, who, Form::ALL[(index + 1) % 3]).unwrap(), form);
                let again = Pins::open(&storage).unwrap();
                assert_eq!(again.form(account, who, Form::ALL[(index + 1) % 3]).unwrap(), form, "{who:.80?}");
            }
        }
        assert!(size(&storage) < 100_000, "{}", size(&storage));
    }

    #[test]
    fn a_reader_with_many_names_fills_neither_the_file_nor_other_accounts() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        // As if all but the last few existed already: each new one is written.
        let lines = (0..PINS_MAX - 5).map(|n| format!("compressed hostile/{n:0>140}\n"));
        let text: String = ["received repl/old\n".to_owned()].into_iter().chain(lines).collect();
        storage::replace(storage.as_ref(), NAME, text.as_bytes()).unwrap();
        let pins = Pins::open(&storage).unwrap();
        pins.form("hostile", &format!("{:0>140}", 3), Form::Received).unwrap();
        for n in 0..20 {
            pins.form("hostile", &format!("late {n}"), Form::Uncompressed).unwrap();
        }
        let pins = Pins::open(&storage).unwrap();
        let forms = pins.forms.lock().clone();
        assert_eq!(forms.len(), PINS_MAX);
        assert!(size(&storage) <= FILE_SIZE_MAX as u64);
        assert_eq!(forms.get(&"repl/old".to_owned()), Some(&Form::Received), "another account's");
        // The oldest of the hostile ones are gone, except the one that was used since.
        let there = |n: usize| forms.get(&format!("hostile/{n:0>140}")).is_some();
        assert_eq!(
            [0, 1, 2, 3, 4, 15, 16, 17].map(there),
            [false, false, false, true, false, false, false, true]
        );
    }

    #[test]
    fn a_file_of_an_earlier_version_that_grew_beyond_its_own_limit_is_read() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        // 1,120 program names of 60 KiB were more than the 64 MiB that the earlier version read.
        let name = |n: usize| format!("{n:0>61440}");
        let text: String = (0..1120).map(|n| format!("compressed repl/{}\n", name(n))).collect();
        assert!(text.len() > 64 << 20);
        storage::replace(storage.as_ref(), NAME, text.as_bytes()).unwrap();
        let pins = Pins::open(&storage).unwrap();
        for n in [0, 1, 1119] {
            assert_eq!(pins.form("repl", &name(n), Form::Uncompressed).unwrap(), Form::Compressed, "{n}");
        }
        pins.form("repl", "another", Form::Uncompressed).unwrap();
        assert!(size(&storage) < 1 << 20);
        assert_eq!(
            Pins::open(&storage).unwrap().form("repl", &name(7), Form::Received).unwrap(),
            Form::Compressed
        );
    }
}
