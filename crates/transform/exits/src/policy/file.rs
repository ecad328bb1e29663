//! Reads a policy from TOML.
//!
//! ```text
//! key_file = "exits.key"            the key of hashes; 16 bytes or more
//! tables = "keep"                   tables that no rule names: keep, leave-out
//! [[table]]
//! name = "shop.customers"           * stands for any characters
//! leave_out = false
//! optional = false                  whether logs needn't have such a table
//! other_columns = "keep"            columns that aren't named below
//! partition_columns = ["id"]        by which it is partitioned: bounds of new partitions are their values
//! [table.columns]
//! email = "hash"                    keep, leave-out, hash, null, year
//! phone = { mask = "partial", last = 2 }
//! note = { mask = "fixed", value = "-" }
//! name = { mask = "hash", ignore_case = true, optional = true }    the table doesn't always have it
//! profile = { mask = "json", paths = { "$.plan" = "keep", "$.name" = "hash" } }
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{SecretFileError, open_secret};
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::{ColumnExit, ColumnMask, ColumnRule, ExitPolicy, JsonExit, JsonRule, TableRule};
use crate::error::PolicyError;
use crate::secret::{KEY_SIZE_MIN, MaskKey};

/// The largest file that is read: no policy comes near it.
const SIZE_MAX: u64 = 16 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    key_file: Option<PathBuf>,
    tables: Option<Spanned<String>>,
    #[serde(default)]
    table: Vec<TableEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableEntry {
    name: Spanned<String>,
    #[serde(default)]
    leave_out: bool,
    #[serde(default)]
    optional: bool,
    other_columns: Option<Spanned<Value>>,
    #[serde(default)]
    partition_columns: Vec<String>,
    #[serde(default)]
    columns: BTreeMap<Spanned<String>, Spanned<Value>>,
}

pub(super) fn read(path: &Path) -> Result<ExitPolicy, PolicyError> {
    let text = read_text(path).map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
    let file = path.display().to_string();
    let parsed: PolicyFile = toml::from_str(&text).map_err(|error| PolicyError::Format {
        file: file.clone(),
        text: error.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    })?;
    let reader = PolicyReader { file: &file, text: &text };
    let rules = parsed.table.into_iter().map(|entry| reader.rule(entry)).collect::<Result<Vec<_>, _>>()?;
    let leaves_others_out = match &parsed.tables {
        None => false,
        Some(word) => match word.get_ref().as_str() {
            "keep" => false,
            "leave-out" => true,
            other => {
                return Err(
                    reader.wrong(word, format!("tables is {other:?}, expected \"keep\" or \"leave-out\""))
                );
            }
        },
    };
    let key = match parsed.key_file {
        Some(key) => Some(read_key(&path.parent().unwrap_or(Path::new("")).join(key))?),
        None => None,
    };
    if let Some(line) = rules.iter().find_map(line_of_hash).filter(|_| key.is_none()) {
        let text = "hash needs a key, expected key_file = \"FILE\" at the head of the policy".to_owned();
        return Err(PolicyError::Line { file, line, text });
    }
    Ok(ExitPolicy { file, text, key, leaves_others_out, rules })
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let size = fs::metadata(path)?.len();
    if size > SIZE_MAX {
        return Err(std::io::Error::other(format!("has {size} bytes, expected at most 16 MiB")));
    }
    fs::read_to_string(path)
}

