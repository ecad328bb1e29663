//! The foreign keys that refer to changed tables and act by themselves: which rows that nobody chose they would change.

use super::session::{AnswerRow, ApplySession};
use super::{ApplyError, NOTHING_YET};
use crate::sql::text::push_quoted;

/// A foreign key that deletes or changes rows of a child when a row of its parent is deleted or moved.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Referrer {
    /// The parent as `database.table`.
    parent: String,
    child: String,
    quoted_child: String,
    name: String,
    /// Pairs of columns, in backticks: the child's, and the parent's to which it refers.
    columns: Vec<(String, String)>,
    on_delete: String,
    on_update: String,
}

/// The foreign keys that refer to some tables and change rows by themselves.
#[derive(Debug, Default)]
pub(crate) struct Referrers(Vec<Referrer>);

/// A change of a parent's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParentChange<'s> {
    Deleted,
    /// Columns are set, as this SQL text has it.
    Updated(&'s str),
}

impl Referrers {
    /// The foreign keys that refer to these tables, each given by database and name. Asks the server.
    pub(crate) fn of(session: &mut ApplySession, tables: &[(&str, &str)]) -> Result<Self, ApplyError> {
        if tables.is_empty() {
            return Ok(Referrers::default());
        }
        let names = tables.iter().map(|(database, table)| {
            let mut pair = b"(".to_vec();
            push_quoted(&mut pair, database.as_bytes());
            pair.extend_from_slice(b", ");
            push_quoted(&mut pair, table.as_bytes());
            pair.push(b')');
            String::from_utf8_lossy(&pair).into_owned()
        });
        let rows = session.rows(&format!(
            "SELECT k.constraint_schema, k.constraint_name, k.table_schema, k.table_name, k.referenced_table_schema, \
             k.referenced_table_name, k.column_name, k.referenced_column_name, r.delete_rule, r.update_rule FROM \
             information_schema.key_column_usage k JOIN information_schema.referential_constraints r ON \
             (r.constraint_schema, r.constraint_name, r.table_name) = (k.constraint_schema, k.constraint_name, k.table_name) \
             WHERE (k.referenced_table_schema, k.referenced_table_name) IN ({}) AND (r.delete_rule NOT IN ('RESTRICT', \
             'NO ACTION') OR r.update_rule NOT IN ('RESTRICT', 'NO ACTION')) ORDER BY 1, 2, 4, k.ordinal_position",
            names.collect::<Vec<_>>().join(", ")
        )).map_err(|error| ApplyError::server("looking at foreign keys", error, NOTHING_YET))?;
        let mut found: Vec<Referrer> = Vec::new();
        for row in &rows {
            let [name, database, table] = [1, 2, 3].map(|index| column(row, index));
            let child = format!("{database}.{table}");
            let columns = (quoted(&column(row, 6)), quoted(&column(row, 7)));
            match found.last_mut().filter(|last| last.name == name && last.child == child) {
                Some(last) => last.columns.push(columns),
                None => found.push(Referrer {
                    parent: format!("{}.{}", column(row, 4), column(row, 5)),
                    child,
                    quoted_child: format!("{}.{}", quoted(&database), quoted(&table)),
                    name,
                    columns: vec![columns],
                    on_delete: column(row, 8),
                    on_update: column(row, 9),
                }),
            }
        }
        Ok(Referrers(found))
    }

    /// Whether any of them acts on a change of a table's rows, given as `database.table`.
    pub(crate) fn act_on(&self, parent: &str, change: ParentChange<'_>) -> bool {
        self.0.iter().any(|referrer| referrer.parent == parent && referrer.acts_on(change))
    }

    /// Why a change of the parent's row that meets a condition would change rows of others, if it would. Tables are given as
    /// `database.table`, and quoted.
    pub(crate) fn would_change(
        &self,
        session: &mut ApplySession,
        (parent, quoted_parent): (&str, &str),
        condition: &str,
        change: ParentChange<'_>,
    ) -> Result<Option<String>, binlogz_source::Error> {
        let acting = |referrer: &&Referrer| referrer.parent == parent && referrer.acts_on(change);
        for referrer in self.0.iter().filter(acting) {
            let rule = referrer.rule(change);
            let rows = session.rows(&referrer.query(quoted_parent, condition))?;
            let count = rows.first().map(|row| column(row, 0)).unwrap_or_default();
            if count != "0" {
                let (on, done) = match change {
                    ParentChange::Deleted => ("DELETE", if rule == "CASCADE" { "delete" } else { "change" }),
                    ParentChange::Updated(_) => ("UPDATE", "change"),
                };
                let Referrer { child, name, .. } = referrer;
                return Ok(Some(format!(
                    "rows of {child} refer to it: {count}, which foreign key {name} (ON {on} {rule}) would {done}"
                )));
            }
        }
        Ok(None)
    }
}

impl Referrer {
    fn rule(&self, change: ParentChange<'_>) -> &str {
        match change {
            ParentChange::Deleted => &self.on_delete,
            ParentChange::Updated(_) => &self.on_update,
        }
    }

    /// Whether a change of a parent's row changes rows that refer to it.
    fn acts_on(&self, change: ParentChange<'_>) -> bool {
        let is_set = match change {
            ParentChange::Deleted => true,
            ParentChange::Updated(text) => {
                self.columns.iter().any(|(_, column)| text.contains(&format!("{column} = ")))
            }
        };
        is_set && !["RESTRICT", "NO ACTION"].contains(&self.rule(change))
    }

    /// Counts the rows that refer to a parent's row, without this row itself.
    fn query(&self, quoted_parent: &str, condition: &str) -> String {
        let referenced: Vec<_> = self.columns.iter().map(|(_, referenced)| &**referenced).collect();
        let join = |own: fn(&(String, String)) -> &String| {
            let equal = |columns| format!("c.{} = p.{}", own(columns), columns.1);
            self.columns.iter().map(equal).collect::<Vec<_>>().join(" AND ")
        };
        let not_itself = match self.quoted_child == quoted_parent {
            true => format!(" WHERE NOT ({})", join(|(_, referenced)| referenced)),
            false => String::new(),
        };
        format!(
            "SELECT COUNT(*) FROM (SELECT {} FROM {quoted_parent} WHERE {condition}) p JOIN {} c ON {}{not_itself}",
            referenced.join(", "),
            self.quoted_child,
            join(|(own, _)| own)
        )
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn column(row: &AnswerRow, index: usize) -> String {
    let bytes = row.get(index).and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
