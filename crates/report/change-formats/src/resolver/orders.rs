//! Debezium's metadata of transactions: numbers the rows of a transaction, in all and for each table, and writes the messages
//! that begin and end it.
//!
//! ```text
//! \x02"ID"\t1700000000000\t"shop.orders"\n   before rows of a table: their transaction, its time, the table
//! …"transaction":\0,"op":"c"…               a row: the mark stands for {"id":"ID","total_order":1,"data_collection_order":1}
//! \x011700000000000\n                        the transaction's end
//! ```
//!
//! A transaction begins with the first row that is written: one without any has no messages.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{END, MARK, ROWS};
use crate::java::{Escapes, push_string};

/// Numbers the rows of Debezium's transactions, in all and for each table, and writes the messages that begin and end
/// them.
#[derive(Debug)]
pub(super) struct Orders {
    with_key: bool,
    open: Option<Transaction>,
    text: Vec<u8>,
}

/// A transaction of which rows were written.
#[derive(Debug)]
struct Transaction {
    /// In quotes.
    id: Vec<u8>,
    rows: u64,
    /// In the order of their first rows.
    tables: Vec<Table>,
    by_name: HashMap<Vec<u8>, usize>,
    /// The table whose rows are next.
    table: usize,
}

#[derive(Debug)]
struct Table {
    /// In quotes.
    name: Vec<u8>,
    rows: u64,
}

/// Appends the line before rows of a table.
pub(crate) fn push_rows(out: &mut Vec<u8>, id: &str, time_ms: u64, (database, table): (&str, &str)) {
    out.push(ROWS);
    push_string(out, id, Escapes::Jackson);
    // Writing to a vector can't fail.
    let _ = write!(out, "\t{time_ms}\t");
    push_string(out, &format!("{database}.{table}"), Escapes::Jackson);
    out.push(b'\n');
}

/// Appends the line that ends a transaction.
pub(crate) fn push_end(out: &mut Vec<u8>, time_ms: u64) {
    out.push(END);
    let _ = writeln!(out, "{time_ms}");
}

impl Orders {
    pub(super) fn new(with_key: bool) -> Self {
        Orders { with_key, open: None, text: Vec::new() }
    }

