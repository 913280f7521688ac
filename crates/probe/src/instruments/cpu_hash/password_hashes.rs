//! Password hashes of Unix, as `crypt(3)` computes them, on the block ciphers and digests of other
//! crates. Results are the raw bytes, without the text encoding of password files.
use blowfish::Blowfish;
use des::cipher::{BlockEncrypt, KeyInit};
use des::Des;
use md5::{Digest, Md5};

/// The traditional hash of `crypt(3)` with the salt `..`: DES, 25 times, of a block of zeros. Another
/// salt exchanges bits inside DES and costs the same.
pub fn des_crypt(password: &[u8]) -> [u8; 8] {
    let mut key = [0; 8];
    for (byte, character) in key.iter_mut().zip(password) {
        // The lowest bit is a parity that DES ignores.
        *byte = character << 1;
    }
    let cipher = Des::new(&key.into());
    let mut block = [0; 8].into();
    (0..25).for_each(|_| cipher.encrypt_block(&mut block));
    block.into()
}

/// The hash `$1$`: MD5, 1000 times, of changing orders of password, salt and the last result.
pub fn md5_crypt(password: &[u8], salt: &[u8]) -> [u8; 16] {
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let inner: [u8; 16] = inner.finalize().into();
    let mut outer = Md5::new().chain_update(password).chain_update(b"$1$").chain_update(salt);
    let mut left = password.len();
    while left > 0 {
        let part = left.min(inner.len());
        outer.update(&inner[..part]);
        left -= part;
    }
    let mut bits = password.len();
    while bits > 0 {
        outer.update(if bits & 1 == 1 { &[0] } else { &password[..1] });
        bits >>= 1;
    }
    let mut digest: [u8; 16] = outer.finalize().into();
    for round in 0..1000 {
        let mut hasher = Md5::new();
        let odd = round % 2 == 1;
        hasher.update(if odd { password } else { &digest });
        if round % 3 != 0 {
            hasher.update(salt);
        }
        if round % 7 != 0 {
            hasher.update(password);
        }
        hasher.update(if odd { &digest } else { password });
        digest = hasher.finalize().into();
    }
    digest
}

/// The hash `$2b$`: Blowfish with an expensive key schedule, repeated 2 to the power of `cost` times.
pub fn bcrypt(password: &[u8], salt: [u8; 16], cost: u32) -> [u8; 24] {
    /// `OrpheanBeholderScryDoubt`, which is encrypted 64 times.
    const TEXT: [u32; 6] =
        [0x4f72_7068, 0x6561_6e42, 0x6568_6f6c, 0x6465_7253, 0x6372_7944, 0x6f75_6274];
    /// bcrypt takes 72 bytes, the terminating 0 included.
    const KEY: usize = 72;
    let length = password.len().min(KEY - 1);
    let mut key = [0; KEY];
    key[..length].copy_from_slice(&password[..length]);
    let key = &key[..=length];
    let mut state = Blowfish::bc_init_state();
    state.salted_expand_key(&salt, key);
    for _ in 0..1u32 << cost {
        state.bc_expand_key(key);
        state.bc_expand_key(&salt);
    }
    let mut digest = [0; 24];
    for (pair, bytes) in TEXT.chunks_exact(2).zip(digest.chunks_exact_mut(8)) {
        let text = (0..64).fold([pair[0], pair[1]], |text, _| state.bc_encrypt(text));
        bytes[..4].copy_from_slice(&text[0].to_be_bytes());
        bytes[4..].copy_from_slice(&text[1].to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `crypt(3)` answers, decoded from its texts: `..UZoIyj/Hy/c`,
    /// `$1$saltstri$YMyguxXMBpd2TEZ.vS/3q1` and
    /// `$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW`.
    #[test]
    fn hashes_are_those_of_crypt() {
        assert_eq!(u64::from_be_bytes(des_crypt(b"password")), 0x825d_14fa_f053_f81a);
        let md5 = u128::from_be_bytes(md5_crypt(b"Hello world!", b"saltstri"));
        assert_eq!(md5, 0xb362_1202_14bb_e63f_9d54_17f6_247a_4d1f);
        let salt = 0x1041_0410_4104_1041_0410_4104_1041_0410_u128.to_be_bytes();
        let digest = bcrypt(b"U*U", salt, 5);
        // The text has 23 of the 24 bytes.
        let hex: String = digest[..23].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "1bb69143f9a8d304c8d23d99ab049a77a68e2ccc744206");
    }
}
