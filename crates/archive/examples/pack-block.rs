//! Packs logs block by block and says what each takes, and how long.

use std::time::{Duration, Instant};

use binlogz_archive::block;
use binlogz_archive::cut::Cutter;

fn main() -> binlogz_archive::Result<()> {
    for path in std::env::args().skip(1) {
        let log = std::fs::read(&path).expect("a log that can be read");
        let mut cutter = Cutter::new(log.as_slice());
        let (mut packed_size, mut packing, mut unpacking) = (0, Duration::ZERO, Duration::ZERO);
        while let Some(piece) = cutter.next_piece()? {
            let start = Instant::now();
            let (packed, method) = block::pack(&piece.log, piece.offset, &piece.maps)?;
            packing += start.elapsed();
            let start = Instant::now();
            block::unpack(&packed, piece.log.len(), piece.offset)?;
            unpacking += start.elapsed();
            packed_size += packed.len();
            println!("  {method:?} {} -> {}", piece.log.len(), packed.len());
        }
        let speed = |time: Duration| log.len() as f64 / 1e6 / time.as_secs_f64();
        let (pack, unpack) = (speed(packing), speed(unpacking));
        println!("{path}: {} -> {packed_size}, pack {pack:.1} MB/s, unpack {unpack:.1} MB/s", log.len());
    }
    Ok(())
}
