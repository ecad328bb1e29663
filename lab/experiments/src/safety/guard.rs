//! Decides whether a server may be loaded at all: workloads replicate, and change global settings.

use std::thread::sleep;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::preset::experiment::{COMPRESSION, SCHEMAS};
use crate::server::session::{ServerSession, is_denied, number};

/// A reason against loading a server, unless the user allows it by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allow {
    /// Replicas, or other readers of its binary log, are attached.
    Replicas,
    /// Commits wait for a replica's acknowledgement.
    SemiSync,
    /// It has users' schemas.
    UserSchemas,
    /// Other clients use it.
    OtherLoad,
    /// There may not be room for the data written.
    LittleSpace,
}

impl Allow {
    /// All permissions.
    pub const ALL: [Allow; 5] =
        [Allow::Replicas, Allow::SemiSync, Allow::UserSchemas, Allow::OtherLoad, Allow::LittleSpace];

    /// The permission's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Allow::Replicas => "replicas",
            Allow::SemiSync => "semi-sync",
            Allow::UserSchemas => "user-schemas",
            Allow::OtherLoad => "other-load",
            Allow::LittleSpace => "little-space",
        }
    }
}

const SYSTEM_SCHEMAS: &str = "'mysql', 'sys', 'information_schema', 'performance_schema'";

/// The time over which we count other clients' statements.
const LOOK_TIME: Duration = Duration::from_millis(1000);
/// A monitoring agent may send that many in this time.
const OTHERS_MAX: u64 = 20;

/// Looks for one reason.
type GuardLook = fn(&mut ServerSession) -> Result<Option<String>>;

/// Checks everything; changes nothing on the server.
pub(crate) fn check(session: &mut ServerSession, allowed: &[Allow]) -> Result<()> {
    check_binlog(session)?;
    for schema in SCHEMAS {
        let asked =
            format!("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '{schema}'");
        if session.number(&asked)? != Some(0) {
            return refuse(format!(
                "there is a schema {schema}: the workloads make and drop one of that name, since the name is part of \
                 the binary log's size"
            ));
        }
    }
    let against: [(Allow, GuardLook); 4] = [
        (Allow::Replicas, replicas),
        (Allow::SemiSync, semi_sync),
        (Allow::UserSchemas, user_schemas),
        (Allow::OtherLoad, other_load),
    ];
    let mut reasons = Vec::new();
    for (allow, find) in against {
        if !allowed.contains(&allow)
            && let Some(found) = find(session)?
        {
            reasons.push(format!("{found} (--allow {})", allow.name()));
        }
    }
    if reasons.is_empty() { Ok(()) } else { refuse(reasons.join("; ")) }
}

/// A table name that is not in use: whether it can be created or dropped is checked before it is looked up.
const NO_TABLE: &str = "binlogz_no_such_table";

/// Tries the rights that a run needs, and lists all missing ones in one line. No statement changes anything, whatever the
/// rights: a schema that could be created but not dropped would stay.
pub(crate) fn check_rights(session: &mut ServerSession, variables: &[&str]) -> Result<()> {
    let mut trials: Vec<(String, &str)> = vec![
        ("SHOW BINARY LOGS".to_owned(), "REPLICATION CLIENT"),
        ("FLUSH LOCAL ENGINE LOGS".to_owned(), "RELOAD"),
    ];
    for name in variables {
        trials.push((format!("SET GLOBAL {name} = @@GLOBAL.{name}"), "SYSTEM_VARIABLES_ADMIN"));
    }
    for schema in SCHEMAS {
        let table = format!("{schema}.{NO_TABLE}");
        trials.push((format!("CREATE TABLE {table} LIKE {table}"), "ALL ON sbtest.* and employees.*"));
        trials.push((format!("DROP TABLE {table}"), "ALL ON sbtest.* and employees.*"));
    }
    let mut missing: Vec<&str> = Vec::new();
    for (statement, right) in &trials {
        match session.run(statement) {
            Err(error) if is_denied(&error) && !missing.contains(right) => missing.push(right),
            // Missing tables, and variables that this server refuses, are reported where they are needed.
            _ => {}
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    refuse(format!("the account lacks rights, nothing was changed: {}", missing.join(", ")))
}

fn check_binlog(session: &mut ServerSession) -> Result<()> {
    let known = format!("SHOW GLOBAL VARIABLES LIKE '{COMPRESSION}'");
    if session.rows(&known)?.is_empty() {
        return refuse("the server can't compress transactions: MySQL can from 8.0.20 on".to_owned());
    }
    for (name, needed) in [("log_bin", "1"), ("binlog_format", "ROW"), ("super_read_only", "0")] {
        let value = session.text(&format!("SELECT @@GLOBAL.{name}"))?.unwrap_or_default();
        if value != needed {
            return refuse(format!("{name} is {value}: nothing could be measured"));
        }
    }
    Ok(())
}

fn replicas(session: &mut ServerSession) -> Result<Option<String>> {
    let readers = session.number(
        "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_COMMAND LIKE 'Binlog Dump%'",
    );
    match readers {
        Ok(Some(0)) => Ok(None),
        Ok(count) => Ok(Some(format!("attached replicas and other readers: {}", count.unwrap_or_default()))),
        Err(error) if is_denied(&error) => Ok(Some(
            "whether replicas are attached can't be seen without SELECT ON performance_schema.*".into(),
        )),
        Err(error) => Err(error),
    }
}

fn semi_sync(session: &mut ServerSession) -> Result<Option<String>> {
    let rows = session.rows(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('rpl_semi_sync_source_enabled', 'rpl_semi_sync_master_enabled') \
         AND Value = 'ON'",
    )?;
    Ok((!rows.is_empty()).then(|| "commits wait for semi-synchronous replicas".to_owned()))
}

fn user_schemas(session: &mut ServerSession) -> Result<Option<String>> {
    let count = session.number(&format!(
        "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name NOT IN ({SYSTEM_SCHEMAS})"
    ))?;
    Ok(count.filter(|count| *count > 0).map(|count| format!("it has {count} schemas of users'")))
}

fn other_load(session: &mut ServerSession) -> Result<Option<String>> {
    let asked = "SHOW GLOBAL STATUS LIKE 'Questions'";
    let questions = |session: &mut ServerSession| -> Result<u64> {
        Ok(session.rows(asked)?.first().map_or(0, |row| number(row, 1)))
    };
    let before = questions(session)?;
    sleep(LOOK_TIME);
    let others = questions(session)?.saturating_sub(before + 1);
    Ok((others > OTHERS_MAX).then(|| format!("others sent {others} statements in a second")))
}

fn refuse(reason: String) -> Result<()> {
    Err(Error::Refused(reason))
}
