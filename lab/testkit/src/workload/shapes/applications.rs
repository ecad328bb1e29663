//! Shapes of data that applications keep in MySQL: a queue, a shop, UUIDs, measurements, audit lines, thousands of
//! tables. Each draws from a seed of its own, [`super::SEED`] plus its number.

use std::io::{self, Write};

use super::words::{MULTILINGUAL, WORDS, sentence, word};
use crate::random::Random;

/// A job is put in, taken and removed: three tiny transactions each.
pub(super) fn queue(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE queue; CREATE TABLE queue.job(id BIGINT PRIMARY KEY, kind VARCHAR(32) NOT NULL, \
         state ENUM('new','running','done') NOT NULL, attempts INT NOT NULL, worker INT, payload VARCHAR(300));"
    )?;
    let kinds = ["mail.send", "thumbnail.make", "invoice.print", "search.index", "webhook.call"];
    for id in 1..=count {
        let kind = word(random, &kinds);
        let user = random.below(100_000);
        let template = random.below(40);
        writeln!(
            out,
            "INSERT INTO queue.job VALUES ({id},'{kind}','new',0,NULL,'{{\"user\":{user},\"template\":{template}}}');\n\
             UPDATE queue.job SET state='running',attempts=1,worker={} WHERE id={id};",
            random.below(16)
        )?;
        if let Some(old) = id.checked_sub(20).filter(|&old| old > 0) {
            writeln!(out, "DELETE FROM queue.job WHERE id={old};")?;
        }
    }
    Ok(())
}

/// Orders with their items in one transaction each, decimals, remarks in many languages; half of the orders move on.
pub(super) fn shop(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE shop; CREATE TABLE shop.orders(id INT PRIMARY KEY, customer INT, placed DATETIME, \
         total DECIMAL(12,2), state VARCHAR(12), remark VARCHAR(500)); \
         CREATE TABLE shop.item(order_id INT, line INT, product INT, name VARCHAR(80), quantity INT, \
         price DECIMAL(10,2), PRIMARY KEY(order_id,line));"
    )?;
    for id in 1..=count {
        let mut lines = String::new();
        let mut total = 0;
        for line in 1..=1 + random.below(4) {
            let product = random.below(5000);
            let quantity = 1 + random.below(4);
            let price = 99 + product * 37 % 20_000;
            total += quantity * price;
            let name = format!("{} {} {product}", WORDS[40 + product % 16], WORDS[48 + product / 16 % 16]);
            let comma = if line == 1 { "" } else { "," };
            lines += &format!(
                "{comma}({id},{line},{product},'{name}',{quantity},{}.{:02})",
                price / 100,
                price % 100
            );
        }
        let mut remark = sentence(random, 4 + id as usize % 8);
        for _ in 0..random.below(6) {
            remark.push(' ');
            remark.push_str(word(random, &MULTILINGUAL));
        }
        let minute = id / 3;
        writeln!(
            out,
            "BEGIN; INSERT INTO shop.orders VALUES ({id},{},'2026-{:02}-{:02} {:02}:{:02}:{:02}',{}.{:02},'placed',\
             '{remark}'); INSERT INTO shop.item VALUES {lines}; COMMIT;",
            random.below(30_000),
            1 + minute / 40_320 % 12,
            1 + minute / 1440 % 28,
            minute / 60 % 24,
            minute % 60,
            random.below(60),
            total / 100,
            total % 100
        )?;
        if id > 50 && random.below(2) == 0 {
            let old = id - random.below(50) as u32;
            let state = ["paid", "sent", "received"][random.below(3)];
            writeln!(out, "UPDATE shop.orders SET state='{state}' WHERE id={old};")?;
        }
    }
    Ok(())
}

