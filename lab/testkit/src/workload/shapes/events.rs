//! Shapes by the events that they make: every kind of row event in a wide table, statements beside their rows, statement format, documents
//! changed in parts. Each draws from a seed of its own, [`super::SEED`] plus its number.

use std::io::{self, Write};

use super::words::{WORDS, sentence, word};
use crate::random::Random;

/// A table of 200 columns of ten types: rows, then updates of one to three columns, images FULL.
pub(super) fn mixed(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    const TYPES: [&str; 10] = [
        "INT",
        "BIGINT",
        "DECIMAL(10,3)",
        "VARCHAR(60)",
        "DATE",
        "DATETIME(3)",
        "DOUBLE",
        "TINYINT",
        "CHAR(8)",
        "FLOAT",
    ];
    let value = |random: &mut Random, column: usize| match column % TYPES.len() {
        _ if random.below(4) == 0 => "NULL".to_owned(),
        0 => random.below(50_000).to_string(),
        1 => (random.bits() >> 20).to_string(),
        2 => format!("{}.{:03}", random.below(100_000), random.below(1000)),
        3 => format!("'{}'", sentence(random, 2)),
        4 => format!(
            "'20{:02}-{:02}-{:02}'",
            10 + random.below(17),
            1 + random.below(12),
            1 + random.below(28)
        ),
        5 => format!(
            "'2026-05-{:02} 10:{:02}:07.{:03}'",
            1 + random.below(28),
            random.below(60),
            random.below(1000)
        ),
        6 => format!("{}.{:04}", random.below(1000), random.below(10_000)),
        7 => random.below(100).to_string(),
        8 => format!("'{:08x}'", random.below(1 << 30)),
        _ => format!("{}.25", random.below(500)),
    };
    let columns: Vec<String> = (0..200).map(|column| format!("c{column} {}", TYPES[column % 10])).collect();
    writeln!(
        out,
        "CREATE DATABASE mixed; CREATE TABLE mixed.facts(id INT PRIMARY KEY, {});",
        columns.join(", ")
    )?;
    for id in 1..=count {
        write!(out, "INSERT INTO mixed.facts VALUES ({id}")?;
        for column in 0..200 {
            write!(out, ",{}", value(random, column))?;
        }
        writeln!(out, ");")?;
    }
    for _ in 0..count * 2 {
        let id = 1 + random.below(count as usize);
        write!(out, "UPDATE mixed.facts SET ")?;
        for place in 0..=random.below(3) {
            let column = random.below(200);
            let comma = if place == 0 { "" } else { "," };
            write!(out, "{comma}c{column}={}", value(random, column))?;
        }
        writeln!(out, " WHERE id={id};")?;
    }
    Ok(())
}

/// The statements stand beside the rows: `binlog_rows_query_log_events`.
pub(super) fn rows_query(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE ticket; CREATE TABLE ticket.entry(id INT PRIMARY KEY, owner INT, title VARCHAR(100), \
         body TEXT, opened DATETIME); SET SESSION binlog_rows_query_log_events=ON;"
    )?;
    for id in 1..=count {
        let title = sentence(random, 5);
        let words = 20 + random.below(60);
        writeln!(
            out,
            "INSERT INTO ticket.entry (id, owner, title, body, opened) VALUES ({id}, {}, '{title}', '{}', \
             '2026-03-{:02} {:02}:{:02}:00');",
            random.below(900),
            sentence(random, words),
            1 + random.below(28),
            random.below(24),
            random.below(60)
        )?;
        if id % 2 == 0 {
            let old = 1 + random.below(id as usize);
            writeln!(out, "UPDATE ticket.entry SET owner = {} WHERE id = {old} LIMIT 1;", random.below(900))?;
        }
    }
    Ok(())
}

