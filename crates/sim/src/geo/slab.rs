//! Reusable storage for what is in flight.

/// Values with numbers that are reused.
#[derive(Clone, Debug, Default)]
pub struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    /// Stores a value and returns its number.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.values[number as usize] = value;
                number
            }
            None => {
                self.values.push(value);
                (self.values.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub fn get(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }

    /// Removes a value; its number may be reused. When nothing is left, numbers restart at 0, so that
    /// values of the same time are adjacent.
    #[inline]
    pub fn remove(&mut self, number: u32) -> T {
        let value = self.values[number as usize];
        self.free.push(number);
        if self.free.len() == self.values.len() {
            self.values.clear();
            self.free.clear();
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reused() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(a), 'a');
        assert_eq!((slab.insert('c'), *slab.get(b)), (a, 'b'));
        assert_eq!((slab.remove(a), slab.remove(b)), ('c', 'b'));
        assert_eq!((slab.insert('d'), slab.insert('e')), (0, 1));
    }
}
