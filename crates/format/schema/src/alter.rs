//! The actions of ALTER TABLE. We follow how each changes columns and keys; of one that isn't understood the effect isn't
//! known.

use sqlparser::tokenizer::Token;

use crate::foreign_key::ForeignKey;
use crate::key::KeyDefinition;
use crate::table::DefinedTable;
use crate::tokens::{TokenReader, is_word, name_of, without};

/// First words of actions that leave columns and keys as they are.
const HARMLESS: [&str; 36] = [
    "ENGINE",
    "AUTO_INCREMENT",
    "COMMENT",
    "ALGORITHM",
    "LOCK",
    "DEFAULT",
    "CHARACTER",
    "CHARSET",
    "COLLATE",
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
    "CONVERT",
    "ENABLE",
    "DISABLE",
    "FORCE",
    "ORDER",
    "TABLESPACE",
    "INSERT_METHOD",
    "ALTER",
    "PARTITION",
    "WITH",
    "WITHOUT",
    "SECONDARY_ENGINE",
    "SECONDARY_LOAD",
    "CONNECTION",
];

/// The outcome of one action of an ALTER TABLE.
pub(crate) enum AlterOutcome {
    Done,
    /// The table has another name: its database, where it is named, and its name.
    Rename(Option<String>, String),
}

/// Applies one action to a table; `None`: its effect is not known.
pub(crate) fn apply_action(table: &mut DefinedTable, item: &[Token]) -> Option<AlterOutcome> {
    let (first, rest) = match item {
        [] => return Some(AlterOutcome::Done),
        [Token::Word(word), rest @ ..] if word.quote_style.is_none() => (word.value.to_uppercase(), rest),
        _ => return None,
    };
    match &*first {
        "ADD" => add(table, rest)?,
        "DROP" => drop_part(table, rest)?,
        "MODIFY" => {
            let rest = without(rest, &["COLUMN"]);
            let name = name_of(rest.first()?)?;
            redefine(table, &name, rest)?;
        }
        "CHANGE" => {
            let rest = without(rest, &["COLUMN"]);
            let (old, definition) = rest.split_first()?;
            redefine(table, &name_of(old)?, definition)?;
        }
        "RENAME" => return rename_part(table, rest),
        harmless if HARMLESS.contains(&harmless) => {}
        _ => return None,
    }
    Some(AlterOutcome::Done)
}

fn add(table: &mut DefinedTable, rest: &[Token]) -> Option<()> {
    if let Some(key) = KeyDefinition::of(rest) {
        table.foreign_keys.extend(ForeignKey::of(rest));
        table.defined.push(key);
        return Some(());
    }
    if is_word(rest.first()?, "PARTITION") {
        return Some(());
    }
    let rest = without(rest, &["COLUMN"]);
    let rest = without(without(without(rest, &["IF"]), &["NOT"]), &["EXISTS"]);
    if let [Token::LParen, definitions @ .., Token::RParen] = rest {
        let mut reader = TokenReader { tokens: definitions.to_vec(), next: 0 };
        while reader.peek().is_some() {
            let item = reader.item();
            let place = table.columns.len();
            match KeyDefinition::of(&item) {
                Some(key) => table.defined.push(key),
                None => table.take_column(&item, place)?,
            }
            reader.next += 1;
        }
        return Some(());
    }
    let (definition, place) = placed(table, rest)?;
    let place = place.unwrap_or(table.columns.len());
    table.take_column(definition, place)
}

/// A column's definition without the place named after it, and that place.
fn placed<'t>(table: &DefinedTable, rest: &'t [Token]) -> Option<(&'t [Token], Option<usize>)> {
    match rest {
        [definition @ .., first] if definition.len() > 1 && is_word(first, "FIRST") => {
            Some((definition, Some(0)))
        }
        [definition @ .., after, name] if definition.len() > 1 && is_word(after, "AFTER") => {
            Some((definition, Some(table.position(&name_of(name)?)? + 1)))
        }
        _ => Some((rest, None)),
    }
}

/// Replaces a column's definition, which may move it.
fn redefine(table: &mut DefinedTable, old: &str, definition: &[Token]) -> Option<()> {
    let index = table.position(old)?;
    table.columns.remove(index);
    // The place counts without it.
    let (definition, place) = placed(table, definition)?;
    table.take_column(definition, place.unwrap_or(index))?;
    let new = name_of(definition.first()?)?;
    rename_in_keys(table, old, &new);
    Some(())
}

fn drop_part(table: &mut DefinedTable, rest: &[Token]) -> Option<()> {
    let [first, others @ ..] = rest else { return None };
    if is_word(first, "PRIMARY") {
        table.defined.retain(|key| !key.is_primary);
        return Some(());
    }
    if is_word(first, "KEY") || is_word(first, "INDEX") || is_word(first, "CONSTRAINT") {
        let name = name_of(others.last()?)?;
        let is_it = |key: &KeyDefinition| {
            let of_columns = key.columns.first();
            key.name.as_ref().or(of_columns).is_some_and(|own| own.eq_ignore_ascii_case(&name))
        };
        table.defined.retain(|key| key.is_primary || !is_it(key));
        table.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(&name));
        return Some(());
    }
    if is_word(first, "FOREIGN") {
        let name = name_of(others.last()?)?;
        table.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(&name));
        return Some(());
    }
    if is_word(first, "CHECK") || is_word(first, "PARTITION") {
        return Some(());
    }
    let rest = without(without(without(rest, &["COLUMN"]), &["IF"]), &["EXISTS"]);
    let [name] = rest else { return None };
    let name = name_of(name)?;
    let index = table.position(&name)?;
    table.columns.remove(index);
    // The server takes the column out of keys; a unique key of fewer columns is another one.
    table.defined.retain(|key| !key.columns.iter().any(|column| column.eq_ignore_ascii_case(&name)));
    Some(())
}

fn rename_part(table: &mut DefinedTable, rest: &[Token]) -> Option<AlterOutcome> {
    match rest {
        [what, from, to, new] if is_word(what, "COLUMN") && is_word(to, "TO") => {
            let (old, new) = (name_of(from)?, name_of(new)?);
            let index = table.position(&old)?;
            table.columns.get_mut(index)?.name.clone_from(&new);
            rename_in_keys(table, &old, &new);
            Some(AlterOutcome::Done)
        }
        [what, from, to, new] if (is_word(what, "KEY") || is_word(what, "INDEX")) && is_word(to, "TO") => {
            let (old, new) = (name_of(from)?, name_of(new)?);
            for key in &mut table.defined {
                if key.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&old)) {
                    key.name = Some(new.clone());
                }
            }
            Some(AlterOutcome::Done)
        }
        _ => {
            let rest = without(without(rest, &["TO"]), &["AS"]);
            match rest {
                [name] => Some(AlterOutcome::Rename(None, name_of(name)?)),
                [database, Token::Period, name] => {
                    Some(AlterOutcome::Rename(Some(name_of(database)?), name_of(name)?))
                }
                _ => None,
            }
        }
    }
}

fn rename_in_keys(table: &mut DefinedTable, old: &str, new: &str) {
    for column in table.defined.iter_mut().flat_map(|key| &mut key.columns) {
        if column.eq_ignore_ascii_case(old) {
            new.clone_into(column);
        }
    }
}
