//! A pass over the logs that follows the rows of children, and makes the effects that changes of their parents had.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{Bitmap, RowsEvent, RowsFlags, ServerFamily, TableId};
use binlogz_binlog::row::{CellContent, RowDecoder};
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_schema::{ReferentialRule, SchemaFile};

use super::effects::{CascadeLayout, Cascades, ConstraintKnowledge, Effects, row_place};
use super::family::{Constraint, Family, FamilyError};
use super::rows::{ChildRows, Reference, RowId, values};
use crate::choose::{Operation, Range, RowSelection};
use crate::pass::{
    Break, ChoiceListener, Error, FollowedTransaction, Follower, Renderer, RowRendering, Search, StatementAt,
    StatementWords, TableRow, TransactionEnding, read_log,
};
use crate::record::{
    ImageCells, RowAt, RowFlags, RowImages, RowPlace, cells_of, family_of_kept, read_cells, schema_of_kept,
};
use crate::table::{Structure, TableColumn, WrittenTable};

/// The most generations that InnoDB goes down, and one more.
const DEPTH_MAX: usize = 16;

/// Follows the rows of children through logs, and makes the effects that changes of their parents had. Read all logs, in
/// their order.
pub(crate) struct EffectFinder<'o, R> {
    selection: RowSelection,
    schema: &'o SchemaFile,
    follower: Follower<Families<'o, R>>,
}

impl<'o, R: Renderer> EffectFinder<'o, R> {
    /// `schema` has the foreign keys and the tables on both sides; `renderer` writes the effects.
    pub(crate) fn new(schema: &'o SchemaFile, renderer: R) -> Result<Self, FamilyError> {
        let family = Family::new(schema)?;
        let selection = RowSelection { tables: family.tables.clone(), ..RowSelection::default() };
        let follower = Follower::new(Families::new(family, schema, renderer));
        Ok(EffectFinder { selection, schema, follower })
    }

    pub(crate) fn read(
        &mut self,
        input: Input,
        name: &str,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunSummary, Error> {
        let search = Search { schema: Some(self.schema), ..Search::new(&self.selection, &AsCells, workers) };
        read_log(input, (name, Range::WHOLE), &search, &mut self.follower, progress).map(|(ran, _)| ran)
    }

    pub(crate) fn finish(self) -> Cascades {
        let Families { family, effects, layouts, known, .. } = self.follower.listener;
        let layouts = layouts.into_iter().map(|own| own.layout).collect();
        Cascades::new(effects, family, layouts, known)
    }
}

/// Keeps rows as they are.
struct AsCells;

impl Renderer for AsCells {
    fn render(&self, TableRow { table, operation, row }: TableRow<'_>, out: &mut Vec<u8>) -> RowRendering {
        let [before, after] =
            [row.before, row.after].map(|image| Some(cells_of(&image?, table.schema.columns().len())));
        RowImages { operation, before, after }.push(out);
        RowRendering::Text(0)
    }

    fn needs_table_maps(&self) -> bool {
        true
    }
}

/// A table of the family as a map in the log describes it.
struct OwnLayout {
    layout: CascadeLayout,
    /// The table's place in the family.
    table: usize,
    known: WrittenTable,
    /// Where the columns of its own foreign keys are.
    references: Vec<Reference>,
    /// Where the columns are to which others refer.
    referenced: Vec<Reference>,
}

impl OwnLayout {
    /// Whether MariaDB may have logged a REPLACE so, which gives defaults to what the image lacks.
    fn may_give_defaults(&self, after: &ImageCells<'_>) -> bool {
        let has = |index: usize| after.get(index).is_some_and(Option::is_some);
        let lacks = |column: &TableColumn| !column.is_generated && !has(column.index);
        family_of_kept(&self.layout.map) == ServerFamily::Mariadb
            && self.known.key.iter().flatten().all(|index| has(*index))
            && self.known.columns.iter().any(lacks)
    }
}

struct Families<'o, R> {
    family: Family,
    schema: &'o SchemaFile,
    renderer: R,
    decoder: RowDecoder,
    layouts: Vec<OwnLayout>,
    by_map: HashMap<Vec<u8>, usize>,
    /// The table of the last rows.
    told: Option<(Vec<u8>, Vec<u8>, Structure)>,
    layout: Option<usize>,
    rows: ChildRows,
    effects: Effects,
    /// How much is known of the effects of each constraint, in the constraints' order.
    known: Vec<ConstraintKnowledge>,
    /// Tables that the open transaction changed, and those of prepared ones.
    changed: BTreeSet<usize>,
    prepared: HashMap<String, BTreeSet<usize>>,
}

