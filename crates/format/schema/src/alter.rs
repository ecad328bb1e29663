//! The actions of ALTER TABLE: what each says, what all of them together make of a table, and what the table was before
//! them. An action that isn't understood makes the whole statement unknown.
//!
//! The server names columns as they were before the statement, but for AFTER, which names them as they are after it. It
//! first goes through the old columns (dropped, redefined, renamed), then takes new and moved ones to their places, in the
//! order of the statement. (Facts of MySQL 9.7.4's `prepare_fields_and_keys`.)

use sqlparser::tokenizer::Token;

use crate::column_default::ColumnDefault;
use crate::foreign_key::ForeignKey;
use crate::key::KeyDefinition;
use crate::table::{ColumnClause, DefinedTable};
use crate::tokens::{TokenReader, is_same_name, is_word, name_of, without};

/// First words of actions that leave columns and keys as they are.
const HARMLESS: [&str; 20] = [
    "ALGORITHM",
    "LOCK",
    "ENABLE",
    "DISABLE",
    "FORCE",
    "ORDER",
    "PARTITION",
    "WITH",
    "WITHOUT",
    "SECONDARY_LOAD",
    "SECONDARY_UNLOAD",
    "REORGANIZE",
    "COALESCE",
    "REMOVE",
    "ANALYZE",
    "CHECK",
    "OPTIMIZE",
    "REBUILD",
    "REPAIR",
    "UPGRADE",
];

/// First words of table options: columns and keys stay as they are.
const OF_OPTIONS: [&str; 28] = [
    "ENGINE",
    "AUTO_INCREMENT",
    "AUTOEXTEND_SIZE",
    "COMMENT",
    "ROW_FORMAT",
    "KEY_BLOCK_SIZE",
    "STATS_PERSISTENT",
    "STATS_AUTO_RECALC",
    "STATS_SAMPLE_PAGES",
    "CHECKSUM",
    "DELAY_KEY_WRITE",
    "MIN_ROWS",
    "MAX_ROWS",
    "AVG_ROW_LENGTH",
    "PACK_KEYS",
    "COMPRESSION",
    "ENCRYPTION",
    "TABLESPACE",
    "INSERT_METHOD",
    "SECONDARY_ENGINE",
    "CONNECTION",
    "ENGINE_ATTRIBUTE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "DEFAULT",
    "CHARACTER",
    "CHARSET",
    "COLLATE",
    "CONVERT",
];

/// Engines that keep all rows of another one.
const KEEPING_ENGINES: [&str; 3] = ["INNODB", "ROCKSDB", "NDBCLUSTER"];

/// Where a column is to stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnTarget {
    First,
    After(String),
}

/// One action of ALTER TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AlterAction {
    /// ADD COLUMN.
    Add {
        clause: ColumnClause,
        target: Option<ColumnTarget>,
        if_not_exists: bool,
    },
    /// DROP COLUMN.
    Drop {
        name: String,
        if_exists: bool,
    },
    /// MODIFY and CHANGE.
    Redefine {
        old: String,
        clause: ColumnClause,
        target: Option<ColumnTarget>,
    },
    /// RENAME COLUMN.
    RenameColumn {
        from: String,
        to: String,
    },
    /// ALTER COLUMN … SET DEFAULT and DROP DEFAULT.
    SetDefault {
        name: String,
        default: ColumnDefault,
    },
    AddKey(KeyDefinition, Option<ForeignKey>),
    DropPrimaryKey,
    /// DROP KEY and INDEX.
    DropKey(String),
    /// DROP CONSTRAINT: a key, a foreign key or a check.
    DropConstraint(String),
    DropForeignKey(String),
    RenameKey {
        from: String,
        to: String,
    },
    /// The table has another name: its database, where it is named, and its name.
    RenameTable(Option<String>, String),
    /// EXCHANGE PARTITION: the other table.
    Exchange(Option<String>, String),
    /// Columns and keys stay as they are, rows go: of a partition, or of all.
    LosesRows,
    /// Columns keep their names and places, but texts without a character set of their own may get another.
    ChangesCharset,
    /// Columns and keys stay as they are, but rows may go: those that an engine doesn't keep, or duplicates with IGNORE.
    MayLoseRows,
    /// Columns and keys stay as they are.
    Harmless,
}