fn read_key(path: &Path) -> Result<MaskKey, PolicyError> {
    let trouble = |source| PolicyError::Key { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = open_secret(path).map_err(trouble)?;
    file.take(SIZE_MAX).read_to_end(&mut bytes).map_err(|error| trouble(SecretFileError::Io(error)))?;
    let key = bytes.trim_ascii_end();
    if key.len() < KEY_SIZE_MIN {
        let text = format!("the key has {} bytes, expected {KEY_SIZE_MIN} or more", key.len());
        return Err(trouble(SecretFileError::Io(std::io::Error::other(text))));
    }
    Ok(MaskKey::new(key))
}

/// The line of the first hash of a rule.
fn line_of_hash(rule: &TableRule) -> Option<usize> {
    let others = rule.others.iter().map(|(exit, line)| (exit, *line));
    let mut exits = rule.columns.iter().map(|column| (&column.exit, column.line)).chain(others);
    exits.find(|(exit, _)| exit.hashes()).map(|(_, line)| line)
}

impl ColumnExit {
    fn hashes(&self) -> bool {
        match self {
            ColumnExit::Keep | ColumnExit::LeaveOut => false,
            ColumnExit::Mask(ColumnMask::Hash { .. }) => true,
            ColumnExit::Mask(ColumnMask::Json(rule)) => rule.hashes(),
            ColumnExit::Mask(
                ColumnMask::Null | ColumnMask::Fixed(_) | ColumnMask::Partial { .. } | ColumnMask::Year,
            ) => false,
        }
    }
}

impl JsonRule {
    fn hashes(&self) -> bool {
        self.exit == Some(JsonExit::Hash)
            || self.members.values().any(JsonRule::hashes)
            || self.elements.as_ref().is_some_and(|rule| rule.hashes())
    }
}

/// Turns entries into rules, and knows their lines.
struct PolicyReader<'t> {
    file: &'t str,
    text: &'t str,
}

impl PolicyReader<'_> {
    fn line<T>(&self, place: &Spanned<T>) -> usize {
        let before = self.text.get(..place.span().start).unwrap_or(self.text);
        1 + before.bytes().filter(|&byte| byte == b'\n').count()
    }

    fn wrong<T>(&self, place: &Spanned<T>, text: String) -> PolicyError {
        PolicyError::Line { file: self.file.to_owned(), line: self.line(place), text }
    }

    fn rule(&self, entry: TableEntry) -> Result<TableRule, PolicyError> {
        let name = entry.name.get_ref().to_lowercase();
        let Some((database, table)) = table_name(&name) else {
            let text = format!("the table is {:?}, {TABLE_EXPECTED}", entry.name.get_ref());
            return Err(self.wrong(&entry.name, text));
        };
        if entry.leave_out && (!entry.columns.is_empty() || entry.other_columns.is_some()) {
            let text = format!("{name} is left out, expected no rules of its columns");
            return Err(self.wrong(&entry.name, text));
        }
        let mut columns: Vec<ColumnRule> = Vec::new();
        for (column, value) in &entry.columns {
            let spelled = column.get_ref();
            if !is_name(spelled) {
                return Err(self.wrong(column, format!("{name}: the column is {spelled:?}, {NAME_EXPECTED}")));
            }
            if columns.iter().any(|other| other.name == spelled.to_lowercase()) {
                return Err(
                    self.wrong(column, format!("{name}: column {spelled} is named twice, in other letters"))
                );
            }
            let (exit, is_optional) = column_exit(value.get_ref())
                .map_err(|text| self.wrong(value, format!("{name}, column {}: {text}", column.get_ref())))?;
            let line = self.line(column);
            columns.push(ColumnRule { name: spelled.to_lowercase(), exit, is_optional, line });
        }
        // A name without a pattern goes before those with one.
        columns.sort_by_key(|column| column.name.contains('*'));
        let others = match &entry.other_columns {
            None => None,
            Some(value) => {
                let exit = exit_of(value.get_ref())
                    .map_err(|text| self.wrong(value, format!("{name}, other_columns: {text}")))?;
                Some((exit, self.line(value)))
            }
        };
        let has_only_optional =
            others.is_none() && !columns.is_empty() && columns.iter().all(|column| column.is_optional);
        Ok(TableRule {
            database,
            table,
            line: self.line(&entry.name),
            leaves_out: entry.leave_out,
            is_optional: entry.optional || has_only_optional,
            partition_columns: entry.partition_columns.iter().map(|name| name.to_lowercase()).collect(),
            columns,
            others,
        })
    }
}

