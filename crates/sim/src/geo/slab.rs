//! Places for what is in flight: given back when it has landed.

/// Things with a number as long as they are there.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    /// Takes a thing in and gives its number.
    #[inline]
    pub fn put(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.things[number as usize] = thing;
                number
            }
            None => {
                self.things.push(thing);
                (self.things.len() - 1) as u32
            }
        }
    }

    /// The thing of a number.
    #[inline]
    pub fn get(&mut self, number: u32) -> &mut T {
        &mut self.things[number as usize]
    }

    /// Gives a thing away; its number may be used again. When nothing is left, numbers begin anew,
    /// so that things that come together lie together.
    #[inline]
    pub fn take(&mut self, number: u32) -> T {
        let thing = self.things[number as usize];
        self.free.push(number);
        if self.free.len() == self.things.len() {
            self.things.clear();
            self.free.clear();
        }
        thing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut slab = Slab::default();
        let (a, b) = (slab.put('a'), slab.put('b'));
        assert_eq!(slab.take(a), 'a');
        assert_eq!((slab.put('c'), *slab.get(b)), (a, 'b'));
        assert_eq!((slab.take(a), slab.take(b)), ('c', 'b'));
        assert_eq!((slab.put('d'), slab.put('e')), (0, 1));
    }
}