/// A column's fate in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnFate<'a> {
    Dropped,
    /// The column stays: its new name, and whether its definition is unchanged.
    Kept {
        name: &'a str,
        is_same: bool,
    },
}

impl AlterAction {
    /// The actions of one item of ALTER TABLE; `None`: its effect is not known.
    pub(crate) fn of(item: &[Token]) -> Option<Vec<AlterAction>> {
        let (first, rest) = match item {
            [] => return Some(Vec::new()),
            [Token::Word(word), rest @ ..] if word.quote_style.is_none() => (word.value.to_uppercase(), rest),
            _ => return None,
        };
        let action = match &*first {
            "ADD" => return added(rest),
            "DROP" => dropped(rest)?,
            "MODIFY" => {
                let (rest, if_exists) = conditional(without(rest, &["COLUMN"]));
                let (clause, target) = placed(rest).filter(|_| !if_exists)?;
                AlterAction::Redefine { old: clause.column.name.clone(), clause, target }
            }
            "CHANGE" => {
                let (rest, if_exists) = conditional(without(rest, &["COLUMN"]));
                let (old, definition) = rest.split_first().filter(|_| !if_exists)?;
                let (clause, target) = placed(definition)?;
                AlterAction::Redefine { old: name_of(old)?, clause, target }
            }
            "RENAME" => renamed(rest)?,
            "ALTER" => default_set(rest)?,
            "EXCHANGE" => {
                let with = rest.iter().position(|token| is_word(token, "WITH"))?;
                let mut reader = TokenReader { tokens: rest.get(with + 2..)?.to_vec(), next: 0 };
                let (database, table) = reader.table_name()?;
                AlterAction::Exchange(database, table)
            }
            // Texts may become bytes.
            "CONVERT" if item.iter().any(|token| is_word(token, "BINARY")) => return None,
            "TRUNCATE" | "DISCARD" | "IMPORT" => AlterAction::LosesRows,
            option if OF_OPTIONS.contains(&option) => return Some(of_options(item)),
            harmless if HARMLESS.contains(&harmless) => AlterAction::Harmless,
            _ => return None,
        };
        Some(vec![action])
    }

    /// Forgets the default that it gives a column, if that is meant.
    pub(crate) fn forget_default(&mut self, is_meant: fn(&ColumnDefault) -> bool) {
        let default = match self {
            AlterAction::Add { clause, .. } | AlterAction::Redefine { clause, .. } => {
                clause.column.facts.as_mut().map(|facts| &mut facts.default)
            }
            AlterAction::SetDefault { default, .. } => Some(default),
            AlterAction::Drop { .. }
            | AlterAction::RenameColumn { .. }
            | AlterAction::AddKey(..)
            | AlterAction::DropPrimaryKey
            | AlterAction::DropKey(_)
            | AlterAction::DropConstraint(_)
            | AlterAction::DropForeignKey(_)
            | AlterAction::RenameKey { .. }
            | AlterAction::RenameTable(..)
            | AlterAction::Exchange(..)
            | AlterAction::LosesRows
            | AlterAction::ChangesCharset
            | AlterAction::MayLoseRows
            | AlterAction::Harmless => None,
        };
        if let Some(default) = default.filter(|default| is_meant(default)) {
            *default = ColumnDefault::Unknown;
        }
    }

    /// The fate of a column of this name after these actions.
    pub(crate) fn fate<'a>(actions: &'a [AlterAction], column: &'a str) -> ColumnFate<'a> {
        for action in actions {
            match action {
                AlterAction::Drop { name, .. } if is_same_name(name, column) => return ColumnFate::Dropped,
                AlterAction::Redefine { old, clause, .. } if is_same_name(old, column) => {
                    return ColumnFate::Kept { name: &clause.column.name, is_same: false };
                }
                AlterAction::RenameColumn { from, to } if is_same_name(from, column) => {
                    return ColumnFate::Kept { name: to, is_same: true };
                }
                // Of other columns.
                AlterAction::Drop { .. }
                | AlterAction::Redefine { .. }
                | AlterAction::RenameColumn { .. }
                | AlterAction::Add { .. } => {}
                AlterAction::SetDefault { .. } | AlterAction::ChangesCharset => {}
                AlterAction::AddKey(..)
                | AlterAction::DropPrimaryKey
                | AlterAction::DropKey(_)
                | AlterAction::DropConstraint(_)
                | AlterAction::DropForeignKey(_)
                | AlterAction::RenameKey { .. } => {}
                AlterAction::RenameTable(..)
                | AlterAction::Exchange(..)
                | AlterAction::LosesRows
                | AlterAction::MayLoseRows
                | AlterAction::Harmless => {}
            }
        }
        ColumnFate::Kept { name: column, is_same: true }
    }
}

