//! What leads on a server from changes of one table to changes of another: foreign keys, triggers, views and stored functions. The server
//! is asked once, and then answers for each table.

use std::collections::HashSet;
use std::sync::Arc;

use binlogz_schema::{HistoryPlace, ReferentialRule};

use super::PastError;
use super::indirect::IsolatedTables;
use super::logged_statements::LoggedStatements;
use super::session::{PastAnswerRow, PastSession, column};

/// A database and a table.
type RouteName = (String, String);

/// The account that owns the functions and views of the schema `sys`, which only read.
const OF_SYS: &str = "'mysql.sys@localhost'";

/// The ways from one table to another, as the account sees them.
#[derive(Debug)]
pub struct TableRoutes {
    foreign_keys: Vec<CascadingKey>,
    /// Base tables whose changes reach no trigger and no view, in small letters.
    plain: Arc<HashSet<RouteName>>,
    /// Stored functions, and the views that may call them. `None`: the account may not see all.
    programs: Option<Arc<HashSet<String>>>,
}

/// A foreign key that carries changes on to the table that has it.
#[derive(Debug)]
struct CascadingKey {
    name: String,
    child: RouteName,
    parent: RouteName,
    columns: Vec<CascadingColumn>,
    on_delete: ReferentialRule,
    on_update: ReferentialRule,
}

/// A column of a foreign key. Names are in small letters.
#[derive(Debug)]
struct CascadingColumn {
    name: String,
    referenced: ReferencedColumn,
}

/// A column of a parent to which a foreign key refers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReferencedColumn {
    /// The name, in small letters.
    pub(super) name: String,
    /// The column's place among the parent's columns of now; `None`: the account may not see the parent.
    pub(super) place: Option<usize>,
}

/// A table of which foreign keys carry some changes on to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CascadingParent {
    /// The database and the table, as it is called now.
    pub(super) name: RouteName,
    /// All names that the parent had since the moment, as far as statements are known.
    pub(super) names: Vec<RouteName>,
    /// Whether statements changed it since the moment: its columns may have stood elsewhere.
    pub(super) is_altered: bool,
    /// Whether deleted rows are carried on, and not only changed columns.
    pub(super) carries_deletes: bool,
    /// The columns whose changes are carried on.
    pub(super) columns: Vec<ReferencedColumn>,
    /// The place in the logs at which the key was added: nothing was carried on before it.
    pub(super) begin: HistoryPlace,
    /// Whether the account may not see the table: then its own foreign keys are not known either.
    is_hidden: bool,
}

impl CascadingParent {
    /// Takes what statements since the moment say of it: its names. Returns the first that leaves open what it was.
    pub(super) fn follow(&mut self, logged: &LoggedStatements) -> Option<String> {
        match logged.names_of_now((&self.name.0, &self.name.1)) {
            Ok((names, is_altered)) => {
                (self.names, self.is_altered) = (names, is_altered);
                None
            }
            Err(line) => Some(line),
        }
    }

    /// Whether the account may not see the table.
    pub fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// Takes changes that a key carries on; whether some of them are new.
    fn takes(&mut self, more: CascadingParent) -> bool {
        let before = (self.carries_deletes, self.columns.len());
        self.carries_deletes |= more.carries_deletes;
        self.is_hidden |= more.is_hidden;
        self.begin = self.begin.min(more.begin);
        for column in more.columns {
            if !self.has_column(&column.name) {
                self.columns.push(column);
            }
        }
        before != (self.carries_deletes, self.columns.len())
    }
}

impl std::fmt::Display for CascadingParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.name.0, self.name.1)
    }
}

