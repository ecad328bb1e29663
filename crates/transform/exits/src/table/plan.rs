//! What becomes of the columns of a table, as its map describes it.

use std::sync::Arc;

use binlogz_binlog::row::{ColumnKind, TableSchema};
use binlogz_schema::CompletedTable;

use crate::policy::{ColumnExit, ExitPolicy};
use crate::value::{ValueMask, may_share_hash};

/// What becomes of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnPlan {
    Keep,
    LeaveOut,
    Mask(ValueMask),
}

/// What becomes of a table's rows.
#[derive(Debug)]
pub(crate) struct TablePlan {
    /// `database.table`.
    pub(crate) shown: String,
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) columns: Vec<ColumnPlan>,
    /// The unique keys that may no longer tell rows apart, as lines for people.
    pub(crate) weak_keys: Vec<String>,
}

/// Whether different values of a column are different in what leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distinctness {
    Sure,
    /// Two may become equal.
    Likely,
    Lost,
}

/// Why a table's rows can't leave.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// Its columns have no names: nobody knows which to mask.
    Nameless,
    /// The policy's mask doesn't fit a column.
    Refused(String),
}

impl TablePlan {
    /// The plan of a table by these rules of a policy.
    pub(crate) fn of(policy: &ExitPolicy, rules: &[usize], table: &CompletedTable) -> Result<Self, NoPlan> {
        let schema = Arc::clone(&table.schema);
        let shown = shown(&schema.database, &schema.table);
        let mut columns = Vec::with_capacity(schema.columns().len());
        for column in schema.columns() {
            // The server's own column of an index of a JSON array; 8.0.17 logged it.
            if column.kind == ColumnKind::TypedArray {
                columns.push(ColumnPlan::LeaveOut);
                continue;
            }
            let Some(name) = column.name.as_deref() else { return Err(NoPlan::Nameless) };
            let verdict = policy.column(rules, name);
            columns.push(match verdict.exit {
                ColumnExit::Keep => ColumnPlan::Keep,
                ColumnExit::LeaveOut => ColumnPlan::LeaveOut,
                ColumnExit::Mask(mask) => match ValueMask::of(mask, column) {
                    Ok(mask) => ColumnPlan::Mask(mask),
                    Err(why) => {
                        let name = String::from_utf8_lossy(name);
                        let line = policy.shown(verdict.line);
                        return Err(NoPlan::Refused(format!("{line}: {shown}, column {name}: {why}")));
                    }
                },
            });
        }
        let mut plan = TablePlan { shown, schema, columns, weak_keys: Vec::new() };
        if let Some(missing) = policy.missing_column(rules, |name| plan.has_column(name)) {
            return Err(NoPlan::Refused(missing));
        }
        plan.check_keys(policy, rules, &table.keys)?;
        Ok(plan)
    }

    /// The names of its columns.
    pub(crate) fn column_names(&self) -> impl Iterator<Item = &[u8]> {
        self.schema.columns().iter().filter_map(|column| column.name.as_deref())
    }

    fn column_name(&self, index: usize) -> String {
        let name = self.schema.columns().get(index).and_then(|column| column.name.as_deref());
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }

    /// Whether it has a column of this name in small letters.
    fn has_column(&self, name: &str) -> bool {
        (0..self.columns.len()).any(|index| self.column_name(index).to_lowercase() == name)
    }

    /// Looks for keys of which masks make equal values of different ones: such a key can't hold, or may not.
    fn check_keys(
        &mut self,
        policy: &ExitPolicy,
        rules: &[usize],
        keys: &[Vec<usize>],
    ) -> Result<(), NoPlan> {
        let columns = self.schema.columns().iter().enumerate();
        let primary = columns.filter(|(_, column)| column.primary_key.is_some()).map(|(index, _)| index);
        let primary: Vec<usize> = primary.collect();
        for key in keys.iter().chain([&primary]) {
            let Some(first) =
                key.iter().copied().find(|&index| self.distinctness(index) != Distinctness::Sure)
            else {
                continue;
            };
            let names: Vec<String> = key.iter().map(|&index| self.column_name(index)).collect();
            let names = names.join(", ");
            if key.iter().all(|&index| self.distinctness(index) == Distinctness::Lost) {
                let line = policy.shown(policy.column(rules, self.column_name(first).as_bytes()).line);
                return Err(NoPlan::Refused(format!(
                    "{line}: {}: ({names}) is a unique key, of which the policy makes equal values, expected hash or keep",
                    self.shown
                )));
            }
            let weak = format!("{} ({names})", self.shown);
            if !self.weak_keys.contains(&weak) {
                self.weak_keys.push(weak);
            }
        }
        Ok(())
    }

