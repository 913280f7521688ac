//! What is written into objects: random bytes that a service can neither compress nor find twice, and
//! of which every object has a part of its own, so that its hash is known before it is written.
use nephoscope_wire::random::Random;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Length of the random block, a prime: neither pages of 4 KiB nor parts of a power of two repeat
/// before it has been used 4096 times, and the usual windows of compressors (2 MiB) hold no repetition.
const BLOCK_BYTES: usize = 4_194_301;

/// The block's beginning once more at its end, so that a piece of up to this length never has to stop
/// where the block does: every write but the last of an object has the same length.
const OVERLAP_BYTES: usize = 1 << 20;

/// The random bytes that all objects share.
#[derive(Clone, Debug)]
pub struct Content {
    block: Arc<[u8]>,
}

/// One object: its name below the prefix of the run, its size and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub name: String,
    pub bytes: u64,
    /// Where in the block it begins.
    shift: usize,
    /// SHA-256 of its bytes.
    pub digest: [u8; 32],
}

impl Content {
    pub fn new(seed: u64) -> Self {
        let mut block = vec![0u8; BLOCK_BYTES];
        Random::new(seed).fill(&mut block);
        block.extend_from_within(..OVERLAP_BYTES);
        Self { block: block.into() }
    }

    /// Returns an object whose bytes begin anywhere in the block.
    pub fn object(&self, name: String, bytes: u64, random: &mut Random) -> Object {
        let shift = usize::try_from(random.below(BLOCK_BYTES as u64)).unwrap_or(0);
        let mut object = Object { name, bytes, shift, digest: [0; 32] };
        let mut hash = Sha256::new();
        for piece in self.pieces(&object, BLOCK_BYTES) {
            hash.update(piece);
        }
        object.digest = hash.finalize().into();
        object
    }

    /// Returns the bytes of an object in order, in pieces of at most `limit` bytes.
    pub fn pieces<'a>(
        &'a self,
        object: &Object,
        limit: usize,
    ) -> impl Iterator<Item = &'a [u8]> + 'a {
        let (block, shift, bytes) = (&self.block, object.shift as u64, object.bytes);
        let mut offset = 0u64;
        std::iter::from_fn(move || {
            if offset == bytes {
                return None;
            }
            let start = usize::try_from((shift + offset) % BLOCK_BYTES as u64).unwrap_or(0);
            let left = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
            let length = limit.min(left).min(block.len() - start);
            offset += length as u64;
            Some(&block[start..start + length])
        })
    }

    /// Returns where in the block the pieces of an object lie, for stores that share its memory.
    #[cfg(feature = "storage")]
    pub fn ranges<'a>(
        &'a self,
        object: &Object,
        limit: usize,
    ) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
        let origin = self.block.as_ptr() as usize;
        self.pieces(object, limit).map(move |piece| {
            let start = piece.as_ptr() as usize - origin;
            start..start + piece.len()
        })
    }

    #[cfg(feature = "storage")]
    pub fn block(&self) -> Arc<[u8]> {
        Arc::clone(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_make_the_same_object_with_its_hash() {
        let content = Content::new(7);
        let mut random = Random::new(1);
        for bytes in [1, 4096, BLOCK_BYTES as u64, 2 * BLOCK_BYTES as u64 + 17] {
            let object = content.object("a".to_owned(), bytes, &mut random);
            for limit in [1000, 1 << 20, usize::MAX] {
                let mut hash = Sha256::new();
                let mut length = 0;
                for piece in content.pieces(&object, limit) {
                    length += piece.len() as u64;
                    assert!(!piece.is_empty() && piece.len() <= limit);
                    assert!(piece.len() >= limit.min(OVERLAP_BYTES) || length == bytes);
                    hash.update(piece);
                }
                assert_eq!(length, bytes);
                assert_eq!(<[u8; 32]>::from(hash.finalize()), object.digest);
            }
        }
    }

    #[test]
    fn objects_differ_from_each_other() {
        let content = Content::new(7);
        let mut random = Random::new(1);
        let first = content.object("a".to_owned(), 4096, &mut random);
        let second = content.object("a".to_owned(), 4096, &mut random);
        assert_ne!(first.digest, second.digest);
    }
}