    /// Takes whole lines; writes them with their numbers.
    pub(super) fn take(&mut self, lines: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.text.clear();
        let mut rest = lines;
        while let Some(at) = rest.iter().position(|&byte| byte <= ROWS) {
            let (before, after) = rest.split_at(at);
            self.text.extend_from_slice(before);
            let Some((&kind, after)) = after.split_first() else { break };
            if kind == MARK {
                self.push_block();
                rest = after;
                continue;
            }
            let end = after.iter().position(|&byte| byte == b'\n').unwrap_or(after.len());
            let (line, after) = after.split_at(end);
            if kind == END {
                self.end(line)
            } else {
                self.rows(line)
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.text.extend_from_slice(rest);
        out.write_all(&self.text)
    }

    /// Rows of a table follow.
    fn rows(&mut self, line: &[u8]) {
        let mut fields = line.split(|&byte| byte == b'\t');
        let (Some(id), Some(time), Some(table)) = (fields.next(), fields.next(), fields.next()) else {
            return;
        };
        if self.open.as_ref().is_none_or(|open| open.id != id) {
            self.push_key(id);
            push_all(&mut self.text, &[b"{\"status\":\"BEGIN\",\"id\":", id]);
            push_all(
                &mut self.text,
                &[b",\"event_count\":null,\"data_collections\":null,\"ts_ms\":", time, b"}\n"],
            );
            self.open = Some(Transaction {
                id: id.to_vec(),
                rows: 0,
                tables: Vec::new(),
                by_name: HashMap::new(),
                table: 0,
            });
        }
        let Some(open) = &mut self.open else { return };
        open.table = *open.by_name.entry(table.to_vec()).or_insert_with(|| {
            open.tables.push(Table { name: table.to_vec(), rows: 0 });
            open.tables.len() - 1
        });
    }

    /// A row's numbers.
    fn push_block(&mut self) {
        let Some(open) = &mut self.open else { return };
        let Some(table) = open.tables.get_mut(open.table) else { return };
        open.rows += 1;
        table.rows += 1;
        push_all(&mut self.text, &[b"{\"id\":", &open.id]);
        let _ =
            write!(self.text, ",\"total_order\":{},\"data_collection_order\":{}}}", open.rows, table.rows);
    }

    fn end(&mut self, time: &[u8]) {
        let Some(open) = self.open.take() else { return };
        self.push_key(&open.id);
        push_all(&mut self.text, &[b"{\"status\":\"END\",\"id\":", &open.id]);
        let _ = write!(self.text, ",\"event_count\":{},\"data_collections\":[", open.rows);
        for (index, table) in open.tables.iter().enumerate() {
            let between: &[u8] = if index == 0 { b"" } else { b"," };
            push_all(&mut self.text, &[between, b"{\"data_collection\":", &table.name]);
            let _ = write!(self.text, ",\"event_count\":{}}}", table.rows);
        }
        push_all(&mut self.text, &[b"],\"ts_ms\":", time, b"}\n"]);
    }

    fn push_key(&mut self, id: &[u8]) {
        if self.with_key {
            push_all(&mut self.text, &[b"{\"id\":", id, b"}\t"]);
        }
    }
}

fn push_all(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<u8> {
        let mut lines = Vec::new();
        push_rows(&mut lines, "u:1", 5, ("shop", "a\tb"));
        lines.extend_from_slice(b"{r,\0}\n{s,\0}\n");
        push_rows(&mut lines, "u:1", 5, ("shop", "t"));
        lines.extend_from_slice(b"{t,\0}\n");
        push_rows(&mut lines, "u:1", 5, ("shop", "a\tb"));
        lines.extend_from_slice(b"{u,\0}\n");
        push_end(&mut lines, 6);
        // None of its rows are written.
        push_end(&mut lines, 7);
        lines.extend_from_slice(b"{\"plain\":1}\n");
        // Cut off by the end of its log.
        push_rows(&mut lines, "u:3", 8, ("shop", "t"));
        lines.extend_from_slice(b"{v,\0}\n");
        push_rows(&mut lines, "u:4", 9, ("shop", "t"));
        lines.extend_from_slice(b"{w,\0}\n");
        push_end(&mut lines, 9);
        lines
    }

    const BLOCKS: [&str; 6] = [
        r#"{r,{"id":"u:1","total_order":1,"data_collection_order":1}}"#,
        r#"{s,{"id":"u:1","total_order":2,"data_collection_order":2}}"#,
        r#"{t,{"id":"u:1","total_order":3,"data_collection_order":1}}"#,
        r#"{u,{"id":"u:1","total_order":4,"data_collection_order":3}}"#,
        r#"{v,{"id":"u:3","total_order":1,"data_collection_order":1}}"#,
        r#"{w,{"id":"u:4","total_order":1,"data_collection_order":1}}"#,
    ];

    #[test]
    fn rows_are_numbered_wherever_lines_are_cut() {
        let begin = |id: &str, time: u64| {
            format!(
                r#"{{"status":"BEGIN","id":"{id}","event_count":null,"data_collections":null,"ts_ms":{time}}}"#
            )
        };
        let [r, s, t, u, v, w] = BLOCKS;
        let expected = [
            &begin("u:1", 5),
            r,
            s,
            t,
            u,
            r#"{"status":"END","id":"u:1","event_count":4,"data_collections":[{"data_collection":"shop.a\tb","event_count":3},{"data_collection":"shop.t","event_count":1}],"ts_ms":6}"#,
            r#"{"plain":1}"#,
            &begin("u:3", 8),
            v,
            &begin("u:4", 9),
            w,
            r#"{"status":"END","id":"u:4","event_count":1,"data_collections":[{"data_collection":"shop.t","event_count":1}],"ts_ms":9}"#,
            "",
        ]
        .join("\n");
        let lines = lines();
        let cuts = lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        for cut in cuts {
            let (front, back) = lines.split_at(cut);
            let mut out = Vec::new();
            let mut orders = Orders::new(false);
            orders.take(front, &mut out).unwrap();
            orders.take(back, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn messages_of_a_transaction_have_its_id_as_key() {
        let mut out = Vec::new();
        Orders::new(true).take(&lines(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let with_status: Vec<_> = text.lines().filter(|line| line.contains("\"status\"")).collect();
        assert_eq!(with_status.len(), 5);
        assert!(with_status.iter().all(|line| line.starts_with("{\"id\":\"u:")), "{text}");
        assert!(with_status[0].starts_with("{\"id\":\"u:1\"}\t{\"status\":\"BEGIN\""), "{text}");
    }
}
