//! Which rules of a policy met something in the logs. What met nothing is told: a typing error in a name hides nothing.

use std::collections::BTreeSet;

use super::{ColumnExit, ExitPolicy, TableRule, matches};

/// What rules met. Rules, and the columns of a rule, are told by their numbers.
#[derive(Debug, Default)]
pub(crate) struct MetRules {
    /// Rules of a table that has rows.
    tables: BTreeSet<usize>,
    /// Rules by which columns of a table were masked.
    masked: BTreeSet<usize>,
    /// Columns of rules that such a table has.
    columns: BTreeSet<(usize, usize)>,
    /// Whether there are rows of a table that isn't left out: only they can have what a rule was to hide.
    pub(crate) has_leaving: bool,
}

/// What rules met nothing, each with the line of the policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UnmetRules {
    /// Tables that would be kept.
    pub(crate) kept: Vec<String>,
    /// Tables and columns that were to be left out or masked.
    pub(crate) hidden: Vec<String>,
}

impl MetRules {
    /// There are rows of tables that these rules name.
    pub(crate) fn meet_tables(&mut self, rules: impl IntoIterator<Item = usize>) {
        self.tables.extend(rules);
    }

    /// A table is masked by these rules of the policy, and has columns of these names.
    pub(crate) fn meet_columns<'n>(
        &mut self,
        policy: &ExitPolicy,
        rules: &[usize],
        names: impl IntoIterator<Item = &'n [u8]>,
    ) {
        self.masked.extend(rules);
        let names: Vec<String> =
            names.into_iter().map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
        for &number in rules {
            let columns =
                policy.rules.get(number).into_iter().flat_map(|rule| rule.columns.iter().enumerate());
            let met = columns.filter(|(_, column)| names.iter().any(|name| matches(&column.name, name)));
            self.columns.extend(met.map(|(column, _)| (number, column)));
        }
    }

    /// What met nothing, unless it is optional.
    pub(crate) fn unmet(&self, policy: &ExitPolicy) -> UnmetRules {
        let mut unmet = UnmetRules::default();
        for (number, rule) in policy.rules.iter().enumerate() {
            let name = format!("{}.{}", rule.database, rule.table);
            let is_met = self.tables.contains(&number) || rule.is_optional;
            let shown = format!("{name} (line {})", rule.line);
            match (is_met, rule.hides()) {
                (false, false) => unmet.kept.push(shown),
                (false, true) if self.has_leaving => unmet.hidden.push(shown),
                (false, true) | (true, true | false) => {}
            }
            if self.masked.contains(&number) {
                unmet.hidden.extend(self.unmet_columns(number, rule, &name));
            }
        }
        unmet
    }

    fn unmet_columns(&self, number: usize, rule: &TableRule, name: &str) -> Vec<String> {
        let columns = rule.columns.iter().enumerate().filter(|(_, column)| !column.is_optional);
        let hidden = columns.filter(|(_, column)| column.exit != ColumnExit::Keep);
        let unmet = hidden.filter(|(column, _)| !self.columns.contains(&(number, *column)));
        unmet.map(|(_, column)| format!("column {} of {name} (line {})", column.name, column.line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const POLICY: &str = r#"
[[table]]
name = "shop.cust*"
columns.email = "null"
columns.emial = "null"
columns.later = { mask = "null", optional = true }
columns."secret*" = "leave-out"
columns.idd = "keep"
[[table]]
name = "shop.custmers"
columns.email = "null"
[[table]]
name = "shop.audti*"
leave_out = true
[[table]]
name = "shop.oders"
[[table]]
name = "old.*"
optional = true
leave_out = true
[[table]]
name = "older.t"
columns.a = { mask = "null", optional = true }
"#;

    #[test]
    fn what_met_nothing_is_told_unless_it_is_optional() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exits.toml");
        fs::write(&path, POLICY).unwrap();
        let policy = ExitPolicy::read(&path).unwrap();
        let mut met = MetRules::default();
        let kept = vec!["shop.oders (line 16)".to_owned()];
        assert_eq!(met.unmet(&policy), UnmetRules { kept: kept.clone(), hidden: Vec::new() });
        met.has_leaving = true;
        met.meet_tables([0]);
        met.meet_columns(&policy, &[0], [&b"ID"[..], b"Email"]);
        let hidden = [
            "column emial of shop.cust* (line 5)",
            "column secret* of shop.cust* (line 7)",
            "shop.custmers (line 10)",
            "shop.audti* (line 13)",
        ];
        assert_eq!(met.unmet(&policy), UnmetRules { kept, hidden: hidden.map(str::to_owned).to_vec() });
        met.meet_tables(0..4);
        met.meet_columns(&policy, &[0, 1], [&b"emial"[..], b"SECRET_1"]);
        let hidden = vec!["column email of shop.custmers (line 11)".to_owned()];
        assert_eq!(met.unmet(&policy), UnmetRules { kept: Vec::new(), hidden });
    }
}