/// A table of a foreign key, and its columns there.
type KeySide<'c> = (&'c (String, String), &'c [String]);

impl<'o, R: Renderer> Families<'o, R> {
    fn new(family: Family, schema: &'o SchemaFile, renderer: R) -> Self {
        Families {
            known: vec![ConstraintKnowledge::default(); family.constraints.len()],
            family,
            schema,
            renderer,
            decoder: RowDecoder::new(),
            layouts: Vec::new(),
            by_map: HashMap::new(),
            told: None,
            layout: None,
            rows: ChildRows::new(),
            effects: Effects::new(),
            changed: BTreeSet::new(),
            prepared: HashMap::new(),
        }
    }

    /// The rows of a table are no longer known.
    fn forget(&mut self, table: usize, why: Option<&str>) {
        let layouts = &self.layouts;
        self.rows.forget(|layout| layouts.get(layout).is_some_and(|own| own.table == table));
        if let Some(why) = why {
            self.gap(table, why);
        }
    }

    /// Rows of a table went or changed that can't be read: what that did to its children, and to theirs, isn't known.
    fn miss(&mut self, table: usize, why: &str) {
        self.forget(table, Some(why));
        let mut missed = BTreeSet::from([table]);
        let mut parents = vec![table];
        while let Some(parent) = parents.pop() {
            for child in self.children_of(parent) {
                if missed.insert(child) {
                    self.forget(child, Some(why));
                    parents.push(child);
                }
            }
        }
    }

    /// The tables whose foreign keys refer to a table.
    fn children_of(&self, table: usize) -> Vec<usize> {
        let Some(name) = self.family.tables.get(table) else { return Vec::new() };
        let own = self.family.constraints.iter().filter(|constraint| constraint.parent == *name);
        own.filter_map(|constraint| self.family.tables.iter().position(|table| *table == constraint.child))
            .collect()
    }

    /// Not all rows of a table are known.
    fn gap(&mut self, table: usize, why: &str) {
        let Some(name) = self.family.tables.get(table) else { return };
        for (constraint, known) in self.family.constraints.iter().zip(&mut self.known) {
            if constraint.child == *name && !known.gaps.iter().any(|gap| gap == why) {
                known.gaps.push(why.to_owned());
            }
        }
    }

