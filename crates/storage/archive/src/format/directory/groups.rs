//! Which columns of a directory stand together: a reader takes only the groups that it needs, and those for which there is no room are
//! left out.

use crate::log::directory::BlockDirectory;

/// A group of a directory's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectoryGroup {
    Shapes,
    Gtids,
    Servers,
    Logged,
    Sizes,
    Threads,
    Times,
}

impl DirectoryGroup {
    /// All, in the order in which they are stored.
    pub(super) const ALL: [Self; 7] = [
        DirectoryGroup::Shapes,
        DirectoryGroup::Gtids,
        DirectoryGroup::Servers,
        DirectoryGroup::Logged,
        DirectoryGroup::Sizes,
        DirectoryGroup::Threads,
        DirectoryGroup::Times,
    ];

    /// This group alone.
    pub(super) const fn alone(self) -> DirectoryGroups {
        match self {
            DirectoryGroup::Shapes => DirectoryGroups::SHAPES,
            DirectoryGroup::Gtids => DirectoryGroups::GTIDS,
            DirectoryGroup::Servers => DirectoryGroups::SERVERS,
            DirectoryGroup::Logged => DirectoryGroups::LOGGED,
            DirectoryGroup::Sizes => DirectoryGroups::SIZES,
            DirectoryGroup::Threads => DirectoryGroups::THREADS,
            DirectoryGroup::Times => DirectoryGroups::TIMES,
        }
    }
}

/// Groups of a directory's columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectoryGroups(pub(super) u8);

impl DirectoryGroups {
    /// Events, tables and rows, the end. They are always needed.
    pub const SHAPES: Self = DirectoryGroups(1);
    /// GTIDs.
    pub const GTIDS: Self = DirectoryGroups(2);
    /// Server ids.
    pub const SERVERS: Self = DirectoryGroups(4);
    /// Timestamps of the first events.
    pub const LOGGED: Self = DirectoryGroups(8);
    /// Bytes and positions.
    pub const SIZES: Self = DirectoryGroups(16);
    /// Threads.
    pub const THREADS: Self = DirectoryGroups(32);
    /// Times of commit.
    pub const TIMES: Self = DirectoryGroups(64);
    pub(super) const ALL: Self = DirectoryGroups(127);

    /// These groups and others.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        DirectoryGroups(self.0 | others.0)
    }

    /// These groups without others.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        DirectoryGroups(self.0 & !others.0)
    }

    /// Whether all of these are among them.
    pub const fn has(self, groups: Self) -> bool {
        self.0 & groups.0 == groups.0
    }
}

// A new group has to be among all.
const _: () = assert!(DirectoryGroups::ALL.0.count_ones() as usize == DirectoryGroup::ALL.len());

impl BlockDirectory {
    /// These groups alone, to be compared with what is stored.
    pub(crate) fn only(mut self, groups: DirectoryGroups) -> Self {
        let columns = &mut self.columns;
        if !groups.has(DirectoryGroups::GTIDS) {
            self.sources.clear();
        }
        let of_groups = [
            (DirectoryGroups::GTIDS, &mut columns.source),
            (DirectoryGroups::GTIDS, &mut columns.gno),
            (DirectoryGroups::SERVERS, &mut columns.server_id),
            (DirectoryGroups::LOGGED, &mut columns.logged_at),
            (DirectoryGroups::SIZES, &mut columns.position),
            (DirectoryGroups::SIZES, &mut columns.bytes),
            (DirectoryGroups::THREADS, &mut columns.thread),
            (DirectoryGroups::TIMES, &mut columns.applied_at),
            (DirectoryGroups::TIMES, &mut columns.committed_at),
        ];
        for (group, column) in of_groups {
            if !groups.has(group) {
                column.clear();
            }
        }
        self
    }
}