    /// Whether different values of a column stay different.
    fn distinctness(&self, index: usize) -> Distinctness {
        let Some((plan, column)) = self.columns.get(index).zip(self.schema.columns().get(index)) else {
            return Distinctness::Sure;
        };
        match plan {
            ColumnPlan::Keep => Distinctness::Sure,
            // Rows get its default: perhaps NULL, of which a unique key takes any number.
            ColumnPlan::LeaveOut if column.nullable => Distinctness::Likely,
            ColumnPlan::LeaveOut => Distinctness::Lost,
            ColumnPlan::Mask(mask) => match mask {
                ValueMask::Fixed(_) | ValueMask::Partial { .. } | ValueMask::Year => Distinctness::Lost,
                ValueMask::Hash { ignores_case } if may_share_hash(column, *ignores_case) => {
                    Distinctness::Likely
                }
                ValueMask::Hash { .. } | ValueMask::Null | ValueMask::Json(_) => Distinctness::Sure,
            },
        }
    }

    /// Whether the definition of a column may hold what its values are.
    pub(crate) fn is_changed(&self, index: usize) -> bool {
        self.columns.get(index).is_some_and(|plan| *plan != ColumnPlan::Keep)
    }
}

/// A table's name for people.
pub(crate) fn shown(database: &[u8], table: &[u8]) -> String {
    format!("{}.{}", String::from_utf8_lossy(database), String::from_utf8_lossy(table))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use binlogz_binlog::event::{
        Bitmap, OptionalMetadata, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };

    use super::*;

    /// `d.t`: an INT `id`, a VARCHAR of 40 bytes `email`, a DATE `born`, a CHAR of 2 bytes `short`; and what else its map says.
    fn schema(further: &[u8]) -> TableSchema {
        let names = b"\x04\x14\x02id\x05email\x04born\x05short";
        let metadata = [names, further].concat();
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"d",
            table: b"t",
            column_types: &[3, 15, 10, 254],
            column_metadata: &[40, 0, 254, 2],
            null_bitmap: Bitmap(&[6]),
            optional_metadata: OptionalMetadata(&metadata),
        };
        TableSchema::new(&map, ServerFamily::Mysql).unwrap()
    }

    /// The plan by rules of columns, where statements tell these keys, and the map tells `further`.
    fn plan(columns: &str, keys: &[&[usize]], further: &[u8]) -> Result<TablePlan, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exits.toml");
        let key = folder.path().join("key");
        fs::write(&key, "a key of sixteen").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let rules = format!("key_file = \"key\"\n[[table]]\nname = \"d.t\"\n[table.columns]\n{columns}");
        fs::write(&path, rules).unwrap();
        let policy = ExitPolicy::read(&path).unwrap();
        let table = CompletedTable {
            schema: Arc::new(schema(further)),
            key: Vec::new(),
            keys: keys.iter().map(|key| key.to_vec()).collect(),
            problem: None,
            is_told: true,
        };
        match TablePlan::of(&policy, &[0], &table) {
            Ok(plan) => Ok(plan),
            Err(NoPlan::Refused(why)) => Err(why.replace(&format!("{}/", folder.path().display()), "")),
            Err(NoPlan::Nameless) => panic!("nameless"),
        }
    }

    #[test]
    fn a_column_that_the_table_lacks_is_refused_before_anything_leaves() {
        assert_eq!(
            plan("emial = \"null\"", &[], b"").unwrap_err(),
            "exits.toml line 5: d.t has no column emial, expected one of its columns, or optional = true"
        );
        assert!(plan("emial = { mask = \"null\", optional = true }", &[], b"").is_ok());
        assert!(plan("EMAIL = \"null\"", &[], b"").is_ok());
    }

    #[test]
    fn a_mask_that_makes_equal_values_of_a_unique_key_is_refused_or_said() {
        let fixed = "email = { mask = \"fixed\", value = \"x\" }";
        let refused = "exits.toml line 5: d.t: (email) is a unique key, of which the policy makes equal values, expected hash or keep";
        assert_eq!(plan(fixed, &[&[0], &[1]], b"").unwrap_err(), refused);
        assert_eq!(plan("email = { mask = \"partial\", last = 2 }", &[&[1]], b"").unwrap_err(), refused);
        // The map's own primary key.
        assert_eq!(plan(fixed, &[], b"\x08\x01\x01").unwrap_err(), refused);
        assert!(plan("born = \"year\"", &[&[2]], b"").is_err());
        assert!(plan("email = \"null\"", &[&[1]], b"").is_ok());
        let weak = plan(fixed, &[&[0, 1]], b"\x08\x02\x00\x01").unwrap();
        assert_eq!(weak.weak_keys, ["d.t (id, email)"]);
        assert!(plan(fixed, &[&[0]], b"").unwrap().weak_keys.is_empty());
    }

    #[test]
    fn a_unique_key_that_is_left_out_is_refused_or_said() {
        let left_out = "id = \"leave-out\"";
        assert!(plan(left_out, &[&[0]], b"").unwrap_err().contains("d.t: (id) is a unique key"));
        assert!(plan(left_out, &[], b"\x08\x01\x00").unwrap_err().contains("d.t: (id) is a unique key"));
        let both = "id = \"leave-out\"\nshort = { mask = \"fixed\", value = \"x\" }";
        assert!(
            plan(both, &[&[0, 3]], b"\x03\x02\x08\x08")
                .unwrap_err()
                .contains("d.t: (id, short) is a unique key")
        );
        assert_eq!(plan(left_out, &[&[0, 1]], b"").unwrap().weak_keys, ["d.t (id, email)"]);
        // Its default may be NULL.
        assert_eq!(plan("email = \"leave-out\"", &[&[1]], b"").unwrap().weak_keys, ["d.t (email)"]);
        assert!(plan(left_out, &[&[1]], b"").unwrap().weak_keys.is_empty());
    }

    #[test]
    fn a_hash_that_different_values_may_share_is_said_of_a_unique_key() {
        // utf8mb4_bin, utf8mb4_0900_as_cs, latin1_bin, latin1_swedish_ci, binary: of `email` and `short`.
        for (collations, hash, key, is_weak) in [
            ([8, 8], "email = \"hash\"", 1, false),
            ([8, 8], "email = { mask = \"hash\", ignore_case = true }", 1, false),
            ([47, 8], "email = \"hash\"", 1, false),
            ([47, 8], "email = { mask = \"hash\", ignore_case = true }", 1, true),
            ([63, 8], "email = { mask = \"hash\", ignore_case = true }", 1, false),
            ([46, 8], "email = \"hash\"", 1, true),
            ([8, 8], "short = \"hash\"", 3, true),
            ([8, 63], "short = \"hash\"", 3, true),
            ([8, 8], "id = \"hash\"", 0, false),
            ([8, 8], "born = \"hash\"", 2, false),
        ] {
            let charsets = [&[3, 2][..], &collations].concat();
            let weak = plan(hash, &[&[key]], &charsets).unwrap().weak_keys;
            assert_eq!(weak.len(), usize::from(is_weak), "{collations:?} {hash}: {weak:?}");
        }
        // Nobody says whether the column tells cases apart.
        let ignoring = "email = { mask = \"hash\", ignore_case = true }";
        assert_eq!(plan(ignoring, &[&[1]], b"").unwrap().weak_keys, ["d.t (email)"]);
    }
}
