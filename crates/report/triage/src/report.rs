//! Unusual changes as lines for people, and as JSON.
//!
//! ```text
//!  1  23:08:11  3e11fa47-71ca-11e1-9e33-c80aa9429562:23  87  DELETE 1,234 shop.orders, 300 shop.items by foreign key
//!     DELETE FROM orders WHERE total < 100
//! ```
//!
//! No line is wider than asked for: what doesn't fit ends with `…`.

use binlogz_binlog::printable;
use binlogz_figures::{Zone, grouped, utc, wrapped};
use binlogz_stats::{RowCounts, TableName};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::change::{RankedChange, UnusualReason};
use crate::statement::{DdlEffect, StatementTableName};
use crate::transaction::{RepeatedTransactions, TableChanges, TriagedTransaction};

/// Before the statement of a change.
const INDENT: &str = "    ";
/// Tables whose share is told.
const SHARES_MAX: usize = 3;

/// How the lines of changes are laid out: their columns are as wide as the widest value.
#[derive(Debug, Clone)]
pub struct ChangeLines {
    width: usize,
    has_dates: bool,
    number_width: usize,
    id_width: usize,
    session_width: usize,
}

impl ChangeLines {
    /// The layout of these changes, in lines of at most `width` characters. `logs` are the names of the logs.
    pub fn of(changes: &[RankedChange], logs: &[String], width: usize) -> Self {
        let transactions: Vec<_> = changes.iter().map(|change| &change.transaction).collect();
        let days: Vec<_> = transactions.iter().map(|transaction| local(transaction.time).0).collect();
        ChangeLines {
            width,
            has_dates: days.iter().any(|day| Some(day) != days.first()),
            number_width: changes.len().to_string().len(),
            id_width: widest(transactions.iter().map(|transaction| id_of(transaction, logs))),
            session_width: widest(transactions.iter().map(|transaction| session_of(transaction))),
        }
    }

    /// The change alone: its transaction, what it did, its statement.
    pub fn paragraph(&self, change: &RankedChange, logs: &[String]) -> Vec<String> {
        let transaction = &change.transaction;
        let (day, time) = local(transaction.time);
        let log = logs.get(transaction.log).map(String::as_str).unwrap_or_default();
        let first = format!(
            "{}  {day} {time} {}  session {}, {} at {}",
            id_of(transaction, logs),
            zone_at(transaction.time),
            session_of(transaction),
            printable(log),
            transaction.offset
        );
        let statement = transaction.statement.as_deref();
        let statement = statement.map(|statement| format!("{INDENT}{}", in_one_line(statement)));
        let shares = shares_in_words(transaction).map(|said| format!("{INDENT}{said}"));
        let lines = [first, format!("{INDENT}{}", what(change))].into_iter().chain(shares).chain(statement);
        let wrap = |line: String| {
            let text = wrapped(line.trim_start(), "", INDENT, Some(self.width.saturating_sub(INDENT.len())));
            let front = if line.starts_with(INDENT) { INDENT } else { "" };
            let lines: Vec<_> = text.lines().map(|part| format!("{front}{part}")).collect();
            lines
        };
        lines.flat_map(wrap).collect()
    }

    /// The change with this number: a line, and another with its statement, if that is logged and tells more.
    pub fn lines(&self, number: usize, change: &RankedChange, logs: &[String]) -> Vec<String> {
        let transaction = &change.transaction;
        let (day, time) = local(transaction.time);
        let date = if self.has_dates { format!("{day} ") } else { String::new() };
        let front = format!(
            "{number:>numbers$}  {date}{time}  {id:<ids$}  {session:<sessions$}  ",
            id = id_of(transaction, logs),
            session = session_of(transaction),
            numbers = self.number_width,
            ids = self.id_width,
            sessions = self.session_width,
        );
        let mut lines = vec![shortened(&format!("{front}{}", what(change)), self.width)];
        let facts = [shares_in_words(transaction), repeated_in_words(transaction)];
        let said = facts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let parts = [Some(said).filter(|said| !said.is_empty()), statement_of(change).map(in_one_line)];
        let below = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
        if !below.is_empty() {
            lines.push(shortened(&format!("{INDENT}{below}"), self.width));
        }
        lines
    }
}

