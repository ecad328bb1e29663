//! Names and passwords. A wrong name takes as long to find as a wrong password.
//!
//! Digests are compared where a client sends its password. Where it proves that it knows it, as MySQL's clients do, the proof is
//! made of the password itself, so that is here too; nothing prints it.

use ring::digest::{SHA256, digest};
use subtle::{Choice, ConstantTimeEq};

/// The names that may log in, with their passwords.
#[derive(Default, Clone)]
pub struct QueryAccounts(Vec<Account>);

/// Digests have one length, so comparing them tells nothing of the lengths of secrets.
#[derive(Clone)]
struct Account {
    user: [u8; 32],
    password: [u8; 32],
    /// Both as they were given.
    plain: (String, String),
}

impl std::fmt::Debug for QueryAccounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryAccounts").field("count", &self.0.len()).finish_non_exhaustive()
    }
}

fn digest_of(text: &[u8]) -> [u8; 32] {
    // SHA-256 has 32 bytes.
    digest(&SHA256, text).as_ref().try_into().unwrap_or_default()
}

impl QueryAccounts {
    /// Adds one; false: there is one of this name, or the password is empty.
    pub fn add(&mut self, user: &str, password: &str) -> bool {
        let plain = (user.to_owned(), password.to_owned());
        let account =
            Account { user: digest_of(user.as_bytes()), password: digest_of(password.as_bytes()), plain };
        if password.is_empty() || self.0.iter().any(|known| known.user == account.user) {
            return false;
        }
        self.0.push(account);
        true
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The names and their passwords, for proofs that are made of them.
    pub fn plain(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|Account { plain: (user, password), .. }| (user.as_str(), password.as_str()))
    }

    /// Whether one of them has this name and password.
    pub fn has(&self, user: &str, password: &str) -> bool {
        let user = digest_of(user.as_bytes());
        let password = digest_of(password.as_bytes());
        let found = self.0.iter().fold(Choice::from(0), |found, account| {
            found | (account.user.ct_eq(&user) & account.password.ct_eq(&password))
        });
        found.into()
    }
}