impl TableRoutes {
    /// Asks the server.
    ///
    /// # Errors
    ///
    /// A server that can't be asked; a foreign key with a rule that isn't known.
    pub fn of(session: &mut PastSession) -> Result<Self, PastError> {
        let rows = session.rows(
            "SELECT k.table_schema, k.table_name, k.referenced_table_schema, k.referenced_table_name, c.ordinal_position, \
             k.constraint_name, k.column_name, k.referenced_column_name, r.delete_rule, r.update_rule FROM information_schema.referential_constraints r JOIN information_schema.key_column_usage k USING (constraint_schema, \
             constraint_name, table_name) LEFT JOIN information_schema.columns c ON (c.table_schema, c.table_name, c.column_name) = \
             (k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name) WHERE r.delete_rule NOT IN \
             ('RESTRICT', 'NO ACTION') OR r.update_rule NOT IN ('RESTRICT', 'NO ACTION') ORDER BY k.constraint_schema, \
             k.table_name, k.constraint_name, k.ordinal_position",
        )?;
        let keys = rows.chunk_by(|one, other| one.first() == other.first() && is_of_one_key(one, other));
        let foreign_keys = keys.filter_map(|rows| CascadingKey::of(rows).transpose());
        let foreign_keys = foreign_keys.collect::<Result<Vec<_>, _>>()?;
        let mut routes = TableRoutes { foreign_keys, plain: Arc::default(), programs: None };
        if sees_programs(session)? {
            routes.look_at_programs(session)?;
        }
        Ok(routes)
    }

    fn look_at_programs(&mut self, session: &mut PastSession) -> Result<(), PastError> {
        let triggered = session
            .pairs("SELECT event_object_schema, event_object_table FROM information_schema.triggers")?;
        // Views of information_schema call no stored functions, those of sys only its own.
        let views = session.pairs(&format!(
            "SELECT table_schema, table_name FROM information_schema.views WHERE table_schema <> 'information_schema' AND definer <> \
             {OF_SYS}"
        ))?;
        let tables = session.pairs(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'",
        )?;
        let functions = session.pairs(&format!(
            "SELECT routine_name, '' FROM information_schema.routines WHERE routine_type = 'FUNCTION' AND definer <> {OF_SYS}"
        ))?;
        let leading = self.leading_to(triggered.into_iter().collect());
        let mut plain: HashSet<_> = tables.into_iter().collect();
        plain.retain(|table| !leading.contains(table));
        let mut programs: HashSet<_> = functions.into_iter().map(|(name, _)| name).collect();
        if !programs.is_empty() {
            programs.extend(views.into_iter().map(|(_, name)| name));
        }
        (self.plain, self.programs) = (Arc::new(plain), Some(Arc::new(programs)));
        Ok(())
    }

    /// These tables and all from which foreign keys lead to them, in small letters.
    fn leading_to(&self, mut reached: HashSet<RouteName>) -> HashSet<RouteName> {
        loop {
            let leads = |key: &&CascadingKey| reached.contains(&small(&key.child));
            let found: Vec<_> = self
                .foreign_keys
                .iter()
                .filter(leads)
                .map(|key| small(&key.parent))
                .filter(|parent| !reached.contains(parent))
                .collect();
            if found.is_empty() {
                return reached;
            }
            reached.extend(found);
        }
    }

    /// The tables of which deleted rows or changed keys foreign keys carry on to this table, over any number of tables in between, and
    /// which of these changes. By the statements in the logs a key counts from where it was added on.
    pub(super) fn cascading_parents(
        &self,
        table: &RouteName,
        logged: Option<&LoggedStatements>,
    ) -> Vec<CascadingParent> {
        let begin =
            |key: &CascadingKey| logged.map_or_else(HistoryPlace::default, |logged| key.begin(logged));
        let begins: Vec<_> = self.foreign_keys.iter().map(begin).collect();
        let mut parents: Vec<CascadingParent> = Vec::new();
        let mut has_grown = true;
        while has_grown {
            has_grown = false;
            for (key, begin) in self.foreign_keys.iter().zip(&begins) {
                let Some(carried) = key.carried(table, &parents, *begin) else { continue };
                has_grown |= match parents.iter_mut().find(|parent| parent.name == key.parent) {
                    Some(parent) => parent.takes(carried),
                    None => {
                        parents.push(carried);
                        true
                    }
                };
            }
        }
        parents
    }

    /// The tables from which foreign keys carry changes on to one of these, as they are called now, if the account may see them.
    pub(crate) fn visible_parents(&self, tables: &[(String, String)]) -> Vec<(String, String)> {
        let parents = tables.iter().flat_map(|table| self.cascading_parents(table, None));
        let visible = parents.filter(|parent| !parent.is_hidden).map(|parent| parent.name);
        let mut visible: Vec<_> = visible.filter(|parent| !tables.contains(parent)).collect();
        visible.sort();
        visible.dedup();
        visible
    }