/// Statements of an application, in statement format.
pub(super) fn statements(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE stmt; USE stmt; CREATE TABLE account(id INT PRIMARY KEY, name VARCHAR(60), mail VARCHAR(80), \
         balance DECIMAL(12,2), visits INT, seen DATETIME); CREATE TABLE log(id INT PRIMARY KEY, account INT, \
         message VARCHAR(400), at DATETIME); SET SESSION binlog_format=STATEMENT;"
    )?;
    for id in 1..=count {
        let at = format!(
            "2026-07-{:02} {:02}:{:02}:{:02}",
            1 + id / 40_000 % 28,
            id / 3600 % 24,
            id / 60 % 60,
            id % 60
        );
        let account = random.below(20_000);
        match random.below(4) {
            0 => writeln!(
                out,
                "INSERT INTO account (id, name, mail, balance, visits, seen) VALUES ({account}, '{} {}', \
                 '{}{account}@example.org', {}.{:02}, 1, '{at}') ON DUPLICATE KEY UPDATE visits = visits + 1, \
                 seen = VALUES(seen);",
                word(random, &WORDS),
                word(random, &WORDS),
                word(random, &WORDS),
                random.below(9000),
                random.below(100)
            )?,
            1 => writeln!(
                out,
                "UPDATE account SET balance = balance + {}.{:02}, seen = '{at}' WHERE id = {account};",
                random.below(500),
                random.below(100)
            )?,
            2 => writeln!(
                out,
                "UPDATE account SET visits = visits + 1 WHERE id IN ({account}, {});",
                random.below(20_000)
            )?,
            _ => {
                let words = 8 + random.below(20);
                writeln!(
                    out,
                    "INSERT INTO log (id, account, message, at) VALUES ({id}, {account}, '{}', '{at}');",
                    sentence(random, words)
                )?;
            }
        }
    }
    Ok(())
}

/// Documents of one to two kilobytes changed in parts (`PARTIAL_JSON`), with points, lines and areas beside them.
pub(super) fn partial_json(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE partial; CREATE TABLE partial.doc(id INT PRIMARY KEY, doc JSON, place POINT, area POLYGON, \
         way LINESTRING); SET SESSION binlog_row_value_options=PARTIAL_JSON;"
    )?;
    let coordinate = |random: &mut Random, of: f64| of + random.below(100_000) as f64 / 100_000.0;
    for id in 1..=count {
        write!(
            out,
            "INSERT INTO partial.doc VALUES ({id},'{{\"id\":{id},\"state\":\"new\",\"score\":{},\"name\":\"{}\",\
             \"attributes\":{{",
            random.below(1000),
            sentence(random, 3)
        )?;
        for place in 0..12 {
            let comma = if place == 0 { "" } else { "," };
            write!(out, "{comma}\"{}_{place}\":\"{}\"", WORDS[30 + place], sentence(random, 3))?;
        }
        write!(out, "}},\"history\":[")?;
        for place in 0..random.below(10) {
            let comma = if place == 0 { "" } else { "," };
            write!(out, "{comma}{{\"at\":{},\"by\":\"user{}\"}}", random.below(1 << 30), random.below(500))?;
        }
        let x = coordinate(random, 8.0);
        let y = coordinate(random, 47.0);
        write!(out, "]}}',ST_GeomFromText('POINT({x} {y})'),ST_GeomFromText('POLYGON(({x} {y},")?;
        write!(
            out,
            "{} {y},{} {},{x} {y}))'),ST_GeomFromText('LINESTRING({x} {y}",
            x + 0.5,
            x + 0.5,
            y + 0.25
        )?;
        let mut along = x;
        let mut up = y;
        for _ in 0..4 + random.below(8) {
            along += coordinate(random, 0.0) / 100.0;
            up += coordinate(random, 0.0) / 100.0;
            write!(out, ",{along:.6} {up:.6}")?;
        }
        writeln!(out, ")'));")?;
        for _ in 0..4 {
            let old = 1 + random.below(id as usize);
            let score = random.below(1000);
            match random.below(3) {
                0 => writeln!(
                    out,
                    "UPDATE partial.doc SET doc=JSON_SET(doc,'$.score',{score}) WHERE id={old};"
                )?,
                1 => writeln!(
                    out,
                    "UPDATE partial.doc SET doc=JSON_REPLACE(doc,'$.state','sent') WHERE id={old};"
                )?,
                _ => writeln!(
                    out,
                    "UPDATE partial.doc SET doc=JSON_SET(doc,'$.attributes.{}_{}','{}') WHERE id={old};",
                    WORDS[30],
                    0,
                    sentence(random, 3)
                )?,
            }
        }
    }
    Ok(())
}
