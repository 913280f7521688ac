//! Whole numbers divided in floating point, by a number whose inverse is kept: exact all the same, and
//! many times as fast as a division of whole numbers of 64 bits.

/// Below this a product with an inverse is off by less than a half: by a quarter and two roundings.
const EXACT: u64 = 1 << 50;
/// Added to a number of floating point it moves the nearest whole number into the last bits. That
/// takes two steps, where a conversion takes eight: it also has an answer for what is out of range.
const SHIFT: f64 = (3_u64 << 51) as f64;

#[inline]
fn nearest(number: f64) -> i64 {
    (number + SHIFT).to_bits() as i64 - SHIFT.to_bits() as i64
}

/// A number that others are divided by; nothing is divided by 0.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    by: i64,
    inverse: f64,
}

impl Divisor {
    /// That number, from 0 on.
    #[inline]
    pub const fn new(by: i64) -> Self {
        Self { by, inverse: 1.0 / by as f64 }
    }

    /// The number itself.
    #[inline]
    pub const fn get(self) -> i64 {
        self.by
    }

    /// a over it, rounded down.
    #[inline]
    pub fn floored(self, a: i64) -> i64 {
        if a.unsigned_abs() >= EXACT {
            return self.widely(i128::from(a));
        }
        // Off by less than a half, the quotient lies nearest to the whole number below or above it.
        let nearest = nearest(a as f64 * self.inverse);
        nearest - i64::from(nearest * self.by > a)
    }

    /// a over it, rounded down.
    #[inline]
    pub fn divided(self, a: i128) -> i64 {
        match i64::try_from(a) {
            Ok(a) => self.floored(a),
            Err(_) => self.widely(a),
        }
    }

    /// a * times over it, rounded down.
    #[inline]
    pub fn scaled(self, a: i64, times: i64) -> i64 {
        match a.checked_mul(times) {
            Some(product) => self.floored(product),
            None => self.widely(i128::from(a) * i128::from(times)),
        }
    }

    /// a over it, rounded down, of a number without a sign that is not below it.
    #[inline]
    pub fn quotient(self, a: u64) -> u64 {
        if a >= EXACT {
            return a / self.by as u64;
        }
        self.floored(a as i64) as u64
    }

    /// Where there is no other way; kept apart, or what is near it in the code would be slower.
    #[cold]
    #[inline(never)]
    fn widely(self, a: i128) -> i64 {
        a.div_euclid(i128::from(self.by)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_division_is_that_of_whole_numbers(a: i64, shift in 0u32..63, by in 1i64..1 << 40) {
            let divisor = Divisor::new(by);
            prop_assert_eq!(divisor.floored(a >> shift), (a >> shift).div_euclid(by));
            // Around whole quotients, where a rounding would show.
            let whole = (a >> shift.max(42)).saturating_mul(by);
            for near in whole.saturating_sub(1)..=whole.saturating_add(1) {
                prop_assert_eq!(divisor.floored(near), near.div_euclid(by));
            }
        }

        #[test]
        fn so_are_those_of_products_and_of_what_is_wider(
            a: i64, shift in 0u32..63, times in 1i64..1 << 30, by in 1i64..1 << 30,
        ) {
            let (a, divisor) = (a >> shift.max(31), Divisor::new(by));
            let product = i128::from(a) * i128::from(times);
            let wanted = product.div_euclid(i128::from(by));
            prop_assert_eq!(i128::from(divisor.scaled(a, times)), wanted);
            prop_assert_eq!(i128::from(divisor.divided(product)), wanted);
        }

        #[test]
        fn a_quotient_has_no_sign(a: u64, shift in 0u32..63, by in 1u64..1 << 40) {
            let whole = ((a | 1 << 63) >> shift.max(20)).saturating_mul(by);
            for a in [whole.saturating_sub(1).max(by), whole, whole.saturating_add(by - 1)] {
                prop_assert_eq!(Divisor::new(by as i64).quotient(a), a / by);
            }
        }
    }
}