    /// The tables whose changes leave this one alone: base tables without triggers, from which no foreign key leads to this one or
    /// to one with triggers. None for an account that may not see all triggers and stored functions.
    pub(super) fn isolated_from(&self, table: &RouteName) -> IsolatedTables {
        let leading = self.leading_to(HashSet::from([small(table)]));
        IsolatedTables { tables: Arc::clone(&self.plain), leading, programs: self.programs.clone() }
    }
}

impl CascadingKey {
    /// `None`: the server told of no column.
    fn of(rows: &[PastAnswerRow]) -> Result<Option<CascadingKey>, PastError> {
        let Some(row) = rows.first() else { return Ok(None) };
        let name = column(row, 5);
        let child = (column(row, 0), column(row, 1));
        let on_delete = rule((&name, &child), "DELETE", &column(row, 8))?;
        let on_update = rule((&name, &child), "UPDATE", &column(row, 9))?;
        let parent = (column(row, 2), column(row, 3));
        let columns = rows.iter().map(CascadingColumn::of).collect();
        Ok(Some(CascadingKey { name, child, parent, columns, on_delete, on_update }))
    }

    /// The place at which a statement in the logs added the key.
    fn begin(&self, logged: &LoggedStatements) -> HistoryPlace {
        logged.history().foreign_key_added((&self.child.0, &self.child.1), &self.name)
    }

    /// The changes of its parent that end up at a table: as its child, or over the tables that are known to lead there.
    fn carried(
        &self,
        table: &RouteName,
        known: &[CascadingParent],
        begin: HistoryPlace,
    ) -> Option<CascadingParent> {
        let is_table = self.child == *table;
        let child = known.iter().find(|parent| parent.name == self.child);
        let counts =
            |column: &&CascadingColumn| is_table || child.is_some_and(|child| child.has_column(&column.name));
        let changed: Vec<_> = self.columns.iter().filter(counts).collect();
        let carries_deletes = match self.on_delete {
            ReferentialRule::Refuse => false,
            ReferentialRule::Cascade => is_table || child.is_some_and(|child| child.carries_deletes),
            ReferentialRule::SetNull | ReferentialRule::Unknown => !changed.is_empty(),
        };
        let columns: Vec<&CascadingColumn> = match self.on_update {
            ReferentialRule::Refuse => Vec::new(),
            ReferentialRule::Cascade => changed,
            ReferentialRule::SetNull | ReferentialRule::Unknown if changed.is_empty() => Vec::new(),
            // One changed column makes all of them NULL.
            ReferentialRule::SetNull | ReferentialRule::Unknown => self.columns.iter().collect(),
        };
        (carries_deletes || !columns.is_empty()).then(|| CascadingParent {
            name: self.parent.clone(),
            names: vec![self.parent.clone()],
            is_altered: false,
            carries_deletes,
            columns: columns.into_iter().map(|column| column.referenced.clone()).collect(),
            begin,
            is_hidden: self.columns.iter().any(|column| column.referenced.place.is_none()),
        })
    }
}

impl CascadingColumn {
    fn of(row: &PastAnswerRow) -> CascadingColumn {
        let place = column(row, 4).parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let referenced = ReferencedColumn { name: column(row, 7).to_lowercase(), place };
        CascadingColumn { name: column(row, 6).to_lowercase(), referenced }
    }
}

/// Whether two rows are of one key, if their tables are in one database.
fn is_of_one_key(one: &PastAnswerRow, other: &PastAnswerRow) -> bool {
    column(one, 1) == column(other, 1) && column(one, 5) == column(other, 5)
}

/// A foreign key's rule as information_schema names it. SET DEFAULT gives columns other values, as SET NULL does.
fn rule((key, table): (&str, &RouteName), event: &str, name: &str) -> Result<ReferentialRule, PastError> {
    match name {
        "CASCADE" => Ok(ReferentialRule::Cascade),
        "RESTRICT" | "NO ACTION" => Ok(ReferentialRule::Refuse),
        "SET NULL" | "SET DEFAULT" => Ok(ReferentialRule::SetNull),
        other => Err(PastError::Refused(format!(
            "foreign key {key} of {}.{}: its rule ON {event} is {other:?}, expected CASCADE, SET NULL, SET DEFAULT, RESTRICT or NO ACTION",
            table.0, table.1
        ))),
    }
}

