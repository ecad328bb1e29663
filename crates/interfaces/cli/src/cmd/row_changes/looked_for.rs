//! Which parts of an archived log may have the chosen changes: the others are neither read nor unpacked.

use std::cell::RefCell;
use std::collections::BTreeSet;

use binlogz_archive::format::Key;
use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::part::{BlockRun, TableRows};
use binlogz_row_changes::{CarryingKeys, KeySpan, Range, RowSelection, WantedKeys};
use binlogz_schema::SchemaFile;

/// The part of a log that is looked for.
pub(in crate::cmd) struct RecoverSearch<'o> {
    pub(in crate::cmd) selection: &'o RowSelection,
    /// The foreign keys whose parents' changes matter too.
    keys_below: Option<&'o CarryingKeys<'o>>,
    pub(in crate::cmd) schema: Option<&'o SchemaFile>,
    pub(in crate::cmd) range: Range,
    /// Whether statements matter that are no transaction control, also of transactions that are not chosen.
    pub(in crate::cmd) statements: bool,
    /// Whether transactions were passed over that were chosen and have no row that is.
    pub(in crate::cmd) has_passed_chosen: bool,
    /// The places, among the tables that were named, of those that had rows in them.
    pub(in crate::cmd) passed_tables: BTreeSet<usize>,
}

impl<'o> RecoverSearch<'o> {
    pub(in crate::cmd) fn new(
        (selection, keys_below): (&'o RowSelection, Option<&'o CarryingKeys<'o>>),
        schema: Option<&'o SchemaFile>,
        range: Range,
        statements: bool,
    ) -> Self {
        let passed_tables = BTreeSet::new();
        RecoverSearch {
            selection,
            keys_below,
            schema,
            range,
            statements,
            has_passed_chosen: false,
            passed_tables,
        }
    }

    /// Whether a part may have it.
    pub(in crate::cmd) fn may_be_in(&mut self, run: &BlockRun<'_>) -> bool {
        let selection = self.selection;
        // Positions are those of the log as it was, and its end has to be seen.
        if self.range.start > 0 || self.range.stop < u64::MAX {
            return true;
        }
        if selection.stop_before_gtid.as_ref().is_some_and(|stop| run.gtids.contains(stop)) {
            return true;
        }
        if self.statements && (run.may_have_statements() || run.may_end_xa()) {
            return true;
        }
        if selection.gtids.as_ref().is_some_and(|wanted| wanted.is_disjoint(&run.gtids)) {
            return false;
        }
        if let Some((first, last)) = run.commits() {
            let micros = |second: u64| i64::try_from(second.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
            // Commits of the last second come up to its end.
            let first = micros(first);
            let last = micros(last.saturating_add(1));
            let is_early = selection.start_time.is_some_and(|start| last <= start);
            let is_late = selection.stop_time.is_some_and(|stop| first >= stop);
            if is_early || is_late {
                return false;
            }
        }
        let met = RefCell::new(Vec::new());
        let is_in = run.may_have_rows(&|rows| {
            met.borrow_mut().extend(selection.place_of(&rows.name.database, &rows.name.table));
            self.may_be_among(&rows)
        });
        if !is_in && selection.thread_ids.is_empty() && !run.gtids.is_empty() {
            self.has_passed_chosen = true;
            self.passed_tables.extend(met.into_inner());
        }
        is_in
    }

    /// Whether a part may have rows of the chosen tables, or of others whose changes foreign keys carry on to these.
    pub(in crate::cmd) fn has_its_tables(&self, run: &BlockRun<'_>) -> bool {
        run.may_have_rows(&|rows| {
            let (database, table) = (&rows.name.database[..], &rows.name.table[..]);
            self.selection.has_table(database, table)
                || self.keys_below.is_some_and(|keys| keys.may_reach_from(database, table))
        })
    }

    fn may_be_among(&self, rows: &TableRows<'_>) -> bool {
        let counts = rows.rows;
        let is_parent = |keys: &CarryingKeys<'_>| keys.has_parent(&rows.name.database, &rows.name.table);
        if counts.updated + counts.deleted > 0 && self.keys_below.is_some_and(is_parent) {
            return true;
        }
        if !self.selection.wants(counts.inserted, counts.updated, counts.deleted) {
            return false;
        }
        let name = rows.name;
        let table = (&name.database[..], &name.table[..]);
        let Some(key) = &name.key else { return self.selection.has_table(table.0, table.1) };
        match self.selection.keys(table, (key.index, key.name.as_deref()), self.schema) {
            WantedKeys::Nothing => false,
            WantedKeys::All => true,
            WantedKeys::Some(spans) => rows.may_have(&spans.into_iter().map(probe).collect::<Vec<_>>()),
        }
    }
}

fn probe(span: KeySpan) -> KeyProbe {
    KeyProbe { numbers: span.numbers, text: span.text.map(|text| Key::of_bytes(&text)) }
}
