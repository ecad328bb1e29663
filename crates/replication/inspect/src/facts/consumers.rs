//! Readers of the binary log: connections that receive it, and replicas that registered.
//!
//! ```text
//! SHOW PROCESSLIST            every connection with a dump command      PROCESS (or threads, with SELECT on it)
//! SHOW REPLICAS               server id and server_uuid                 REPLICATION SLAVE
//! session_connect_attrs       which program it is                       SELECT on the table
//! user_variables_by_thread    its server_uuid, MariaDB's capability     SELECT on performance_schema
//! status_by_thread            whether the connection is compressed      SELECT on performance_schema
//! ```

use std::collections::BTreeMap;

use binlogz_source::Error;

use super::GlobalSettings;
use crate::ask::{Fact, ServerAsker, TextRow};

/// A client that reads the binary log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BinlogClient {
    pub(crate) connection_id: Option<u64>,
    pub(crate) user: Option<String>,
    /// Address and port.
    pub(crate) host: Option<String>,
    pub(crate) server_id: Option<u64>,
    pub(crate) server_uuid: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) variables: BTreeMap<String, String>,
    /// Whether the connection is compressed.
    pub(crate) compressed_connection: bool,
}

impl BinlogClient {
    /// The value of `name` in the knowledge base: a connection attribute, `@variable`, `user` or `host`.
    pub(crate) fn trait_of(&self, name: &str) -> Option<&str> {
        match name {
            "user" => self.user.as_deref(),
            "host" => self.address(),
            _ => match name.strip_prefix('@') {
                Some(variable) => self.variables.get(variable),
                None => self.attributes.get(name),
            }
            .map(String::as_str),
        }
    }