    fn make_layout(&mut self, map: &[u8]) -> binlogz_binlog::Result<Option<usize>> {
        let Some((database, name, structure)) = self.told.clone() else { return Ok(None) };
        let is_it = |own: &(String, String)| own.0.as_bytes() == database && own.1.as_bytes() == name;
        let Some(table) = self.family.tables.iter().position(is_it) else { return Ok(None) };
        let schema = schema_of_kept(map)?;
        let known = WrittenTable::new(&Arc::new(schema), Some(self.schema));
        let column = |column: &String| {
            let is_it = |name: &Vec<u8>| name.eq_ignore_ascii_case(column.as_bytes());
            known.columns.iter().position(|known| known.name.as_ref().is_some_and(is_it))
        };
        let places = |is_own: fn(&Constraint) -> KeySide<'_>| -> Vec<Reference> {
            let numbered = self.family.constraints.iter().enumerate();
            let own = numbered.filter(|(_, constraint)| is_it(is_own(constraint).0));
            own.filter_map(|(number, constraint)| {
                Some((number, is_own(constraint).1.iter().map(column).collect::<Option<Vec<_>>>()?))
            })
            .collect()
        };
        let references = places(|constraint| (&constraint.child, &constraint.columns));
        let referenced = places(|constraint| (&constraint.parent, &constraint.referenced));
        let layout = CascadeLayout { database, table: name, structure, map: map.to_vec() };
        self.layouts.push(OwnLayout { layout, table, known, references, referenced });
        Ok(Some(self.layouts.len() - 1))
    }

    /// A row of a child is as the log has it now.
    fn follow(
        &mut self,
        layout: usize,
        before: Option<&ImageCells<'_>>,
        after: Option<&ImageCells<'_>>,
    ) -> io::Result<()> {
        let Some(own) = self.layouts.get(layout).filter(|own| !own.references.is_empty()) else {
            return Ok(());
        };
        let table = own.table;
        let id = before.and_then(|before| self.rows.id(table, own.known.key.as_deref(), before));
        let mut is_told = before.is_none() || id.is_some();
        let earlier = match id {
            Some(id) => self.rows.load(id)?.map(|kept| (id, kept)),
            None => None,
        };
        let may_be_replaced = before.is_some() && after.is_some_and(|after| own.may_give_defaults(after));
        let mut merged = after.cloned();
        if let Some((id, kept)) = &earlier {
            let cells = read_cells(&kept.cells)?;
            let references = self.references_of(kept.layout);
            self.rows.remove(*id, &references, &cells);
            if kept.count > 1 {
                self.rows.put(*id, (kept.layout, &references), &cells, kept.count - 1)?;
            }
            // What an image lacks is as it was.
            if !may_be_replaced {
                overlay(&mut merged, &cells);
            }
        }
        if let Some(before) = before.filter(|_| !may_be_replaced) {
            overlay(&mut merged, before);
        }
        if let Some(cells) = merged {
            let Some(own) = self.layouts.get(layout) else { return Ok(()) };
            let id = self.rows.id(table, own.known.key.as_deref(), &cells);
            let knows_references =
                own.references.iter().all(|(_, columns)| values(columns, &cells).is_some());
            is_told &= knows_references;
            if let Some(id) = id {
                let references = own.references.clone();
                // A key that is there already was replaced, or comes from a rolled back change.
                self.replace(id, own.known.key.is_some())?;
                self.rows.put(id, (layout, &references), &cells, 1)?;
            } else {
                is_told = false;
            }
        }
        if !is_told {
            self.gap(table, "rows of which the log lacks columns");
        }
        Ok(())
    }

    /// Removes a row whose key comes again.
    fn replace(&mut self, id: RowId, has_key: bool) -> io::Result<()> {
        if has_key && let Some(kept) = self.rows.load(id)? {
            let cells = read_cells(&kept.cells)?;
            let references = self.references_of(kept.layout);
            self.rows.remove(id, &references, &cells);
        }
        Ok(())
    }

    fn references_of(&self, layout: usize) -> Vec<Reference> {
        self.layouts.get(layout).map(|own| own.references.clone()).unwrap_or_default()
    }

    /// The effects of a change of a parent's row, generation by generation, the last one first.
    fn reach(
        &mut self,
        (place, layout): (RowPlace, usize),
        before: &ImageCells<'_>,
        after: Option<&ImageCells<'_>>,
        depth: usize,
    ) -> io::Result<()> {
        let Some(own) = self.layouts.get(layout).filter(|_| depth < DEPTH_MAX) else { return Ok(()) };
        let mut referenced = own.referenced.clone();
        if after.is_some() {
            // Taking the parent's update back cascades first: what was set NULL is found with the columns as they were.
            let constraints = &self.family.constraints;
            referenced.sort_by_key(|(number, _)| {
                constraints
                    .get(*number)
                    .is_none_or(|constraint| constraint.on_update != ReferentialRule::SetNull)
            });
        }
        for (number, columns) in referenced {
            let Some(constraint) = self.family.constraints.get(number) else { continue };
            let rule = if after.is_none() { constraint.on_delete } else { constraint.on_update };
            let child = constraint.child.clone();
            if after.is_some_and(|after| is_same(&columns, before, after)) {
                continue;
            }
            match rule {
                ReferentialRule::Refuse => continue,
                ReferentialRule::Cascade | ReferentialRule::SetNull => {}
                ReferentialRule::Unknown => {
                    self.effects.meet(place, number)?;
                    if let Some(table) = self.family.tables.iter().position(|name| *name == child) {
                        self.miss(table, "rows that a foreign key changed by a rule that isn't known");
                    }
                    continue;
                }
            }
            let old = match values(&columns, before) {
                Some(Some(old)) => old,
                Some(None) => continue,
                None => {
                    self.effects.meet(place, number)?;
                    if let Some(table) = self.family.tables.iter().position(|name| *name == child) {
                        self.gap(table, "children of rows of which the log lacks columns");
                    }
                    continue;
                }
            };
            self.effects.meet(place, number)?;
            for id in self.rows.children(number, &old) {
                self.change((place, number), id, (&columns, rule), after, depth)?;
            }
        }
        Ok(())
    }

    /// The effect of a constraint on one child.
    fn change(
        &mut self,
        (place, number): (RowPlace, usize),
        id: RowId,
        (referenced, rule): (&[usize], ReferentialRule),
        after: Option<&ImageCells<'_>>,
        depth: usize,
    ) -> io::Result<()> {
        let Some(kept) = self.rows.load(id)? else { return Ok(()) };
        let cells = read_cells(&kept.cells)?;
        let references = self.references_of(kept.layout);
        let Some((_, columns)) = references.iter().find(|(own, _)| *own == number).cloned() else {
            return Ok(());
        };
        let changed = match (rule, after) {
            // Of these nothing is carried on that is known.
            (ReferentialRule::Refuse | ReferentialRule::Unknown, _) => return Ok(()),
            (ReferentialRule::Cascade, None) => None,
            (ReferentialRule::Cascade, Some(after)) => {
                let mut changed = cells.clone();
                for (own, parents) in columns.iter().zip(referenced) {
                    if let (Some(cell), Some(Some(value))) = (changed.get_mut(*own), after.get(*parents)) {
                        *cell = Some(*value);
                    }
                }
                Some(changed)
            }
            (ReferentialRule::SetNull, _) => {
                let mut changed = cells.clone();
                for own in &columns {
                    if let Some(cell) = changed.get_mut(*own) {
                        *cell = Some(CellContent::Null);
                    }
                }
                Some(changed)
            }
        };
        self.rows.remove(id, &references, &cells);
        if let Some(changed) = &changed
            && let Some(own) = self.layouts.get(kept.layout)
            && let Some(id) = self.rows.id(own.table, own.known.key.as_deref(), changed)
        {
            self.rows.put(id, (kept.layout, &references), changed, kept.count)?;
        }
        self.reach((place, kept.layout), &cells, changed.as_ref(), depth + 1)?;
        // Taking the parent's update back cascades once more.
        if (rule, after.is_some()) != (ReferentialRule::Cascade, true) {
            for _ in 0..kept.count {
                self.render((place, number), kept.layout, &cells, changed.as_ref())?;
            }
        }
        Ok(())
    }

    fn render(
        &mut self,
        effect: (RowPlace, usize),
        layout: usize,
        before: &ImageCells<'_>,
        after: Option<&ImageCells<'_>>,
    ) -> io::Result<()> {
        let Some(OwnLayout { known, .. }) = self.layouts.get(layout) else { return Ok(()) };
        let mut images = Vec::new();
        let mut put = |cells: &ImageCells<'_>| known.schema.put_image(cells, false, &mut images);
        let columns = put(before).map_err(io::Error::other)?;
        let columns_after = after.map(put).transpose().map_err(io::Error::other)?;
        let (event_type, operation) = match after {
            None => (EventType::DELETE_ROWS, Operation::Delete),
            Some(_) => (EventType::UPDATE_ROWS, Operation::Update),
        };
        let event = RowsEvent {
            event_type,
            table_id: TableId(0),
            flags: RowsFlags(0),
            extra_data: b"",
            width: before.len() as u64,
            columns: Bitmap(&columns),
            columns_after: columns_after.as_deref().map(Bitmap),
            rows: &images,
        };
        let mut rows = self.decoder.rows(&known.schema, &event).map_err(io::Error::other)?;
        let Some(row) = rows.next_row().map_err(io::Error::other)? else { return Ok(()) };
        let mut text = Vec::new();
        match self.renderer.render(TableRow { table: known, operation, row: &row }, &mut text) {
            RowRendering::Text(flags) | RowRendering::Lacking(flags) => {
                self.effects.child(effect, layout, (flags, &text))
            }
            RowRendering::Nothing => Ok(()),
        }
    }
}

