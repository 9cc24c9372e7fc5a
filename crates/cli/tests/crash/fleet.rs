//! Many cases at once.

use std::sync::Mutex;

/// Works off a list with a few threads; a case that fails, fails the test when
/// all are done, with its name.
pub(crate) fn each<T: Send + std::fmt::Debug + Clone>(
    cases: Vec<T>,
    threads: usize,
    work: impl Fn(T) + Sync,
) {
    let cases = Mutex::new(cases.into_iter());
    let failed = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = cases.lock().unwrap().next();
                    let Some(case) = next else { return };
                    let name = format!("{case:?}");
                    let work = std::panic::AssertUnwindSafe(|| work(case));
                    if std::panic::catch_unwind(work).is_err() {
                        failed.lock().unwrap().push(name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} cases failed: {failed:#?}", failed.len());
}

/// Added to every seed, for those who want other numbers than CI's.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("TIDELAKE_TEST_SEED").ok();
    seed.map_or(0, |seed| seed.parse().unwrap())
}

/// Numbers that look random and are the same in every run with that seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One below `bound`.
    pub(crate) fn roll(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let at = usize::try_from(self.roll(u64::try_from(from.len()).unwrap())).unwrap();
        from[at].clone()
    }
}