/// The actions of table options, of which several may stand one after the other.
fn of_options(item: &[Token]) -> Vec<AlterAction> {
    let mut actions = vec![AlterAction::Harmless];
    for (number, token) in item.iter().enumerate() {
        let mut after = item.iter().skip(number + 1).filter(|token| **token != Token::Eq);
        if is_word(token, "ENGINE") && !after.next().is_some_and(keeps_rows) {
            actions.push(AlterAction::MayLoseRows);
        }
        if ["CONVERT", "CHARACTER", "CHARSET", "COLLATE"].iter().any(|word| is_word(token, word)) {
            actions.push(AlterAction::ChangesCharset);
        }
    }
    actions
}

/// Whether this is the name of an engine that keeps all rows of another one.
fn keeps_rows(name: &Token) -> bool {
    let name = match name {
        Token::Word(word) => &word.value,
        Token::SingleQuotedString(name) | Token::DoubleQuotedString(name) => name,
        _ => return false,
    };
    KEEPING_ENGINES.iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn added(rest: &[Token]) -> Option<Vec<AlterAction>> {
    if let Some(key) = KeyDefinition::of(rest) {
        return Some(vec![AlterAction::AddKey(key, ForeignKey::of(rest))]);
    }
    if is_word(rest.first()?, "PARTITION") {
        return Some(vec![AlterAction::Harmless]);
    }
    let (rest, if_not_exists) = conditional(without(rest, &["COLUMN"]));
    let [Token::LParen, definitions @ .., Token::RParen] = rest else {
        let (clause, target) = placed(rest)?;
        return Some(vec![AlterAction::Add { clause, target, if_not_exists }]);
    };
    let mut reader = TokenReader { tokens: definitions.to_vec(), next: 0 };
    let mut actions = Vec::new();
    while reader.peek().is_some() {
        let item = reader.item();
        actions.push(match KeyDefinition::of(&item) {
            Some(key) => AlterAction::AddKey(key, ForeignKey::of(&item)),
            None => AlterAction::Add { clause: ColumnClause::of(&item)?, target: None, if_not_exists },
        });
        reader.next += 1;
    }
    Some(actions)
}

/// The tokens after IF EXISTS or IF NOT EXISTS, and whether that stood there.
fn conditional(rest: &[Token]) -> (&[Token], bool) {
    match rest {
        [one, two, rest @ ..] if is_word(one, "IF") && is_word(two, "EXISTS") => (rest, true),
        [one, two, three, rest @ ..]
            if is_word(one, "IF") && is_word(two, "NOT") && is_word(three, "EXISTS") =>
        {
            (rest, true)
        }
        _ => (rest, false),
    }
}

/// A column's definition, and the place named after it.
fn placed(rest: &[Token]) -> Option<(ColumnClause, Option<ColumnTarget>)> {
    let mut depth = 0_usize;
    for (number, token) in rest.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            // Before it stand at least a name and a type.
            _ if depth > 0 || number < 2 => {}
            _ if is_word(token, "FIRST") || is_word(token, "AFTER") => {
                let (definition, place) = rest.split_at_checked(number)?;
                let target = match place {
                    [_] if is_word(token, "FIRST") => ColumnTarget::First,
                    [_, name] if is_word(token, "AFTER") => ColumnTarget::After(name_of(name)?),
                    // The table's partitions may be named without a comma, and what else we don't know.
                    _ => return None,
                };
                return Some((ColumnClause::of(definition)?, Some(target)));
            }
            _ if is_word(token, "PARTITION") => return None,
            _ => {}
        }
    }
    Some((ColumnClause::of(rest)?, None))
}

