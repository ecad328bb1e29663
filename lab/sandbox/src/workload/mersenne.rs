//! MT19937, the generator behind Python's `random`, with the draws that the employees data takes.
//!
//! Kept to Python's own order of draws, so that the data is the same, byte for byte, as the script's that the
//! published figures were measured with.

#![allow(clippy::indexing_slicing)] // all indices are below SIZE, or modulo it

const SIZE: usize = 624;
const SHIFT: usize = 397;

pub(super) struct Mersenne {
    state: [u32; SIZE],
    next: usize,
}

impl Mersenne {
    /// As `random.Random(seed)`.
    pub(super) fn new(seed: u32) -> Mersenne {
        let mut state = [0u32; SIZE];
        state[0] = 19650218;
        for i in 1..SIZE {
            let previous = state[i - 1];
            state[i] = (previous ^ (previous >> 30)).wrapping_mul(1812433253).wrapping_add(i as u32);
        }
        // The reference's init_by_array with a key of one word.
        let mut i = 1;
        for _ in 0..SIZE {
            let previous = state[i - 1];
            state[i] = (state[i] ^ (previous ^ (previous >> 30)).wrapping_mul(1664525)).wrapping_add(seed);
            i = step(i, &mut state);
        }
        for _ in 0..SIZE - 1 {
            let previous = state[i - 1];
            state[i] =
                (state[i] ^ (previous ^ (previous >> 30)).wrapping_mul(1566083941)).wrapping_sub(i as u32);
            i = step(i, &mut state);
        }
        state[0] = 0x8000_0000;
        Mersenne { state, next: SIZE }
    }

    fn next_u32(&mut self) -> u32 {
        if self.next == SIZE {
            for i in 0..SIZE {
                let bits = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % SIZE] & 0x7fff_ffff);
                let odd = if bits & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + SHIFT) % SIZE] ^ (bits >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// As `random()`: in [0, 1) with 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        let high = f64::from(self.next_u32() >> 5);
        let low = f64::from(self.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// As `_randbelow(n)`: draws again while the bits give too much.
    fn below(&mut self, n: u32) -> u32 {
        let bits = u32::BITS - n.leading_zeros();
        loop {
            let drawn = self.next_u32() >> (u32::BITS - bits);
            if drawn < n {
                return drawn;
            }
        }
    }

    /// As `randint(low, high)`, both included.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::from(self.below((high - low + 1) as u32))
    }

    /// As `choice(items)`.
    pub(super) fn choice<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u32) as usize]
    }

    /// As `triangular(low, high, mode)`.
    pub(super) fn triangular(&mut self, low: f64, high: f64, mode: f64) -> f64 {
        let mut u = self.unit();
        let mut c = (mode - low) / (high - low);
        let mut low = low;
        let mut high = high;
        if u > c {
            u = 1.0 - u;
            c = 1.0 - c;
            (low, high) = (high, low);
        }
        low + (high - low) * (u * c).sqrt()
    }
}

fn step(i: usize, state: &mut [u32; SIZE]) -> usize {
    if i + 1 < SIZE {
        return i + 1;
    }
    state[0] = state[SIZE - 1];
    1
}

#[cfg(test)]
mod tests {
    use super::Mersenne;

    #[test]
    fn draws_are_pythons() {
        // random.Random(20260101): random(), randint(1, 1000000), choice(range(8)), triangular(0, 5500, 400)
        let mut random = Mersenne::new(20_260_101);
        let drawn = (
            random.unit(),
            random.between(1, 1_000_000),
            *random.choice(&[0, 1, 2, 3, 4, 5, 6, 7]),
            random.triangular(0.0, 5500.0, 400.0),
        );
        assert_eq!(drawn, (0.044717192733188416, 312_304, 0, 486.9653974938019));
    }
}
