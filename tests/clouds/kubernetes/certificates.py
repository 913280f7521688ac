"""An authority for one cluster, and the certificates of its server and of its administrator."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

ADDRESSES = ("127.0.0.1", "10.77.0.1", "10.78.0.1")


@dataclass(frozen=True)
class Certificates:
    """PEM texts."""

    authority: bytes
    server: bytes
    server_key: bytes
    admin: bytes
    admin_key: bytes


def made() -> Certificates:
    key, own = _key(), _name("cluster")
    authority = _certificate(own, own, key, key, authority=True)
    server_key, admin_key = _key(), _key()
    server = _certificate(_name("kube-apiserver"), own, server_key, key, addresses=ADDRESSES)
    admin = _certificate(_name("admin", "system:masters"), own, admin_key, key)
    return Certificates(authority, server, _pem(server_key), admin, _pem(admin_key))


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: rsa.RSAPrivateKey,
    signer: rsa.RSAPrivateKey,
    *,
    authority: bool = False,
    addresses: tuple[str, ...] = (),
) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if addresses:
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(signer, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def _name(common: str, organisation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organisation:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
