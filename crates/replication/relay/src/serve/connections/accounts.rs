//! The accounts that may log in: from where, how many connections at a time, and with which rights.
//!
//! An account is looked up by name among those that may connect from the client's address: from elsewhere it does not
//! exist. We know its password, so the fast authentication always suffices (see `binlogz-wire`).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use binlogz_relay_forms::MaskedForm;
use binlogz_wire::ServerError;
use binlogz_wire::auth::Password;
use binlogz_wire::session::LoginAccount;
use ipnet::IpNet;

use crate::error::{Error, Result};
use crate::serve::connections::client_form::FormPolicy;
use crate::serve::events::profiles::ReaderProfile;
use crate::serve::events::row_metadata::RowMetadata;
use crate::serve::events::table_choice::TableChoice;

/// An account of the relay's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountOptions {
    /// The account's name.
    pub user: String,
    /// The name of the only source that it may read; `None`: it says which one when it logs in, if there are several.
    pub source: Option<String>,
    /// The account's password, which can't be empty.
    pub password: Password,
    /// The form it is served if it names no file; by default the relay's own default.
    pub form: Option<FormPolicy>,
    /// Concurrent connections; 0 means any number.
    pub connections_max: usize,
    /// The addresses it may connect from; empty means all.
    pub from: Vec<IpNet>,
    /// Whether it must connect over TLS.
    pub require_tls: bool,
    /// Whether it may purge files, and stop and start receiving.
    pub admin: bool,
    /// Whether collations that MySQL 8.0 introduced are replaced by ones that older servers know, whatever the profile says.
    pub older_collations: bool,
    /// The profile of its clients; by default what each says of itself decides.
    pub reads: Option<&'static ReaderProfile>,
    /// How much it is sent of the metadata of tables; by default its profile decides. Unless that is all, it reads the uncompressed form.
    pub row_metadata: Option<RowMetadata>,
    /// The tables whose rows it is sent. Unless these are all, it reads the uncompressed form.
    pub tables: TableChoice,
    /// The form that leaves by a policy, which is all that it reads; `None`: it reads any form, as it is. With it, no statement is forwarded.
    pub exits: Option<Arc<MaskedForm>>,
    /// User and password at the source, for statements that are forwarded; by default the account's own.
    pub source_login: Option<(String, Password)>,
}

impl AccountOptions {
    /// An account without limits or rights beyond reading.
    pub fn new(user: String, password: Password) -> Self {
        AccountOptions {
            user,
            source: None,
            password,
            form: None,
            connections_max: 0,
            from: Vec::new(),
            require_tls: false,
            admin: false,
            older_collations: false,
            reads: None,
            row_metadata: None,
            tables: TableChoice::default(),
            exits: None,
            source_login: None,
        }
    }

    /// User and password at the source.
    pub(crate) fn source_login(&self) -> (&str, &Password) {
        match &self.source_login {
            Some((user, password)) => (user, password),
            None => (&self.user, &self.password),
        }
    }

    fn may_come_from(&self, address: IpAddr) -> bool {
        self.from.is_empty() || self.from.iter().any(|network| network.contains(&address))
    }
}

#[derive(Debug)]
pub(crate) struct RelayAccounts(Vec<Arc<Entry>>);

#[derive(Debug)]
struct Entry {
    options: AccountOptions,
    connected: AtomicUsize,
}

/// A logged-in client, until dropped.
#[derive(Debug)]
pub(crate) struct LoggedInClient(Arc<Entry>);

impl RelayAccounts {
    pub(crate) fn new(accounts: Vec<AccountOptions>) -> Result<Self> {
        for (place, account) in accounts.iter().enumerate() {
            let user = &account.user;
            if account.password.is_empty() {
                return Err(Error::Refused(format!("account {user} has no password, and needs one")));
            }
            if accounts.iter().take(place).any(|other| other.user == *user) {
                return Err(Error::Refused(format!("account {user} is there twice")));
            }
        }
        let entry = |options| Arc::new(Entry { options, connected: AtomicUsize::new(0) });
        Ok(RelayAccounts(accounts.into_iter().map(entry).collect()))
    }

    /// Makes a list of these accounts in place of `others`: connections are still counted for accounts that have not changed.
    pub(crate) fn after(self, others: &RelayAccounts) -> RelayAccounts {
        let known = |entry: &Arc<Entry>| others.0.iter().find(|other| other.options == entry.options);
        RelayAccounts(self.0.into_iter().map(|entry| known(&entry).map_or(entry, Arc::clone)).collect())
    }

