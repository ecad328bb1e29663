//! How much memory a process may hold, and how much it holds. DataFusion counts what sorts, joins and groups hold, but
//! not what functions and expressions make, batches on their way, and plans. So the memory of the whole process is looked
//! at as well.

use std::fs;

/// Memory that reading and the allocator take, which isn't counted: a part of a limit that is large enough for it.
const UNCOUNTED: usize = 448 << 20;
/// The least memory for everything that is counted, if the limit is that large.
const COUNTED_MIN: usize = 512 << 20;
/// Bytes of the pages in which Linux counts.
const PAGE_SIZE: u64 = 4096;

/// Bytes that sorts, joins and groups may hold within a limit of the process's memory.
pub fn counted(memory: usize) -> usize {
    memory.saturating_sub(UNCOUNTED).max(memory.min(COUNTED_MIN))
}

/// Bytes that the process may hold in all, within a limit of its memory.
pub fn held_max(memory: usize) -> u64 {
    counted(memory).saturating_add(UNCOUNTED) as u64
}

/// Bytes that a process has for itself alone; of this one without a number. `None`: it isn't there, or the system doesn't tell.
pub fn held_by(process: Option<u32>) -> Option<u64> {
    let process = process.map_or_else(|| "self".to_owned(), |number| number.to_string());
    let text = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let mut pages = text.split(' ').map(str::parse::<u64>);
    let (_, Ok(resident), Ok(shared)) = (pages.next()?, pages.next()?, pages.next()?) else { return None };
    Some(resident.saturating_sub(shared).saturating_mul(PAGE_SIZE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_is_counted_whole_and_a_large_one_has_room_for_reading() {
        let counted = |mib: usize| counted(mib << 20) >> 20;
        for (limit, expected) in
            [(1, 1), (64, 64), (512, 512), (513, 512), (960, 512), (1024, 576), (4096, 3648)]
        {
            assert_eq!(counted(limit), expected, "{limit} MiB");
        }
    }
}