const NAME_EXPECTED: &str = "expected names without backquotes and without spaces around them";

/// Whether a name can be one of a table or column. One in quotes would be that of no table, and its rule would hide nothing.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('`') && name.trim() == name
}

const TABLE_EXPECTED: &str = "expected DATABASE.TABLE, names with dots or spaces in backquotes";

/// Database and table of a name.
fn table_name(text: &str) -> Option<(String, String)> {
    let (database, rest) = name_part(text)?;
    let (table, rest) = name_part(rest.strip_prefix('.')?)?;
    rest.is_empty().then_some((database, table))
}

/// The name at the beginning of a text, and what comes after it.
fn name_part(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('`') else {
        let (name, rest) = text.split_at_checked(text.find('.').unwrap_or(text.len()))?;
        return is_name(name).then(|| (name.to_owned(), rest));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('`')?;
        name.push_str(part);
        // Two of them stand for one.
        let Some(more) = after.strip_prefix('`') else {
            return (!name.is_empty()).then_some((name, after));
        };
        name.push('`');
        rest = more;
    }
}

const EXPECTED: &str =
    "expected keep, leave-out, hash, null, year, or { mask = \"partial\", last = 2 } and the like";

/// Reads what becomes of a named column, and whether its table may lack it.
fn column_exit(value: &Value) -> Result<(ColumnExit, bool), String> {
    let Value::Table(settings) = value else { return Ok((exit_of(value)?, false)) };
    let mut others = settings.clone();
    match others.remove("optional") {
        None => Ok((exit_of(value)?, false)),
        Some(Value::Boolean(is_optional)) => Ok((exit_of(&Value::Table(others))?, is_optional)),
        Some(other) => Err(format!("optional is {}, expected true or false", shown(&other))),
    }
}

/// Reads what becomes of a column.
fn exit_of(value: &Value) -> Result<ColumnExit, String> {
    match value {
        Value::String(word) => exit_of_table(word, &Table::new()),
        Value::Table(settings) => match settings.get("mask") {
            Some(Value::String(word)) => exit_of_table(word, settings),
            Some(other) => Err(format!("mask is {}, {EXPECTED}", shown(other))),
            None => Err(format!("mask isn't given, {EXPECTED}")),
        },
        other => Err(format!("found {}, {EXPECTED}", shown(other))),
    }
}

fn exit_of_table(word: &str, settings: &Table) -> Result<ColumnExit, String> {
    let (exit, names): (_, &[&str]) = match word {
        "keep" => (ColumnExit::Keep, &[]),
        "leave-out" => (ColumnExit::LeaveOut, &[]),
        "null" => (ColumnExit::Mask(ColumnMask::Null), &[]),
        "year" => (ColumnExit::Mask(ColumnMask::Year), &[]),
        "hash" => {
            let ignores_case = match settings.get("ignore_case") {
                None => false,
                Some(Value::Boolean(ignores_case)) => *ignores_case,
                Some(other) => {
                    return Err(format!("ignore_case is {}, expected true or false", shown(other)));
                }
            };
            (ColumnExit::Mask(ColumnMask::Hash { ignores_case }), &["ignore_case"])
        }
        "partial" => {
            let [first, last] = [characters(settings, "first")?, characters(settings, "last")?];
            (ColumnExit::Mask(ColumnMask::Partial { first, last }), &["first", "last"])
        }
        "fixed" => {
            let text = match settings.get("value") {
                Some(Value::String(text)) => text.clone(),
                Some(value @ (Value::Integer(_) | Value::Float(_) | Value::Datetime(_))) => shown(value),
                Some(other) => return Err(format!("value is {}, expected a text or a number", shown(other))),
                None => return Err("fixed has no value, expected { mask = \"fixed\", value = … }".to_owned()),
            };
            (ColumnExit::Mask(ColumnMask::Fixed(text)), &["value"])
        }
        "json" => (ColumnExit::Mask(ColumnMask::Json(json_rule(settings)?)), &["paths"]),
        other => return Err(format!("the mask is {other:?}, {EXPECTED}")),
    };
    match settings.keys().find(|key| *key != "mask" && !names.contains(&key.as_str())) {
        Some(unknown) => Err(format!("{word} has no setting {unknown}")),
        None => Ok(exit),
    }
}