/// Fills in the columns that an image of an update lacks.
fn overlay<'a>(cells: &mut Option<ImageCells<'a>>, earlier: &ImageCells<'a>) {
    for (cell, earlier) in cells.iter_mut().flatten().zip(earlier) {
        if cell.is_none() {
            *cell = *earlier;
        }
    }
}

/// Whether a change left these columns alone; those that the image after it lacks it did.
fn is_same(columns: &[usize], before: &ImageCells<'_>, after: &ImageCells<'_>) -> bool {
    columns.iter().all(|index| match after.get(*index) {
        Some(Some(after)) => before.get(*index) == Some(&Some(*after)),
        _ => true,
    })
}

impl<R: Renderer> ChoiceListener for Families<'_, R> {
    /// The pass over the chosen rows says whether that matters; children may have been changed there.
    fn breaks(&mut self, _: &Break) -> Result<(), Error> {
        for table in 0..self.family.tables.len() {
            self.forget(table, Some("rows that were changed in a gap of the logs"));
        }
        Ok(())
    }

    fn table(&mut self, database: &[u8], table: &[u8], structure: Structure) -> io::Result<()> {
        self.told = Some((database.to_vec(), table.to_vec(), structure));
        self.layout = None;
        Ok(())
    }

    fn table_map(&mut self, map: &[u8]) -> io::Result<()> {
        self.layout = self.by_map.get(map).copied();
        if self.layout.is_none() {
            self.layout = self.make_layout(map).map_err(io::Error::other)?;
            self.layout.into_iter().for_each(|layout| {
                self.by_map.insert(map.to_vec(), layout);
            });
        }
        Ok(())
    }

    fn row(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        let Some((layout, own)) = self.layout.and_then(|layout| Some((layout, self.layouts.get(layout)?)))
        else {
            return Ok(());
        };
        let table = own.table;
        let RowImages { before, after, .. } = RowImages::read(row.text)?;
        if let Some(unfit) = own.known.unfit.clone() {
            let why = unfit.replace("--schema doesn't fit", "--cascades doesn't fit");
            // Nothing refers to a row that is new.
            match before.is_none() {
                true => self.forget(table, Some(&why)),
                false => self.miss(table, &why),
            }
            return Ok(());
        }
        self.changed.insert(table);
        let is_below =
            !row.flags.has(RowFlags::NO_FOREIGN_KEYS) && !row.flags.has(RowFlags::SQL_FOREIGN_KEYS);
        if let Some(before) = before.as_ref().filter(|_| is_below) {
            self.reach((row_place(transaction, row), layout), before, after.as_ref(), 0)?;
        }
        self.follow(layout, before.as_ref(), after.as_ref())
    }

    fn statement(&mut self, _: &FollowedTransaction, statement: StatementAt<'_>) -> io::Result<()> {
        let text = String::from_utf8_lossy(statement.text);
        let words = StatementWords::of(&text);
        let current = String::from_utf8_lossy(statement.database);
        for table in 0..self.family.tables.len() {
            let Some((database, name)) = self.family.tables.get(table).cloned() else { continue };
            // Columns that were changed tell themselves: they don't fit.
            if !words.may_change(&current, &database, &name) || words.is("alter") {
                continue;
            }
            let is_whole = words.is("create") || words.is("truncate");
            self.forget(table, None);
            for (constraint, known) in self.family.constraints.iter().zip(&mut self.known) {
                if constraint.child == (database.clone(), name.clone()) {
                    known.is_whole = is_whole;
                }
            }
        }
        Ok(())
    }

    fn decided(&mut self, xid: &str, is_committed: bool) {
        let changed = self.prepared.remove(xid);
        if !is_committed {
            changed.into_iter().flatten().for_each(|table| self.forget(table, Some(ROLLED_BACK)));
        }
    }

    fn end(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) -> io::Result<()> {
        let changed = std::mem::take(&mut self.changed);
        match &transaction.prepared {
            Some(xid) => drop(self.prepared.insert(xid.clone(), changed)),
            None if ending == TransactionEnding::Whole => {}
            None => changed.into_iter().for_each(|table| self.forget(table, Some(ROLLED_BACK))),
        }
        Ok(())
    }
}

