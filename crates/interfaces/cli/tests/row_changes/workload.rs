//! Random changes of tables with all column types, from a seed.

use binlogz_testkit::random::Random;

/// Makes a literal.
type Literal = fn(&mut Random) -> String;

/// Columns of every type: definition, and what makes a literal for it.
const COLUMNS: [(&str, Literal); 36] = [
    ("tiny TINYINT", |r| (r.below(256) as i64 - 128).to_string()),
    ("utiny TINYINT UNSIGNED", |r| r.below(256).to_string()),
    ("small SMALLINT", |r| (r.below(65536) as i64 - 32768).to_string()),
    ("medium MEDIUMINT", |r| (r.below(1 << 24) as i64 - (1 << 23)).to_string()),
    ("umedium MEDIUMINT UNSIGNED", |r| r.below(1 << 24).to_string()),
    ("number INT", |r| (r.bits() as i32).to_string()),
    ("big BIGINT", |r| (r.bits() as i64).to_string()),
    ("ubig BIGINT UNSIGNED", |r| r.bits().to_string()),
    ("price DECIMAL(20,6)", |r| format!("{}.{:06}", r.bits() as i32, r.below(1_000_000))),
    ("wide DECIMAL(65,30)", |r| format!("-{}.{}", r.bits(), r.bits())),
    ("half FLOAT", |r| format!("{}e{}", r.bits() as i32, r.below(20) as i32 - 20)),
    ("full DOUBLE", |r| format!("{}e{}", r.bits() as i64, r.below(300) as i32 - 200)),
    ("bits BIT(13)", |r| r.below(1 << 13).to_string()),
    ("wbits BIT(64)", |r| r.bits().to_string()),
    ("y YEAR", |r| if r.below(5) == 0 { "0".into() } else { (1901 + r.below(255)).to_string() }),
    ("d DATE", |r| format!("'{:04}-{:02}-{:02}'", r.below(10000), r.below(13), r.below(29))),
    ("t TIME(3)", |r| {
        format!(
            "'{}{:03}:{:02}:{:02}.{:03}'",
            if r.below(2) == 0 { "-" } else { "" },
            r.below(838),
            r.below(60),
            r.below(60),
            r.below(1000)
        )
    }),
    ("dt DATETIME(6)", |r| {
        format!(
            "'{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}'",
            r.below(10000),
            r.below(13),
            r.below(29),
            r.below(24),
            r.below(60),
            r.below(60),
            r.below(1_000_000)
        )
    }),
    ("ts TIMESTAMP NULL", |r| {
        if r.below(5) == 0 {
            "'0000-00-00 00:00:00'".into()
        } else {
            format!("FROM_UNIXTIME({})", 1 + r.below(2_000_000_000))
        }
    }),
    ("ts6 TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", |r| {
        format!("FROM_UNIXTIME({}.{:06})", 1 + r.below(2_000_000_000), r.below(1_000_000))
    }),
    ("moved DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", |_| "NOW()".into()),
    ("state ENUM('new','paid','it''s')", |r| ["'new'", "'paid'", "3", "''"][r.below(4)].into()),
    ("tags SET('a','b','c','d')", |r| r.below(16).to_string()),
    ("c CHAR(20)", |r| text(r, 20)),
    ("b BINARY(8)", |r| format!("X'{:016x}'", r.bits() & [u64::MAX, !0xff, !0xffff][r.below(3)])),
    ("v VARCHAR(50)", |r| text(r, 50)),
    ("latin VARCHAR(50) CHARACTER SET latin1", |r| format!("_latin1 X'{:016x}'", r.bits())),
    ("gbk VARCHAR(50) CHARACTER SET gbk", |r| {
        ["'plain'", "_gbk X'c4e3bac3'", "'a\\\\b'", "NULL"][r.below(4)].into()
    }),
    ("wide16 VARCHAR(50) CHARACTER SET utf16", |r| text(r, 50)),
    ("vb VARBINARY(300)", |r| format!("X'{}'", hex(r, 300))),
    ("words MEDIUMTEXT", |r| format!("REPEAT({}, {})", text(r, 50), r.below(20))),
    ("bytes MEDIUMBLOB", |r| format!("X'{}'", hex(r, 1000))),
    ("doc JSON", json),
    ("place GEOMETRY", |r| {
        format!("ST_GeomFromText('POINT({} {})', {})", r.below(80), r.below(80), [0, 4326][r.below(2)])
    }),
    ("line LINESTRING", |r| format!("ST_GeomFromText('LINESTRING(0 0, {} {})')", r.below(100), r.below(100))),
    ("embedding VECTOR(3)", |r| format!("STRING_TO_VECTOR('[{}, {}.5, -3e-5]')", r.below(100), r.below(100))),
];