/// Rows under UUIDs of version 7, each with a parent; updates with images MINIMAL.
pub(super) fn uuids(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE uuids; CREATE TABLE uuids.event(id BINARY(16) PRIMARY KEY, parent BINARY(16), \
         kind SMALLINT, amount DECIMAL(10,2), note VARCHAR(80), changed DATETIME(3)); \
         SET SESSION binlog_row_image=MINIMAL;"
    )?;
    let mut milliseconds = 1_767_225_600_000u64;
    let mut recent: Vec<String> = Vec::new();
    for _ in 0..count {
        milliseconds += random.below(40) as u64;
        let random_part = random.bits();
        let id = format!("{milliseconds:012x}7{:03x}{:016x}", random.below(4096), random_part >> 2 | 1 << 63);
        let parent = match recent.is_empty() || random.below(3) == 0 {
            true => "NULL".into(),
            false => format!("0x{}", recent[random.below(recent.len())]),
        };
        writeln!(
            out,
            "INSERT INTO uuids.event VALUES (0x{id},{parent},{},{}.{:02},'{}','2026-01-01 00:00:00');",
            random.below(20),
            random.below(3000),
            random.below(100),
            sentence(random, 3)
        )?;
        if let Some(old) = recent.get(random.below(200)).filter(|_| random.below(2) == 0) {
            writeln!(
                out,
                "UPDATE uuids.event SET kind={},changed='2026-01-{:02} {:02}:{:02}:{:02}.{:03}' WHERE id=0x{old};",
                random.below(20),
                1 + milliseconds / 86_400_000 % 28,
                milliseconds / 3_600_000 % 24,
                milliseconds / 60_000 % 60,
                milliseconds / 1000 % 60,
                milliseconds % 1000
            )?;
        }
        if recent.len() == 200 {
            recent.swap_remove(random.below(200));
        }
        recent.push(id);
    }
    Ok(())
}

/// Measurements of 500 devices, in batches of 20: doubles that drift, and one computed from another.
pub(super) fn measurements(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE iot; CREATE TABLE iot.reading(device INT, at DATETIME(6), celsius DOUBLE, fahrenheit DOUBLE, \
         humidity DOUBLE, volts DOUBLE, quality TINYINT, PRIMARY KEY(device,at));"
    )?;
    let mut states: Vec<(f64, f64)> = (0..500)
        .map(|_| (random.below(3000) as f64 / 100.0, 30.0 + random.below(400) as f64 / 10.0))
        .collect();
    let mut microseconds = 0u64;
    for number in 0..count {
        let (comma, end) = if number % 20 == 0 { ("INSERT INTO iot.reading VALUES ", "") } else { (",", "") };
        microseconds += 1 + random.below(20_000) as u64;
        let device = random.below(500);
        let state = &mut states[device];
        state.0 += (random.below(21) as f64 - 10.0) / 100.0;
        state.1 += (random.below(2001) as f64 - 1000.0) / 10_000.0;
        let seconds = microseconds / 1_000_000;
        write!(
            out,
            "{comma}({device},'2026-06-{:02} {:02}:{:02}:{:02}.{:06}',{:.2},{},{},{:.3},{}){end}",
            1 + seconds / 86_400 % 28,
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            microseconds % 1_000_000,
            state.0,
            (state.0 * 100.0).round() / 100.0 * 1.8 + 32.0,
            state.1,
            3.0 + random.below(700) as f64 / 1000.0,
            random.below(4)
        )?;
        if number % 20 == 19 || number + 1 == count {
            writeln!(out, ";")?;
        }
    }
    Ok(())
}

/// Lines of an audit: addresses, user agents, and what was done as JSON of one to four kilobytes, in a text column.
pub(super) fn audit(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE audit; CREATE TABLE audit.line(id BIGINT PRIMARY KEY, at DATETIME(3), ip VARCHAR(45), \
         agent VARCHAR(255), action VARCHAR(40), detail MEDIUMTEXT);"
    )?;
    let systems = ["Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64"];
    let actions = ["login", "logout", "record.read", "record.write", "export", "permission.change"];
    let fields =
        ["name", "status", "owner", "amount", "due", "comment", "priority", "region", "tags", "version"];
    for id in 1..=count {
        let agent = format!(
            "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.{}.{} Safari/537.36",
            word(random, &systems),
            110 + random.below(20),
            5000 + random.below(900),
            random.below(200)
        );
        let ip = format!(
            "{}.{}.{}.{}",
            10 + random.below(80),
            random.below(256),
            random.below(256),
            random.below(256)
        );
        let action = word(random, &actions);
        let mut detail = format!(
            "{{\"request\":\"{:016x}\",\"session\":\"{:08x}\",\"user\":{{\"id\":{},\"role\":\"{}\"}},\"changes\":[",
            random.bits(),
            random.below(1 << 32),
            random.below(8000),
            ["reader", "editor", "admin"][random.below(3)]
        );
        for change in 0..5 + random.below(20) {
            let comma = if change == 0 { "" } else { "," };
            let field = word(random, &fields);
            let (old, new) = match random.below(3) {
                0 => (random.below(10_000).to_string(), random.below(10_000).to_string()),
                1 => (format!("\"{}\"", sentence(random, 2)), format!("\"{}\"", sentence(random, 3))),
                _ => ("null".into(), format!("\"2026-0{}-1{}\"", 1 + random.below(9), random.below(10))),
            };
            detail += &format!(
                "{comma}{{\"field\":\"{field}\",\"record\":{},\"old\":{old},\"new\":{new}}}",
                random.below(90_000)
            );
        }
        detail += "]}";
        writeln!(
            out,
            "INSERT INTO audit.line VALUES ({id},'2026-04-{:02} {:02}:{:02}:{:02}.{:03}','{ip}','{agent}','{action}',\
             '{detail}');",
            1 + id / 3600 % 28,
            id / 150 % 24,
            id / 60 % 60,
            id % 60,
            random.below(1000)
        )?;
    }
    Ok(())
}