fn dropped(rest: &[Token]) -> Option<AlterAction> {
    let [first, others @ ..] = rest else { return None };
    if is_word(first, "PRIMARY") {
        return Some(AlterAction::DropPrimaryKey);
    }
    if is_word(first, "KEY") || is_word(first, "INDEX") {
        return Some(AlterAction::DropKey(name_of(others.last()?)?));
    }
    if is_word(first, "CONSTRAINT") {
        return Some(AlterAction::DropConstraint(name_of(others.last()?)?));
    }
    if is_word(first, "FOREIGN") {
        return Some(AlterAction::DropForeignKey(name_of(others.last()?)?));
    }
    if is_word(first, "PARTITION") {
        return Some(AlterAction::LosesRows);
    }
    if is_word(first, "CHECK") {
        return Some(AlterAction::Harmless);
    }
    let (rest, if_exists) = conditional(without(rest, &["COLUMN"]));
    match rest {
        [name] => Some(AlterAction::Drop { name: name_of(name)?, if_exists }),
        _ => None,
    }
}

/// The action of SET DEFAULT and DROP DEFAULT after ALTER; ALTER INDEX and ALTER CHECK are harmless.
fn default_set(rest: &[Token]) -> Option<AlterAction> {
    let (rest, _) = conditional(without(rest, &["COLUMN"]));
    let [name, verb, what, words @ ..] = rest else { return Some(AlterAction::Harmless) };
    if !is_word(what, "DEFAULT") {
        return Some(AlterAction::Harmless);
    }
    let default = if is_word(verb, "SET") { ColumnDefault::of(words) } else { ColumnDefault::Absent };
    Some(AlterAction::SetDefault { name: name_of(name)?, default })
}

fn renamed(rest: &[Token]) -> Option<AlterAction> {
    match rest {
        [what, from, to, new] if is_word(what, "COLUMN") && is_word(to, "TO") => {
            Some(AlterAction::RenameColumn { from: name_of(from)?, to: name_of(new)? })
        }
        [what, from, to, new] if (is_word(what, "KEY") || is_word(what, "INDEX")) && is_word(to, "TO") => {
            Some(AlterAction::RenameKey { from: name_of(from)?, to: name_of(new)? })
        }
        _ => match without(without(rest, &["TO"]), &["AS"]) {
            [name] => Some(AlterAction::RenameTable(None, name_of(name)?)),
            [database, Token::Period, name] => {
                Some(AlterAction::RenameTable(Some(name_of(database)?), name_of(name)?))
            }
            _ => None,
        },
    }
}

/// The default that the last of these actions sets for a column, by its name before them.
fn default_of<'a>(actions: &'a [AlterAction], column: &str) -> Option<&'a ColumnDefault> {
    actions.iter().rev().find_map(|action| match action {
        AlterAction::SetDefault { name, default } if is_same_name(name, column) => Some(default),
        _ => None,
    })
}

