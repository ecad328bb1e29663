//! What leads on a server from changes of one table to changes of another: foreign keys, triggers, views and stored functions. The server
//! is asked once, and then answers for each table.

use std::collections::HashSet;
use std::sync::Arc;

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

/// A column of a foreign key that carries changes on to the table that has it.
#[derive(Debug)]
struct CascadingKey {
    child: RouteName,
    parent: RouteName,
    /// The place of the column that it refers to among the parent's; `None`: the account may not see the parent.
    referenced: Option<usize>,
}

/// A table whose changes foreign keys carry on to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CascadingParent {
    /// The database and the table, as it is called now.
    pub(super) name: RouteName,
    /// All names that it had since the moment, as far as statements are known.
    pub(super) names: Vec<RouteName>,
    /// Whether statements changed it since the moment: its columns may have stood elsewhere.
    pub(super) is_altered: bool,
    /// The columns that foreign keys refer to, by their places among all columns; none if the account may not see the table, and
    /// then its own foreign keys are not known either.
    pub(super) columns: Vec<usize>,
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
        self.columns.is_empty()
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
    /// A server that can't be asked.
    pub fn of(session: &mut PastSession) -> Result<Self, PastError> {
        let rows = session.rows(
            "SELECT k.table_schema, k.table_name, k.referenced_table_schema, k.referenced_table_name, c.ordinal_position FROM \
             information_schema.referential_constraints r JOIN information_schema.key_column_usage k USING (constraint_schema, \
             constraint_name, table_name) LEFT JOIN information_schema.columns c ON (c.table_schema, c.table_name, c.column_name) = \
             (k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name) WHERE r.delete_rule NOT IN \
             ('RESTRICT', 'NO ACTION') OR r.update_rule NOT IN ('RESTRICT', 'NO ACTION')",
        )?;
        let foreign_keys: Vec<_> = rows.iter().map(CascadingKey::of).collect();
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

    /// The tables whose deleted rows or changed keys foreign keys carry on to this table, over any number of tables in between.
    pub(super) fn cascading_parents(&self, table: &RouteName) -> Vec<CascadingParent> {
        let mut reached = vec![table];
        let mut parents: Vec<CascadingParent> = Vec::new();
        let mut next = 0;
        while let Some(child) = reached.get(next).copied() {
            next += 1;
            for key in self.foreign_keys.iter().filter(|key| key.child == *child) {
                match parents.iter_mut().find(|parent| parent.name == key.parent) {
                    Some(parent) => parent.columns.extend(key.referenced),
                    None => {
                        let columns = Vec::from_iter(key.referenced);
                        let name = key.parent.clone();
                        let names = vec![key.parent.clone()];
                        parents.push(CascadingParent { name, names, is_altered: false, columns });
                    }
                }
                if !reached.contains(&&key.parent) {
                    reached.push(&key.parent);
                }
            }
        }
        parents
    }

    /// The tables whose changes leave this one alone: base tables without triggers, from which no foreign key leads to this one or
    /// to one with triggers. None for an account that may not see all triggers and stored functions.
    pub(super) fn isolated_from(&self, table: &RouteName) -> IsolatedTables {
        let leading = self.leading_to(HashSet::from([small(table)]));
        IsolatedTables { tables: Arc::clone(&self.plain), leading, programs: self.programs.clone() }
    }
}

impl CascadingKey {
    fn of(row: &PastAnswerRow) -> CascadingKey {
        let referenced = column(row, 4).parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        CascadingKey {
            child: (column(row, 0), column(row, 1)),
            parent: (column(row, 2), column(row, 3)),
            referenced,
        }
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
    let revokes = session.pairs("SHOW GLOBAL VARIABLES LIKE 'partial_revokes'")?;
    let is_restricted = revokes.iter().any(|(_, value)| value == "on");
    Ok(!is_restricted && may("trigger") && (may("select") || may("show_routine")))
}

fn small((database, table): &RouteName) -> RouteName {
    (database.to_lowercase(), table.to_lowercase())
}
