"""A certificate for the listener: kubectl sends bearer tokens over TLS only."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ("CERTIFICATE", "KEY", "LIFETIME", "write_certificate")

CERTIFICATE, KEY = "server.crt", "server.key"
"""File names."""
LIFETIME = timedelta(days=365)
LEEWAY = timedelta(hours=1)
NAMES = ("localhost",)
ADDRESSES = ("127.0.0.1", "::1")


def write_certificate(folder: Path, *, addresses: tuple[str, ...] = ADDRESSES, now: datetime | None = None) -> tuple[ssl.SSLContext, Path]:
    """Makes a key and a certificate signed by itself in `folder`; returns what the listener needs and what clients trust.

    The key is readable by the owner only. `now`: from when it is valid (an hour earlier, for clocks that differ).
    """
    began = (now or datetime.now(UTC)) - LEEWAY
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "grovekeeper")])
    alternatives: list[x509.GeneralName] = [x509.DNSName(one) for one in NAMES]
    alternatives += [x509.IPAddress(ipaddress.ip_address(one)) for one in addresses]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    trusted, secret = folder / CERTIFICATE, folder / KEY
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.touch(mode=0o600)
    secret.chmod(0o600)
    encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(*encoding))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, secret)
    return context, trusted