/// A statement without line ends.
fn in_one_line(statement: &str) -> String {
    printable(&statement.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// `3,241 transactions of thread 87, until 23:08:41`: a loop.
fn repeated_in_words(transaction: &TriagedTransaction) -> Option<String> {
    let repeated = transaction.repeated.as_ref()?;
    let thread = transaction.thread_id.unwrap_or_default();
    let (_, until) = local(repeated.until);
    Some(format!("{} transactions of thread {thread}, until {until}", grouped(repeated.transactions)))
}

/// Characters of the longest text.
fn widest(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// The change as JSON; its fields are stable. `logs` are the names of the logs.
pub fn change_json(change: &RankedChange, logs: &[String]) -> Value {
    let RankedChange { transaction, reasons, as_large, severity } = change;
    let reasons: Vec<_> = reasons.iter().map(|reason| reason.word()).collect();
    let rows = transaction.rows();
    let tables: Vec<_> = transaction.tables.iter().map(table_json).collect();
    let named = transaction.unusual.as_ref().map(|statement| {
        let tables = statement.tables.iter();
        tables.map(|table| json!({"database": table.database, "table": table.table})).collect::<Vec<_>>()
    });
    let account = transaction.account.as_ref();
    json!({
        "time": utc(transaction.time),
        "time_is_of_commit": transaction.is_commit_time,
        "gtid": transaction.gtid.map(|gtid| gtid.to_string()),
        "log": logs.get(transaction.log),
        "position": transaction.offset,
        "server_id": transaction.server_id,
        "thread_id": transaction.thread_id,
        "user": account.map(|(user, _)| user),
        "host": account.map(|(_, host)| host),
        "reasons": reasons,
        "severity": severity.round() as u64,
        "as_large": as_large,
        "rolled_back": transaction.is_rolled_back,
        "bytes": transaction.bytes,
        "rows": rows_json(&rows),
        "tables": tables,
        "other_tables": rows_json(&transaction.others),
        "rows_below_log_estimate": transaction.rows_below,
        "verb": transaction.unusual.as_ref().map(|statement| &statement.verb),
        "statement_tables": named,
        "statement": transaction.statement,
        "repeated": transaction.repeated.as_ref().map(repeated_json),
    })
}

fn repeated_json(repeated: &RepeatedTransactions) -> Value {
    json!({
        "transactions": repeated.transactions,
        "until": utc(repeated.until),
        "last_gtid": repeated.last_gtid.map(|gtid| gtid.to_string()),
    })
}

fn rows_json(rows: &RowCounts) -> Value {
    json!({"inserted": rows.inserts, "updated": rows.updates, "deleted": rows.deletes})
}

fn table_json(table: &TableChanges) -> Value {
    json!({
        "database": String::from_utf8_lossy(&table.name.database),
        "table": String::from_utf8_lossy(&table.name.table),
        "rows": rows_json(&table.rows),
        "by_foreign_key": rows_json(&table.by_foreign_key),
        "rows_now_estimate": table.rows_now,
    })
}

/// The day and the time of day in the zone of the process.
fn local(time: u64) -> (String, String) {
    let timestamp = Timestamp::from_microsecond(i64::try_from(time).unwrap_or(i64::MAX)).unwrap_or_default();
    let (time, _) = Zone::of_process().local(timestamp);
    (time.strftime("%Y-%m-%d").to_string(), time.strftime("%H:%M:%S").to_string())
}

/// The name of the process's zone at that time.
fn zone_at(time: u64) -> String {
    let timestamp = Timestamp::from_microsecond(i64::try_from(time).unwrap_or(i64::MAX)).unwrap_or_default();
    Zone::of_process().local(timestamp).1
}

/// How a transaction is called: by its GTID, or its place.
fn id_of(transaction: &TriagedTransaction, logs: &[String]) -> String {
    match &transaction.gtid {
        Some(gtid) => gtid.to_string(),
        None => {
            let log = logs.get(transaction.log).map(String::as_str).unwrap_or_default();
            // Without its folder or server: `db1:3306: binlog.000042`.
            let name = log.rsplit('/').next().unwrap_or(log);
            let name_alone = name.rsplit(": ").next().unwrap_or(name);
            format!("{}:{}", printable(name_alone), transaction.offset)
        }
    }
}

/// Thread, user and host, as far as they are known.
fn session_of(transaction: &TriagedTransaction) -> String {
    let thread = transaction.thread_id.map_or("-".to_owned(), |id| id.to_string());
    match &transaction.account {
        Some((user, host)) => printable(&format!("{thread} {user}@{host}")).into_owned(),
        None => thread,
    }
}

/// The statement, unless the line above has all that it says.
fn statement_of(change: &RankedChange) -> Option<&str> {
    let statement = change.transaction.statement.as_deref()?;
    let effect = change.transaction.unusual.as_ref().map(|statement| statement.effect);
    match effect {
        Some(DdlEffect::DropDatabase | DdlEffect::DropTable | DdlEffect::Truncate) => None,
        Some(DdlEffect::LosesPart | DdlEffect::ChangesAllRows | DdlEffect::Redefines) | None => {
            Some(statement)
        }
    }
}

/// What the change is, in words.
fn what(change: &RankedChange) -> String {
    let transaction = &change.transaction;
    let mut text = match &transaction.unusual {
        Some(statement) => {
            let names: Vec<_> = statement.tables.iter().map(named).collect();
            format!("{} {}", statement.verb, names.join(", "))
        }
        None => rows_in_words(transaction),
    };
    for reason in &change.reasons {
        match reason {
            UnusualReason::FirstDelete(earlier) => {
                text += &format!("; first DELETE after {} transactions", grouped(*earlier));
            }
            UnusualReason::LargeTransaction => text += "; much larger than the usual",
            UnusualReason::Statement(DdlEffect::ChangesAllRows) => text += " without WHERE",
            UnusualReason::Statement(_)
            | UnusualReason::MassDelete
            | UnusualReason::MassUpdate
            | UnusualReason::SessionLoop => {}
        }
    }
    if change.as_large > 1 {
        text += &format!("; one of {} as large", grouped(change.as_large));
    }
    if transaction.is_rolled_back {
        text += "; ended with ROLLBACK";
    }
    printable(text.trim()).into_owned()
}

fn named(table: &StatementTableName) -> String {
    match (table.database.is_empty(), table.table.is_empty()) {
        (true, _) => table.table.clone(),
        (_, true) => table.database.clone(),
        (false, false) => format!("{}.{}", table.database, table.table),
    }
}

/// `DELETE 1,234 shop.orders, 300 shop.items by foreign key, UPDATE 1 shop.totals`: the most rows first.
fn rows_in_words(transaction: &TriagedTransaction) -> String {
    let mut parts: Vec<(&str, u64, u64, &TableName)> = Vec::new();
    for table in &transaction.tables {
        let rows = &table.rows;
        let by_foreign_key = &table.by_foreign_key;
        let of_table = [
            ("DELETE", rows.deletes, by_foreign_key.deletes),
            ("UPDATE", rows.updates, by_foreign_key.updates),
            ("INSERT", rows.inserts, by_foreign_key.inserts),
        ]
        .into_iter()
        .filter(|(_, rows, _)| *rows > 0);
        parts.extend(of_table.map(|(operation, rows, by_key)| (operation, rows, by_key, &*table.name)));
    }
    // What the statement did itself comes before what followed from it.
    parts.sort_by_key(|(_, rows, by_key, _)| (by_key == rows, std::cmp::Reverse(*rows)));
    let mut text = String::new();
    let mut last = "";
    for (operation, rows, by_key, TableName { database, table }) in parts {
        let front = if text.is_empty() { "" } else { ", " };
        let verb = if operation == last { String::new() } else { format!("{operation} ") };
        let by = match by_key {
            0 => String::new(),
            all if all == rows => " by foreign key".to_owned(),
            some => format!(" ({} by foreign key)", grouped(some)),
        };
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name));
        text += &format!("{front}{verb}{} {database}.{table}{by}", grouped(rows));
        last = operation;
    }
    match transaction.others.total() {
        0 => (),
        others => text += &format!(", {} rows of further tables", grouped(others)),
    }
    match transaction.rows_below {
        0 => text,
        below => format!("{text}, and about {} rows below the log", grouped(below)),
    }
}

/// `about 9 % of shop.orders, 1 % of shop.totals`: which part of its rows a table lost or got otherwise, by an estimate. Those that were deleted
/// count among them; what a foreign key did follows from the rest.
fn shares_in_words(transaction: &TriagedTransaction) -> Option<String> {
    let shares = transaction.tables.iter().filter_map(|table| {
        let rows = &table.rows;
        let by_key = &table.by_foreign_key;
        let now = table.rows_now?;
        let deletes = rows.deletes - by_key.deletes.min(rows.deletes);
        let updates = rows.updates;
        let (changed, of) = match deletes > 0 {
            true => (deletes, now.saturating_add(rows.deletes)),
            false => (updates - by_key.updates.min(updates), now),
        };
        let percent = changed.saturating_mul(100) / of.max(1);
        let TableName { database, table } = &*table.name;
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name));
        let share = if percent == 0 { "under 1".to_owned() } else { percent.min(100).to_string() };
        (changed > 0).then(|| format!("{share} % of {database}.{table}"))
    });
    let said = shares.take(SHARES_MAX).collect::<Vec<_>>().join(", ");
    (!said.is_empty()).then(|| printable(&format!("about {said}")).into_owned())
}

