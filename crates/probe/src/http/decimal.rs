//! Whole numbers in bytes that anybody may have sent.

/// Returns the number that some decimal digits are; `None` where there are none, where something else
/// is among them, or where 64 bits have no room for it.
#[inline]
pub fn parse(digits: &[u8]) -> Option<u64> {
    let add = |number: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    };
    digits.iter().try_fold(0, add).filter(|_| !digits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_a_number_and_nothing_else_is() {
        assert_eq!((parse(b"0"), parse(b"0012")), (Some(0), Some(12)));
        assert_eq!(parse(b"18446744073709551615"), Some(u64::MAX));
        for bytes in
            [&b""[..], b"+1", b"-1", b" 1", b"1 ", b"1.0", b"\xb2", b"18446744073709551616"]
        {
            assert_eq!(parse(bytes), None, "{bytes:?}");
        }
    }
}
