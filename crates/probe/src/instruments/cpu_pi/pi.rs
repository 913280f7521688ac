//! Digits of π by arctangent series in fixed point, base 10^9. Simple on purpose: the load of a
//! benchmark, the same instructions on every machine, no allocation while it computes.
use crate::error::Result;
use crate::trial::session::Session;

const BASE: u64 = 1_000_000_000;
const DIGITS_PER_LIMB: usize = 9;
/// Limbs behind the last digit asked for. Each term is cut off by less than two units of the last
/// limb; up to 10^6 terms leave 12 of these 18 digits.
const GUARD_LIMBS: usize = 2;

/// One term of a Machin-like formula: `coefficient * arctan(1 / inverse)`.
pub struct Arctan {
    coefficient: i64,
    inverse: u64,
}

const fn term(coefficient: i64, inverse: u64) -> Arctan {
    Arctan { coefficient, inverse }
}

/// Machin 1706.
pub const MACHIN: &[Arctan] = &[term(16, 5), term(-4, 239)];
/// Størmer 1896: shares one term with Machin's and nothing else.
pub const STORMER: &[Arctan] = &[term(176, 57), term(28, 239), term(-48, 682), term(96, 12_943)];

pub struct Pi {
    session: Session,
    digits: usize,
    /// Limbs of the sum, not yet carried: terms are added and subtracted limb by limb.
    sum: Vec<i64>,
    power: Vec<u64>,
}

impl Pi {
    /// Allocates and touches the memory for that many decimals.
    pub fn prepare(session: Session, digits: usize) -> Self {
        let limbs = 1 + digits.div_ceil(DIGITS_PER_LIMB) + GUARD_LIMBS;
        // Not zero, so that every page is written; `compute` clears.
        Self { session, digits, sum: vec![1; limbs], power: vec![1; limbs] }
    }

    /// Computes π by the formula. Allocates nothing.
    pub fn compute(&mut self, formula: &[Arctan]) -> Result<()> {
        self.sum.fill(0);
        for arctan in formula {
            self.add(arctan)?;
        }
        let mut carry = 0;
        for limb in self.sum.iter_mut().rev() {
            let value = *limb + carry;
            *limb = value.rem_euclid(BASE.cast_signed());
            carry = value.div_euclid(BASE.cast_signed());
        }
        Ok(())
    }

    /// `c/x - c/(3x^3) + c/(5x^5) - …`, until the power has no limb left.
    fn add(&mut self, arctan: &Arctan) -> Result<()> {
        let square = arctan.inverse * arctan.inverse;
        self.power.fill(0);
        self.power[0] = arctan.coefficient.unsigned_abs() * arctan.inverse;
        let mut sign = arctan.coefficient.signum();
        let mut divisor = 1;
        let mut first = 0;
        while first < self.power.len() {
            self.session.check()?;
            let (mut rest, mut term_rest) = (0, 0);
            for (power, sum) in self.power[first..].iter_mut().zip(&mut self.sum[first..]) {
                let value = rest * BASE + *power;
                *power = value / square;
                rest = value % square;
                let value = term_rest * BASE + *power;
                *sum += sign * (value / divisor).cast_signed();
                term_rest = value % divisor;
            }
            while first < self.power.len() && self.power[first] == 0 {
                first += 1;
            }
            sign = -sign;
            divisor += 2;
        }
        Ok(())
    }

    /// The decimals behind `3.`, as many as were asked for.
    pub fn decimals(&self) -> String {
        let text: String = self.sum[1..].iter().map(|limb| format!("{limb:09}")).collect();
        text[..self.digits].to_owned()
    }

    pub fn whole(&self) -> i64 {
        self.sum[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_formulas_agree_at_every_length_of_the_last_limb() {
        for digits in (1..40).chain([999, 1000, 1001, 3000]) {
            let (mut machin, mut stormer) = (
                Pi::prepare(Session::detached(), digits),
                Pi::prepare(Session::detached(), digits),
            );
            machin.compute(MACHIN).unwrap();
            stormer.compute(STORMER).unwrap();
            assert_eq!(machin.decimals(), stormer.decimals(), "{digits} digits");
            assert_eq!(machin.decimals().len(), digits);
            assert_eq!((machin.whole(), stormer.whole()), (3, 3));
        }
    }

    #[test]
    fn a_second_computation_in_the_same_memory_gives_the_same() {
        let mut pi = Pi::prepare(Session::detached(), 500);
        pi.compute(MACHIN).unwrap();
        let first = pi.decimals();
        pi.compute(MACHIN).unwrap();
        assert_eq!(pi.decimals(), first);
    }
}