/// Tables of twelve definitions in 50 schemas, each tenth one partitioned, altered now and then; a row or a few at a
/// time, here and there.
pub(super) fn tables(out: &mut dyn Write, random: &mut Random, tables: u32, count: u32) -> io::Result<()> {
    const SCHEMAS: usize = 50;
    const EXTRA: [&str; 6] = [
        "note VARCHAR(120)",
        "rank INT",
        "at DATETIME",
        "price DECIMAL(9,2)",
        "flag TINYINT",
        "code CHAR(12)",
    ];
    let name = |table: usize| format!("tenant_{:02}.{}_{table:04}", table % SCHEMAS, WORDS[10 + table % 50]);
    let columns_of = |table: usize| -> Vec<&str> {
        let definition = table % 12;
        (0..3 + definition % 4)
            .map(|place| EXTRA[(definition * 5 + place * (1 + definition % 3)) % 6])
            .collect()
    };
    let value = |random: &mut Random, column: &str| match column.split(' ').next() {
        Some("note") => format!("'{}'", sentence(random, 5)),
        Some("at") => format!(
            "'2026-08-{:02} {:02}:{:02}:{:02}'",
            1 + random.below(28),
            random.below(24),
            random.below(60),
            random.below(60)
        ),
        Some("price") => format!("{}.{:02}", random.below(2000), random.below(100)),
        Some("flag") => random.below(3).to_string(),
        Some("code") => format!("'{:08X}'", random.below(1 << 24)),
        _ => random.below(100_000).to_string(),
    };
    for schema in 0..SCHEMAS {
        writeln!(out, "CREATE DATABASE tenant_{schema:02};")?;
    }
    for table in 0..tables as usize {
        let columns: Vec<String> = columns_of(table)
            .iter()
            .enumerate()
            .map(|(place, column)| format!("p{place}_{column}"))
            .collect();
        let partitions = if table % 10 == 3 { " PARTITION BY HASH(id) PARTITIONS 4" } else { "" };
        writeln!(
            out,
            "CREATE TABLE {}(id INT PRIMARY KEY, owner INT NOT NULL, name VARCHAR(60), {}){partitions};",
            name(table),
            columns.join(", ")
        )?;
    }
    let mut next = vec![1u32; tables as usize];
    for number in 0..count {
        // A tenth of the tables have half of the traffic.
        let table = match random.below(2) {
            0 => random.below((tables as usize).div_ceil(10)),
            _ => random.below(tables as usize),
        };
        let columns = columns_of(table);
        let id = next[table];
        match random.below(10) {
            0..6 => {
                write!(out, "INSERT INTO {} VALUES ", name(table))?;
                let rows = 1 + random.below(4) as u32;
                for row in 0..rows {
                    let comma = if row == 0 { "" } else { "," };
                    write!(out, "{comma}({},{},'{}'", id + row, random.below(5000), sentence(random, 2))?;
                    for column in &columns {
                        write!(out, ",{}", value(random, column))?;
                    }
                    write!(out, ")")?;
                }
                writeln!(out, ";")?;
                next[table] += rows;
            }
            6..9 if id > 1 => {
                let column = columns[0];
                let of = column.split(' ').next().unwrap_or_default();
                let new = value(random, column);
                let old = 1 + random.below(id as usize - 1);
                writeln!(out, "UPDATE {} SET p0_{of}={new},owner=owner+1 WHERE id={old};", name(table))?;
            }
            _ if id > 1 => {
                writeln!(out, "DELETE FROM {} WHERE id={};", name(table), 1 + random.below(id as usize - 1))?;
            }
            _ => {}
        }
        if number % 4000 == 3999 {
            writeln!(out, "ALTER TABLE {} COMMENT='{}';", name(table), sentence(random, 3))?;
        }
    }
    Ok(())
}
