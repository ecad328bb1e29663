//! Change-data-capture clients: each prints a line for each row of `compat.t`, and one for where to go on.
//!
//! ```text
//! client PORT USER PASSWORD gtid|position PLACE     PLACE: a GTID set, or FILE:OFFSET, or what it printed
//! row ID WORD PRICE AT                              as mysql --batch prints them, between tabs
//! at PLACE                                          all before is done
//! ```
//!
//! `TLS` in the environment asks for TLS. `client.rs` has the clients, `running.rs` one at work, `maxwell.rs` the one that also
//! writes, `sql.rs` clients that only ask in SQL.

mod client;
pub(crate) mod maxwell;
mod running;
pub(crate) mod sql;

use std::sync::Mutex;

use binlogz_testkit::{MysqlSandbox, Result};

use crate::common::Folder;
use crate::replicas::Followed;
use crate::table::{Table, Verdict};
use crate::{FORMS, Relays};
use client::{By, Client};
use running::{Running, Seen};

/// Each is a process or two, and the machine may have two cores.
const AT_A_TIME: usize = 3;

/// The headings above [`in_one_form`].
const IN_ONE_FORM: [&str; 3] =
    ["the source itself", "relay, `uncompressed`", "relay, `uncompressed`, `forward_sql`"];

/// The source itself, and a relay that expands, without and with `forward_sql`.
fn in_one_form(source: &MysqlSandbox, relays: &Relays) -> [Followed; 3] {
    let Relays { usual, forwarding, .. } = relays;
    [
        Followed::source(source),
        Followed::of("uncompressed", usual),
        Followed::of("forwarded_uncompressed", forwarding),
    ]
}

/// The source's rows, up to now.
fn rows_of(source: &MysqlSandbox) -> running::Rows {
    let printed = source.sql("SET NAMES utf8mb4; SELECT id, word, price, at FROM compat.t").unwrap();
    printed.lines().map(|line| (line.split('\t').next().unwrap().parse().unwrap(), line.to_owned())).collect()
}

/// Begins a client, which follows while rows are written, is killed in between, and goes on where it was after more were
/// written. Returns the rows that the source has in the end, or why the client does not get there.
fn follows(
    client: Client,
    source: &MysqlSandbox,
    followed: Followed,
    by: By,
    seen: &mut Seen,
) -> Result<std::result::Result<running::Rows, Verdict>> {
    let folder = Folder::new();
    let state = folder.path("state");
    let start = |place: &str| Running::start(client, followed, by, place, &state);
    let begin = match by {
        _ if client.begins_with_a_snapshot() => "-".into(),
        // One that has the first transaction, which makes the database.
        By::Gtid => format!("{}:1", source.server_uuid()?),
        By::Position => format!("{}:4", followed.first_file),
    };
    let mut running = start(&begin)?;
    let expected = rows_of(source);
    if let Err(verdict) = seen.until(&mut running, |rows| has_all(rows, &expected)) {
        return Ok(Err(verdict));
    }
    crate::Rows::write(source);
    let before = seen.count();
    if let Err(verdict) = seen.until(&mut running, |rows| rows.len() > before) {
        return Ok(Err(verdict.prefixed("rows that come later")));
    }
    drop(running);
    seen.killed();
    crate::Rows::write(source);
    let mut running = start(&seen.place)?;
    let expected = rows_of(source);
    let resumed = seen.until(&mut running, |rows| has_all(rows, &expected));
    Ok(resumed.map(|()| expected).map_err(|verdict| verdict.prefixed("resumed")))
}

fn has_all(rows: &running::Rows, expected: &running::Rows) -> bool {
    rows.len() >= expected.len() && expected.keys().all(|id| rows.contains_key(id))
}

fn verdict(client: Client, source: &MysqlSandbox, followed: Followed, by: By) -> Verdict {
    let mut seen = Seen::default();
    match follows(client, source, followed, by, &mut seen) {
        Ok(Ok(expected)) => seen.verdict(&expected),
        Ok(Err(verdict)) => verdict,
        Err(error) => Verdict::NotTried(error.to_string()),
    }
}

/// Runs all rows of a table, three at a time, in their order.
fn fill(
    table: &mut Table,
    rows: &[(Client, By)],
    name: impl Fn(Client, By) -> String + Sync,
    cells: impl Fn(Client, By) -> Vec<Verdict> + Sync,
) {
    let next = Mutex::new(0);
    let done = Mutex::new(vec![None; rows.len()]);
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let row = {
                        let mut next = next.lock().unwrap();
                        *next += 1;
                        *next - 1
                    };
                    let Some((client, by)) = rows.get(row) else { return };
                    let cells = cells(*client, *by);
                    eprintln!("{}: {cells:?}", name(*client, *by));
                    done.lock().unwrap()[row] = Some(cells);
                }
            });
        }
    });
    for ((client, by), cells) in rows.iter().zip(done.into_inner().unwrap()) {
        table.row(name(*client, *by), cells.unwrap());
    }
}

/// Clients that are wanted: `BINLOGZ_COMPAT_CLIENTS` may name a part of their names.
fn wanted() -> Vec<(Client, By)> {
    let wanted = std::env::var("BINLOGZ_COMPAT_CLIENTS").unwrap_or_default();
    let clients = Client::ALL.into_iter().filter(|client| client.name().contains(&wanted));
    clients.flat_map(|client| client.ways().iter().map(move |by| (client, *by))).collect()
}

pub(crate) fn table(source: &MysqlSandbox, relays: &mut Relays) -> Table {
    let mut table = Table::new(
        "Change-data-capture clients",
        "Each row's columns are compared with the source's. The client is killed while rows come, and begun again where it was after more was \
         written. Its SQL goes to where its dump comes from.",
        Followed::columns(),
    );
    let cells = |client, by| {
        let all = Followed::all(source, &relays.usual).into_iter();
        all.map(|followed| verdict(client, source, followed, by)).collect()
    };
    fill(&mut table, &wanted(), name_of_row, cells);
    table
}

/// Every client and every form of the relay, which passes what it does not answer to the source.
pub(crate) fn table_of_forwarding(source: &MysqlSandbox, relays: &mut Relays) -> Table {
    let mut table = Table::new(
        "The same with `forward_sql`",
        "The relay passes what it does not answer to the source. Else as above.",
        FORMS.iter().map(|(name, _, _)| format!("relay, {name}")).collect(),
    );
    let cells = |client, by| {
        let all = FORMS.iter().map(|(_, [_, user], _)| Followed::of(user, &relays.forwarding));
        all.map(|followed| verdict(client, source, followed, by)).collect()
    };
    fill(&mut table, &wanted(), name_of_row, cells);
    table
}

fn name_of_row(client: Client, by: By) -> String {
    format!("{}, by {}", client.name(), by.names()[1])
}

/// Every client over TLS, in one form.
pub(crate) fn table_of_tls(source: &MysqlSandbox, relays: &mut Relays) -> Table {
    let mut table = Table::new(
        "The same over TLS",
        "The connection is encrypted, or the client refuses; it does not look at the certificate.",
        IN_ONE_FORM.map(str::to_owned).into(),
    );
    let mut rows = wanted();
    rows.retain(|(client, by)| client.speaks_tls() && *by == client.ways()[0]);
    let cells = |client: Client, by| {
        let tls = |followed| Followed { tls: true, ..followed };
        in_one_form(source, relays).map(|followed| verdict(client, source, tls(followed), by)).into()
    };
    fill(&mut table, &rows, name_of_row, cells);
    table
}