    /// The accounts that may log in from an address.
    pub(crate) fn at_address(&self, address: IpAddr) -> Vec<LoginAccount> {
        // A client on an IPv6 socket may still have an IPv4 address.
        let address = address.to_canonical();
        let fitting = self.0.iter().map(|entry| &entry.options);
        fitting
            .filter(|account| account.may_come_from(address))
            .map(|account| LoginAccount { user: account.user.clone(), password: account.password.clone() })
            .collect()
    }

    /// Why a login from an address was denied, for our log alone: the client may not learn which names there are.
    pub(crate) fn why_denied(&self, user: &str, address: IpAddr) -> &'static str {
        match self.0.iter().find(|entry| entry.options.user == user) {
            None => "there is no account of this name",
            Some(entry) if !entry.options.may_come_from(address.to_canonical()) => {
                "the account may not come from this address"
            }
            Some(_) => "wrong password",
        }
    }

    /// Logs a client in after its proof was accepted, or returns the server's error.
    pub(crate) fn enter(&self, user: &str, over_tls: bool) -> Result<LoggedInClient, ServerError> {
        let refused =
            |code, sqlstate: &[u8; 5], message| ServerError { code, sqlstate: Some(*sqlstate), message };
        let unknown = || refused(1045, b"28000", format!("Access denied for user '{user}'"));
        let entry = self.0.iter().find(|entry| entry.options.user == user).ok_or_else(unknown)?;
        if entry.options.require_tls && !over_tls {
            return Err(refused(
                3159,
                b"HY000",
                "Connections using insecure transport are prohibited for this account".into(),
            ));
        }
        let entered = LoggedInClient(Arc::clone(entry));
        let before = entry.connected.fetch_add(1, Ordering::Relaxed);
        let most = entry.options.connections_max;
        if most > 0 && before >= most {
            return Err(refused(
                1226,
                b"42000",
                format!(
                    "User '{user}' has exceeded the 'max_user_connections' resource (current value: {most})"
                ),
            ));
        }
        Ok(entered)
    }
}

impl LoggedInClient {
    pub(crate) fn account(&self) -> &AccountOptions {
        &self.0.options
    }
}

impl Drop for LoggedInClient {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(user: &str) -> AccountOptions {
        AccountOptions::new(user.into(), Password::new("secret"))
    }

    #[test]
    fn an_account_has_its_addresses_and_numbers() {
        let inside = AccountOptions {
            from: vec!["10.0.0.0/8".parse().unwrap()],
            connections_max: 2,
            ..account("inside")
        };
        let safe = AccountOptions { require_tls: true, ..account("safe") };
        let accounts = RelayAccounts::new(vec![inside, safe]).unwrap();
        let names = |address: &str| -> Vec<String> {
            accounts.at_address(address.parse().unwrap()).into_iter().map(|account| account.user).collect()
        };
        assert_eq!(names("10.1.2.3"), ["inside", "safe"]);
        assert_eq!(names("::ffff:10.1.2.3"), ["inside", "safe"]);
        assert_eq!(names("11.1.2.3"), ["safe"]);
        let why = |user, address: &str| accounts.why_denied(user, address.parse().unwrap());
        assert_eq!(why("nobody", "10.1.2.3"), "there is no account of this name");
        assert_eq!(why("inside", "11.1.2.3"), "the account may not come from this address");
        assert_eq!(why("inside", "::ffff:10.1.2.3"), "wrong password");
        assert_eq!(accounts.enter("safe", false).unwrap_err().code, 3159);
        assert!(accounts.enter("safe", true).is_ok());
        let first = accounts.enter("inside", false).unwrap();
        let second = accounts.enter("inside", false).unwrap();
        assert_eq!(accounts.enter("inside", false).unwrap_err().code, 1226);
        drop(first);
        let third = accounts.enter("inside", false).unwrap();
        assert_eq!(third.account().user, second.account().user);
    }

    #[test]
    fn accounts_are_told_apart_and_have_passwords() {
        let twice = RelayAccounts::new(vec![account("a"), account("a")]).unwrap_err();
        assert_eq!(twice.to_string(), "account a is there twice");
        let open = AccountOptions { password: Password::default(), ..account("a") };
        assert_eq!(
            RelayAccounts::new(vec![open]).unwrap_err().to_string(),
            "account a has no password, and needs one"
        );
    }
}