impl DefinedTable {
    /// The table after these actions; `None`: they don't fit it.
    pub(crate) fn altered(&self, actions: &[AlterAction]) -> Option<DefinedTable> {
        let has = |name: &str| self.position(name).is_some();
        let mut table = DefinedTable { columns: Vec::new(), ..self.clone() };
        for action in actions {
            let fits = match action {
                AlterAction::Drop { name, if_exists } => has(name) || *if_exists,
                AlterAction::Redefine { old, .. } => has(old),
                AlterAction::RenameColumn { from, .. } => has(from),
                AlterAction::SetDefault { name, .. } => has(name),
                AlterAction::Add { .. }
                | AlterAction::AddKey(..)
                | AlterAction::DropPrimaryKey
                | AlterAction::DropKey(_)
                | AlterAction::DropConstraint(_)
                | AlterAction::DropForeignKey(_)
                | AlterAction::RenameKey { .. }
                | AlterAction::RenameTable(..)
                | AlterAction::Exchange(..)
                | AlterAction::LosesRows
                | AlterAction::ChangesCharset
                | AlterAction::MayLoseRows
                | AlterAction::Harmless => true,
            };
            if !fits {
                return None;
            }
        }
        for column in &self.columns {
            let ColumnFate::Kept { name, is_same } = AlterAction::fate(actions, &column.name) else {
                continue;
            };
            let redefined = actions.iter().find_map(|action| match action {
                AlterAction::Redefine { clause, .. } if !is_same && clause.column.name == name => {
                    Some(clause.column.clone())
                }
                _ => None,
            });
            let is_redefined = redefined.is_some();
            let old_name = &column.name;
            let mut column = redefined.unwrap_or_else(|| column.clone());
            if let (Some(default), Some(facts)) = (default_of(actions, old_name), &mut column.facts) {
                facts.default = if is_redefined { ColumnDefault::Unknown } else { default.clone() };
            }
            name.clone_into(&mut column.name);
            table.columns.push(column);
        }
        for action in actions {
            let (clause, target) = match action {
                AlterAction::Add { clause, if_not_exists: true, .. } if has(&clause.column.name) => {
                    let _ = clause;
                    continue;
                }
                AlterAction::Add { clause, target, .. } => (clause, target),
                AlterAction::Redefine { clause, target: target @ Some(_), .. } => {
                    table.columns.retain(|column| !is_same_name(&column.name, &clause.column.name));
                    (clause, target)
                }
                AlterAction::Redefine { target: None, .. }
                | AlterAction::Drop { .. }
                | AlterAction::RenameColumn { .. }
                | AlterAction::SetDefault { .. }
                | AlterAction::AddKey(..)
                | AlterAction::DropPrimaryKey
                | AlterAction::DropKey(_)
                | AlterAction::DropConstraint(_)
                | AlterAction::DropForeignKey(_)
                | AlterAction::RenameKey { .. }
                | AlterAction::RenameTable(..)
                | AlterAction::Exchange(..)
                | AlterAction::LosesRows
                | AlterAction::ChangesCharset
                | AlterAction::MayLoseRows
                | AlterAction::Harmless => continue,
            };
            if table.position(&clause.column.name).is_some() {
                return None;
            }
            let place = match target {
                None => table.columns.len(),
                Some(ColumnTarget::First) => 0,
                Some(ColumnTarget::After(name)) => table.position(name)? + 1,
            };
            let mut column = clause.column.clone();
            if let (Some(_), Some(facts)) = (default_of(actions, &column.name), &mut column.facts) {
                facts.default = ColumnDefault::Unknown;
            }
            table.columns.insert(place, column);
        }
        table.alter_keys(actions);
        Some(table)
    }