/// A line of at most `width` characters.
fn shortened(line: &str, width: usize) -> String {
    let line = line.trim_end();
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let front: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", front.trim_end())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::statement::UnusualStatement;

    fn change() -> RankedChange {
        let table = |name: &str, deletes, by_key| TableChanges {
            name: Arc::new(TableName { database: b"shop"[..].into(), table: name.as_bytes().into() }),
            rows: RowCounts { deletes, ..RowCounts::default() },
            by_foreign_key: RowCounts { deletes: by_key, ..RowCounts::default() },
            rows_now: None,
        };
        let transaction = TriagedTransaction {
            offset: 4711,
            time: 1_763_700_000_123_456,
            thread_id: Some(87),
            tables: vec![table("items", 2000, 2000), table("orders", 1234, 0), table("seen", 7, 3)],
            statement: Some("DELETE  FROM orders\nWHERE total < 100".into()),
            ..TriagedTransaction::default()
        };
        let reasons = vec![UnusualReason::MassDelete, UnusualReason::FirstDelete(1500)];
        RankedChange { transaction, reasons, as_large: 1, severity: 6468.0 }
    }

    #[test]
    fn a_line_says_what_was_done_and_the_next_one_how() {
        let logs = ["logs/binlog.000042".to_owned()];
        let changes = [change()];
        let lines = ChangeLines::of(&changes, &logs, 200).lines(1, &changes[0], &logs);
        let what = "binlog.000042:4711  87  DELETE 1,234 shop.orders, 7 shop.seen (3 by foreign key), 2,000 shop.items by \
                    foreign key; first DELETE after 1,500 transactions";
        assert!(lines[0].starts_with("1  ") && lines[0].ends_with(what), "{}", lines[0]);
        assert_eq!(lines[1], "    DELETE FROM orders WHERE total < 100");
    }

    #[test]
    fn rows_below_the_log_are_told() {
        let logs = ["binlog.000042".to_owned()];
        let mut changes = [change()];
        changes[0].transaction.tables.retain(|table| &*table.name.table == b"orders");
        changes[0].transaction.rows_below = 13_000;
        let lines = ChangeLines::of(&changes, &logs, 200).lines(1, &changes[0], &logs);
        let said = "DELETE 1,234 shop.orders, and about 13,000 rows below the log; first DELETE after 1,500 transactions";
        assert!(lines[0].ends_with(said), "{}", lines[0]);
        assert_eq!(change_json(&changes[0], &logs)["rows_below_log_estimate"], 13_000);
    }

    #[test]
    fn the_share_of_a_table_is_an_estimate() {
        let logs = ["binlog.000042".to_owned()];
        let mut changes = [change()];
        changes[0].transaction.tables[1].rows_now = Some(12_000);
        changes[0].transaction.tables[2].rows_now = Some(1_000_000);
        changes[0].transaction.tables[0].rows_now = Some(0);
        let lines = ChangeLines::of(&changes, &logs, 200).lines(1, &changes[0], &logs);
        let said =
            "    about 9 % of shop.orders, under 1 % of shop.seen: DELETE FROM orders WHERE total < 100";
        assert_eq!(lines[1], said);
        assert_eq!(change_json(&changes[0], &logs)["tables"][1]["rows_now_estimate"], 12_000);
    }

    #[test]
    fn a_loop_is_one_line() {
        let logs = ["binlog.000042".to_owned()];
        let mut changes = [change()];
        let until = changes[0].transaction.time + 30_000_000;
        changes[0].transaction.repeated =
            Some(RepeatedTransactions { transactions: 3241, until, last_gtid: None });
        changes[0].reasons = vec![UnusualReason::SessionLoop];
        let lines = ChangeLines::of(&changes, &logs, 200).lines(1, &changes[0], &logs);
        assert!(lines[1].starts_with("    3,241 transactions of thread 87, until "), "{}", lines[1]);
        assert!(lines[1].ends_with(": DELETE FROM orders WHERE total < 100"), "{}", lines[1]);
        let json = change_json(&changes[0], &logs);
        assert_eq!(json["repeated"]["transactions"], 3241);
        assert_eq!(json["repeated"]["until"], "2025-11-21 04:40:30.123456");
        assert_eq!(json["reasons"], json!(["session_loop"]));
    }

    #[test]
    fn no_line_is_wider_than_asked_for() {
        let logs = ["binlog.000042".to_owned()];
        let mut changes = [change()];
        changes[0].transaction.account = Some(("ü".repeat(40), "host".to_owned()));
        for width in [40, 60, 80, 120] {
            for line in ChangeLines::of(&changes, &logs, width).lines(1, &changes[0], &logs) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn json_has_everything() {
        let mut change = change();
        change.transaction.unusual = UnusualStatement::of(b"DROP TABLE a", b"shop");
        let json = change_json(&change, &["binlog.000042".to_owned()]);
        assert_eq!(json["reasons"], json!(["mass_delete", "first_delete"]));
        assert_eq!(json["rows"]["deleted"], 3241);
        assert_eq!(json["tables"][1]["table"], "orders");
        assert_eq!(json["tables"][0]["by_foreign_key"]["deleted"], 2000);
        assert_eq!(json["statement_tables"], json!([{"database": "shop", "table": "a"}]));
        assert_eq!(json["time"], "2025-11-21 04:40:00.123456");
    }
}
