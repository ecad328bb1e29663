//! Names and passwords. A wrong name takes as long to find as a wrong password.

use ring::digest::{SHA256, digest};
use subtle::{Choice, ConstantTimeEq};

/// The names that may log in, with digests of their passwords.
#[derive(Default)]
pub struct FlightAccounts(Vec<Account>);

/// Digests have one length, so comparing them tells nothing of the lengths of secrets.
struct Account {
    user: [u8; 32],
    password: [u8; 32],
}

impl std::fmt::Debug for FlightAccounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").field("count", &self.0.len()).finish_non_exhaustive()
    }
}

fn digest_of(text: &[u8]) -> [u8; 32] {
    // SHA-256 has 32 bytes.
    digest(&SHA256, text).as_ref().try_into().unwrap_or_default()
}

impl FlightAccounts {
    /// Adds one; false: there is one of this name, or the password is empty.
    pub fn add(&mut self, user: &str, password: &str) -> bool {
        let account = Account { user: digest_of(user.as_bytes()), password: digest_of(password.as_bytes()) };
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

    /// Whether one of them has this name and password.
    pub(crate) fn has(&self, user: &str, password: &str) -> bool {
        let user = digest_of(user.as_bytes());
        let password = digest_of(password.as_bytes());
        let found = self.0.iter().fold(Choice::from(0), |found, account| {
            found | (account.user.ct_eq(&user) & account.password.ct_eq(&password))
        });
        found.into()
    }
}