const ROLLED_BACK: &str = "rows of a table that a transaction had changed which was rolled back";

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "USE mix; CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(60), balance DECIMAL(12,2), note TEXT); \
        CREATE TABLE entry (id BIGINT PRIMARY KEY, account_id INT, amount DECIMAL(12,2), at TIMESTAMP(6) NULL, \
        FOREIGN KEY (account_id) REFERENCES account (id) ON DELETE SET NULL)";

    /// Whether it isn't known what became of the children of deleted parents.
    fn is_unknown_under(rule: ReferentialRule) -> bool {
        let schema = SchemaFile::parse(SCHEMA).unwrap();
        let mut finder = EffectFinder::new(&schema, AsCells).unwrap();
        finder.follower.listener.family.constraints[0].on_delete = rule;
        let log = Input::open("sample/binlog.000006".as_ref()).unwrap();
        let read = finder.read(log, "binlog.000006", 1, &mut |_| {}).unwrap();
        assert_eq!(read.unread.iter().count(), 0);
        finder.follower.finish().unwrap();
        // The log has what foreign keys changed; these do it below the log.
        let families = &mut finder.follower.listener;
        let layout = families.layouts.iter().position(|own| own.layout.table == b"account").unwrap();
        let deleted = vec![Some(CellContent::Value(&[1, 0, 0, 0])), None, None, None];
        let place = RowPlace { log: 1, offset: 4, inside: 0, row: 0 };
        families.reach((place, layout), &deleted, None, 0).unwrap();
        let gaps = &families.known[0].gaps;
        gaps.iter().any(|gap| gap == "rows that a foreign key changed by a rule that isn't known")
    }

    #[test]
    fn a_rule_that_is_not_known_is_named_and_none_is_guessed() {
        for known in [ReferentialRule::SetNull, ReferentialRule::Cascade, ReferentialRule::Refuse] {
            assert!(!is_unknown_under(known), "{known:?}");
        }
        assert!(is_unknown_under(ReferentialRule::Unknown));
    }
}