    /// Does what these actions do to keys and foreign keys, whose columns they may have renamed.
    pub(crate) fn alter_keys(&mut self, actions: &[AlterAction]) {
        // The server takes a dropped column out of keys; a unique key of fewer columns is another one.
        self.defined.retain_mut(|key| {
            let fates: Vec<_> = key.columns.iter().map(|name| AlterAction::fate(actions, name)).collect();
            let names: Option<Vec<String>> = fates
                .iter()
                .map(|fate| match fate {
                    ColumnFate::Dropped => None,
                    ColumnFate::Kept { name, .. } => Some((*name).to_owned()),
                })
                .collect();
            let is_kept = names.is_some();
            key.columns = names.unwrap_or_default();
            is_kept
        });
        // Those of a column that is dropped have to be dropped with it.
        for column in self.foreign_keys.iter_mut().flat_map(|key| &mut key.columns) {
            if let ColumnFate::Kept { name, .. } = AlterAction::fate(actions, column) {
                *column = name.to_owned();
            }
        }
        for action in actions {
            match action {
                AlterAction::DropPrimaryKey => self.defined.retain(|key| !key.is_primary),
                AlterAction::DropKey(name) | AlterAction::DropConstraint(name) => {
                    let is_it = |key: &KeyDefinition| {
                        let of_columns = key.columns.first();
                        key.name.as_ref().or(of_columns).is_some_and(|own| own.eq_ignore_ascii_case(name))
                    };
                    self.defined.retain(|key| key.is_primary || !is_it(key));
                    self.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(name));
                }
                AlterAction::DropForeignKey(name) => {
                    self.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(name));
                }
                AlterAction::RenameKey { from, to } => {
                    for key in &mut self.defined {
                        if key.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(from)) {
                            key.name = Some(to.clone());
                        }
                    }
                }
                // Those that add keys come after those that drop some.
                AlterAction::AddKey(..) | AlterAction::Add { .. } | AlterAction::Redefine { .. } => {}
                AlterAction::Drop { .. }
                | AlterAction::RenameColumn { .. }
                | AlterAction::SetDefault { .. }
                | AlterAction::RenameTable(..)
                | AlterAction::Exchange(..)
                | AlterAction::LosesRows
                | AlterAction::ChangesCharset
                | AlterAction::MayLoseRows
                | AlterAction::Harmless => {}
            }
        }
        for action in actions {
            match action {
                AlterAction::AddKey(key, foreign_key) => {
                    self.defined.push(key.clone());
                    self.foreign_keys.extend(foreign_key.clone());
                }
                AlterAction::Add { clause, .. } | AlterAction::Redefine { clause, .. } => {
                    self.defined.extend(clause.keys.iter().cloned());
                    self.foreign_keys.extend(clause.foreign_key.clone());
                }
                AlterAction::DropPrimaryKey
                | AlterAction::DropKey(_)
                | AlterAction::DropConstraint(_)
                | AlterAction::DropForeignKey(_)
                | AlterAction::RenameKey { .. }
                | AlterAction::Drop { .. }
                | AlterAction::RenameColumn { .. }
                | AlterAction::SetDefault { .. }
                | AlterAction::RenameTable(..)
                | AlterAction::Exchange(..)
                | AlterAction::LosesRows
                | AlterAction::ChangesCharset
                | AlterAction::MayLoseRows
                | AlterAction::Harmless => {}
            }
        }
        self.find_keys();
    }

    /// The table before these actions made it what it is; `None`: they don't tell. The facts of columns that they redefined
    /// are not known, nor are keys and foreign keys that they dropped.
    pub(crate) fn before(&self, actions: &[AlterAction]) -> Option<DefinedTable> {
        let mut before = DefinedTable { columns: Vec::new(), ..self.clone() };
        let mut old_names = Vec::new();
        let mut added = Vec::new();
        let mut keys = Vec::new();
        for action in actions {
            match action {
                // They stood somewhere.
                AlterAction::Drop { .. }
                | AlterAction::Redefine { target: Some(_), .. }
                | AlterAction::Add { if_not_exists: true, .. } => return None,
                AlterAction::Add { clause, .. } => {
                    added.push(&clause.column.name);
                    keys.extend(&clause.keys);
                }
                AlterAction::Redefine { old, clause, .. } => {
                    old_names.push((&clause.column.name, old, false));
                    keys.extend(&clause.keys);
                }
                AlterAction::RenameColumn { from, to } => old_names.push((to, from, true)),
                AlterAction::AddKey(key, _) => keys.push(key),
                // The keys that these dropped or named otherwise aren't known.
                AlterAction::DropPrimaryKey
                | AlterAction::DropKey(_)
                | AlterAction::DropConstraint(_)
                | AlterAction::DropForeignKey(_)
                | AlterAction::RenameKey { .. }
                | AlterAction::SetDefault { .. } => {}
                AlterAction::RenameTable(..)
                | AlterAction::Exchange(..)
                | AlterAction::LosesRows
                | AlterAction::ChangesCharset
                | AlterAction::MayLoseRows
                | AlterAction::Harmless => {}
            }
        }
        let old_name = |name: &str| old_names.iter().find(|(new, ..)| is_same_name(new, name));
        for column in &self.columns {
            if added.iter().any(|name| is_same_name(name, &column.name)) {
                continue;
            }
            let mut column = column.clone();
            if let Some((_, old, knows_facts)) = old_name(&column.name) {
                column.name.clone_from(old);
                column.facts.take_if(|_| !knows_facts);
            }
            if let (Some(_), Some(facts)) = (default_of(actions, &column.name), &mut column.facts) {
                facts.default = ColumnDefault::Unknown;
            }
            before.columns.push(column);
        }
        before.defined.retain(|key| !keys.iter().any(|added| added.columns == key.columns));
        for name in before.defined.iter_mut().flat_map(|key| &mut key.columns) {
            if let Some((_, old, _)) = old_name(name) {
                name.clone_from(old);
            }
        }
        let foreign: Vec<_> = actions
            .iter()
            .filter_map(|action| match action {
                AlterAction::AddKey(_, Some(key)) => Some(key),
                _ => None,
            })
            .collect();
        before.foreign_keys.retain(|key| !foreign.contains(&key));
        before.find_keys();
        // Check: applied to the earlier table, the actions must give this one.
        let again = before.altered(actions)?;
        again.has_columns_of(self).then_some(before)
    }

    /// Whether the columns have the same names, in the same order.
    pub(crate) fn has_columns_of(&self, other: &DefinedTable) -> bool {
        let names = self.columns.iter().zip(&other.columns);
        self.columns.len() == other.columns.len()
            && names.into_iter().all(|(a, b)| is_same_name(&a.name, &b.name))
    }
}