fn hex(r: &mut Random, bytes_max: usize) -> String {
    (0..r.below(bytes_max)).map(|_| format!("{:02x}", r.below(256))).collect()
}

/// A string literal, with what is hard to quote.
fn text(r: &mut Random, length_max: usize) -> String {
    const PARTS: [&str; 14] =
        ["a", "B", "é", "日本", "😀", "''", "\\\\", "\\n", "\\0", "\\Z", "\"", " ", "--", "\\r\\n;"];
    let parts: String = (0..r.below(length_max / 3)).map(|_| PARTS[r.below(PARTS.len())]).collect();
    format!("'{parts}'")
}

fn json(r: &mut Random) -> String {
    match r.below(6) {
        0 => "JSON_OBJECT('d', CAST('2026-11-22' AS DATE), 'n', CAST(1.50 AS DECIMAL(5,2)), 't', CAST('-10:11:12.5' AS TIME(6)))".into(),
        1 => format!("JSON_ARRAY({}, CAST({} AS UNSIGNED), NULL, TRUE, {})", r.bits() as i64, r.bits(), text(r, 20)),
        2 => format!("'{{\"a\": {}, \"b\": [1, 2.5, {{\"c\": \"x\"}}], \"é\": \"'' \\\\\\\\ \\\\n\"}}'", r.below(100)),
        3 => format!("'{}'", r.bits() as i32),
        4 => format!("CAST({} AS JSON)", ["CAST(1.5 AS DECIMAL(3,1))", "CAST('2026-11-22 01:02:03.5' AS DATETIME(6))", "9000000000", "'\"text\"'"][r.below(4)]),
        _ => format!("'{{\"a\": 1, \"list\": [{}], \"name\": \"{}\"}}'", (0..r.below(20)).map(|n| n.to_string()).collect::<Vec<_>>().join(", "), "x".repeat(r.below(200))),
    }
}

/// A random workload over tables of one database.
pub(crate) struct Workload {
    random: Random,
    /// The names of each table's columns with all types, by their index in [`COLUMNS`].
    tables: [Vec<usize>; 4],
}

const KEYS: [&str; 4] = [
    "id INT PRIMARY KEY",
    "id INT NOT NULL, UNIQUE KEY (id)",
    "id INT",
    "id VARCHAR(20) NOT NULL, second INT NOT NULL DEFAULT 7, PRIMARY KEY (id, second)",
];

impl Workload {
    pub(crate) fn new(seed: u64) -> Workload {
        let mut random = Random::new(seed);
        let tables = [0, 1, 2, 3].map(|_| {
            let mut columns: Vec<usize> = (0..COLUMNS.len()).filter(|_| random.below(3) > 0).collect();
            columns.push(COLUMNS.len() - 4);
            columns.sort_unstable();
            columns.dedup();
            columns
        });
        Workload { random, tables }
    }

