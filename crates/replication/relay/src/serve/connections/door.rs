//! The checks that every client passes before it has a source: limits, accounts, TLS.

use parking_lot::Mutex;
use std::sync::Arc;

use crate::error::Result;
use crate::serve::connections::accounts::RelayAccounts;
use crate::serve::connections::admission::Gate;
use crate::serve::connections::departures::Departures;
use crate::serve::connections::listeners::Listeners;
use crate::serve::connections::routes::Routes;
use crate::serve::connections::transport::ServerTls;
use crate::telemetry::Telemetry;

pub(crate) struct Door {
    /// Counters and log lines of the state that all sources share.
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) listeners: Listeners,
    pub(crate) gate: Gate,
    pub(crate) departures: Arc<Departures>,
    pub(crate) routes: Routes,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) requires_tls: bool,
    /// Whether clients may log in with `mysql_native_password`.
    pub(crate) native_password: bool,
    accounts: Mutex<Arc<RelayAccounts>>,
}

/// How clients are let in.
pub(crate) struct DoorOptions {
    pub(crate) tls: Option<ServerTls>,
    pub(crate) requires_tls: bool,
    pub(crate) native_password: bool,
}

impl Door {
    pub(crate) fn new(
        telemetry: Arc<Telemetry>,
        listeners: Listeners,
        gate: Gate,
        accounts: RelayAccounts,
        options: DoorOptions,
    ) -> Result<Door> {
        let DoorOptions { tls, requires_tls, native_password } = options;
        Ok(Door {
            telemetry,
            listeners,
            gate,
            departures: Arc::new(Departures::new()?),
            routes: Routes::default(),
            tls,
            requires_tls,
            native_password,
            accounts: Mutex::new(Arc::new(accounts)),
        })
    }

    /// The accounts that may log in now.
    pub(crate) fn accounts(&self) -> Arc<RelayAccounts> {
        Arc::clone(&self.accounts.lock())
    }

    /// Other accounts from now on. Clients that are logged in stay.
    pub(crate) fn set_accounts(&self, accounts: RelayAccounts) {
        let mut current = self.accounts.lock();
        *current = Arc::new(accounts.after(&current));
    }
}