/// A value for people.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

fn characters(settings: &Table, name: &str) -> Result<usize, String> {
    match settings.get(name) {
        None => Ok(0),
        Some(Value::Integer(count)) if *count >= 0 => Ok(usize::try_from(*count).unwrap_or(usize::MAX)),
        Some(other) => Err(format!("{name} is {}, expected a number of characters", shown(other))),
    }
}

fn json_rule(settings: &Table) -> Result<JsonRule, String> {
    let Some(Value::Table(paths)) = settings.get("paths") else {
        return Err(
            "json has no paths, expected { mask = \"json\", paths = { \"$.plan\" = \"keep\" } }".to_owned()
        );
    };
    let mut rule = JsonRule::default();
    for (path, word) in paths {
        let exit = word.as_str().and_then(JsonExit::of);
        let exit = exit.ok_or_else(|| format!("{path} is {}, expected keep, hash or null", shown(word)))?;
        rule.name(path, exit)?;
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::policy::TableExit;

    fn policy(text: &str) -> Result<ExitPolicy, String> {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        fs::write(&key, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let path = folder.path().join("exits.toml");
        fs::write(&path, text).unwrap();
        let name = folder.path().display().to_string();
        read(&path).map_err(|error| error.to_string().replace(&format!("{name}/"), ""))
    }

    const WHOLE: &str = r#"
key_file = "key"
tables = "leave-out"
[[table]]
name = "shop.customers"
partition_columns = ["id"]
other_columns = "null"
[table.columns]
Email = { mask = "hash", ignore_case = true }
id = "keep"
phone = { mask = "partial", last = 2 }
born = "year"
note = { mask = "fixed", value = 7 }
profile = { mask = "json", paths = { "$.plan" = "keep" } }
[[table]]
name = "shop.log_*"
leave_out = true
[[table]]
name = "*.items"
"#;

    #[test]
    fn a_policy_says_what_becomes_of_tables_and_columns() {
        let policy = policy(WHOLE).unwrap();
        assert_eq!(policy.table(b"shop", b"LOG_1"), TableExit::LeaveOut);
        assert_eq!(policy.table(b"other", b"t"), TableExit::LeaveOut);
        assert_eq!(policy.table(b"other", b"items"), TableExit::Keep);
        let TableExit::Masked(rules) = policy.table(b"Shop", b"customers") else { panic!("masked") };
        let exit = |name: &[u8]| policy.column(&rules, name).exit.clone();
        assert_eq!(exit(b"EMAIL"), ColumnExit::Mask(ColumnMask::Hash { ignores_case: true }));
        assert_eq!(exit(b"id"), ColumnExit::Keep);
        assert_eq!(exit(b"phone"), ColumnExit::Mask(ColumnMask::Partial { first: 0, last: 2 }));
        assert_eq!(exit(b"note"), ColumnExit::Mask(ColumnMask::Fixed("7".into())));
        assert_eq!(exit(b"new"), ColumnExit::Mask(ColumnMask::Null));
        assert_eq!(policy.column(&rules, b"born").line, 12);
        assert!(policy.keeps_partition_columns(&rules));
        let columns = ["email", "id", "phone", "born", "note", "profile"];
        assert_eq!(policy.missing_column(&rules, |name| columns.contains(&name)), None);
        let missing =
            policy.missing_column(&rules, |name| name != "born" && columns.contains(&name)).unwrap();
        assert!(
            missing.ends_with(
                "exits.toml line 12: shop.customers has no column born, expected one of its columns, or optional = true"
            ),
            "{missing}"
        );
    }

    /// A database may have dots in its name, and a column may come later.
    #[test]
    fn names_in_backquotes_may_have_dots_and_columns_may_be_optional() {
        let text = "[[table]]\nname = \"`a.b``c`.`t u`\"\ncolumns.x = { mask = \"null\", optional = true }";
        let policy = policy(text).unwrap();
        let TableExit::Masked(rules) = policy.table(b"a.b`c", b"T u") else { panic!("masked") };
        assert_eq!(policy.table(b"a", b"b`c.t u"), TableExit::Keep);
        assert_eq!(policy.missing_column(&rules, |_| false), None);
        assert!(!policy.keeps_partition_columns(&rules));
    }

    #[test]
    fn errors_name_line_table_and_column() {
        for (text, error) in [
            ("tables = \"all\"", "exits.toml line 1: tables is \"all\", expected \"keep\" or \"leave-out\""),
            (
                "\n[[table]]\nname = \"t\"",
                "exits.toml line 3: the table is \"t\", expected DATABASE.TABLE, names with dots or spaces in backquotes",
            ),
            (
                "[[table]]\nname = \"d.t\"\nleave_out = true\ncolumns.a = \"null\"",
                "exits.toml line 2: d.t is left out, expected no rules of its columns",
            ),
            (
                "[[table]]\nname = \"`d`.t`\"",
                "exits.toml line 2: the table is \"`d`.t`\", expected DATABASE.TABLE, names with dots or spaces in backquotes",
            ),
            (
                "[[table]]\nname = \"d. t\"",
                "exits.toml line 2: the table is \"d. t\", expected DATABASE.TABLE, names with dots or spaces in backquotes",
            ),
            (
                "[[table]]\nname = \"a.b.c\"",
                "exits.toml line 2: the table is \"a.b.c\", expected DATABASE.TABLE, names with dots or spaces in backquotes",
            ),
            (
                "[[table]]\nname = \"d.t\"\ncolumns.a = { mask = \"null\", optional = 1 }",
                "exits.toml line 3: d.t, column a: optional is 1, expected true or false",
            ),
            (
                "[[table]]\nname = \"d.t\"\n[table.columns]\n\"`a`\" = \"null\"",
                "exits.toml line 4: d.t: the column is \"`a`\", expected names without backquotes and without spaces around them",
            ),
            (
                "[[table]]\nname = \"d.t\"\n[table.columns]\nA = \"keep\"\na = \"null\"",
                "exits.toml line 5: d.t: column a is named twice, in other letters",
            ),
            (
                "[[table]]\nname = \"d.t\"\n[table.columns]\na = \"hash\"",
                "exits.toml line 4: hash needs a key, expected key_file = \"FILE\" at the head of the policy",
            ),
            (
                "[[table]]\nname = \"d.t\"\n[table.columns]\na = \"hush\"",
                "exits.toml line 4: d.t, column a: the mask is \"hush\", expected keep, leave-out, hash, null, year, or { mask = \"partial\", last = 2 } and the like",
            ),
            (
                "[[table]]\nname = \"d.t\"\ncolumns.a = { mask = \"null\", last = 2 }",
                "exits.toml line 3: d.t, column a: null has no setting last",
            ),
            (
                "[[table]]\nname = \"d.t\"\ncolumns.a = { mask = \"fixed\" }",
                "exits.toml line 3: d.t, column a: fixed has no value, expected { mask = \"fixed\", value = … }",
            ),
        ] {
            assert_eq!(policy(text).unwrap_err(), error, "{text}");
        }
        assert!(policy("tabels = 1").unwrap_err().contains("tabels"));
        assert!(policy("key_file = \"none\"").unwrap_err().starts_with("none: "));
    }

    #[test]
    fn a_key_that_others_may_read_or_that_is_short_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        for (bytes, mode, why) in [("0123456789abcdef", 0o644, "0644"), ("short\n\n", 0o600, "5 bytes")] {
            fs::write(&key, bytes).unwrap();
            fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
            let error = read_key(&key).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
