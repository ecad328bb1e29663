//! Times of any number of transactions in bounded memory, for quantiles to within 5 %.

/// Steps for each doubling: neighbours differ by 4.4 %.
const STEPS: f64 = 16.0;

/// Up to 2^40 nanoseconds, 18 minutes.
const BUCKETS: usize = 40 * STEPS as usize;

/// How often each time occurred.
#[derive(Debug, Clone, Default)]
pub struct Quantiles {
    /// By the logarithm of the time; as long as the longest time needs.
    weights: Vec<f64>,
    max: u64,
}

impl Quantiles {
    /// Counts a time, in nanoseconds, with a weight: how many transactions it represents.
    pub fn count(&mut self, time: u64, weight: f64) {
        self.max = self.max.max(time);
        let bucket = ((time.max(1) as f64).log2() * STEPS) as usize;
        let bucket = bucket.min(BUCKETS - 1);
        if self.weights.len() <= bucket {
            self.weights.resize(bucket + 1, 0.0);
        }
        if let Some(known) = self.weights.get_mut(bucket) {
            *known += weight;
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Quantiles) {
        self.add_scaled(other, 1.0);
    }

    /// Adds others, each of which represents this many.
    pub fn add_scaled(&mut self, other: &Quantiles, scale: f64) {
        self.max = self.max.max(other.max);
        if self.weights.len() < other.weights.len() {
            self.weights.resize(other.weights.len(), 0.0);
        }
        for (weight, other) in self.weights.iter_mut().zip(&other.weights) {
            *weight += other * scale;
        }
    }

    /// Adds others, each this many times as long.
    pub fn add_slower(&mut self, other: &Quantiles, factor: f64) {
        let later = (factor.max(1.0).log2() * STEPS).round() as usize;
        let mut slower =
            Quantiles { weights: vec![0.0; later.min(BUCKETS)], max: (other.max as f64 * factor) as u64 };
        slower.weights.extend(&other.weights);
        slower.weights.truncate(BUCKETS);
        self.add(&slower);
    }

    /// The longest time, exactly.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// How many there are, by their weights.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The time that this share of all does not exceed, in nanoseconds; 0 if there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = self.total() * share;
        let mut sum = 0.0;
        for (bucket, weight) in self.weights.iter().enumerate() {
            sum += weight;
            if *weight > 0.0 && sum >= wanted {
                return ((bucket as f64 + 0.5) / STEPS).exp2();
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_within_five_percent() {
        let mut low = Quantiles::default();
        let mut high = Quantiles::default();
        for time in 1..=1000 {
            let half = if time % 2 == 0 { &mut low } else { &mut high };
            half.count(time * 1000, 1.0);
        }
        low.add(&high);
        for (share, expected) in [(0.5, 500_000.0), (0.95, 950_000.0), (0.99, 990_000.0)] {
            let found = low.quantile(share);
            assert!((found / expected - 1.0_f64).abs() < 0.05, "{share}: {found}");
        }
        assert_eq!(Quantiles::default().quantile(0.5), 0.0);
    }

    #[test]
    fn slower_ones_are_longer() {
        let mut times = Quantiles::default();
        let mut all = Quantiles::default();
        (1..=1000).for_each(|time| times.count(time * 1000, 1.0));
        all.add_slower(&times, 1.0);
        all.add_slower(&times, 2.5);
        assert!((all.quantile(1.0) / 2_500_000.0 - 1.0_f64).abs() < 0.05 && all.max() == 2_500_000);
        assert_eq!(all.total(), 2000.0);
    }

    #[test]
    fn a_weight_counts_as_often() {
        let mut times = Quantiles::default();
        times.count(1000, 99.0);
        times.count(u64::MAX, 1.0);
        assert!(times.quantile(0.98) < 1100.0 && times.quantile(1.0) > 1e9);
    }
}
