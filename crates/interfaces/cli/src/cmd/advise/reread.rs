//! Files that are read a second time: their bytes of the first time, since a log in use grows.

use std::io;
use std::sync::Arc;

use binlogz_flow::{Input, ReadAt};

/// A file that can be read again, and how many bytes of it were read.
pub(super) type RereadFile = (Arc<dyn ReadAt>, u64);

/// The file of an input; `None`: it can't be read again.
pub(super) fn places(input: &Input) -> Option<Arc<dyn ReadAt>> {
    match input {
        Input::Places(places) => Some(Arc::clone(places)),
        Input::Seek { .. } | Input::Stream(_) | Input::Sparse { .. } | Input::Live(_) | Input::Pipe(_) => {
            None
        }
    }
}

/// The bytes that were read of a file.
pub(super) fn again((places, size): &RereadFile) -> Input {
    Input::Places(Arc::new(FileBeginning { places: Arc::clone(places), size: *size }))
}

/// The first bytes of a file.
struct FileBeginning {
    places: Arc<dyn ReadAt>,
    size: u64,
}

impl ReadAt for FileBeginning {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let room = left.min(buffer.len());
        self.places.read_at(buffer.get_mut(..room).unwrap_or_default(), offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_grown_is_read_as_it_was() {
        let file: Arc<dyn ReadAt> = Arc::new(b"abcdef".to_vec());
        let Input::Places(places) = again(&(file, 4)) else { unreachable!() };
        let mut buffer = [0; 8];
        assert_eq!(places.fill_at(&mut buffer, 1).unwrap(), 3);
        assert_eq!(&buffer[..3], b"bcd");
        let mut appended = Vec::with_capacity(100);
        assert_eq!((places.append_at(&mut appended, 2).unwrap(), &appended[..]), (2, &b"cd"[..]));
        assert_eq!(places.read_at(&mut buffer, 9).unwrap(), 0);
    }
}