    /// Where it comes from, without the port, which changes with each reconnect.
    pub(crate) fn address(&self) -> Option<&str> {
        let host = self.host.as_deref()?;
        match host.rsplit_once(':') {
            Some((address, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(address)
            }
            _ => Some(host),
        }
    }
}

/// All consumers found, and what prevented finding more.
#[derive(Debug)]
pub(crate) struct Consumers {
    pub(crate) list: Vec<BinlogClient>,
    /// Whether all connections are visible.
    pub(crate) connections: Fact<()>,
    /// Whether those that registered are visible, with their server ids.
    pub(crate) registered: Fact<()>,
    /// Whether attributes are visible.
    pub(crate) attributes: Fact<()>,
    /// Whether it is visible which connections are compressed.
    pub(crate) compression: Fact<()>,
}

const DUMPS: [&str; 2] = ["Binlog Dump", "Binlog Dump GTID"];
const PROCESS: &str = "PROCESS ON *.*";

impl Consumers {
    pub(super) fn gather(asker: &mut ServerAsker<'_>, settings: &GlobalSettings) -> Result<Consumers, Error> {
        let connections = connections(asker)?;
        let registered = asker.rows("SHOW REPLICAS", "REPLICATION SLAVE ON *.*")?;
        let registered =
            registered.or_if_absent(|| asker.rows("SHOW SLAVE HOSTS", "REPLICATION SLAVE ON *.*"))?;
        let replicas: Vec<BinlogClient> =
            registered.known().into_iter().flatten().map(registered_replica).collect();

        let mut list = connections.known().cloned().unwrap_or_default();
        let attributes = match settings.is_on(&["performance_schema"]) {
            true => attributes(asker, &mut list)?,
            false => Fact::Refused("performance_schema is OFF".to_owned()),
        };
        variables(asker, &mut list)?;
        let compression = compressed_connections(asker, &mut list)?;
        for consumer in &mut list {
            consumer.complete_from(&replicas);
        }
        if connections.known().is_none() {
            list = replicas;
        }
        Ok(Consumers {
            list,
            connections: connections.map(drop),
            registered: registered.map(drop),
            attributes,
            compression,
        })
    }
}

impl BinlogClient {
    /// Adds the facts that it reported when it registered.
    fn complete_from(&mut self, registered: &[BinlogClient]) {
        self.server_uuid =
            ["replica_uuid", "slave_uuid"].iter().find_map(|name| self.variables.get(*name)).cloned();
        let same =
            |other: &&BinlogClient| self.server_uuid.is_some() && other.server_uuid == self.server_uuid;
        self.server_id = registered.iter().find(same).and_then(|registered| registered.server_id);
    }
}

fn connections(asker: &mut ServerAsker<'_>) -> Result<Fact<Vec<BinlogClient>>, Error> {
    let rows = match may_see_all(asker)? {
        // Without the right the list only has the account's own connections, and there is no error.
        true => asker.rows("SHOW PROCESSLIST", PROCESS)?,
        false => asker.rows(
            "SELECT PROCESSLIST_ID, PROCESSLIST_USER, PROCESSLIST_HOST, PROCESSLIST_DB, PROCESSLIST_COMMAND \
             FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL",
            PROCESS,
        )?,
    };
    Ok(rows.map(|rows| {
        let dumps = rows.iter().filter(|row| row.get(4).is_some_and(|command| DUMPS.contains(&command)));
        let consumer = |row: &TextRow| BinlogClient {
            connection_id: row.number(0),
            user: row.get(1).map(str::to_owned),
            host: row.get(2).map(str::to_owned),
            ..BinlogClient::default()
        };
        dumps.map(consumer).collect()
    }))
}

/// Whether the account has PROCESS, by itself or through an active role.
fn may_see_all(asker: &mut ServerAsker<'_>) -> Result<bool, Error> {
    let roles = asker.rows("SELECT CURRENT_ROLE()", "USAGE ON *.*")?;
    let roles = roles.known().and_then(|rows| rows.first()).map(|row| row.text(0));
    let statement = match roles.as_deref() {
        // Names come quoted.
        Some(roles) if roles.starts_with('`') => format!("SHOW GRANTS FOR CURRENT_USER() USING {roles}"),
        _ => "SHOW GRANTS".to_owned(),
    };
    let grants = asker.rows(&statement, "USAGE ON *.*")?;
    Ok(grants.known().into_iter().flatten().any(|row| grants_process(row.get(0).unwrap_or_default())))
}

fn grants_process(grant: &str) -> bool {
    let Some((privileges, _)) = grant.strip_prefix("GRANT ").and_then(|grant| grant.split_once(" ON *.* "))
    else {
        return false;
    };
    privileges.split(", ").any(|privilege| matches!(privilege, "PROCESS" | "ALL PRIVILEGES" | "ALL"))
}

fn attributes(asker: &mut ServerAsker<'_>, list: &mut [BinlogClient]) -> Result<Fact<()>, Error> {
    let rows = asker.rows(
        "SELECT PROCESSLIST_ID, ATTR_NAME, ATTR_VALUE FROM performance_schema.session_connect_attrs",
        "SELECT ON performance_schema.session_connect_attrs",
    )?;
    Ok(rows.map(|rows| {
        each_of(list, &rows, |consumer, row| {
            consumer.attributes.insert(row.text(1), row.text(2));
        });
    }))
}

fn variables(asker: &mut ServerAsker<'_>, list: &mut [BinlogClient]) -> Result<(), Error> {
    let rows = asker.rows(
        "SELECT t.PROCESSLIST_ID, v.VARIABLE_NAME, v.VARIABLE_VALUE \
         FROM performance_schema.user_variables_by_thread v JOIN performance_schema.threads t USING (THREAD_ID) \
         WHERE t.PROCESSLIST_COMMAND LIKE 'Binlog Dump%'",
        "SELECT ON performance_schema.*",
    )?;
    each_of(list, rows.known().map_or(&[], Vec::as_slice), |consumer, row| {
        consumer.variables.insert(row.text(1), row.text(2));
    });
    Ok(())
}

fn compressed_connections(asker: &mut ServerAsker<'_>, list: &mut [BinlogClient]) -> Result<Fact<()>, Error> {
    let rows = asker.rows(
        "SELECT t.PROCESSLIST_ID FROM performance_schema.status_by_thread s \
         JOIN performance_schema.threads t USING (THREAD_ID) \
         WHERE s.VARIABLE_NAME = 'Compression' AND s.VARIABLE_VALUE = 'ON'",
        "SELECT ON performance_schema.*",
    )?;
    Ok(rows.map(|rows| each_of(list, &rows, |consumer, _| consumer.compressed_connection = true)))
}

/// Passes each row whose first column is a consumer's connection to that consumer.
fn each_of(list: &mut [BinlogClient], rows: &[TextRow], mut add: impl FnMut(&mut BinlogClient, &TextRow)) {
    for row in rows {
        let id = row.number(0);
        for consumer in list.iter_mut().filter(|consumer| id.is_some() && consumer.connection_id == id) {
            add(consumer, row);
        }
    }
}

/// A row of SHOW REPLICAS: Server_Id, Host, Port, Source_Id, Replica_UUID.
fn registered_replica(row: &TextRow) -> BinlogClient {
    let present = |column| row.get(column).filter(|text| !text.is_empty()).map(str::to_owned);
    BinlogClient {
        server_id: row.number(0),
        host: present(1),
        server_uuid: present(4),
        ..BinlogClient::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_granted_on_all_or_not_at_all() {
        for (grant, expected) in [
            ("GRANT PROCESS, REPLICATION CLIENT ON *.* TO `mon`@`%`", true),
            ("GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION", true),
            ("GRANT USAGE ON *.* TO `none`@`%`", false),
            ("GRANT ALL PRIVILEGES ON `shop`.* TO `app`@`%`", false),
            ("GRANT `PROCESS`@`%` TO `app`@`%`", false),
        ] {
            assert_eq!(grants_process(grant), expected, "{grant}");
        }
    }

    #[test]
    fn an_address_has_no_port() {
        for (host, address) in [
            ("10.0.0.1:5000", "10.0.0.1"),
            ("localhost", "localhost"),
            ("fe80::1:77", "fe80::1"),
            ("db:", "db:"),
        ] {
            let consumer = BinlogClient { host: Some(host.into()), ..BinlogClient::default() };
            assert_eq!(consumer.address(), Some(address));
        }
    }
}
