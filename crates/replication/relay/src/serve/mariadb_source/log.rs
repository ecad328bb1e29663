//! Serves the log of a MariaDB: as it was received, to clients that know MariaDB's events, from a position on.
//!
//! ```text
//! form          received, whatever is set: its names and positions are the source's. Others would be made by MySQL's rules
//! clients       those that SET @mariadb_slave_capability = 4, as MariaDB's replicas and mariadb-binlog do
//! requests      by file and position, or by MariaDB's GTIDs (@slave_connect_state): see `start`
//! treatment     none: profiles are about MySQL's events. Accounts that ask for one are refused
//! heartbeats    of version 1: the flag that asks MySQL for version 2 asks MariaDB for annotations
//! ```

use std::collections::BTreeMap;

use binlogz_binlog::event::MariadbGtid;
use binlogz_relay_log::Form;
use binlogz_wire::dump_request::DumpRequest;

use crate::error::{Error, Result};
use crate::serve::connections::accounts::AccountOptions;
use crate::serve::connections::client_form::FormPolicy;
use crate::serve::events::row_metadata::RowMetadata;

/// The capability of clients that know MariaDB's GTID events: the server rewrites them for others, which changes the log.
const KNOWS_GTIDS: u32 = 4;

/// A client's user variables.
type UserVariables = BTreeMap<String, Option<String>>;

/// Refuses a request that MariaDB's log can't be served to, before the first event. Returns the GTIDs after which it is to begin, one a
/// domain; `None`: it is asked for by position.
///
/// # Errors
///
/// The reason, and what to do.
pub(crate) fn check(
    variables: &UserVariables,
    request: &DumpRequest,
    policy: FormPolicy,
    account: Option<&AccountOptions>,
) -> Result<Option<Vec<MariadbGtid>>> {
    let set = |name: &str| variables.get(name).and_then(Option::as_deref);
    let capability = set("mariadb_slave_capability").and_then(|text| text.parse::<u32>().ok());
    let refused = |why: &str| Err(refusal(why));
    // Before the form, which these settings bring with them.
    if let Some(why) = account.and_then(why_not_for) {
        return refused(why);
    }
    if matches!(policy, FormPolicy::Always(Form::Compressed | Form::Uncompressed)) {
        return refused("it is served as received, expected form = \"received\" or \"auto\"");
    }
    if matches!(request, DumpRequest::ByGtidSet { .. }) {
        return refused("it has no transactions by MySQL's GTIDs, and MySQL can't follow it");
    }
    if set("slave_until_gtid").is_some_and(|until| !until.is_empty()) {
        return refused("the relay knows no end by GTID (START SLAVE UNTIL master_gtid_pos)");
    }
    if capability.is_none_or(|capability| capability < KNOWS_GTIDS) {
        return refused(
            "only clients that know its events are served, which SET @mariadb_slave_capability = 4",
        );
    }
    set("slave_connect_state").map(connect_state).transpose()
}

/// Refuses everything of MariaDB's log to an account that has a policy.
///
/// # Errors
///
/// The reason.
pub(crate) fn check_account(account: Option<&AccountOptions>) -> Result<()> {
    match account.is_some_and(|account| account.exits.is_some()) {
        true => Err(refusal(NOT_MASKED)),
        false => Ok(()),
    }
}

const NOT_MASKED: &str = "it can't be masked (exits of the account)";

/// The setting of an account that can't be kept for MariaDB's events, with the reason.
fn why_not_for(account: &AccountOptions) -> Option<&'static str> {
    if account.exits.is_some() {
        return Some(NOT_MASKED);
    }
    if !account.tables.is_all() {
        return Some("tables can't be left out of it (tables, ignore_tables of the account)");
    }
    if account.row_metadata.is_some_and(|metadata| metadata != RowMetadata::AsReceived) {
        return Some("metadata of tables can't be changed in it (row_metadata of the account)");
    }
    if account.older_collations {
        return Some("collations can't be replaced in it (older_collations of the account)");
    }
    account.reads.map(|_| "what clients are sent of it can't be chosen (reads of the account)")
}

fn refusal(why: &str) -> Error {
    Error::Refused(format!("The source of this log is MariaDB: {why}"))
}

