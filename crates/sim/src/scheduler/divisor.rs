//! Exact integer division in floating point, by a divisor whose inverse is stored: many times as fast as
//! a 64-bit integer division.

/// Below this a product with an inverse is off by less than a half: by a quarter and two roundings.
const EXACT: u64 = 1 << 50;
/// Added to a floating-point number it moves the nearest integer into the last bits. That takes two
/// steps where a conversion, which also handles what is out of range, takes eight.
const SHIFT: f64 = (3_u64 << 51) as f64;

#[inline]
fn nearest(number: f64) -> i64 {
    (number + SHIFT).to_bits() as i64 - SHIFT.to_bits() as i64
}

/// A divisor; 0 is allowed as long as nothing is divided by it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Divisor {
    by: i64,
    inverse: f64,
}

impl Divisor {
    #[inline]
    pub const fn new(by: i64) -> Self {
        Self { by, inverse: 1.0 / by as f64 }
    }

    #[inline]
    pub const fn get(self) -> i64 {
        self.by
    }

    /// Returns a / divisor, rounded down.
    #[inline]
    pub fn floor_div(self, a: i64) -> i64 {
        if a.unsigned_abs() >= EXACT {
            return self.divide_wide(i128::from(a));
        }
        // Off by less than a half, the quotient is nearest to the integer below or above it.
        let nearest = nearest(a as f64 * self.inverse);
        nearest - i64::from(nearest * self.by > a)
    }

    /// Returns a / divisor, rounded down.
    #[inline]
    pub fn floor_div_wide(self, a: i128) -> i64 {
        match i64::try_from(a) {
            Ok(a) => self.floor_div(a),
            Err(_) => self.divide_wide(a),
        }
    }

    /// Returns a * factor / divisor, rounded down.
    #[inline]
    pub fn scale(self, a: i64, factor: i64) -> i64 {
        match a.checked_mul(factor) {
            Some(product) => self.floor_div(product),
            None => self.divide_wide(i128::from(a) * i128::from(factor)),
        }
    }

    /// Returns a / divisor, rounded down, for an unsigned number not below the divisor.
    #[inline]
    pub fn quotient(self, a: u64) -> u64 {
        if a >= EXACT {
            return a / self.by as u64;
        }
        self.floor_div(a as i64) as u64
    }

    /// The slow path; not inlined, or the code around it would be slower.
    #[cold]
    #[inline(never)]
    fn divide_wide(self, a: i128) -> i64 {
        a.div_euclid(i128::from(self.by)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floor_div_equals_integer_division(a: i64, shift in 0u32..63, by in 1i64..1 << 40) {
            let divisor = Divisor::new(by);
            prop_assert_eq!(divisor.floor_div(a >> shift), (a >> shift).div_euclid(by));
            // Around whole quotients, where a rounding would show.
            let whole = (a >> shift.max(42)).saturating_mul(by);
            for near in whole.saturating_sub(1)..=whole.saturating_add(1) {
                prop_assert_eq!(divisor.floor_div(near), near.div_euclid(by));
            }
        }

        #[test]
        fn so_do_scale_and_floor_div_wide(
            a: i64, shift in 0u32..63, times in 1i64..1 << 30, by in 1i64..1 << 30,
        ) {
            let (a, divisor) = (a >> shift.max(31), Divisor::new(by));
            let product = i128::from(a) * i128::from(times);
            let wanted = product.div_euclid(i128::from(by));
            prop_assert_eq!(i128::from(divisor.scale(a, times)), wanted);
            prop_assert_eq!(i128::from(divisor.floor_div_wide(product)), wanted);
        }

        #[test]
        fn quotient_is_unsigned(a: u64, shift in 0u32..63, by in 1u64..1 << 40) {
            let whole = ((a | 1 << 63) >> shift.max(20)).saturating_mul(by);
            for a in [whole.saturating_sub(1).max(by), whole, whole.saturating_add(by - 1)] {
                prop_assert_eq!(Divisor::new(by as i64).quotient(a), a / by);
            }
        }
    }
}
