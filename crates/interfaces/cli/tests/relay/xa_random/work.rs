//! What a source does: plain transactions and XA ones, prepared and decided in any order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use binlogz_testkit::random::Random;

/// So many names, each used again once it is decided.
const NAMES: usize = 12;

/// What a source does, as far as the rows' locks matter: nothing touches a row of a transaction that is only prepared.
#[derive(Default)]
pub(super) struct Work {
    next_row: u32,
    /// Rows that are there, and free to be changed.
    free: Vec<u32>,
    /// Prepared transactions: their rows after COMMIT, and after ROLLBACK.
    pub(super) prepared: BTreeMap<usize, (Vec<u32>, Vec<u32>)>,
    /// How many were plain, in one phase, and committed and rolled back in two.
    pub(super) counts: [usize; 4],
}

impl Work {
    /// Changes of one transaction, and its rows after COMMIT and after ROLLBACK.
    fn changes(&mut self, random: &mut Random, sql: &mut String) -> (Vec<u32>, Vec<u32>) {
        let mut after = (Vec::new(), Vec::new());
        for _ in 0..=random.below(4) {
            let change = if self.free.is_empty() { 0 } else { random.below(5) };
            if change < 3 {
                self.next_row += 1;
                let id = self.next_row;
                // Now and then one that is large, and one that is larger than what is held in memory.
                let size = [3, 40, 3000, 90_000, 400_000][random.below(100) / 24];
                let number = random.below(1000);
                writeln!(sql, "INSERT INTO x.t VALUES ({id}, {number}, REPEAT(SHA2({id}, 256), {size} / 64), SHA2({id}, 256));")
                    .unwrap();
                writeln!(sql, "INSERT INTO x.other VALUES ({id}, {number});").unwrap();
                after.0.push(id);
                continue;
            }
            let id = self.free.swap_remove(random.below(self.free.len()));
            after.1.push(id);
            match change {
                3 => {
                    let number = random.below(1000);
                    writeln!(sql, "UPDATE x.t SET number = {number}, note = REVERSE(note) WHERE id = {id};")
                        .unwrap();
                    after.0.push(id);
                }
                _ => {
                    writeln!(sql, "DELETE FROM x.t WHERE id = {id};\nDELETE FROM x.other WHERE id = {id};")
                        .unwrap();
                }
            }
        }
        after
    }

    /// A transaction, or the end of one.
    pub(super) fn step(&mut self, random: &mut Random, sql: &mut String) {
        let names: Vec<usize> = self.prepared.keys().copied().collect();
        match random.below(10) {
            0..3 => {
                sql.push_str("BEGIN;\n");
                let (after, _) = self.changes(random, sql);
                sql.push_str("COMMIT;\n");
                self.free.extend(after);
                self.counts[0] += 1;
            }
            3..6 if names.len() < NAMES => {
                let name = (0..NAMES).find(|name| !self.prepared.contains_key(name)).unwrap();
                writeln!(sql, "XA START 'x{name}', 'branch', {name};").unwrap();
                let after = self.changes(random, sql);
                writeln!(sql, "XA END 'x{name}', 'branch', {name};\nXA PREPARE 'x{name}', 'branch', {name};")
                    .unwrap();
                self.prepared.insert(name, after);
            }
            6 => {
                sql.push_str("XA START 'one';\n");
                let (after, _) = self.changes(random, sql);
                sql.push_str("XA END 'one';\nXA COMMIT 'one' ONE PHASE;\n");
                self.free.extend(after);
                self.counts[1] += 1;
            }
            7 if random.below(4) == 0 => sql.push_str("FLUSH BINARY LOGS;\n"),
            _ if names.is_empty() => {}
            _ => {
                let is_commit = random.below(3) > 0;
                self.decide(names[random.below(names.len())], is_commit, sql);
            }
        }
    }

    /// Ends a prepared transaction.
    pub(super) fn decide(&mut self, name: usize, is_commit: bool, sql: &mut String) {
        let (committed, rolled_back) = self.prepared.remove(&name).unwrap();
        let word = if is_commit { "COMMIT" } else { "ROLLBACK" };
        writeln!(sql, "XA {word} 'x{name}', 'branch', {name};").unwrap();
        self.free.extend(if is_commit { committed } else { rolled_back });
        self.counts[if is_commit { 2 } else { 3 }] += 1;
    }
}