/// `0-1-5,7-2-9`, as a replica writes it: each domain once.
fn connect_state(text: &str) -> Result<Vec<MariadbGtid>> {
    let mut state: Vec<MariadbGtid> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let gtid: MariadbGtid = part.parse().map_err(|error| refusal(&format!("{error}")))?;
        if state.iter().any(|one| one.domain == gtid.domain) {
            return Err(refusal(&format!("{text:?} has several GTIDs of the domain {}", gtid.domain)));
        }
        state.push(gtid);
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::gtid::{GtidSet, GtidSetFormat};
    use binlogz_wire::auth::Password;
    use binlogz_wire::dump_request::DumpFlags;

    use super::*;
    use crate::serve::events::table_choice::TableChoice;

    fn by_position() -> DumpRequest {
        DumpRequest::ByPosition {
            flags: DumpFlags::default(),
            server_id: 1,
            name: b"binlog.000001".to_vec(),
            position: 4,
        }
    }

    fn by_gtids() -> DumpRequest {
        DumpRequest::ByGtidSet {
            flags: DumpFlags::default(),
            server_id: 1,
            name: Vec::new(),
            position: 4,
            gtid_set: GtidSet::new(),
            format: GtidSetFormat::Untagged,
        }
    }

    #[test]
    fn only_what_is_exact_is_served() {
        let auto = FormPolicy::Auto;
        let plain = AccountOptions::new("reader".into(), Password::new("secret"));
        let tables = TableChoice::new(&["shop.*".to_owned()], &[]).unwrap();
        let some = AccountOptions { tables, ..plain.clone() };
        let nameless = AccountOptions { row_metadata: Some(RowMetadata::None), ..plain.clone() };
        let as_received = AccountOptions { row_metadata: Some(RowMetadata::AsReceived), ..plain.clone() };
        let older = AccountOptions { older_collations: true, ..plain };
        let uncompressed = FormPolicy::Always(Form::Uncompressed);
        for (set, request, policy, account, refusal) in [
            (&[("mariadb_slave_capability", "4")][..], by_position(), auto, None, None),
            (
                &[("mariadb_slave_capability", "4")],
                by_position(),
                FormPolicy::Always(Form::Received),
                None,
                None,
            ),
            (
                &[("mariadb_slave_capability", "4")],
                by_position(),
                FormPolicy::Always(Form::Uncompressed),
                None,
                Some("served as received"),
            ),
            (&[("mariadb_slave_capability", "4")], by_position(), auto, Some(&some), Some("left out")),
            (
                &[("mariadb_slave_capability", "4")],
                by_position(),
                auto,
                Some(&nameless),
                Some("row_metadata"),
            ),
            // The setting is named, not the form that it brings with it.
            (
                &[("mariadb_slave_capability", "4")],
                by_position(),
                uncompressed,
                Some(&nameless),
                Some("row_metadata"),
            ),
            (
                &[("mariadb_slave_capability", "4")],
                by_position(),
                auto,
                Some(&older),
                Some("older_collations"),
            ),
            (&[("mariadb_slave_capability", "4")], by_position(), auto, Some(&as_received), None),
            (&[("mariadb_slave_capability", "4")], by_gtids(), auto, None, Some("MySQL's GTIDs")),
            (
                &[("mariadb_slave_capability", "4"), ("slave_until_gtid", "0-1-1")],
                by_position(),
                auto,
                None,
                Some("no end by GTID"),
            ),
            (
                &[("mariadb_slave_capability", "4"), ("slave_connect_state", "0-1-5,0-2-6")],
                by_position(),
                auto,
                None,
                Some("several GTIDs of the domain 0"),
            ),
            (&[("mariadb_slave_capability", "3")], by_position(), auto, None, Some("capability = 4")),
            (&[], by_position(), auto, None, Some("capability = 4")),
        ] {
            let mut variables = UserVariables::new();
            for (name, value) in set {
                variables.insert((*name).to_owned(), Some((*value).to_owned()));
            }
            let said =
                super::check(&variables, &request, policy, account).err().map(|error| error.to_string());
            match refusal {
                None => assert_eq!(said, None),
                Some(part) => {
                    assert!(said.as_ref().is_some_and(|said| said.contains(part)), "{set:?}: {said:?}")
                }
            }
        }
    }
    #[test]
    fn a_state_has_one_gtid_a_domain() {
        let texts = |state: &str| -> Vec<_> {
            connect_state(state).unwrap().iter().map(MariadbGtid::to_string).collect()
        };
        assert_eq!(texts(""), [""; 0]);
        assert_eq!(texts("0-1-5, 7-2-9"), ["0-1-5", "7-2-9"]);
        for bad in ["0-1", "uuid:1-5", "0-1-5,0-1-6"] {
            assert!(connect_state(bad).is_err(), "{bad}");
        }
    }
}
