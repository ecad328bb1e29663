//! What zstd and PPMd make of bytes, and the processor time that each byte takes them: the constants of the archive's `codec/cost.rs`.
//!
//! For each file the bytes from its middle on are taken, of each of these sizes; of three runs the quickest counts.
//!
//! usage: `coder-costs FILE…`, such as the values of a text column, one after the other

use std::io::{Read, Write};

use ppmd_rust::{Ppmd7Decoder, Ppmd7Encoder};
use rustix::time::{ClockId, clock_gettime};
use zstd_safe::{CCtx, CParameter, DCtx};

const SIZES: [usize; 4] = [8 << 10, 64 << 10, 1 << 20, 8 << 20];
const ZSTD_LEVELS: [i32; 5] = [3, 6, 9, 12, 19];
/// Orders of PPMd's model and the most memory of it, as a power of two.
const PPMD_MODELS: [(u32, u32); 5] = [(3, 22), (4, 22), (5, 22), (5, 24), (6, 24)];
const RUNS: usize = 3;

/// What a coder made of some bytes: the size, and nanoseconds of packing and of unpacking.
#[derive(Clone, Copy)]
struct CoderRun {
    size: usize,
    packing: u64,
    unpacking: u64,
}

fn main() {
    for path in std::env::args().skip(1) {
        let all = std::fs::read(&path).expect("a file that can be read");
        for size in SIZES {
            let size = size.min(all.len());
            let start = (all.len() / 2).min(all.len() - size);
            let bytes = all.get(start..start + size).unwrap_or_default();
            println!("{path}, {size} bytes");
            for level in ZSTD_LEVELS {
                print(&format!("zstd {level}"), size, quickest(|| zstd(bytes, level)));
            }
            for (order, memory) in PPMD_MODELS {
                let memory = (size.max(1).ilog2() + 5).clamp(16, memory);
                print(&format!("PPMd {order}, 2^{memory}"), size, quickest(|| ppmd(bytes, order, memory)));
            }
        }
    }
}

fn print(coder: &str, size: usize, run: CoderRun) {
    let of_byte = |nanoseconds: u64| nanoseconds as f64 / size.max(1) as f64;
    println!(
        "  {coder:<12} {:>8}  {:.4}  packs {:>6.1} ns a byte, unpacks {:>6.1}",
        run.size,
        run.size as f64 / size.max(1) as f64,
        of_byte(run.packing),
        of_byte(run.unpacking)
    );
}

fn quickest(run: impl Fn() -> CoderRun) -> CoderRun {
    (1..RUNS).fold(run(), |best, _| {
        let next = run();
        CoderRun {
            size: next.size,
            packing: best.packing.min(next.packing),
            unpacking: best.unpacking.min(next.unpacking),
        }
    })
}

/// Nanoseconds that this thread had a core.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn zstd(bytes: &[u8], level: i32) -> CoderRun {
    let start = processor_time();
    let mut packer = CCtx::create();
    packer.set_parameter(CParameter::CompressionLevel(level)).expect("a level");
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    packer.compress2(&mut packed, bytes).expect("room");
    let packing = processor_time() - start;
    let start = processor_time();
    let mut back = Vec::with_capacity(bytes.len());
    DCtx::create().decompress(&mut back, &packed).expect("a whole frame");
    let unpacking = processor_time() - start;
    assert!(back == bytes);
    CoderRun { size: packed.len(), packing, unpacking }
}

fn ppmd(bytes: &[u8], order: u32, memory: u32) -> CoderRun {
    let start = processor_time();
    let mut encoder = Ppmd7Encoder::new(Vec::new(), order, 1 << memory).expect("a model");
    encoder.write_all(bytes).expect("memory");
    let packed = encoder.finish(true).expect("memory");
    let packing = processor_time() - start;
    let start = processor_time();
    let decoder = Ppmd7Decoder::new(packed.as_slice(), order, 1 << memory).expect("a model");
    let mut back = Vec::with_capacity(bytes.len() + 1);
    decoder.take(bytes.len() as u64 + 1).read_to_end(&mut back).expect("a whole code");
    let unpacking = processor_time() - start;
    assert!(back == bytes);
    CoderRun { size: packed.len(), packing, unpacking }
}
