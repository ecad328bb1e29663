//! Ends the reading of a log that nobody wants any more: its next read is an error, and so whatever reads it ends.

use std::io::{self, Read};
use std::sync::Arc;

use binlogz_flow::{Input, ReadAt};

/// Tells whether what is being read is wanted no more.
pub(crate) trait ReadingEnd: Send + Sync {
    /// Whether nobody wants it any more.
    fn is_over(&self) -> bool;
}

/// An input that can be read as long as somebody wants it. One that may wait for bytes is left as it is.
pub(crate) fn wanted_input(input: Input, end: Arc<dyn ReadingEnd>) -> Input {
    match input {
        Input::Places(places) => Input::Places(Arc::new(WantedPlaces { places, end })),
        Input::Seek { places, passed } => {
            Input::Seek { places: Arc::new(WantedPlaces { places, end }), passed }
        }
        Input::Stream(stream) => Input::Stream(Box::new(WantedStream { stream, end })),
        Input::Sparse { stream, gaps } => {
            Input::Sparse { stream: Box::new(WantedStream { stream, end }), gaps }
        }
        input @ (Input::Live(_) | Input::Pipe(_)) => input,
    }
}

fn check(end: &dyn ReadingEnd) -> io::Result<()> {
    match end.is_over() {
        true => Err(io::Error::other("nobody wants the rest")),
        false => Ok(()),
    }
}

/// A file that somebody may want.
struct WantedPlaces {
    places: Arc<dyn ReadAt>,
    end: Arc<dyn ReadingEnd>,
}

impl ReadAt for WantedPlaces {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        check(&*self.end)?;
        self.places.read_at(buffer, offset)
    }

    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        check(&*self.end)?;
        self.places.append_at(buffer, offset)
    }
}

/// A stream that somebody may want.
struct WantedStream {
    stream: Box<dyn Read + Send>,
    end: Arc<dyn ReadingEnd>,
}

impl Read for WantedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        check(&*self.end)?;
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl ReadingEnd for Flag {
        fn is_over(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn what_nobody_wants_can_not_be_read() {
        let flag = Arc::new(Flag::default());
        let places = wanted_input(Input::Places(Arc::new(vec![7; 100])), Arc::clone(&flag) as _);
        let stream = wanted_input(Input::Stream(Box::new(io::repeat(7))), Arc::clone(&flag) as _);
        let (Input::Places(places), Input::Stream(mut stream)) = (places, stream) else { panic!() };
        let mut buffer = [0; 10];
        assert_eq!(places.read_at(&mut buffer, 95).unwrap(), 5);
        assert_eq!(stream.read(&mut buffer).unwrap(), 10);
        flag.0.store(true, Ordering::Relaxed);
        assert!(places.read_at(&mut buffer, 0).is_err() && stream.read(&mut buffer).is_err());
        assert!(places.append_at(&mut Vec::with_capacity(9), 0).is_err());
    }
}
