//! Chance that falls the same in every run: what is drawn depends on a name and on how often was drawn before.

pub struct Dice(u64);

impl Dice {
    pub fn of(name: &str) -> Self {
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv))
    }

    /// A number below that one. This is `SplitMix64`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    /// Whether something happens that does so in that many of a hundred cases.
    pub fn percent(&mut self, cases: u64) -> bool {
        self.below(100) < cases
    }
}