/// Whether the account sees all triggers and stored functions.
fn sees_programs(session: &mut PastSession) -> Result<bool, PastError> {
    let rights = session.pairs(
        "SELECT privilege_type, '' FROM information_schema.user_privileges WHERE grantee = CONCAT('''', LEFT(CURRENT_USER(), \
         CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''', \
         SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')",
    )?;
    let may = |right: &str| rights.iter().any(|(own, _)| own == right);
    // With partial revokes a global right doesn't hold in every database.
    Ok(!session.is_on("partial_revokes")? && may("trigger") && (may("select") || may("show_routine")))
}

fn small((database, table): &RouteName) -> RouteName {
    (database.to_lowercase(), table.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> RouteName {
        ("shop".to_owned(), table.to_owned())
    }

    /// A key from a column of a table to the column `id` of another.
    fn key(
        (child, own): (&str, &str),
        parent: &str,
        on_delete: ReferentialRule,
        on_update: ReferentialRule,
    ) -> CascadingKey {
        let referenced = ReferencedColumn { name: "id".to_owned(), place: Some(0) };
        let columns = vec![CascadingColumn { name: own.to_owned(), referenced }];
        CascadingKey {
            name: format!("{child}_{own}"),
            child: name(child),
            parent: name(parent),
            columns,
            on_delete,
            on_update,
        }
    }

    /// The tables whose changes end up at `c`: DELETE, and the columns.
    fn carried(foreign_keys: Vec<CascadingKey>) -> Vec<String> {
        let routes = TableRoutes { foreign_keys, plain: Arc::default(), programs: None };
        let parents = routes.cascading_parents(&name("c"), None);
        let shown = |parent: &CascadingParent| {
            let deletes = if parent.carries_deletes { " DELETE" } else { "" };
            let columns: String = parent.columns.iter().map(|column| format!(" {}", column.name)).collect();
            format!("{}{deletes}{columns}", parent.name.1)
        };
        parents.iter().map(shown).collect()
    }

    #[test]
    fn a_rule_carries_its_own_change_on_and_no_other() {
        use ReferentialRule::{Cascade, Refuse, SetNull};
        assert_eq!(carried(vec![key(("c", "p"), "p", Cascade, Refuse)]), ["p DELETE"]);
        assert_eq!(carried(vec![key(("c", "p"), "p", Refuse, SetNull)]), ["p id"]);
        assert_eq!(carried(vec![key(("other", "p"), "p", Cascade, Cascade)]), [""; 0]);
        let itself = || key(("c", "up"), "c", SetNull, Refuse);
        assert_eq!(
            carried(vec![itself(), key(("c", "p"), "p", Cascade, Cascade)]),
            ["c DELETE", "p DELETE id"]
        );
    }

    #[test]
    fn a_rule_that_is_not_documented_is_an_error() {
        let key = |on_delete: &str, on_update: &str| {
            let texts = ["shop", "c", "shop", "p", "1", "cp", "p", "id", on_delete, on_update];
            let row: PastAnswerRow = texts.iter().map(|text| Some(text.as_bytes().to_vec())).collect();
            CascadingKey::of(&[row]).map(|key| key.map(|key| (key.on_delete, key.on_update)))
        };
        let known = key("SET DEFAULT", "NO ACTION").unwrap();
        assert_eq!(known, Some((ReferentialRule::SetNull, ReferentialRule::Refuse)));
        let error = key("CASCADE", "FOLLOW").unwrap_err().to_string();
        assert!(error.starts_with("foreign key cp of shop.c: its rule ON UPDATE is \"FOLLOW\""), "{error}");
        assert!(key("", "RESTRICT").is_err());
    }

    #[test]
    fn what_a_table_in_between_does_not_carry_on_ends_there() {
        use ReferentialRule::{Cascade, Refuse, SetNull};
        let to_child = |on_update| key(("c", "p"), "p", Cascade, on_update);
        // A row of `p` goes with one of `g`, and takes those of `c` with it.
        assert_eq!(
            carried(vec![to_child(Refuse), key(("p", "g"), "g", Cascade, Refuse)]),
            ["p DELETE", "g DELETE"]
        );
        // A column of `p` to which nothing refers becomes NULL.
        assert_eq!(carried(vec![key(("p", "g"), "g", SetNull, Cascade), to_child(Cascade)]), ["p DELETE id"]);
        // The key of `p` is that of `g`.
        let own_key = key(("p", "id"), "g", Cascade, Cascade);
        assert_eq!(carried(vec![own_key, to_child(Cascade)]), ["p DELETE id", "g DELETE id"]);
    }
}
