//! Addresses in the kernel's form.
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The kernel's form of an address, and its length.
pub fn to_storage(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: plain C structs, for which all zero is valid; the storage holds either.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let length = match address {
            SocketAddr::V4(v4) => {
                let place = &mut *(&raw mut storage).cast::<libc::sockaddr_in>();
                place.sin_family = libc::AF_INET as libc::sa_family_t;
                place.sin_port = v4.port().to_be();
                place.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let place = &mut *(&raw mut storage).cast::<libc::sockaddr_in6>();
                place.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                place.sin6_port = v6.port().to_be();
                place.sin6_addr.s6_addr = v6.ip().octets();
                place.sin6_scope_id = v6.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, length as libc::socklen_t)
    }
}

/// The address in the kernel's form; `None` of another family.
#[inline]
pub fn from_storage(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the kernel wrote an address of the family that it names.
    unsafe {
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                let place = &*(&raw const *storage).cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(u32::from_be(place.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(place.sin_port)))
            }
            libc::AF_INET6 => {
                let place = &*(&raw const *storage).cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(place.sin6_addr.s6_addr);
                Some(SocketAddr::new(ip.into(), u16::from_be(place.sin6_port)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernel_s_form() {
        for text in ["127.0.0.1:80", "[::1]:4242", "10.1.2.3:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(from_storage(&to_storage(address).0), Some(address));
        }
    }
}
