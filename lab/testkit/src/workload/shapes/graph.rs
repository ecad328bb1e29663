//! The edges of a growing graph, as of people who follow each other. They are drawn from a seed of their own, [`super::SEED`] plus its
//! number.

use std::io::{self, Write};

use super::words::skewed;
use crate::random::Random;

/// One of this many edges goes again.
const REMOVED: usize = 9;

/// Edges, one to twelve an INSERT: from the newest nodes to those that many follow already. `count` is the number of INSERTs.
pub(super) fn edges(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE graph; CREATE TABLE graph.edge(source BIGINT UNSIGNED, target BIGINT UNSIGNED, \
         kind ENUM('follows','likes','blocks','knows'), weight FLOAT NOT NULL, since DATE NOT NULL, \
         PRIMARY KEY (source, kind, target), KEY (target, source));"
    )?;
    // Ends of edges: a node that many follow is drawn as often.
    let mut ends: Vec<u64> = vec![1, 2, 3];
    for number in 0..u64::from(count) {
        let newest = 4 + number / 3;
        let source = if random.below(3) == 0 { 1 + random.below(newest as usize) as u64 } else { newest };
        let date = format!("2026-{:02}-{:02}", 1 + number * 12 / u64::from(count), 1 + random.below(28));
        write!(out, "INSERT IGNORE INTO graph.edge VALUES ")?;
        for edge in 0..1 + random.below(12) {
            let target = ends[random.below(ends.len())];
            let kind = 1 + skewed(random, 4);
            let comma = if edge == 0 { "" } else { "," };
            write!(out, "{comma}({source},{target},{kind},{},'{date}')", random.below(1000) as f64 / 1000.0)?;
            ends.push(target);
        }
        ends.push(source);
        writeln!(out, ";")?;
        if random.below(REMOVED) == 0 {
            let left = ends[random.below(ends.len())];
            writeln!(out, "DELETE FROM graph.edge WHERE target = {left} ORDER BY source LIMIT 3;")?;
        }
    }
    Ok(())
}
