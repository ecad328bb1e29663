//! Statements that fill a table of every column type with values at the type's limits and with random
//! ones: both signs, every number of fraction digits, NULL, empty, lengths around each size of a length
//! prefix.

mod json;
mod strings;

use std::fmt::Write as _;

use binlogz_testkit::random::Random;

/// Rows of random values in each table.
const RANDOM_ROWS: usize = 20;

/// All statements, from an empty server on.
pub(crate) fn statements(random: &mut Random) -> String {
    let mut sql = String::from(
        "CREATE DATABASE limits; USE limits;
         SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00';\n",
    );
    integers(&mut sql, random);
    decimals(&mut sql, random);
    floats(&mut sql, random);
    bits_and_members(&mut sql, random);
    times(&mut sql, random);
    strings::statements(&mut sql, random);
    json::statements(&mut sql, random);
    images(&mut sql);
    sql
}

/// A table, then a row for each list of values and one of NULLs.
fn table(sql: &mut String, name: &str, columns: &[String], rows: &[Vec<String>]) {
    let definitions: Vec<_> =
        columns.iter().enumerate().map(|(i, column)| format!("c{i} {column}")).collect();
    write_line(sql, format!("CREATE TABLE {name} ({})", definitions.join(", ")));
    let nulls = vec!["NULL".to_owned(); columns.len()];
    for row in rows.iter().chain([&nulls]) {
        assert_eq!(row.len(), columns.len(), "{name}");
        write_line(sql, format!("INSERT INTO {name} VALUES ({})", row.join(", ")));
    }
}

fn write_line(sql: &mut String, statement: String) {
    writeln!(sql, "{statement};").expect("a string takes all");
}