    /// The tables, with rows.
    pub(crate) fn begin(&mut self, database: &str) -> String {
        let mut sql = format!("{SESSION}CREATE DATABASE {database}; USE {database};\n");
        for (number, key) in KEYS.iter().enumerate() {
            let columns: String =
                self.tables[number].iter().map(|index| format!(", {}", COLUMNS[*index].0)).collect();
            let generated =
                ", sum INT AS (CHAR_LENGTH(CONCAT(id, 'x'))) STORED, twice INT AS (sum * 2) VIRTUAL";
            sql += &format!("CREATE TABLE t{number} ({key}{columns}{generated});\n");
        }
        sql += "CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(10));
            CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, mate INT,
              FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE,
              FOREIGN KEY (mate) REFERENCES parent (id) ON DELETE SET NULL);\n";
        for _ in 0..40 {
            sql += &self.insert();
        }
        sql + ";\n"
    }

    /// Transactions of every kind.
    pub(crate) fn run(&mut self, database: &str, transactions: usize) -> String {
        let mut sql = format!("{SESSION}USE {database};\n");
        for number in 0..transactions {
            let statements: Vec<String> = (0..1 + self.random.below(5)).map(|_| self.statement()).collect();
            let statements = statements.concat();
            sql += &match self.random.below(10) {
                0 => format!("BEGIN;\n{statements}ROLLBACK;\n"),
                1 => {
                    let more = self.statement();
                    format!(
                        "BEGIN;\n{statements}SAVEPOINT s;\n{more}ROLLBACK TO s;\n{}COMMIT;\n",
                        self.statement()
                    )
                }
                2 => format!(
                    "XA START 'x{number}';\n{statements}XA END 'x{number}';\nXA PREPARE 'x{number}';\nXA COMMIT 'x{number}';\n"
                ),
                3 => format!(
                    "XA START 'x{number}';\n{statements}XA END 'x{number}';\nXA PREPARE 'x{number}';\nXA ROLLBACK 'x{number}';\n"
                ),
                4 => format!(
                    "XA START 'x{number}';\n{statements}XA END 'x{number}';\nXA COMMIT 'x{number}' ONE PHASE;\n"
                ),
                5 => statements,
                _ => format!("BEGIN;\n{statements}COMMIT;\n"),
            };
        }
        sql
    }

    /// Transactions that are all committed.
    pub(crate) fn run_committed(&mut self, database: &str, transactions: usize) -> String {
        let mut sql = format!("{SESSION}USE {database};\n");
        for _ in 0..transactions {
            let statements: Vec<String> = (0..1 + self.random.below(5)).map(|_| self.statement()).collect();
            sql += &format!("BEGIN;\n{}COMMIT;\n", statements.concat());
        }
        sql
    }

    fn statement(&mut self) -> String {
        let table = self.random.below(4);
        let row = self.random.below(60);
        let condition = match self.random.below(3) {
            0 => format!("id = '{row}'"),
            1 => format!("id + 0 BETWEEN {row} AND {}", row + 3),
            _ => format!("id % 7 = {}", row % 7),
        };
        match self.random.below(10) {
            0..=2 => self.insert(),
            3..=5 => {
                let sets: Vec<String> = (0..1 + self.random.below(4)).map(|_| self.set(table)).collect();
                format!("UPDATE t{table} SET {} WHERE {condition};\n", sets.join(", "))
            }
            6 => format!("DELETE FROM t{table} WHERE {condition} LIMIT 3;\n"),
            7 => {
                let (key, value) = [("$.a", "5"), ("$.list[0]", "'new'"), ("$.z", "CAST('[1]' AS JSON)")]
                    [self.random.below(3)];
                let change = [
                    "JSON_SET(doc, {key}, {value})",
                    "JSON_REPLACE(doc, {key}, {value})",
                    "JSON_REMOVE(doc, {key})",
                ][self.random.below(3)];
                let change = change.replace("{key}", &format!("'{key}'")).replace("{value}", value);
                format!("UPDATE t{table} SET doc = {change} WHERE {condition};\n")
            }
            _ => self.family(),
        }
    }

    fn insert(&mut self) -> String {
        let table = self.random.below(4);
        let columns = self.tables[table].clone();
        let names: Vec<&str> = columns.iter().map(|index| name(*index)).collect();
        let rows: Vec<String> = (0..1 + self.random.below(4))
            .map(|_| {
                let id = self.random.below(60);
                let values: Vec<String> = columns.iter().map(|index| self.value(*index)).collect();
                format!("('{id}', {})", values.join(", "))
            })
            .collect();
        let verb = ["INSERT IGNORE", "REPLACE"][self.random.below(2)];
        format!("{verb} INTO t{table} (id, {}) VALUES {};\n", names.join(", "), rows.join(", "))
    }

    /// Rows with foreign keys.
    fn family(&mut self) -> String {
        let (one, other) = (self.random.below(12), self.random.below(12));
        match self.random.below(6) {
            0 | 1 => format!("INSERT IGNORE INTO parent VALUES ({one}, 'p{other}');\n"),
            2 | 3 => format!("INSERT IGNORE INTO child (parent, mate) VALUES ({one}, {other});\n"),
            4 => format!("DELETE FROM parent WHERE id = {one};\n"),
            // With IGNORE, a server leaves rows without their parents; see rewind_doubts.
            _ => format!("UPDATE parent SET id = {one} WHERE id = {other};\n"),
        }
    }

    fn set(&mut self, table: usize) -> String {
        let index = self.tables[table][self.random.below(self.tables[table].len())];
        format!("{} = {}", name(index), self.value(index))
    }

    fn value(&mut self, index: usize) -> String {
        if self.random.below(8) == 0 { "NULL".into() } else { COLUMNS[index].1(&mut self.random) }
    }
}

/// Lenient: zero dates, the empty value of an ENUM, values that are cut.
const SESSION: &str = "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+02:00';\n";

fn name(index: usize) -> &'static str {
    COLUMNS[index].0.split_once(' ').unwrap().0
}