fn integers(sql: &mut String, random: &mut Random) {
    let types = [("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)];
    // YEAR between them: it does not count as a number in the signedness bits.
    let columns: Vec<_> = types
        .iter()
        .flat_map(|(name, _)| [(*name).to_owned(), format!("{name} UNSIGNED"), "YEAR".into()])
        .collect();
    let row = |value: &mut dyn FnMut(u32) -> (i128, i128, u64)| {
        let values = types.iter().flat_map(|&(_, bits)| {
            let (signed, unsigned, year) = value(bits);
            [signed.to_string(), unsigned.to_string(), year.to_string()]
        });
        values.collect::<Vec<_>>()
    };
    let mut rows = vec![
        row(&mut |bits| (-(1 << (bits - 1)), 0, 0)),
        row(&mut |bits| ((1 << (bits - 1)) - 1, (1 << bits) - 1, 2155)),
        row(&mut |bits| (-1, 1 << (bits - 1), 1901)),
        row(&mut |_| (0, 1, 1970)),
    ];
    for _ in 0..RANDOM_ROWS {
        rows.push(row(&mut |bits| {
            let number = i128::from(random.bits() >> (64 - bits));
            (number - (1 << (bits - 1)), number, 1901 + random.bits() % 255)
        }));
    }
    table(sql, "integers", &columns, &rows);
}

/// Every precision with every scale.
fn decimals(sql: &mut String, random: &mut Random) {
    for precision in 1..=65usize {
        let scales: Vec<usize> = (0..=precision.min(30)).collect();
        let columns: Vec<_> = scales.iter().map(|scale| format!("DECIMAL({precision},{scale})")).collect();
        let row = |digits: &mut dyn FnMut(usize) -> String| {
            let number = |&scale: &usize| {
                let digits = digits(precision);
                let sign = if digits.starts_with('-') { "-" } else { "" };
                let digits = digits.trim_start_matches('-');
                let (integer, fraction) = digits.split_at(precision - scale);
                format!("{sign}{integer}.{fraction}0")
            };
            scales.iter().map(number).collect::<Vec<_>>()
        };
        let mut rows = vec![
            row(&mut |count| "9".repeat(count)),
            row(&mut |count| format!("-{}", "9".repeat(count))),
            row(&mut |count| "0".repeat(count)),
            row(&mut |count| format!("-{:0>count$}", 1)),
        ];
        for _ in 0..4 {
            rows.push(row(&mut |count| {
                let zeros = random.below(count + 1);
                let sign = if random.below(2) == 0 { "-" } else { "" };
                let digits = (0..count).map(|at| if at < zeros { 0 } else { random.below(10) });
                sign.chars().chain(digits.map(|digit| char::from(b'0' + digit as u8))).collect()
            }));
        }
        table(sql, &format!("decimals_{precision}"), &columns, &rows);
    }
}

fn floats(sql: &mut String, random: &mut Random) {
    let edges = [
        (f32::MAX, f64::MAX),
        (f32::MIN, f64::MIN),
        (f32::MIN_POSITIVE, f64::MIN_POSITIVE),
        (1e-45, 5e-324),
        (0.0, -0.0),
        (-0.0, 0.1),
        (16_777_217.0, 9_007_199_254_740_993.0),
        (999_999.5, 99_999_999_999_999_999_999.0),
    ];
    let powers = (-10..25).map(|exponent| (1.5 * 10f32.powi(exponent), 1.2345 * 10f64.powi(exponent)));
    let randoms =
        std::iter::repeat_with(|| (f32::from_bits(random.bits() as u32), f64::from_bits(random.bits())))
            .filter(|(float, double)| float.is_finite() && double.is_finite())
            .take(500);
    let rows: Vec<_> = edges
        .into_iter()
        .chain(powers)
        .chain(randoms)
        .map(|(float, double)| vec![format!("{float:e}"), format!("{double:e}")])
        .collect();
    table(sql, "floats", &["FLOAT".into(), "DOUBLE".into()], &rows);
}

/// BIT of every width, SET of every size, ENUM of both.
fn bits_and_members(sql: &mut String, random: &mut Random) {
    let columns: Vec<_> = (1..=64).map(|bits| format!("BIT({bits})")).collect();
    let row =
        |value: &mut dyn FnMut(u32) -> u64| (1..=64).map(|bits| value(bits).to_string()).collect::<Vec<_>>();
    let mut rows = vec![row(&mut |_| 0), row(&mut |_| 1), row(&mut |bits| u64::MAX >> (64 - bits))];
    for _ in 0..RANDOM_ROWS {
        rows.push(row(&mut |bits| random.bits() >> (64 - bits)));
    }
    table(sql, "bits", &columns, &rows);

    let sizes = [1, 8, 9, 16, 17, 24, 25, 32, 33, 64];
    let members = |count: u32| (0..count).map(|n| format!("'m{n}'")).collect::<Vec<_>>().join(", ");
    let columns: Vec<_> = sizes.iter().map(|&count| format!("SET({})", members(count))).collect();
    let row = |value: &mut dyn FnMut(u32) -> u64| sizes.map(|count| value(count).to_string()).to_vec();
    let mut rows = vec![row(&mut |_| 0), row(&mut |_| 1), row(&mut |count| u64::MAX >> (64 - count))];
    for _ in 0..RANDOM_ROWS {
        rows.push(row(&mut |count| random.bits() >> (64 - count)));
    }
    table(sql, "sets", &columns, &rows);

    let columns = [1, 255, 256, 700].map(|count| format!("ENUM({})", members(count)));
    // Outside strict mode, an unknown member becomes number 0.
    let rows = [
        ["''", "'?'", "''", "'?'"].map(str::to_owned).to_vec(),
        ["1", "255", "256", "700"].map(str::to_owned).to_vec(),
        ["1", "1", "1", "257"].map(str::to_owned).to_vec(),
    ];
    table(sql, "enums", &columns, &rows);
}

/// TIME, DATETIME and TIMESTAMP of every number of digits, and DATE.
fn times(sql: &mut String, random: &mut Random) {
    let types = ["TIME", "DATETIME", "TIMESTAMP"];
    let mut columns = vec!["DATE".to_owned()];
    for digits in 0..=6 {
        columns.extend(types.map(|name| format!("{name}({digits}) NULL")));
    }
    let row = |date: &str, time: &str, datetime: &str, timestamp: &str| {
        let mut values = vec![format!("'{date}'")];
        for _ in 0..=6 {
            values.extend([time, datetime, timestamp].map(|value| format!("'{value}'")));
        }
        values
    };
    let zero = "0000-00-00 00:00:00";
    let mut rows = vec![
        row("0000-00-00", "00:00:00", zero, zero),
        row("9999-12-31", "838:59:59", "9999-12-31 23:59:59", "2038-01-19 03:14:07"),
        row("1000-01-01", "-838:59:59", "1000-01-01 00:00:00", "1970-01-01 00:00:01"),
        row("2024-00-00", "-00:00:00.000001", "2024-00-00 00:00:00.000001", "2001-09-09 01:46:40.000001"),
        row("2023-02-31", "-00:00:00.999999", "2023-02-31 12:34:56.123456", "2001-09-09 01:46:39.123456"),
        row("0001-01-01", "99:59:59.4", "0000-01-01 00:00:00.4", "1999-12-31 23:59:59.4"),
        row("2020-02-29", "100:00:00.04", "2020-02-29 23:59:59.04", "2020-02-29 23:59:59.04"),
    ];
    for _ in 0..3 * RANDOM_ROWS {
        let sign = if random.below(2) == 0 { "-" } else { "" };
        let clock = format!("{:02}:{:02}.{:06}", random.below(60), random.below(60), random.below(1_000_000));
        let day = format!("{:02}-{:02}", 1 + random.below(12), 1 + random.below(28));
        rows.push(row(
            &format!("{:04}-{day}", random.below(10_000)),
            &format!("{sign}{}:{clock}", random.below(838)),
            &format!("{:04}-{day} {:02}:{clock}", random.below(9999), random.below(24)),
            &format!("{:04}-{day} {:02}:{clock}", 1971 + random.below(67), random.below(24)),
        ));
    }
    table(sql, "times", &columns, &rows);
}

/// Updates and deletes in every kind of image, with and without a key, in partitions.
fn images(sql: &mut String) {
    for image in ["FULL", "MINIMAL", "NOBLOB"] {
        let name = format!("image_{}", image.to_lowercase());
        write_line(sql, format!("SET SESSION binlog_row_image = {image}"));
        write_line(
            sql,
            format!(
                "CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, a INT DEFAULT 5, t TEXT, j JSON, v VARCHAR(10)) \
                 PARTITION BY HASH (id) PARTITIONS 3"
            ),
        );
        write_line(sql, format!("INSERT INTO {name} (t, j, v) VALUES ('x', '[1]', 'y'), (NULL, NULL, NULL)"));
        write_line(sql, format!("INSERT INTO {name} () VALUES ()"));
        write_line(sql, format!("UPDATE {name} SET id = id + 10"));
        write_line(sql, format!("UPDATE {name} SET a = NULL, v = 'z'"));
        write_line(sql, format!("UPDATE {name} SET j = '{{}}', t = 'long'"));
        write_line(sql, format!("DELETE FROM {name} WHERE id > 11"));
        write_line(sql, format!("CREATE TABLE {name}_keyless (a INT DEFAULT 1, b BLOB)"));
        write_line(sql, format!("INSERT INTO {name}_keyless () VALUES ()"));
        write_line(sql, format!("UPDATE {name}_keyless SET a = 2, b = ''"));
        write_line(sql, format!("DELETE FROM {name}_keyless"));
    }
    write_line(sql, "SET SESSION binlog_row_image = FULL".into());
    write_line(sql, "CREATE TABLE `back``tick 茶` (a INT)".into());
    write_line(sql, "INSERT INTO `back``tick 茶` VALUES (1)".into());
}
